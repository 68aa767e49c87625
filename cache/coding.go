// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"

	"github.com/feedpollard/pollard/cache/store"
)

// Names of content codings (RFC 9110 section 8.4.1, RFC 7932).
const (
	codingIdentity = "identity"
	codingGzip     = "gzip"
	codingBrotli   = "br"
)

// Levels: gzip 6 is the size that all readers get, brotli 5 is a tenth smaller
// for three times the CPU; higher levels cost far more than they save. Zstandard
// makes feeds no smaller than gzip does.
const (
	gzipLevel   = 6
	brotliLevel = 5
)

// maxCoding is how many versions are encoded or decoded at once.
const maxCoding = 2

// coders encode and decode versions, a few at a time: encoders are large.
type coders struct {
	places chan struct{}
	gzip   sync.Pool // of *gzip.Writer
	brotli sync.Pool // of *brotli.Writer
}

func newCoders() *coders {
	c := &coders{places: make(chan struct{}, maxCoding)}
	c.gzip.New = func() any {
		w, _ := gzip.NewWriterLevel(nil, gzipLevel) // the level is valid
		return w
	}
	c.brotli.New = func() any { return brotli.NewWriterLevel(nil, brotliLevel) }
	return c
}

// enter waits for a place.
func (c *coders) enter(ctx context.Context) error {
	select {
	case c.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *coders) leave() { <-c.places }

// rest is a version as it is stored: as gzip, unless that makes it no smaller.
func (c *coders) rest(ctx context.Context, identity []byte) (*store.Body, error) {
	b, err := c.pack(ctx, identity)
	if err != nil {
		return nil, err
	}
	if len(b) >= len(identity) {
		return &store.Body{Coding: codingIdentity, Data: bytes.Clone(identity)}, nil // what it was read into may be larger
	}
	return &store.Body{Coding: codingGzip, Data: b}, nil
}

// pack encodes a document as gzip.
func (c *coders) pack(ctx context.Context, identity []byte) ([]byte, error) {
	return c.encode(ctx, &c.gzip, codingGzip, identity)
}

// unpack is the inverse of pack. It fails where a document is larger than most.
func (c *coders) unpack(ctx context.Context, b []byte, most int) ([]byte, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	defer c.leave()
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	identity, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(identity) > most {
		err = errors.New("the document is larger than it was")
	}
	return identity, err
}

// compress encodes a version as Brotli.
func (c *coders) compress(ctx context.Context, identity []byte) ([]byte, error) {
	return c.encode(ctx, &c.brotli, codingBrotli, identity)
}

// encode encodes with one of the encoders of a coding.
func (c *coders) encode(ctx context.Context, encoders *sync.Pool, coding string, identity []byte) ([]byte, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	defer c.leave()
	w := encoders.Get().(interface {
		io.WriteCloser
		Reset(io.Writer)
	})
	defer encoders.Put(w)
	var p pieces
	w.Reset(&p)
	_, err := w.Write(identity)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("encoding as %s: %w", coding, err)
	}
	return bytes.Join(p, nil), nil
}

// pieces collects what is written: a buffer that grows would leave twice as much behind
// as it holds.
type pieces [][]byte

const pieceSize = 32 << 10

func (p *pieces) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		last := len(*p) - 1
		if last < 0 || len((*p)[last]) == cap((*p)[last]) {
			*p = append(*p, make([]byte, 0, pieceSize))
			last++
		}
		part := b[:min(len(b), cap((*p)[last])-len((*p)[last]))]
		(*p)[last] = append((*p)[last], part...)
		b = b[len(part):]
	}
	return n, nil
}

// identity is the inverse of rest, for a version of a known size. What cannot be
// had back is no body.
func (c *coders) identity(ctx context.Context, b store.Body, size int) ([]byte, error) {
	if b.Coding == codingIdentity {
		return b.Data, nil
	}
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	defer c.leave()
	identity, err := gunzip(b.Data, size)
	if err != nil {
		return nil, fmt.Errorf("%w: decoding gzip: %w", store.ErrNoBody, err)
	}
	return identity, nil
}

// gunzip undoes gzip where the size is known beforehand.
func gunzip(b []byte, size int) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	identity := make([]byte, size)
	if _, err := io.ReadFull(r, identity); err != nil {
		return nil, err
	}
	// The end belongs to it: only there the checksum is compared.
	switch n, err := r.Read(make([]byte, 1)); {
	case n > 0:
		return nil, fmt.Errorf("it has more than %d bytes", size)
	case err != io.EOF:
		return nil, err
	}
	return identity, nil
}
