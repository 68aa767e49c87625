// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// connect opens a connection of the test's own.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	must(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// exec runs statements in a database, without the store.
func exec(t testing.TB, url, sql string) {
	t.Helper()
	conn := connect(t, url)
	defer conn.Close(t.Context())
	_, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	must(t, err)
}

// outcome is a good one, with a body if the version is not 0.
func outcome(l store.Lease, version uint64) store.Outcome {
	var body *store.Body
	if version != 0 {
		body = storetest.Text(version, "content")
	}
	return storetest.Outcome(l, body)
}

// grants are all grants of a test.
type grants struct {
	mu   sync.Mutex // guards all
	all  []granted
	lost time.Time // those from before may not be known to the server after; zero if all are
}

// granted is a grant, between its claim and the answer.
type granted struct {
	store.Lease
	asked, answered time.Time
}

// add records the grants among leases that were asked for at a moment and have just been
// answered.
func (g *grants) add(leases []store.Lease, asked time.Time) {
	answered := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, lease := range leases {
		if lease.Denied == "" {
			g.all = append(g.all, granted{lease, asked, answered})
		}
	}
}

func (g *grants) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.all)
}

// check expects that no token was given twice, and that the grants of a feed are hold apart,
// those of a site spacing. The database has granted each at some moment between its
// claim and the answer. Feeds in forgotten were removed in between.
func (g *grants) check(t *testing.T, hold, spacing time.Duration, forgotten func(store.ID) bool) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	slices.SortFunc(g.all, func(a, b granted) int { return cmp.Compare(a.answered.UnixNano(), b.answered.UnixNano()) })
	closer := func(a, b granted, than time.Duration) bool {
		return closer(a, b, than) && (b.asked.Before(g.lost) || a.asked.After(g.lost))
	}
	tokens, feeds, sites := map[store.Token]bool{}, map[store.ID]granted{}, map[string]granted{}
	for _, next := range g.all {
		if tokens[next.Token] && next.Token != 0 {
			t.Errorf("token %d was given twice", next.Token)
		}
		tokens[next.Token] = true
		if last, ok := feeds[next.ID]; ok && next.Token != 0 && closer(last, next, hold) && !forgotten(next.ID) {
			t.Errorf("%s was granted again %v after it had been asked for", next.URL, next.answered.Sub(last.asked))
		}
		if last, ok := sites[next.Site]; ok && closer(last, next, spacing) && next.Site != "" {
			t.Errorf("%s was granted %v after the last one of its site had been asked for", next.URL, next.answered.Sub(last.asked))
		}
		feeds[next.ID], sites[next.Site] = next, next
	}
}

// closer reports whether two grants must be closer to each other than that. They may have been
// granted in another order than they were answered.
func closer(a, b granted, than time.Duration) bool {
	return b.answered.Sub(a.asked) < than && a.answered.Sub(b.asked) < than
}

// patience is how long a test waits for what has to happen at some time.
const patience = time.Minute

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
