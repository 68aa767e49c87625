// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feedpollard/pollard/cache/store"
)

// connect opens a connection of the test's own.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// feed is the name of the nth feed of a test.
func feed(n int) (id store.ID, url string) {
	url = fmt.Sprintf("https://example.com/%d.xml", n)
	sum := sha256.Sum256([]byte(url))
	return store.ID(sum[:len(id)]), url
}

// claim asks for a poll of the nth feed, of a host that is not paced.
func claim(n int) store.Claim {
	id, url := feed(n)
	return store.Claim{ID: id, URL: url, Hold: time.Hour}
}

// ask makes one claim.
func ask(t testing.TB, s store.Store, c store.Claim) store.Lease {
	t.Helper()
	leases, err := s.Claim(context.Background(), []store.Claim{c})
	if err != nil || len(leases) != 1 {
		t.Fatalf("Claim = %d leases, %v", len(leases), err)
	}
	return leases[0]
}

// grant makes one claim that has to be granted.
func grant(t testing.TB, s store.Store, c store.Claim) store.Lease {
	t.Helper()
	lease := ask(t, s, c)
	if lease.Denied != "" {
		t.Fatalf("Claim = %+v, want a grant", lease)
	}
	return lease
}

// outcome is a good one, with a body if the version is not 0.
func outcome(l store.Lease, version uint64) store.Outcome {
	o := store.Outcome{ID: l.ID, Token: l.Token, In: 2 * time.Hour, Hold: time.Hour, State: store.StateFresh, Facts: []byte("facts"), Host: l.Host}
	if version != 0 {
		o.Memo = []byte("memo")
		o.Body = &store.Body{Version: version, Coding: "identity", Data: []byte("content")}
	}
	return o
}

func commit(t testing.TB, s store.Store, o store.Outcome) {
	t.Helper()
	if err := s.Commit(context.Background(), o); err != nil {
		t.Fatalf("Commit: %v", err)
	}
}

// ledger is all grants of a test.
type ledger struct {
	mu     sync.Mutex // guards grants
	grants []granted
}

// granted is a grant, between its claim and the answer.
type granted struct {
	store.Lease
	asked, answered time.Time
}

// note takes down the grants among leases that were asked for at a moment and have
// just been answered.
func (l *ledger) note(leases []store.Lease, asked time.Time) {
	answered := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lease := range leases {
		if lease.Denied == "" {
			l.grants = append(l.grants, granted{lease, asked, answered})
		}
	}
}

// check holds that no token was given twice, and that the grants of a feed are hold apart,
// those of a host spacing. The database has granted each at some moment between its
// claim and the answer; of the feeds in ended, the record was removed in between.
func (l *ledger) check(t *testing.T, hold, spacing time.Duration, ended func(store.ID) bool) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortFunc(l.grants, func(a, b granted) int { return cmp.Compare(a.Token, b.Token) })
	feeds, hosts := map[store.ID]granted{}, map[string]granted{}
	for i, g := range l.grants {
		if i > 0 && l.grants[i-1].Token == g.Token {
			t.Errorf("token %d was given twice", g.Token)
		}
		if last, ok := feeds[g.ID]; ok && g.answered.Sub(last.asked) < hold && !ended(g.ID) {
			t.Errorf("%s was granted again %v after it had been asked for", g.URL, g.answered.Sub(last.asked))
		}
		if last, ok := hosts[g.Host.Name]; ok && g.answered.Sub(last.asked) < spacing && g.Host.Name != "" {
			t.Errorf("%s was granted %v after the last one of its host had been asked for", g.URL, g.answered.Sub(last.asked))
		}
		feeds[g.ID], hosts[g.Host.Name] = g, g
	}
}

// patience is how long a test waits for what has to happen at some time.
const patience = time.Minute

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
