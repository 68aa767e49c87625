// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// representation is a version in one content coding, ready to be sent: header
// values are slices that a response's header map can hold as they are.
type representation struct {
	coding   string
	rank     int // of the coding in preference
	body     []byte
	etag     []string
	encoding []string // nil: identity
	length   []string
}

// prepared is a version in memory.
type prepared struct {
	id      ID
	version uint64

	// In order of preference: the smallest first, identity last.
	representations []representation

	tag          string // the opaque part that the representations' ETags share
	originTag    string
	modified     time.Time
	lastModified []string
	contentType  []string
}

// preference is by size: brotli is the smallest, zstd and gzip are alike.
var preference = [...]struct{ coding, suffix string }{
	// Suffixes that Caddy's encode handler does not take for its own: it strips
	// "-gzip", "-zstd" and "-br" from If-None-Match.
	{codingBrotli, ".br"}, {codingZstd, ".zst"}, {codingGzip, ".gz"}, {codingIdentity, ""},
}

// prepare makes a state's version ready to be sent.
func prepare(id ID, s *state, body *encoded) *prepared {
	v := &s.memo.Version
	p := &prepared{
		id: id, version: s.Version, tag: v.Tag, originTag: v.OriginTag, modified: v.LastModified,
		lastModified: []string{v.LastModified.UTC().Format(http.TimeFormat)},
		contentType:  []string{v.ContentType},
	}
	for rank, pref := range preference {
		b, ok := body.byCoding[pref.coding]
		if !ok {
			continue
		}
		// RFC 9110 section 8.8.3.3: representations in different codings have
		// different strong validators.
		r := representation{coding: pref.coding, rank: rank, body: b, etag: []string{`"` + v.Tag + pref.suffix + `"`}, length: []string{strconv.Itoa(len(b))}}
		if pref.coding != codingIdentity {
			r.encoding = []string{pref.coding}
		}
		p.representations = append(p.representations, r)
	}
	return p
}

func (p *prepared) identity() []byte { return p.representations[len(p.representations)-1].body }

// shows reports whether it is a state's version. The number alone does not say so:
// a feed that was forgotten and came back counts anew.
func (p *prepared) shows(s *state) bool {
	v := &s.memo.Version
	return p.version == s.Version && p.tag == v.Tag && p.originTag == v.OriginTag && p.modified.Equal(v.LastModified)
}

// cost is what the version takes of the memory's budget, in bytes.
func (p *prepared) cost() int64 {
	cost := int64(overhead)
	for i := range p.representations {
		cost += int64(len(p.representations[i].body))
	}
	return cost
}

// content is the state's version, from memory or else from the store; nil where
// there is none.
func (f *Feed) content(ctx context.Context, s *state) *prepared {
	if s.Version == 0 {
		return nil
	}
	if p := f.cache.memory.get(f.key, f.id, s); p != nil {
		return p
	}
	return f.read(ctx, s)
}

// read gets the version from the store.
func (f *Feed) read(ctx context.Context, s *state) *prepared {
	of := s
	b, err := f.cache.store.Body(context.WithoutCancel(ctx), f.id)
	if err == nil && b.Version != s.Version {
		// A newer version has just been committed. Its state is about to be
		// published; until then its record describes it.
		of, err = f.committed(ctx, b.Version)
	}
	var body *encoded
	if err == nil {
		body, err = restore(b.Coded, of.memo.Version.Size)
	}
	if err != nil {
		f.bodyLost(s, err)
		return nil
	}
	p := prepare(f.id, of, body)
	f.cache.memory.put(f.key, p)
	return p
}

// committed is the state that the store has, if it is of this version.
func (f *Feed) committed(ctx context.Context, version uint64) (*state, error) {
	r, err := f.cache.store.Load(context.WithoutCancel(ctx), f.id)
	if err != nil {
		return nil, err
	}
	if r.Version != version {
		return nil, fmt.Errorf("body of version %d beside a record of version %d: %w", version, r.Version, ErrNoBody)
	}
	return decodeRecord(r)
}

// bodyLost drops the version of a feed whose body cannot be read any more. With
// it go the validators: a 304 would confirm bytes that nobody has.
func (f *Feed) bodyLost(s *state, err error) {
	if !errors.Is(err, ErrNoBody) {
		// The store is out of order, the body perhaps is not.
		f.cache.log().Error("stored body cannot be read", urlField(f.url), errField(err))
		return
	}
	next := *s
	next.Version = 0
	f.mu.Lock()
	defer f.mu.Unlock()
	// Who has the flight publishes a state of its own; the next reader finds out then.
	if f.flight == nil && !f.forgotten.Load() && f.state.CompareAndSwap(s, &next) {
		f.countUnread(1)
		f.cache.log().Error("stored body is lost, the next poll fetches it anew", urlField(f.url), errField(err))
	}
}
