// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Names of content codings (RFC 9110 section 8.4.1, RFC 7932, RFC 8878).
const (
	codingIdentity = "identity"
	codingGzip     = "gzip"
	codingZstd     = "zstd"
	codingBrotli   = "br"
)

// Levels: gzip 6 is the size that all readers get, brotli 5 is a tenth smaller
// for three times the CPU; higher levels cost far more than they save.
const (
	gzipLevel   = 6
	brotliLevel = 5
)

// encoded is a version's bytes in every content coding, made once when the
// version arrives. A coding that does not make it smaller is left out.
type encoded struct {
	byCoding map[string][]byte
}

func (e *encoded) identity() []byte { return e.byCoding[codingIdentity] }

// stored is the form at rest: identity can be had back from gzip.
func (e *encoded) stored() map[string][]byte {
	if _, ok := e.byCoding[codingGzip]; !ok {
		return e.byCoding
	}
	kept := make(map[string][]byte, len(e.byCoding))
	for coding, b := range e.byCoding {
		if coding != codingIdentity {
			kept[coding] = b
		}
	}
	return kept
}

// restore is the inverse of stored. What cannot be restored is no body.
func restore(kept map[string][]byte, size int) (*encoded, error) {
	if _, ok := kept[codingIdentity]; ok {
		return &encoded{kept}, nil
	}
	identity, err := gunzip(kept[codingGzip], size)
	if err != nil {
		return nil, fmt.Errorf("%w: restoring identity from gzip: %w", ErrNoBody, err)
	}
	all := make(map[string][]byte, len(kept)+1)
	for coding, b := range kept {
		all[coding] = b
	}
	all[codingIdentity] = identity
	return &encoded{all}, nil
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

// coders encode one version at a time: encoders are large, and new versions are
// rare beside the requests that they save.
type coders struct {
	turn chan struct{} // a channel and no mutex: encoding is work, not memory access
	gzip *gzip.Writer
	zstd *zstd.Encoder
	br   *brotli.Writer
}

func newCoders() *coders { return &coders{turn: make(chan struct{}, 1)} }

func (c *coders) encode(identity []byte) (*encoded, error) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if c.gzip == nil {
		if err := c.open(); err != nil {
			return nil, err
		}
	}
	e := &encoded{byCoding: map[string][]byte{codingIdentity: identity}}
	var buf bytes.Buffer
	for coding, w := range map[string]interface {
		io.WriteCloser
		Reset(io.Writer)
	}{codingGzip: c.gzip, codingBrotli: c.br} {
		buf.Reset()
		w.Reset(&buf)
		if _, err := w.Write(identity); err != nil {
			return nil, fmt.Errorf("encoding as %s: %w", coding, err)
		}
		if err := w.Close(); err != nil {
			return nil, fmt.Errorf("encoding as %s: %w", coding, err)
		}
		e.keep(coding, bytes.Clone(buf.Bytes()))
	}
	e.keep(codingZstd, c.zstd.EncodeAll(identity, nil))
	return e, nil
}

func (e *encoded) keep(coding string, b []byte) {
	if len(b) < len(e.identity()) {
		e.byCoding[coding] = b
	}
}

func (c *coders) open() (err error) {
	if c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20)); err != nil {
		return fmt.Errorf("opening zstd encoder: %w", err)
	}
	if c.gzip, err = gzip.NewWriterLevel(nil, gzipLevel); err != nil {
		return fmt.Errorf("opening gzip encoder: %w", err)
	}
	c.br = brotli.NewWriterLevel(nil, brotliLevel)
	return nil
}

func (c *coders) close() {
	if c.zstd != nil {
		c.zstd.Close()
	}
}
