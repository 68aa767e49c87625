// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// RowsOfVersion1 reads all rows of version 1 of the tables, but for the one that says what a process
// or server knows. RowsOfNow reads the same rows in the present version.
var (
	RowsOfVersion1 = []string{
		`select n, id, url, host, domain, spacing, class, owner, askers, seen, days, state, configured, token, next, due, hold, last, hopped, earliest,
			until, asked, version, size, coding, body, changed, news, outcome, sum, facts, memo from feed order by id`,
		`select name, domain, free, ready, calm, turn, served, other, good from host order by name`,
		`select id, part, sum, data from body order by id, part`,
		`select body, at from pending order by body`,
		`select scope, until, why, step from pause order by scope`,
		`select node, data from counters`,
		`select key, value from meta where key in ('secret', 'lost') order by key`,
	}
	RowsOfNow = append([]string{
		strings.NewReplacer(" host,", " site,", "class", "not_established", "sum", fmt.Sprint("tables_", store.Version), "facts", "poll_state", "memo", "feed_state").Replace(RowsOfVersion1[0]),
		strings.NewReplacer("served, other", "served_2, served_3").Replace(RowsOfVersion1[1]),
	}, RowsOfVersion1[2:]...)
)

// EarlierWrites are statements by which programs of each earlier version of the tables would write: they name the column that each of its
// claims and commits writes. All must fail.
func EarlierWrites() (statements []string) {
	for version := 1; version < store.Version; version++ {
		column := map[int]string{1: "sum", 2: "unused"}[version]
		if column == "" {
			column = fmt.Sprint("tables_", version)
		}
		statements = append(statements, "update feed set "+column+" = 0")
	}
	return statements
}

// CheckBroughtUp checks what is said of feeds by a store of version 1 that has been opened. The next
// poll, the last one and the like are some time ago, as the store was not used meanwhile.
func CheckBroughtUp(t *testing.T, s store.Store) {
	t.Helper()
	records := make(map[string]store.Record)
	for page, err := range store.Pages(t.Context(), s, 100, false) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			records[r.URL] = r
		}
	}
	find := func(url string) store.Record {
		r, ok := records[url]
		if !ok {
			t.Errorf("%s is not known", url)
		}
		return r
	}
	for url, state := range map[string]store.State{
		"https://fresh.test/feed.xml": store.StateFresh, "https://gone.test/feed.xml": store.StateGone, "https://failing.test/feed.xml": store.StateFailing,
		"https://paused.test/feed.xml": store.StateWaiting, "https://never.test/feed.xml": store.StateCold, "https://configured.example/feed.xml": store.StateFresh,
	} {
		if r := find(url); r.State != state {
			t.Errorf("%s is %s, want %s", url, r.State, state)
		}
	}
	if r := find("https://gone.test/feed.xml"); r.In != store.Ended {
		t.Errorf("a feed whose polling had ended is polled in %v", r.In)
	}
	if r := find("https://fresh.test/feed.xml"); r.Polled < time.Hour || r.Version != 1 || len(r.FeedState) == 0 || len(r.PollState) == 0 {
		t.Errorf("a usual feed: %+v", r)
	}
	for name, kind := range map[string]store.Kind{
		"token": store.KindNamed, "address": store.KindNamed, "shield": store.KindShield, "public": store.KindAny, "operator": store.KindOperator,
	} {
		for _, url := range []string{"https://" + name + ".example.net/daily.xml", "https://" + name + ".example.net/once.xml"} {
			r := find(url)
			if got := r.Owner.Kind(); got != kind || kind == store.KindAny && r.Owner != store.Any {
				t.Errorf("%s counts for an owner of kind %d, want %d", url, got, kind)
			}
		}
	}
	for url := range map[string]bool{"https://forgotten.test/feed.xml": true, "https://damaged.tesT/feed.xml": true, "https://only-hopped.test/feed.xml": true} {
		if r, ok := records[url]; ok {
			t.Errorf("%s is known: %+v", url, r)
		}
	}
	large := find("https://large.test/feed.xml")
	if b, err := store.ReadBody(t.Context(), s, large.ID); err != nil || len(b.Data) < store.PartSize || !strings.Contains(string(b.Data[len(b.Data)-20:]), "</rss>") {
		t.Errorf("a body in parts: %d bytes, %v", len(b.Data), err)
	}
	if l := Ask(t, s, store.Claim{ID: store.IDOf("https://damaged.test/feed.xml"), URL: "https://damaged.test/feed.xml", Hold: time.Hour}); l.Denied != store.DeniedNotDue {
		t.Errorf("a feed whose record was damaged is claimed: %+v", l)
	}
}
