// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// flip is a change of one bit of a record, behind the store's back.
type flip struct {
	column string
	value  any   // that the column gets; nil: bit is flipped
	bit    int64 // of a number
}

// flips returns the flips of all that [damagedRecords] stores of a feed. Of its ID alone there are
// none: by another ID it is another feed.
func flips() (all []flip) {
	for _, column := range []string{
		"spacing", "not_established", "owner", "seen", "days", "configured", "token", "next", "due", "hold", "last", "hopped", "earliest", "asked",
		"version", "size", "body", "changed", "news", "outcome", "moment", "followed", "waiting", "configured_until",
	} {
		for bit := range 64 {
			all = append(all, flip{column: column, bit: 1 << bit})
		}
	}
	for column, was := range map[string]string{
		"url": "https://example.com/", "host": "host", "domain": "example.com", "state": "fresh", "coding": "identity", "poll_state": "facts", "feed_state": "memo",
	} {
		for i := range was {
			other := []byte(was)
			other[i] ^= 1
			if all = append(all, flip{column: column, value: string(other)}); strings.HasSuffix(column, "_state") {
				all[len(all)-1].value = other
			}
		}
	}
	slices.SortFunc(all, func(a, b flip) int { return int(a.bit>>1%5 - b.bit>>1%5) }) // so that every few have all columns
	return all
}

// every returns each nth of some statements for a store that is shared: there they take a hundred times as long.
func every[T any](h Harness, n int, all []T) []T {
	if !h.Shared {
		return all
	}
	for i := range all[:len(all)/n] {
		all[i] = all[i*n]
	}
	return all[:len(all)/n]
}

// mayDamage skips a test if the store cannot be damaged. With -short it skips one on a server, where
// thousands of statements take long: an embedded store runs the same.
func mayDamage(t *testing.T, h Harness) {
	t.Helper()
	if h.Exec == nil {
		t.Skip("no way to damage this store")
	}
	if testing.Short() && h.Shared {
		t.Skip("thousands of statements on a server")
	}
}

// damagedRecords flips bits of records, of each feed one. Each of them may be polled once too early, or late
// by a week at most, and no reader is told to wait longer. None has the body of another one, and one that is whole is as it was.
func damagedRecords(t *testing.T, h Harness) {
	mayDamage(t, h)
	s := h.open(t)
	damage := every(h, 6, flips())
	content := func(n int) *store.Body { return Text(1, fmt.Sprintf("content %06d", n)) }
	var saved []store.Saved
	var claims []store.Claim
	for n := range len(damage) + 1 {
		c := Claim(n)
		c.Configured, c.Host = true, store.Host{Name: fmt.Sprint("host-", n), Domain: fmt.Sprint(n, ".com"), Spacing: time.Minute}
		claims = append(claims, c)
		saved = append(saved, store.Saved{Record: store.Record{
			ID: c.ID, URL: c.URL, Host: c.Host, Configured: true, State: store.StateFresh, Version: 1, PollState: []byte("facts"), FeedState: []byte("memo"),
			In: 2 * time.Hour, Hold: 3 * time.Hour, Polled: time.Hour, Asked: time.Minute, Hopped: time.Minute, NotBefore: time.Hour,
		}, Body: content(n)})
	}
	if err := s.Restore(t.Context(), saved); err != nil {
		t.Fatal(err)
	}
	for n, f := range damage {
		set, value := f.column+` = ?1`, f.value
		if value == nil {
			set, value = fmt.Sprintf(`%s = (coalesce(%[1]s, 0) | ?1) - (coalesce(%[1]s, 0) & ?1)`, f.column), f.bit
		}
		h.Exec(`update feed set `+set+` where id = ?2`, value, claims[n].ID[:])
	}
	whole := len(damage)
	records, err := s.Records(t.Context(), store.ID{}, len(claims))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.In != store.Ended && r.In > 7*24*time.Hour+2*time.Hour {
			t.Errorf("%s: its next poll is in %v", r.URL, r.In)
		}
	}
	poll := func() (early map[int]bool) {
		t.Helper()
		var leases []store.Lease
		for some := range slices.Chunk(claims, 20) { // a call has its limit of time
			granted, err := s.Claim(t.Context(), some)
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, granted...)
		}
		early = make(map[int]bool)
		for n, l := range leases {
			if early[n] = l.Denied == ""; early[n] {
				o := Outcome(l, nil)
				o.In = 3 * time.Hour
				Commit(t, s, o)
			}
			if l.Wait > 7*24*time.Hour+2*time.Hour {
				t.Errorf("feed %d, %+v: waits for %v", n, damage[min(n, whole-1)], l.Wait)
			}
		}
		return early
	}
	early, again := poll(), poll()
	for n := range claims {
		if again[n] || early[n] && n == whole {
			t.Errorf("feed %d, %+v, is polled too early: %v, and again: %v", n, damage[min(n, whole-1)], early[n], again[n])
		}
	}
	for range 3 { // some are found to be damaged only
		if _, _, err := s.ClaimDue(t.Context(), store.DueQuery{Limit: 100}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Sweep(t.Context(), store.SweepQuery{}); err != nil {
		t.Fatal(err)
	}
	for n := range claims {
		body, err := store.ReadBody(t.Context(), s, claims[n].ID)
		if want := content(n); err == nil && string(body.Data) != string(want.Data) {
			t.Errorf("feed %d, %+v, has the body %q", n, damage[min(n, whole-1)], body.Data)
		} else if err != nil && (n == whole || !errors.Is(err, store.ErrNoBody)) {
			t.Errorf("feed %d, %+v: Body: %v", n, damage[min(n, whole-1)], err)
		}
	}
	if r := lookup(t, s, whole); !near(r.In, 2*time.Hour) || string(r.FeedState) != "memo" || r.Token == 0 {
		t.Errorf("the feed that is whole: %+v", r)
	}
	other := []byte("content")
	h.Exec(`update body set data = ?1 where id = (select body from feed where id = ?2)`, other, claims[whole].ID[:])
	_, err = store.ReadBody(t.Context(), s, claims[whole].ID)
	wantError(t, "Body that is damaged", err, store.ErrNoBody)
	h.Sleep(8 * 24 * time.Hour)
	for n, polled := range poll() {
		if !polled {
			t.Errorf("feed %d, %+v, is not polled after a week", n, damage[min(n, whole-1)])
		}
	}
}

// damagedHosts flips bits of hosts and of their pauses, of each host one. Their feeds are polled all the
// same, not before they are due, and then their spacing and pauses count again. A pause that may have
// been meant is kept.
func damagedHosts(t *testing.T, h Harness) {
	mayDamage(t, h)
	s := h.open(t)
	var damage []string
	for bit := range 64 {
		for _, column := range []string{"free", "ready", "calm", "turn", "served_2", "served_3", "good", "plain"} {
			damage = append(damage, fmt.Sprintf(`update host set %s = (%[1]s | %[2]d) - (%[1]s & %[2]d) where 'host ' || name = ?1`, column, int64(1)<<bit))
		}
		damage = append(damage, fmt.Sprintf(`update pause set until = (until | %d) - (until & %[1]d) where scope = ?1 || ' 1'`, int64(1)<<bit))
		if bit != 63 { // the rest are too large for a number of pauses
			damage = append(damage, fmt.Sprintf(`update pause set step = (step | %d) - (step & %[1]d) where scope = ?1 || ' 1'`, int64(1)<<bit))
		}
	}
	damage = every(h, 7, damage)
	if !h.Shared { // and each column may have a value of another type
		for _, column := range []string{"domain", "free", "ready", "calm", "turn", "served_2", "served_3", "good", "plain"} {
			damage = append(damage, `update host set `+column+` = x'00' where 'host ' || name = ?1`)
		}
		for _, column := range []string{"until", "why", "step"} {
			damage = append(damage, `update pause set `+column+` = x'00' where scope = ?1 || ' 1'`)
		}
	}
	damage = append(damage, `update host set domain = 'other' where 'host ' || name = ?1`)
	poll := func(n int, pauses ...store.Pause) store.Outcome {
		o := Outcome(Grant(t, s, claimOf(n, len(damage))), nil)
		o.In, o.Pauses = time.Hour, pauses
		return o
	}
	pause := func(n int, limited bool) store.Pause {
		c := claimOf(n, len(damage))
		return store.Pause{Scope: "host " + c.Host.Name, Domain: c.Host.Domain, For: 30 * time.Minute, Why: "busy", Limited: limited}
	}
	for n := range damage {
		o := poll(n, pause(n, false))
		o.Good = []policy.Good{{Host: o.Host}}
		Commit(t, s, o)
	}
	for n, sql := range damage {
		h.Exec(sql, "host "+claimOf(n, len(damage)).Host.Name)
	}
	if leases, _, err := s.ClaimDue(t.Context(), store.DueQuery{Limit: 100}); err != nil || len(leases) > 0 {
		t.Fatalf("ClaimDue = %+v, %v", leases, err)
	}
	if _, err := s.Sweep(t.Context(), store.SweepQuery{}); err != nil { // it removes pauses that are too long
		t.Fatal(err)
	}
	h.Sleep(8 * 24 * time.Hour) // a pause is not longer than a week
	polled := make(map[store.ID]bool)
	for {
		leases, _, err := s.ClaimDue(t.Context(), store.DueQuery{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range leases {
			polled[l.ID] = true
		}
		if len(leases) == 0 {
			break
		}
	}
	for n, sql := range damage {
		if !polled[idOf(n)] {
			// A host whose place in the order is damaged may have to wait for a reader.
			if l := Ask(t, s, claimOf(n, len(damage))); l.Denied != "" || !strings.Contains(sql, "set ready") {
				t.Errorf("%s: not polled in a week: %+v", sql, l)
			}
		}
		if l := Ask(t, s, claimOf(n+len(damage), len(damage))); l.Denied != store.DeniedBusy || l.Wait > time.Minute {
			t.Errorf("%s: another feed of the host is claimed: %+v", sql, l)
		}
	}
	h.Sleep(time.Hour)
	for n := range damage {
		Commit(t, s, poll(n+len(damage), pause(n, true)))
	}
	h.Sleep(10 * time.Minute)
	for n, sql := range damage {
		if l := Ask(t, s, claimOf(n+2*len(damage), len(damage))); l.Denied != store.DeniedPaused || l.Wait > 30*time.Minute {
			t.Errorf("%s: a pause does not count: %+v", sql, l)
		}
	}
}

// damagedNames damages the name of a host. All hosts are polled all the same, each at its pace and not during
// its pause, and nothing is lost when the store is opened after a crash.
func damagedNames(t *testing.T, h Harness) {
	if mayDamage(t, h); h.Shared {
		t.Skip("each column keeps its type")
	}
	s := h.open(t)
	const hosts = 5
	for n := range hosts {
		o := Outcome(Grant(t, s, claimOf(n, hosts)), Text(1, "content"))
		if n == 0 {
			pause := store.Pause{Scope: "host " + o.Host.Name, For: 24 * time.Hour}
			if err := s.Restore(t.Context(), []store.Saved{{Pause: &pause}}); err != nil {
				t.Fatal(err)
			}
		}
		Commit(t, s, o)
	}
	for _, value := range []string{"x'32'", "null"} {
		h.Sleep(3 * time.Hour)
		h.Exec(`update host set name = ` + value + ` where name = '2'`)
		h.Kill(s)
		s = h.open(t)
		polled := 0
		for range 3 { // the first finds the damage
			leases, _, err := s.ClaimDue(t.Context(), store.DueQuery{Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			polled += len(leases)
			h.Sleep(time.Minute)
		}
		if polled != hosts-1 {
			t.Errorf("%s: %d hosts are polled, want %d", value, polled, hosts-1)
		}
		if l := Ask(t, s, claimOf(hosts, hosts)); l.Denied != store.DeniedPaused {
			t.Errorf("%s: a pause does not count: %+v", value, l)
		}
		for n := range hosts {
			wantBody(t, s, n, Text(1, "content"))
		}
	}
}

// claimOf asks for the nth feed of some hosts.
func claimOf(n, hosts int) store.Claim {
	c := Claim(n)
	c.Configured, c.Host = true, host(fmt.Sprint(n%hosts))
	return c
}
