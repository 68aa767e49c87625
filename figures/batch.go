// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"
)

// Store keeps figures. Several nodes may add to one, and each method is safe for
// concurrent use.
type Store interface {
	// AddFigures carries out a batch: all of it or nothing, and nothing where the batch
	// is known already. After an error it may have been carried out or not, and is tried again.
	AddFigures(ctx context.Context, b *Batch) error

	// Figures reads the figures of a kind whose keys begin with a prefix, in the order
	// of their keys. Damaged ones are left out.
	Figures(ctx context.Context, kind Kind, prefix string) ([]Figure, error)

	// FigureSeed is a number drawn at random when it is asked for the first time, and
	// the same for all nodes ever after: the key of hashes.
	FigureSeed(ctx context.Context) (uint64, error)
}

// MaxBatch is how much a batch holds at most, so that nothing else has to wait long.
const MaxBatch = 512

// Batch is what a node adds at once.
type Batch struct {
	Node   string    // who adds, not used by any other process before or after
	Number uint64    // above that of the node's batch before
	At     time.Time // for [Senders]
	Seed   uint64    // of hashes, for a store that has none yet; 0: none
	Add    []Figure
	Move   []Move // after that
}

// Move adds a figure to another of its kind and removes it. What is not there is not moved.
type Move struct {
	From Ref
	Into string // key; empty: the figure is dropped
}

// Pairs are the figures of a store in a transaction, encoded.
type Pairs interface {
	Get(r Ref) ([]byte, error) // nil: none. It is used until the next call only.
	Put(r Ref, value []byte) error
	Delete(r Ref) error
}

func (b *Batch) sender() Ref { return Ref{sender, b.Node} }

// Refs are all figures that a batch reads or writes.
func (b *Batch) Refs() []Ref {
	refs := make([]Ref, 0, 1+len(b.Add)+2*len(b.Move))
	refs = append(refs, b.sender())
	if b.Seed != 0 {
		refs = append(refs, SeedRef)
	}
	for i := range b.Add {
		refs = append(refs, b.Add[i].Ref)
	}
	for _, m := range b.Move {
		if refs = append(refs, m.From); m.Into != "" {
			refs = append(refs, Ref{m.From.Kind, m.Into})
		}
	}
	return refs
}

// Apply carries a batch out on the figures of a store, in a transaction that the
// caller commits if there is no error.
func (b *Batch) Apply(p Pairs) error {
	last, err := get(p, b.sender())
	if err != nil {
		return err
	}
	number := int64(b.Number)
	if last != nil && len(last.Counts) > 0 && last.Counts[0] >= number {
		return nil // the answer to the last attempt was lost
	}
	sent := Figure{Ref: b.sender(), Counts: []int64{number}, Peaks: []int64{b.At.Unix()}}
	if err := p.Put(sent.Ref, sent.encode()); err != nil {
		return err
	}
	if b.Seed != 0 {
		if v, err := p.Get(SeedRef); err != nil {
			return err
		} else if v == nil {
			if err := p.Put(SeedRef, binary.BigEndian.AppendUint64(nil, b.Seed)); err != nil {
				return err
			}
		}
	}
	for i := range b.Add {
		if err := add(p, &b.Add[i]); err != nil {
			return err
		}
	}
	for _, m := range b.Move {
		f, err := get(p, m.From)
		if err != nil {
			return err
		}
		if f == nil || m.From.Key == m.Into {
			continue
		}
		if m.Into != "" {
			f.Key = m.Into
			if err := add(p, f); err != nil {
				return err
			}
		}
		if err := p.Delete(m.From); err != nil {
			return err
		}
	}
	return nil
}

func add(p Pairs, f *Figure) error {
	sum, err := get(p, f.Ref)
	if err != nil {
		return err
	}
	if sum == nil {
		return p.Put(f.Ref, f.encode())
	}
	sum.Merge(f)
	return p.Put(f.Ref, sum.encode())
}

// get reads a figure, nil where there is none. A damaged one counts as none: it can
// only begin anew.
func get(p Pairs, r Ref) (*Figure, error) {
	v, err := p.Get(r)
	if err != nil || v == nil {
		return nil, err
	}
	f, err := Decode(r, v)
	switch {
	case errors.Is(err, errDamaged):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &f, nil
}

// SeedRef names the seed of hashes in a store.
var SeedRef = Ref{seed, "seed"}

// Seed reads the seed of hashes, or draws it.
func Seed(p Pairs) (uint64, error) {
	v, err := p.Get(SeedRef)
	if err != nil {
		return 0, err
	}
	if len(v) == 8 {
		return binary.BigEndian.Uint64(v), nil
	}
	drawn := make([]byte, 8)
	for binary.BigEndian.Uint64(drawn) == 0 {
		_, _ = rand.Read(drawn) // it never fails
	}
	return binary.BigEndian.Uint64(drawn), p.Put(SeedRef, drawn)
}

// Senders are the moves that drop what is known of nodes that have not added
// anything since some moment.
func Senders(ctx context.Context, s Store, since time.Time) (moves []Move, err error) {
	all, err := s.Figures(ctx, sender, "")
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Recent() < since.Unix() {
			moves = append(moves, Move{From: all[i].Ref})
		}
	}
	return moves, nil
}
