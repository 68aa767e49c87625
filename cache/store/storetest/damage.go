// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// flip is a change of one bit of a record, behind the store's back.
type flip struct {
	column string
	value  any   // that the column gets; nil: bit is flipped
	bit    int64 // of a number
}

// flips returns the flips of all that [damagedRecords] stores of a feed. Of its ID alone there are
// none: by another ID it is another feed.
func flips(every int) (all []flip) {
	for _, column := range []string{
		"spacing", "class", "owner", "seen", "days", "configured", "token", "next", "due", "hold", "last", "hopped", "earliest", "asked",
		"version", "size", "body", "changed", "news", "outcome", "sum",
	} {
		for bit := range 64 {
			all = append(all, flip{column: column, bit: 1 << bit})
		}
	}
	for column, was := range map[string]string{
		"url": "https://example.com/", "host": "host", "domain": "example.com", "state": "fresh", "coding": "identity", "facts": "facts", "memo": "memo",
	} {
		for i := range was {
			other := []byte(was)
			other[i] ^= 1
			if all = append(all, flip{column: column, value: string(other)}); column == "facts" || column == "memo" {
				all[len(all)-1].value = other
			}
		}
	}
	slices.SortFunc(all, func(a, b flip) int { return int(a.bit>>1%5 - b.bit>>1%5) }) // so that every few have all columns
	for i := range all {
		if i%every == 0 {
			all[i/every] = all[i]
		}
	}
	return all[:len(all)/every]
}

// damagedRecords flips bits of records, of each feed one. None of them is polled before an interval has
// passed, all of them are after some time, and what is not damaged is as it was.
func damagedRecords(t *testing.T, h Harness) {
	if h.Exec == nil {
		t.Skip("no way to damage this store")
	}
	s := h.open(t)
	every := 1
	if h.Shared { // its statements take a hundred times as long
		every = 6
	}
	damage := flips(every)
	var saved []store.Saved
	var claims []store.Claim
	for n := range len(damage) + 1 {
		c := claim(n)
		c.Configured, c.Host = true, store.Host{Name: fmt.Sprint("host ", n), Domain: "example.com", Spacing: time.Minute}
		claims = append(claims, c)
		saved = append(saved, store.Saved{Record: store.Record{
			ID: c.ID, URL: c.URL, Host: c.Host, Configured: true, State: store.StateFresh, Version: 1, Facts: []byte("facts"), Memo: []byte("memo"),
			In: 2 * time.Hour, Hold: 3 * time.Hour, Polled: time.Hour, Asked: time.Minute, Hopped: time.Minute, NotBefore: time.Hour,
		}, Body: text(1, "content")})
	}
	if err := s.Restore(t.Context(), saved); err != nil {
		t.Fatal(err)
	}
	for n, f := range damage {
		if f.value == nil {
			h.Exec(fmt.Sprintf(`update feed set %s = (%[1]s | ?1) - (%[1]s & ?1) where id = ?2`, f.column), f.bit, claims[n].ID[:])
		} else {
			h.Exec(`update feed set `+f.column+` = ?1 where id = ?2`, f.value, claims[n].ID[:])
		}
	}
	whole := len(damage)
	for range 3 { // some are found to be damaged only
		if leases, _, err := s.ClaimDue(t.Context(), store.DueQuery{Limit: 100}); err != nil || len(leases) > 0 {
			t.Fatalf("ClaimDue = %+v, %v", leases, err)
		}
	}
	var after store.ID
	for records, err := range store.Pages(t.Context(), s, 50) {
		for _, r := range records {
			n := slices.IndexFunc(claims, func(c store.Claim) bool { return c.ID == r.ID })
			if n < whole && damage[n].column != "due" || r.ID.Compare(after) <= 0 {
				t.Errorf("feed %d, %+v, has the record %+v", n, damage[min(n, whole-1)], r)
			}
			after = r.ID
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	leases, err := s.Claim(t.Context(), claims)
	for n, l := range leases {
		if l.Denied != store.DeniedNotDue || l.Wait < time.Hour-slack || l.Wait > 2*time.Hour {
			t.Errorf("feed %d, %+v: claimed %+v", n, damage[min(n, whole-1)], l)
		}
	}
	if err != nil || !near(leases[whole].Wait, 2*time.Hour) {
		t.Errorf("the feed that is whole: %+v, %v", leases[whole], err)
	}
	wantBody(t, s, whole, text(1, "content"))
	h.Sleep(2 * time.Hour)
	leases, err = s.Claim(t.Context(), claims)
	for n, l := range leases {
		if l.Denied != "" {
			t.Errorf("feed %d, %+v, after two hours: %+v", n, damage[min(n, whole-1)], l)
		}
	}
	if err != nil {
		t.Error(err)
	}
}
