// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
)

// Store is one that is open.
type Store interface {
	store.Store
	io.Closer
}

// hooked is a store whose calls fail, wait, or return something else, as a test wants it. Calls
// are named by their method.
type hooked struct {
	Store

	mu      sync.Mutex       // guards what follows
	refused map[string]error // what calls fail with
	before  func(ctx context.Context, call string) error
	after   func(call string, result any) error // the result is a pointer
}

// refuse has the calls fail with an error; nil: not any more.
func (s *hooked) refuse(err error, calls ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = make(map[string]error)
	for _, call := range calls {
		s.refused[call] = err
	}
}

// hook sets what is done before and after each call; nil: nothing.
func (s *hooked) hook(before func(ctx context.Context, call string) error, after func(call string, result any) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

// delay has calls answered late.
func (s *hooked) delay(d time.Duration, call string) {
	s.hook(nil, func(made string, _ any) error {
		if made == call {
			time.Sleep(d)
		}
		return nil
	})
}

func (s *hooked) begin(ctx context.Context, call string) error {
	s.mu.Lock()
	before, err := s.before, s.refused[call]
	s.mu.Unlock()
	if err == nil && before != nil {
		err = before(ctx, call)
	}
	return err
}

func hook[T any](ctx context.Context, s *hooked, call string, do func() (T, error)) (v T, err error) {
	var none T
	if err := s.begin(ctx, call); err != nil {
		return none, err
	}
	v, err = do()
	s.mu.Lock()
	after := s.after
	s.mu.Unlock()
	if after != nil {
		if lost := after(call, &v); lost != nil {
			return none, lost
		}
	}
	return v, err
}

func hookDone(ctx context.Context, s *hooked, call string, do func() error) error {
	_, err := hook(ctx, s, call, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// Claim is called Hop if the claims are of hops.
func (s *hooked) Claim(ctx context.Context, claims []store.Claim) ([]store.Lease, error) {
	call := "Claim"
	if claims[0].Hop {
		call = "Hop"
	}
	return hook(ctx, s, call, func() ([]store.Lease, error) { return s.Store.Claim(ctx, claims) })
}

func (s *hooked) Due(ctx context.Context, q store.DueQuery) (store.Due, error) {
	return hook(ctx, s, "Due", func() (store.Due, error) { return s.Store.Due(ctx, q) })
}

func (s *hooked) Commit(ctx context.Context, o store.Outcome) error {
	return hookDone(ctx, s, "Commit", func() error { return s.Store.Commit(ctx, o) })
}

func (s *hooked) Lookup(ctx context.Context, ids []store.ID) ([]store.Record, error) {
	return hook(ctx, s, "Lookup", func() ([]store.Record, error) { return s.Store.Lookup(ctx, ids) })
}

func (s *hooked) Body(ctx context.Context, id store.ID) (*store.StoredBody, error) {
	return hook(ctx, s, "Body", func() (*store.StoredBody, error) { return s.Store.Body(ctx, id) })
}

func (s *hooked) Touch(ctx context.Context, asked map[store.ID]store.Asked) error {
	return hookDone(ctx, s, "Touch", func() error { return s.Store.Touch(ctx, asked) })
}

func (s *hooked) Forget(ctx context.Context, id store.ID) error {
	return hookDone(ctx, s, "Forget", func() error { return s.Store.Forget(ctx, id) })
}

func (s *hooked) Sweep(ctx context.Context, q store.SweepQuery) ([]store.ID, error) {
	return hook(ctx, s, "Sweep", func() ([]store.ID, error) { return s.Store.Sweep(ctx, q) })
}

func (s *hooked) Restore(ctx context.Context, saved []store.Saved) error {
	return hookDone(ctx, s, "Restore", func() error { return s.Store.Restore(ctx, saved) })
}

func (s *hooked) Pauses(ctx context.Context) ([]store.Pause, error) {
	return hook(ctx, s, "Pauses", func() ([]store.Pause, error) { return s.Store.Pauses(ctx) })
}

func (s *hooked) Totals(ctx context.Context) (store.Totals, error) {
	return hook(ctx, s, "Totals", func() (store.Totals, error) { return s.Store.Totals(ctx) })
}

// Watch is a call of its own for each change.
func (s *hooked) Watch(ctx context.Context, see func(store.Change) error) error {
	if err := s.begin(ctx, "Watch"); err != nil {
		return err
	}
	return s.Store.Watch(ctx, func(change store.Change) error {
		if err := s.begin(ctx, "Watch"); err != nil {
			return err // it has not been seen
		}
		return see(change)
	})
}

// damage changes what is read: records, and bodies as a whole. Nil: they are as they were.
func (s *hooked) damage(record func(*store.Record), body func(*store.Body) error) {
	s.hook(nil, func(_ string, result any) error {
		switch result := result.(type) {
		case *[]store.Record:
			for i := range *result {
				if record != nil {
					record(&(*result)[i])
				}
			}
		case *[]store.Lease:
			for i := range *result {
				if record != nil {
					record(&(*result)[i].Record)
				}
			}
		case **store.StoredBody:
			if body == nil || *result == nil {
				break
			}
			whole, err := readWhole(*result)
			if err == nil {
				err = body(&whole)
			}
			*result = store.NewStoredBody(whole)
			return err
		}
		return nil
	})
}

func readWhole(b *store.StoredBody) (store.Body, error) {
	data, err := b.Data(context.Background())
	return store.Body{Version: b.Version, Coding: b.Coding, Data: data}, err
}

// callTimeout is how long a call of a store that is away takes.
const callTimeout = 5 * time.Second

var errAway = errors.New("the database is away")

// outage is the time in which a store is out of reach.
type outage struct {
	mu     sync.Mutex
	claims int // that were asked for
}

// setAway has the store out of reach, or back: each call takes as long as it has patience, and fails.
func (s *hooked) setAway(away bool) *outage {
	o := new(outage)
	if !away {
		s.hook(nil, nil)
		return o
	}
	s.hook(func(_ context.Context, call string) error {
		switch call {
		case "Watch":
			return nil
		case "Claim":
			o.mu.Lock()
			o.claims++
			o.mu.Unlock()
		}
		time.Sleep(callTimeout)
		return errAway
	}, nil)
	return o
}

func (o *outage) asked() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.claims
}

// sharedStore is a store of several nodes. It is closed after them.
func sharedStore(t *testing.T) *sqlite.Store {
	db := sqlite.NewMemory(nil)
	t.Cleanup(func() { db.Close() })
	return db
}
