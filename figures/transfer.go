// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// line is a figure in an export. The first line has the seed of hashes in its place, and
// a name of the export as its key: whatever comes twice counts once.
type line struct {
	Figure string `json:"figure"` // kind
	Key    []byte `json:"key"`
	Value  []byte `json:"value"` // as a store has it
}

// hashed are the kinds whose keys or bits are hashes: they mean nothing under another seed.
var hashed = map[Kind]bool{Day: false, Origin: false, Feed: true, Family: true, Reader: true, Tally: true}

// Export writes all figures of a store as lines of JSON, for an [Importer].
func Export(ctx context.Context, s Store, w io.Writer) error {
	n, err := s.FigureSeed(ctx)
	if err != nil {
		return fmt.Errorf("reading the seed of figures: %w", err)
	}
	out := json.NewEncoder(w)
	head := line{Figure: string(rune(seed)), Key: []byte(rand.Text()), Value: binary.BigEndian.AppendUint64(nil, n)}
	if err := out.Encode(head); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	for _, kind := range [...]Kind{Day, Origin, Feed, Family, Reader, Tally} {
		found, err := s.Figures(ctx, kind, "")
		if err != nil {
			return fmt.Errorf("reading figures: %w", err)
		}
		for i := range found {
			f := &found[i]
			if err := out.Encode(line{Figure: string(rune(kind)), Key: []byte(f.Key), Value: f.encode()}); err != nil {
				return fmt.Errorf("writing: %w", err)
			}
		}
	}
	return nil
}

// Importer adds what [Export] wrote to a store.
type Importer struct {
	Store   Store
	Foreign int64 // figures of readers that were left out: the store has a seed of its own

	node   string
	same   bool   // the seed is that of the store
	number uint64 // of the line
	done   uint64 // lines that the store has had before
	batch  []Figure
}

// Line takes a line.
func (i *Importer) Line(ctx context.Context, text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("no figure: %w", err)
	}
	if len(l.Figure) != 1 {
		return errors.New("no figure: its kind is not known")
	}
	kind := Kind(l.Figure[0])
	if kind == seed {
		return i.begin(ctx, &l)
	}
	if i.node == "" {
		return errors.New("no figure: the line that figures begin with is missing")
	}
	keyed, known := hashed[kind]
	if !known {
		return fmt.Errorf("no figure: the kind %q is not known", l.Figure)
	}
	f, err := Decode(Ref{kind, string(l.Key)}, l.Value)
	if err != nil {
		return err
	}
	if i.number++; keyed && !i.same {
		i.Foreign++
		return nil
	}
	if i.number <= i.done {
		return nil
	}
	if i.batch = append(i.batch, f); len(i.batch) < MaxBatch {
		return nil
	}
	return i.Flush(ctx)
}

// begin begins with the figures of an export.
func (i *Importer) begin(ctx context.Context, l *line) error {
	if len(l.Value) != 8 || len(l.Key) == 0 || len(l.Key) > maxExport {
		return errors.New("no figure: the line that figures begin with is damaged")
	}
	if err := i.Flush(ctx); err != nil {
		return err
	}
	i.node, i.number, i.done = "export "+string(l.Key), 1, 0
	n := binary.BigEndian.Uint64(l.Value)
	if err := i.add(ctx, &Batch{Seed: n}); err != nil {
		return err
	}
	had, err := i.Store.Figures(ctx, sender, i.node)
	if err != nil {
		return fmt.Errorf("reading figures: %w", err)
	}
	for _, f := range had {
		if f.Key == i.node && len(f.Counts) > 0 {
			i.done = uint64(f.Counts[0])
		}
	}
	own, err := i.Store.FigureSeed(ctx)
	i.same = own == n
	return err
}

// maxExport is how long the name of an export may be, in bytes.
const maxExport = 64

// Flush adds what has not been added yet.
func (i *Importer) Flush(ctx context.Context) error {
	if len(i.batch) == 0 {
		return nil
	}
	batch := i.batch
	i.batch = nil
	return i.add(ctx, &Batch{Add: batch})
}

// add adds a batch, under the number of the last line in it.
func (i *Importer) add(ctx context.Context, b *Batch) error {
	b.Node, b.Number, b.At = i.node, i.number, time.Now()
	if err := i.Store.AddFigures(ctx, b); err != nil {
		return fmt.Errorf("storing figures: %w", err)
	}
	return nil
}
