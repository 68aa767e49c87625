// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Memory is a [Store] that ends with the process. The zero value is empty.
type Memory struct {
	mu    sync.Mutex
	pairs pairs
}

// pairs are the figures of a [Memory]. What they are told cannot fail.
type pairs map[Ref][]byte

func (p pairs) Get(r Ref) ([]byte, error)     { return p[r], nil }
func (p pairs) Put(r Ref, value []byte) error { p[r] = value; return nil }
func (p pairs) Delete(r Ref) error            { delete(p, r); return nil }

func (m *Memory) change(ctx context.Context, do func(Pairs) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pairs == nil {
		m.pairs = make(pairs)
	}
	return do(m.pairs)
}

// AddFigures implements [Store].
func (m *Memory) AddFigures(ctx context.Context, b *Batch) error { return m.change(ctx, b.Apply) }

// FigureSeed implements [Store].
func (m *Memory) FigureSeed(ctx context.Context) (n uint64, err error) {
	err = m.change(ctx, func(p Pairs) error {
		n, err = Seed(p)
		return err
	})
	return n, err
}

// Figures implements [Store].
func (m *Memory) Figures(ctx context.Context, kind Kind, prefix string) (found []Figure, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	stored := maps.Clone(m.pairs)
	m.mu.Unlock()
	for r, v := range stored {
		if r.Kind != kind || !strings.HasPrefix(r.Key, prefix) {
			continue
		}
		if f, err := Decode(r, v); err == nil {
			found = append(found, f)
		}
	}
	slices.SortFunc(found, func(a, b Figure) int { return cmp.Compare(a.Key, b.Key) })
	return found, nil
}

// Interface guard.
var _ Store = (*Memory)(nil)
