// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/policy"
)

// codings are what versions are sent in, the smallest first.
var codings = [...]string{codingBrotli, codingGzip, codingIdentity}

// The places of codings.
const (
	rankBrotli = iota
	rankGzip
	rankIdentity
)

// suffixes are what ETags of the codings end in. Caddy's encode handler does not take
// them for its own: it strips "-gzip", "-zstd" and "-br" from If-None-Match.
var suffixes = [len(codings)]string{".br", ".gz", ""}

// encodings are the values of Content-Encoding.
var encodings = [len(codings)][]string{{codingBrotli}, {codingGzip}, nil}

// versionHeaders are what readers are told of a version, whatever its coding: slices
// that a response's header map can hold as they are.
type versionHeaders struct {
	lastModified []string
	contentType  []string
	// RFC 9110 section 8.8.3.3: representations in different codings have different
	// strong validators.
	etags [len(codings)][]string
}

func newVersionHeaders(v *version) *versionHeaders {
	h := &versionHeaders{
		lastModified: []string{v.LastModified.UTC().Format(http.TimeFormat)},
		contentType:  []string{v.ContentType},
	}
	for rank, suffix := range suffixes {
		h.etags[rank] = []string{`"` + v.Tag + suffix + `"`}
	}
	return h
}

// representation is a version in one form, in memory.
type representation struct {
	id     store.ID
	tag    string
	rank   int // of its coding
	body   []byte
	length []string
}

func newRepresentation(id store.ID, s *state, rank int, body []byte) *representation {
	return &representation{id: id, tag: s.memo.Version.Tag, rank: rank, body: body, length: []string{strconv.Itoa(len(body))}}
}

// is reports whether it is of a state's version, which its tag names by its content: a
// publisher who takes a change back gives the same bytes as before, and a number may come
// again after a feed was forgotten.
func (r *representation) is(id store.ID, s *state, rank int) bool {
	return r.rank == rank && r.id == id && r.tag == s.memo.Version.Tag
}

// memoryKey names a place in memory, which a version takes from the one before: those
// that nobody asks for any more would keep new ones out, of which nothing is known yet.
func memoryKey(id store.ID, rank int) uint64 {
	return binary.LittleEndian.Uint64(id[:]) + uint64(rank)*0x9e3779b97f4a7c15
}

// rankOf is the place of a coding.
func rankOf(coding string) int {
	if rank := slices.Index(codings[:], coding); rank >= 0 {
		return rank
	}
	return rankIdentity
}

// acceptable reads a request's Accept-Encoding (RFC 9110 section 12.5.3) as a weight
// for each coding. Where nothing is acceptable, identity is: a reader that refuses
// everything is served better by a feed than by a 406.
func acceptable(lines []string) (weights [len(codings)]int) {
	if len(lines) == 0 {
		weights[rankIdentity] = 1 // no preference: what every reader can read
		return weights
	}
	httpfield.Weights(lines, codings[:], weights[:])
	return weights
}

// preferred is the coding with the highest weight, of several the smallest one.
func preferred(weights [len(codings)]int, available func(rank int) bool) int {
	best, weight := rankIdentity, 0
	for rank, w := range weights {
		if w > weight && available(rank) {
			best, weight = rank, w
		}
	}
	return best
}

// gzipped reports whether the version is stored as gzip.
func (v *version) gzipped() bool { return v.Coding == codingGzip }

// representation returns the version in the coding that a request prefers, from
// memory or else from the store. Brotli is made on the first request for it, and
// sent from the second one on: no reader waits for compression.
func (f *Feed) representation(ctx context.Context, s *state, lines []string) (*representation, error) {
	weights, v := acceptable(lines), &s.memo.Version
	var brotli *representation
	rank := preferred(weights, func(rank int) bool {
		switch rank {
		case rankBrotli:
			brotli = f.cache.memory.get(f.id, s, rankBrotli)
			return brotli != nil && brotli.body != nil
		case rankGzip:
			return v.gzipped()
		}
		return true
	})
	if rank == rankBrotli {
		return brotli, nil
	}
	r := f.cache.memory.get(f.id, s, rank)
	if r == nil {
		var err error
		if r, err = f.cache.read(ctx, f, s, rank); err != nil {
			// While the store is away, what is in memory is good enough.
			if r = f.inMemory(s, weights); r == nil {
				return nil, err
			}
		}
	}
	if weights[rankBrotli] >= weights[rank] && brotli == nil && v.gzipped() {
		f.cache.makeBrotli(f, s)
	}
	return r, nil
}

// inMemory returns the version in any acceptable coding that is in memory; nil if there is none.
func (f *Feed) inMemory(s *state, weights [len(codings)]int) *representation {
	for rank, weight := range weights {
		if weight == 0 {
			continue
		}
		if r := f.cache.memory.get(f.id, s, rank); r != nil && r.body != nil {
			return r
		}
	}
	return nil
}

// replace brings a version that another node has committed into memory, where readers
// here were given the one before it: they do not wait for the store. Large versions are
// left to the next reader: they may have to wait for room, and changes of other feeds with
// them. What cannot be read is found out by the next reader as well.
func (c *Cache) replace(ctx context.Context, f *Feed, old, next *state) {
	m := f.timed.Load()
	if m == nil || old.version == 0 || m.state.version != old.version || next.version == 0 ||
		next.memo.Version.Tag == old.memo.Version.Tag || next.memo.Version.Length > policy.SmallBody {
		return
	}
	if _, err := c.read(ctx, f, next, rankOf(next.memo.Version.Coding)); err == nil {
		f.whole.Store(next)
	}
}

// earlier returns the last version whose body was in memory, with its state, where that
// is not the present one and the body is still there: while the store is away it is
// better than nothing. Readers who were told of a newer one by a 304 brought that along.
func (f *Feed) earlier(ctx context.Context, s *state, lines []string) (*state, *representation) {
	last := f.whole.Load()
	if last == nil || last.memo.Version.Tag == s.memo.Version.Tag {
		return nil, nil
	}
	if f.cache.memory.get(f.id, last, rankOf(last.memo.Version.Coding)) != nil {
		r, _ := f.representation(ctx, last, lines) // of which any other is made
		return last, r
	}
	return last, f.inMemory(last, acceptable(lines))
}

// errOtherVersion says that the store has a newer version than the state.
var errOtherVersion = errors.New("the store has another version")

// read gets a representation from the store, once for all who want it at one time.
func (c *Cache) read(ctx context.Context, f *Feed, s *state, rank int) (*representation, error) {
	// The whole of what it is of: whoever waits here gets it without a look.
	key := string(f.id[:]) + s.memo.Version.Tag + " " + strconv.FormatUint(s.version, 10) + " " + codings[rank]
	done := c.reads.DoChan(key, func() (any, error) {
		if r := c.memory.get(f.id, s, rank); r != nil {
			return r, nil // it has just come
		}
		leave, err := c.roomToRead(s.memo.Version.Length)
		if err != nil {
			return nil, err
		}
		defer leave()
		b, err := c.stored(f, s)
		if err != nil {
			return nil, err
		}
		data := b.Data
		if codings[rank] != b.Coding {
			if data, err = c.coders.identity(c.life, b, s.memo.Version.Length); err != nil {
				return nil, err
			}
		}
		r := newRepresentation(f.id, s, rank, data)
		c.memory.put(r)
		return r, nil
	})
	select {
	case got := <-done:
		r, _ := got.Val.(*representation)
		return r, got.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stored is a version's body as it is stored: from memory, or else from the store.
func (c *Cache) stored(f *Feed, s *state) (store.Body, error) {
	v := &s.memo.Version
	if r := c.memory.get(f.id, s, rankOf(v.Coding)); r != nil {
		return store.Body{Version: s.version, Coding: v.Coding, Data: r.body}, nil
	}
	b, err := c.store.Body(c.life, f.id, s.version)
	switch {
	case err != nil:
	case b.Version != s.version:
		err = errOtherVersion
	case b.Coding != v.Coding:
		err = fmt.Errorf("%w: it is stored as %s, and described as %s", store.ErrNoBody, b.Coding, v.Coding)
	}
	return b, err
}

// makeBrotli encodes a version as Brotli in the background, into memory. Where that
// is no smaller than gzip, what goes into memory has no body.
func (c *Cache) makeBrotli(f *Feed, s *state) {
	gz := c.memory.get(f.id, s, rankGzip)
	if gz == nil {
		return // it is not asked for often enough
	}
	key := memoryKey(f.id, rankBrotli) + s.version
	if _, making := c.making.LoadOrStore(key, struct{}{}); making {
		return
	}
	if !c.background(func() {
		defer c.making.Delete(key)
		identity, err := c.coders.unpack(c.open, gz.body, s.memo.Version.Length)
		if err != nil {
			return
		}
		b, err := c.coders.compress(c.open, identity)
		if err != nil {
			return
		}
		if len(b) >= len(gz.body) {
			b = nil
		}
		c.memory.put(newRepresentation(f.id, s, rankBrotli, b))
	}) {
		c.making.Delete(key)
	}
}

// notModified evaluates a request's conditions on the present version. The date that
// readers were told need not be parsed.
func (s *state) notModified(h http.Header) bool {
	if dates := h["If-Modified-Since"]; len(dates) == 1 && dates[0] == s.headers.lastModified[0] && len(h["If-None-Match"]) == 0 {
		return true
	}
	return s.memo.Version.notModified(h)
}

// notModified evaluates a request's conditions (RFC 9110 section 13.2.2) on a
// version: where there is an If-None-Match, If-Modified-Since does not count.
func (v *version) notModified(h http.Header) bool {
	tags, dates := h["If-None-Match"], h["If-Modified-Since"]
	if len(tags) == 0 && len(dates) == 0 {
		return false
	}
	return httpfield.NotModified(tags, dates, v.named, v.unmodified)
}

// unmodified reports whether the version is not newer than a date.
func (v *version) unmodified(date string) bool {
	// RFC 9110 section 13.1.3: a field that is no valid date is ignored.
	since, err := http.ParseTime(date)
	return err == nil && !v.LastModified.After(since)
}

// named reports whether an entity tag names the version, by weak comparison. Tags
// of every coding name it, as a reader may have changed its mind about coding, and
// so does the origin's own.
func (v *version) named(tag httpfield.Tag) bool {
	if strings.HasPrefix(tag.Opaque, v.Tag) {
		switch tag.Opaque[len(v.Tag):] {
		// Ours, and what proxies on the way are known to make of them.
		case "", ".gz", ".zst", ".br", "-gzip", ".gz-gzip", "-br", "-zstd", "--gzip", ";gzip":
			return true
		}
	}
	return v.OriginTag != "" && tag.Equal(httpfield.ParseTag(v.OriginTag))
}

// Standing is how the validators of a request compare with a feed's versions.
type Standing int

// What a request's validators can be.
const (
	Unconditional Standing = iota // there are none
	Current                       // of the present version: the answer is a 304
	Earlier                       // of a version before
	Unknown                       // of nothing that readers have been given: invented, damaged, or long past
)

// Standing compares a request's validators with the feed's versions, for whoever
// wants to judge its reader. It polls nothing.
func (f *Feed) Standing(h http.Header) Standing {
	tags, dates := h["If-None-Match"], h["If-Modified-Since"]
	if len(tags) == 0 && len(dates) == 0 {
		return Unconditional
	}
	s := f.state.Load()
	m := &s.memo
	if s.headers != nil && s.notModified(h) || m.Version.Tag != "" && m.Version.notModified(h) {
		return Current
	}
	for i := range m.Past {
		before := version{Tag: m.Past[i].Tag}
		switch {
		case len(tags) > 0 && httpfield.HasTag(tags, before.named):
			return Earlier
		case len(tags) == 0 && dates[0] == m.Past[i].LastModified.Format(http.TimeFormat):
			return Earlier
		}
	}
	return Unknown
}
