// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedpollard/pollard/cache/store"
)

// timedStore measures the duration of these operations of a store, also of those that
// fail: claim, commit, lookup, body, touch and sweep.
type timedStore struct {
	store.Store
	seconds *prometheus.HistogramVec
}

func (s *timedStore) took(op string, started time.Time) {
	s.seconds.WithLabelValues(op).Observe(time.Since(started).Seconds())
}

// Claim implements [cache.Store].
func (s *timedStore) Claim(ctx context.Context, claims []store.Claim) ([]store.Lease, error) {
	defer s.took("claim", time.Now())
	return s.Store.Claim(ctx, claims)
}

// ClaimDue implements [cache.Store].
func (s *timedStore) ClaimDue(ctx context.Context, q store.DueQuery) ([]store.Lease, time.Duration, error) {
	defer s.took("claim", time.Now())
	return s.Store.ClaimDue(ctx, q)
}

// Commit implements [cache.Store].
func (s *timedStore) Commit(ctx context.Context, o store.Outcome) error {
	defer s.took("commit", time.Now())
	return s.Store.Commit(ctx, o)
}

// Lookup implements [cache.Store].
func (s *timedStore) Lookup(ctx context.Context, ids []store.ID) ([]store.Record, error) {
	defer s.took("lookup", time.Now())
	return s.Store.Lookup(ctx, ids)
}

// Body implements [cache.Store].
func (s *timedStore) Body(ctx context.Context, id store.ID, version uint64) (*store.StoredBody, error) {
	defer s.took("body", time.Now())
	return s.Store.Body(ctx, id, version)
}

// Touch implements [cache.Store].
func (s *timedStore) Touch(ctx context.Context, asked map[store.ID]store.Asked) error {
	defer s.took("touch", time.Now())
	return s.Store.Touch(ctx, asked)
}

// Sweep implements [cache.Store].
func (s *timedStore) Sweep(ctx context.Context, q store.SweepQuery) ([]store.ID, error) {
	defer s.took("sweep", time.Now())
	return s.Store.Sweep(ctx, q)
}
