// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package volatile is a store that keeps feeds in memory and forgets them with
// the process. It serves simulations on a virtual clock and tests; a gateway that
// polls real origins needs a durable store, or a crash makes it poll again.
package volatile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/internal/schedule"
)

// Store implements [cache.Store].
type Store struct {
	now func() time.Time

	mu       sync.Mutex // guards all below
	began    time.Time
	latest   schedule.Time
	keeper   *keeper
	schedule *schedule.Schedule
	counters map[string][]byte
	closed   bool
}

// New returns an empty store. Where now is nil it is time.Now.
func New(now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	s := &Store{now: now, began: now(), counters: make(map[string][]byte), keeper: &keeper{
		feeds: make(map[store.ID]*schedule.Feed), texts: make(map[store.ID]schedule.Text),
		notes: make(map[string][]byte), bodies: make(map[store.ID]store.Body),
	}}
	s.plan(0)
	return s
}

// Reopen returns an open store with what this one holds, as a restart finds it.
// The store itself must have been closed.
func (s *Store) Reopen() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := &Store{now: s.now, began: s.began, latest: s.latest, keeper: s.keeper, counters: s.counters}
	next.plan(s.schedule.Token())
	return next
}

func (s *Store) plan(last store.Token) {
	plan, err := schedule.New(s.time(), s.keeper, maps.Clone(s.keeper.notes), last)
	if err != nil {
		panic(err) // a keeper in memory returns none
	}
	s.schedule = plan
}

// time is the moment on the store's scale, which goes on from the latest where now
// goes back.
func (s *Store) time() schedule.Time {
	s.latest = max(s.latest, schedule.Time(s.now().Sub(s.began)))
	return s.latest
}

// begin locks the store for one call. After an error it is not locked.
func (s *Store) begin(ctx context.Context) (schedule.Time, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return 0, fmt.Errorf("volatile store: %w", os.ErrClosed)
	}
	return s.time(), nil
}

// end confirms what the call has done.
func (s *Store) end() {
	s.schedule.Confirm()
	if err := s.schedule.Tidy(s.latest); err != nil {
		panic(err) // a keeper in memory returns none
	}
	s.mu.Unlock()
}

// Claim implements [cache.Store].
func (s *Store) Claim(ctx context.Context, claims []store.Claim) ([]store.Lease, error) {
	now, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer s.end()
	leases := make([]store.Lease, len(claims))
	for i, c := range claims {
		if leases[i], err = s.schedule.Claim(now, c); err != nil {
			return nil, err
		}
	}
	return leases, nil
}

// ClaimDue implements [cache.Store].
func (s *Store) ClaimDue(ctx context.Context, q store.DueQuery) ([]store.Lease, time.Duration, error) {
	now, err := s.begin(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer s.end()
	return s.schedule.ClaimDue(now, q)
}

// Hop implements [cache.Store].
func (s *Store) Hop(ctx context.Context, hop store.Hop) (store.Passage, error) {
	now, err := s.begin(ctx)
	if err != nil {
		return store.Passage{}, err
	}
	defer s.end()
	return s.schedule.Hop(now, hop)
}

// Commit implements [cache.Store].
func (s *Store) Commit(ctx context.Context, o store.Outcome) error {
	if o.Body != nil && o.Body.Version == 0 {
		return errors.New("volatile store: a body needs a version")
	}
	now, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer s.end()
	if _, err := s.schedule.Commit(now, o, 0); err != nil {
		return err
	}
	s.keeper.keepBody(o.ID, o.Body, o.Withdraw)
	return nil
}

// Lookup implements [cache.Store].
func (s *Store) Lookup(ctx context.Context, ids []store.ID) ([]store.Record, error) {
	now, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer s.end()
	var found []store.Record
	for _, id := range ids {
		if f := s.keeper.feeds[id]; f != nil {
			found = append(found, f.Record(id, s.keeper.texts[id], now))
		}
	}
	return found, nil
}

// Body implements [cache.Store].
func (s *Store) Body(ctx context.Context, id store.ID, _ uint64) (store.Body, error) {
	if _, err := s.begin(ctx); err != nil {
		return store.Body{}, err
	}
	defer s.end()
	b, ok := s.keeper.bodies[id]
	if !ok {
		return b, store.ErrNoBody
	}
	b.Data = bytes.Clone(b.Data)
	return b, nil
}

// Records implements [cache.Store].
func (s *Store) Records(ctx context.Context, after store.ID, limit int) ([]store.Record, error) {
	now, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer s.end()
	var page []store.Record
	for _, id := range slices.SortedFunc(maps.Keys(s.keeper.feeds), store.ID.Compare) {
		if len(page) < limit && id.Compare(after) > 0 {
			page = append(page, s.keeper.feeds[id].Record(id, s.keeper.texts[id], now))
		}
	}
	return page, nil
}

// Touch implements [cache.Store].
func (s *Store) Touch(ctx context.Context, asked map[store.ID]time.Duration) error {
	now, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer s.end()
	return s.schedule.Touch(now, asked)
}

// Forget implements [cache.Store].
func (s *Store) Forget(ctx context.Context, id store.ID) error {
	now, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer s.end()
	_, err = s.schedule.Forget(now, id)
	return err
}

// Sweep implements [cache.Store].
func (s *Store) Sweep(ctx context.Context, q store.SweepQuery) ([]store.ID, error) {
	now, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer s.end()
	unwanted, err := schedule.Unwanted(now, q, s.keeper.Each)
	if err != nil {
		return nil, err
	}
	removed, err := s.schedule.Sweep(now, unwanted)
	return removed.IDs, err
}

// Trim implements [cache.Store].
func (s *Store) Trim(ctx context.Context, budget int64) ([]store.ID, error) {
	now, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer s.end()
	excess, err := schedule.Excess(budget, s.keeper.Each)
	if err != nil {
		return nil, err
	}
	removed, err := s.schedule.Trim(now, excess)
	for _, id := range removed.IDs {
		delete(s.keeper.bodies, id)
	}
	return removed.IDs, err
}

// Restore implements [cache.Store].
func (s *Store) Restore(ctx context.Context, saved []store.Saved) error {
	now, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer s.end()
	for _, r := range saved {
		if r.New && s.keeper.feeds[r.ID] != nil {
			continue
		}
		if _, err := s.schedule.Restore(now, r, 0); err != nil {
			return err
		}
		s.keeper.keepBody(r.ID, r.Body, true)
	}
	return nil
}

// Pauses implements [cache.Store].
func (s *Store) Pauses(ctx context.Context) ([]store.Pause, error) {
	now, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer s.end()
	return s.schedule.Pauses(now), nil
}

// Watch implements [cache.Store].
func (s *Store) Watch(ctx context.Context, from store.Cursor, see func(store.Change) error) error {
	return s.schedule.Log.Watch(ctx, from, see)
}

// SaveCounters implements [store.Store].
func (s *Store) SaveCounters(ctx context.Context, node string, data []byte) error {
	if len(data) > store.MaxCounters {
		return store.ErrCountersTooLarge
	}
	if _, err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	if len(data) == 0 {
		delete(s.counters, node)
	} else {
		s.counters[node] = bytes.Clone(data)
	}
	return nil
}

// Counters implements [store.Store].
func (s *Store) Counters(ctx context.Context) (map[string][]byte, error) {
	if _, err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	counters := make(map[string][]byte)
	for node, data := range s.counters {
		counters[node] = bytes.Clone(data)
	}
	return counters, nil
}

// Totals implements [cache.Store].
func (s *Store) Totals(ctx context.Context) (store.Totals, error) {
	now, err := s.begin(ctx)
	if err != nil {
		return store.Totals{}, err
	}
	defer s.end()
	return s.schedule.Totals(now), nil
}

// Close implements [cache.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.schedule.Log.Close()
	return nil
}

// Interface guards.
var (
	_ store.Store = (*Store)(nil)
)

// keeper is a [schedule.Keeper] in memory.
type keeper struct {
	feeds  map[store.ID]*schedule.Feed
	texts  map[store.ID]schedule.Text
	bodies map[store.ID]store.Body
	notes  map[string][]byte
}

func (k *keeper) Get(id store.ID) (*schedule.Feed, error) { return k.feeds[id], nil }

func (k *keeper) Put(id store.ID, f *schedule.Feed, _ bool) {
	if f != nil {
		k.feeds[id] = f
		return
	}
	delete(k.feeds, id)
	delete(k.texts, id)
	delete(k.bodies, id)
}

func (k *keeper) Text(id store.ID) (schedule.Text, error) { return k.texts[id], nil }

func (k *keeper) PutText(id store.ID, text schedule.Text) { k.texts[id] = text }

func (k *keeper) Each(visit func(store.ID, *schedule.Feed)) error {
	for id, f := range k.feeds {
		visit(id, f)
	}
	return nil
}

func (k *keeper) Note(key string, value []byte) {
	if k.notes[key] = value; value == nil {
		delete(k.notes, key)
	}
}

// keepBody takes a new body. Where there is none, the old one stays unless it has to go.
func (k *keeper) keepBody(id store.ID, body *store.Body, drop bool) {
	switch {
	case body != nil:
		b := *body
		b.Data = bytes.Clone(b.Data)
		k.bodies[id] = b
	case drop:
		delete(k.bodies, id)
	}
}
