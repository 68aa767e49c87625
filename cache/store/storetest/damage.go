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
)

// damage is a change of a value of a feed, its site or its site's pause, behind the store's back.
type damage struct {
	table, column string
	value         any   // that the column gets; nil: a bit of a number is flipped
	bit           int64 // that one
}

// do damages the feed of a claim.
func (d damage) do(h Harness, c store.Claim) {
	key, value, set := "url", d.value, d.column+` = ?1`
	of := c.URL
	switch d.table {
	case "host":
		key, of = "name", c.Host.Site
	case "pause":
		key, of = "scope", "site "+c.Host.Site
	}
	if value == nil {
		value, set = d.bit, fmt.Sprintf(`%s = (coalesce(%[1]s, 0) | ?1) - (coalesce(%[1]s, 0) & ?1)`, d.column)
	}
	h.Exec(`update `+d.table+` set `+set+` where `+key+` = ?2`, value, of)
}

// damages returns what is damaged: each bit of each column. Of the ID of a feed and the name of a site there are none: by other
// ones they are another feed and site.
func damages(h Harness) (all []damage) {
	for table, columns := range map[string][]string{
		"feed": {
			"owner", "token", "next", "wanted", "last", "earliest", "asked", "first", "refused", "version", "size", "body", "changed", "news", "outcome", "configured_until",
		},
		"host":  {"free", "good"},
		"pause": {"until", "step"},
	} {
		for _, column := range columns {
			for bit := range 64 {
				all = append(all, damage{table: table, column: column, bit: 1 << bit})
			}
		}
	}
	for column, was := range map[string]string{
		"url": "https://example.com/", "site": "host", "state": "fresh", "coding": "identity", "poll_state": "facts", "feed_state": "memo",
	} {
		for i := range was {
			other := []byte(was)
			other[i] ^= 1
			d := damage{table: "feed", column: column, value: string(other)}
			if strings.HasSuffix(column, "_state") {
				d.value = other
			}
			all = append(all, d)
		}
	}
	// So that every few have all columns.
	slices.SortFunc(all, func(a, b damage) int { return int(a.bit>>1%5 - b.bit>>1%5) })
	if h.Shared || testing.Short() { // on a server statements take a hundred times as long
		for i := range len(all) / 6 {
			all[i] = all[i*6]
		}
		return all[:len(all)/6]
	}
	for table, columns := range map[string][]string{
		"host": {"free", "good"}, "pause": {"until", "why", "step"},
	} {
		for _, column := range columns { // each may have a value of another type
			all = append(all, damage{table: table, column: column, value: []byte{0}})
		}
	}
	return all
}

// damaged damages feeds, of each one value. A damaged record may be polled once too early, or late by a month at most, and has no
// body of another one; no reader gets a longer Retry-After. A feed whose site or pause is damaged is polled when it is due, and then its spacing and pauses count
// again. One that is whole is as it was.
func damaged(t *testing.T, h Harness) {
	if h.Exec == nil {
		t.Skip("no way to damage this store")
	}
	if testing.Short() && h.Shared {
		t.Skip("thousands of statements on a server: an embedded store runs the same")
	}
	const month = 31*24*time.Hour + 2*time.Hour
	s := h.open(t)
	all := damages(h)
	whole := len(all) // the feed after them
	feeds := whole + 1
	claim := func(n int) store.Claim { // of the hosts' first feeds, and of others
		c := Claim(n)
		c.Configured, c.Host = true, host(fmt.Sprint("host-", n%feeds))
		return c
	}
	content := func(n int) *store.Body { return Text(1, fmt.Sprintf("content %06d", n)) }
	outcome := func(l store.Lease, body *store.Body) store.Outcome {
		o := Outcome(l, body)
		o.Good = []string{l.Site}
		o.Pauses = []store.Pause{{Site: l.Site, For: 30 * time.Minute, Why: "busy"}}
		return o
	}
	var saved []store.Saved
	for n := range feeds {
		c := claim(n)
		saved = append(saved, store.Saved{Record: store.Record{
			ID: c.ID, URL: c.URL, Site: c.Host.Site, Configured: true, State: store.StateFresh, Polled: 5 * time.Hour, Asked: time.Minute, First: time.Minute,
		}, Hold: 3 * time.Hour})
	}
	wantError(t, "Restore", s.Restore(t.Context(), saved), nil)
	for n := range feeds {
		o := outcome(Grant(t, s, claim(n)), content(n))
		o.NotBefore = time.Hour
		Commit(t, s, o)
	}
	for n, d := range all {
		d.do(h, claim(n))
	}
	records, failed := s.Records(t.Context(), store.ID{}, feeds, false)
	wantError(t, "Records", failed, nil)
	for _, r := range records {
		if r.In != store.Ended && r.In > month {
			t.Errorf("%s: its next poll is in %v", r.URL, r.In)
		}
	}

	// due polls what is due, and returns which feeds that are.
	due := func() map[int]bool {
		t.Helper()
		polled := make(map[int]bool)
		for range 3 * feeds {
			leases := Poll(t, s, time.Minute)
			for _, l := range leases {
				var n int
				if _, err := fmt.Sscanf(l.URL, "https://example.com/%d.xml", &n); err != nil || polled[n] {
					t.Errorf("feed %s is polled again, %v", l.URL, err)
				}
				polled[n] = true
				Commit(t, s, Outcome(l, nil))
			}
			if len(leases) == 0 {
				break
			}
		}
		for n := range feeds {
			switch l := Ask(t, s, claim(n)); {
			case l.Denied == "" && polled[n] || l.Wait > month:
				t.Errorf("feed %d, %+v: polled again, or waits for %v", n, all[min(n, whole-1)], l.Wait)
			case l.Denied == "":
				if d := all[min(n, whole-1)]; n == whole || d.table != "feed" {
					t.Errorf("feed %d, %+v: polled too early, or only for a reader", n, d)
				}
				polled[n] = true
				Commit(t, s, Outcome(l, nil))
			}
		}
		return polled
	}
	for n := range due() {
		if n == whole || all[n].table != "feed" {
			t.Errorf("feed %d, %+v, is polled too early", n, all[min(n, whole-1)])
		}
	}
	_, err := s.Sweep(t.Context(), store.SweepQuery{}) // it removes pauses that are too long
	wantError(t, "Sweep", err, nil)
	for n := range feeds {
		body, err := store.ReadBody(t.Context(), s, idOf(n))
		if want := content(n); err == nil && string(body.Data) != string(want.Data) {
			t.Errorf("feed %d, %+v, has the body %q", n, all[min(n, whole-1)], body.Data)
		} else if err != nil && (n == whole || !errors.Is(err, store.ErrNoBody)) {
			t.Errorf("feed %d, %+v: Body: %v", n, all[min(n, whole-1)], err)
		}
	}
	if r := lookup(t, s, whole); !near(r.In+r.Polled, 2*time.Hour) || string(r.FeedState) != "memo" || r.Token == 0 {
		t.Errorf("the feed that is whole: %+v", r)
	}
	h.Exec(`update body set data = ?1 where id = (select body from feed where url = ?2)`, []byte("content"), urlOf(whole))
	_, err = store.ReadBody(t.Context(), s, idOf(whole))
	wantError(t, "Body that is damaged", err, store.ErrNoBody)

	h.Sleep(32 * 24 * time.Hour) // a decision is not longer than a month
	polled := due()
	var hosts []int // that were damaged
	for n := range feeds {
		if !polled[n] {
			t.Errorf("feed %d, %+v, is not polled after a month", n, all[min(n, whole-1)])
		}
		if n < whole && all[n].table != "feed" {
			hosts = append(hosts, n)
		}
	}
	for _, n := range hosts {
		if l := Ask(t, s, claim(n+feeds)); l.Denied != store.DeniedBusy || l.Wait > time.Minute {
			t.Errorf("feed %d, %+v: another feed of its host is claimed: %+v", n, all[n], l)
		}
	}
	h.Sleep(time.Hour)
	for _, n := range hosts {
		Commit(t, s, outcome(Grant(t, s, claim(n+feeds)), nil))
	}
	h.Sleep(5 * time.Minute)
	for _, n := range hosts {
		if l := Ask(t, s, claim(n+2*feeds)); l.Denied != store.DeniedPaused || l.Wait > 30*time.Minute {
			t.Errorf("feed %d, %+v: a pause does not count: %+v", n, all[n], l)
		}
	}
}
