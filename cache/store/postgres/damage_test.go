// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

// TestDamage overwrites what the server keeps of one feed. The others must not notice.
func TestDamage(t *testing.T) {
	t.Parallel()
	c := postgrestest.Start(t)
	url := c.Database(t)
	s := open(t, url)
	// Large enough for the server to keep it apart from the rows.
	noise := make([]byte, 100_000)
	rand.NewChaCha8([32]byte{}).Read(noise)
	o := outcome(storetest.Grant(t, s, configured(1)), 1)
	o.FeedState, o.Body.Data, o.In = noise, noise, 0
	storetest.Commit(t, s, o)
	whole := outcome(storetest.Grant(t, s, configured(2)), 1)
	whole.In = 0
	storetest.Commit(t, s, whole)

	exec(t, url, `checkpoint`)
	for _, table := range []string{"feed", "body"} {
		var path string
		err := connect(t, url).QueryRow(t.Context(), `select pg_relation_filepath(reltoastrelid) from pg_class where oid = $1::text::regclass`, "pollard."+table).Scan(&path)
		must(t, err)
		c.Stop()
		c.Blank(t, path)
		c.Start(t)
	}

	eventually(t, "the store is back", func() bool {
		_, err := s.Totals(t.Context())
		return err == nil
	})
	if _, err := store.ReadBody(t.Context(), s, o.ID); !errors.Is(err, store.ErrNoBody) {
		t.Errorf("Body: %v, want %v", err, store.ErrNoBody)
	}
	if b, err := store.ReadBody(t.Context(), s, whole.ID); err != nil || string(b.Data) != string(whole.Body.Data) {
		t.Errorf("Body of another feed: %q, %v", b.Data, err)
	}
	if records, err := s.Lookup(t.Context(), []store.ID{o.ID, whole.ID}); err != nil || len(records) != 1 || string(records[0].FeedState) != "memo" {
		t.Errorf("Lookup: %+v, %v, want the other feed", records, err)
	}
	if due, err := s.Due(t.Context(), store.DueQuery{Limit: 10}); err != nil || len(due.Feeds) != 1 || due.Feeds[0].ID != whole.ID {
		t.Errorf("Due: %+v, %v, want the other feed", due, err)
	}
	if l := storetest.Ask(t, s, configured(1)); l.Denied != store.DeniedNotDue {
		t.Errorf("the feed was claimed at once: %+v", l)
	}
	sleep(t, url, 3*time.Hour)
	storetest.Commit(t, s, outcome(storetest.Grant(t, s, configured(1)), 2))
	if _, err := store.ReadBody(t.Context(), s, o.ID); err != nil {
		t.Error(err)
	}
}

// TestDamagedServer flips a bit of the time, or of what else the table server has. No feed is due
// before its time, all are after some hours, and no token comes again.
func TestDamagedServer(t *testing.T) {
	if testing.Short() {
		t.Skip("six databases")
	}
	c := server(t)
	t.Parallel()
	for column, bits := range map[string][]int{"scale": {45, 62}, "era": {0, 61}, "since": {0, 62}} {
		for _, bit := range bits {
			url := c.Database(t)
			s := open(t, url)
			first := storetest.Grant(t, s, configured(1))
			storetest.Commit(t, s, outcome(first, 0)) // for two hours
			sleep(t, url, time.Hour)
			exec(t, url, fmt.Sprintf(`update pollard.server set %s = coalesce(%[1]s, 0) # (1::bigint << %d)`, column, bit))
			if bit%2 == 0 { // with a node that starts
				s = open(t, url)
			}
			if due, err := s.Due(t.Context(), store.DueQuery{Limit: 10}); err != nil || len(due.Feeds) > 0 {
				t.Errorf("bit %d of %s: Due = %+v, %v", bit, column, due, err)
			}
			if l := storetest.Ask(t, s, configured(1)); l.Denied != store.DeniedNotDue || l.Wait > 3*time.Hour {
				t.Errorf("bit %d of %s: %+v", bit, column, l)
			}
			sleep(t, url, 3*time.Hour)
			if l := storetest.Grant(t, s, configured(1)); l.Token == first.Token {
				t.Errorf("token %d came again", l.Token)
			}
		}
	}
}
