// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedpollard/pollard/cache"
)

// timedStore is a store whose operations are timed: reserve, commit, load, body,
// scan and forget, however they end.
type timedStore struct {
	cache.Store
	reserve, commit, load, body, scan, forget prometheus.Observer
}

func (m *metrics) timed(s cache.Store) *timedStore {
	op := func(name string) prometheus.Observer { return m.store.WithLabelValues(name) }
	return &timedStore{
		Store:   s,
		reserve: op("reserve"), commit: op("commit"), load: op("load"),
		body: op("body"), scan: op("scan"), forget: op("forget"),
	}
}

func took(o prometheus.Observer, began time.Time) { o.Observe(time.Since(began).Seconds()) }

// Reserve implements [cache.Store].
func (s *timedStore) Reserve(ctx context.Context, claims []cache.Claim) ([]cache.Grant, error) {
	defer took(s.reserve, time.Now())
	return s.Store.Reserve(ctx, claims)
}

// Commit implements [cache.Store].
func (s *timedStore) Commit(ctx context.Context, o cache.Outcome) error {
	defer took(s.commit, time.Now())
	return s.Store.Commit(ctx, o)
}

// Load implements [cache.Store].
func (s *timedStore) Load(ctx context.Context, id cache.ID) (cache.Record, error) {
	defer took(s.load, time.Now())
	return s.Store.Load(ctx, id)
}

// Body implements [cache.Store].
func (s *timedStore) Body(ctx context.Context, id cache.ID) (cache.Body, error) {
	defer took(s.body, time.Now())
	return s.Store.Body(ctx, id)
}

// Scan implements [cache.Store].
func (s *timedStore) Scan(ctx context.Context, visit func(cache.Record) error) error {
	defer took(s.scan, time.Now())
	return s.Store.Scan(ctx, visit)
}

// Forget implements [cache.Store].
func (s *timedStore) Forget(ctx context.Context, ids []cache.ID) error {
	defer took(s.forget, time.Now())
	return s.Store.Forget(ctx, ids)
}

// Interface guards.
var _ cache.Store = (*timedStore)(nil)
