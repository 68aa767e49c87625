// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/policy"
)

// representation returns the version in the coding that a request prefers, from
// memory or else from the store. Brotli is made on the first request for it, and
// sent from the second one on: no reader waits for compression. The caller has to release it.
func (f *Feed) representation(ctx context.Context, s *state, lines []string) (*representation, error) {
	preference, v := version.PreferenceOf(lines), &s.feed.Version
	var brotli *representation
	coding := preference.Best(func(c version.Coding) bool {
		switch c {
		case version.Brotli:
			brotli = f.cache.memory.get(f.id, s, version.Brotli)
			return brotli != nil && brotli.Body != nil
		case version.Gzip:
			return v.Gzipped()
		}
		return true
	})
	if coding == version.Brotli {
		return brotli, nil
	}
	if preference[version.Brotli] >= preference[coding] && brotli == nil && v.Gzipped() {
		f.cache.makeBrotli(f, s)
	}
	brotli.release()
	if r := f.cache.memory.get(f.id, s, coding); r != nil {
		return r, nil
	}
	r, err := f.cache.read(ctx, f, s, coding)
	if err != nil {
		// While the store is away, what is in memory is good enough.
		if r = f.inMemory(s, preference); r != nil {
			err = nil
		}
	}
	return r, err
}

// inMemory returns the version in any acceptable coding that is in memory; nil if there is none.
func (f *Feed) inMemory(s *state, preference version.Preference) *representation {
	for c, weight := range preference {
		if weight == 0 {
			continue
		}
		r := f.cache.memory.get(f.id, s, version.Coding(c))
		if r != nil && r.Body != nil {
			return r
		}
		r.release()
	}
	return nil
}

// replace reads a version that another node has committed into memory, if readers here were
// given the one before: they do not wait for the store then. Large versions are left to the next
// reader, as they may have to wait.
func (c *Cache) replace(ctx context.Context, f *Feed, old, next *state) {
	m := f.timedFields.Load()
	if m == nil || old.version == 0 || m.state.version != old.version || next.version == 0 ||
		next.feed.Version.Tag == old.feed.Version.Tag || next.feed.Version.Length > policy.SmallBody {
		return
	}
	if r, err := c.read(ctx, f, next, next.feed.Version.stored()); err == nil {
		r.release()
		f.lastFull.Store(next)
	}
}

// earlier returns the last version whose body was in memory, with its state, if it is not the
// current one and the body is still there. While the store is away it is better than an error.
func (f *Feed) earlier(ctx context.Context, s *state, lines []string) (*state, *representation) {
	last := f.lastFull.Load()
	if last == nil || last.feed.Version.Tag == s.feed.Version.Tag {
		return nil, nil
	}
	if stored := f.cache.memory.get(f.id, last, last.feed.Version.stored()); stored != nil {
		defer stored.release()
		r, _ := f.representation(ctx, last, lines) // of which any other is made
		return last, r
	}
	return last, f.inMemory(last, version.PreferenceOf(lines))
}

// errOtherVersion says that the store has a newer version than the state.
var errOtherVersion = errors.New("the store has another version")

// read gets a representation from the store, once for all who want it at one time. The caller
// has to release it.
func (c *Cache) read(ctx context.Context, f *Feed, s *state, coding version.Coding) (*representation, error) {
	// All that the result depends on: who joins a read gets it without a look.
	key := string(f.id[:]) + s.feed.Version.Tag + " " + strconv.FormatUint(s.version, 10) + " " + coding.String()
	for {
		var own *representation // set if the read is this call's
		done := c.reads.DoChan(key, func() (any, error) {
			var err error
			if own = c.memory.get(f.id, s, coding); own == nil { // it may just have come
				own, err = c.readStored(f, s, coding)
			}
			return own, err
		})
		select {
		case got := <-done:
			r, _ := got.Val.(*representation)
			// Otherwise its last holder has released it meanwhile: read it again.
			if got.Err != nil || own != nil || r.hold() {
				return r, got.Err
			}
		case <-ctx.Done():
			go func() { <-done; own.release() }()
			return nil, ctx.Err()
		}
	}
}

// readStored reads a version from the store, in a coding.
func (c *Cache) readStored(f *Feed, s *state, coding version.Coding) (*representation, error) {
	v := &s.feed.Version
	reserved, err := c.memory.reserve(c.life, v.Length)
	if err != nil {
		return nil, err
	}
	b, err := c.stored(f, s)
	if err != nil {
		reserved.release()
		return nil, err
	}
	data := b.Data
	if stored := version.CodingOf(b.Coding); stored != coding {
		if data, err = version.Unpack(stored, data, v.Length); err != nil {
			reserved.release()
			return nil, fmt.Errorf("%w: %w", store.ErrNoBody, err)
		}
	}
	return c.memory.add(f.id, v.Represent(coding, data), reserved), nil
}

// stored is a version's body as it is stored: from memory, or else from the store.
func (c *Cache) stored(f *Feed, s *state) (store.Body, error) {
	v := &s.feed.Version
	if r := c.memory.get(f.id, s, v.stored()); r != nil {
		defer r.release()
		return store.Body{Version: s.version, Coding: v.Coding, Data: r.Body}, nil
	}
	b, err := store.ReadBody(c.life, c.store, f.id, s.version)
	switch {
	case err != nil:
	case b.Version != s.version:
		err = errOtherVersion
	case b.Coding != v.Coding:
		err = fmt.Errorf("%w: it is stored as %s, and described as %s", store.ErrNoBody, b.Coding, v.Coding)
	}
	return b, err
}

// makeBrotli encodes a version as Brotli in the background, into memory. If that is not
// smaller than gzip, what goes into memory has no body.
func (c *Cache) makeBrotli(f *Feed, s *state) {
	gz := c.memory.get(f.id, s, version.Gzip)
	if gz == nil {
		return // it is not asked for often enough
	}
	key := memoryKey(f.id, version.Brotli) + s.version
	if _, making := c.making.LoadOrStore(key, struct{}{}); making {
		gz.release()
		return
	}
	if !c.background(func() {
		defer c.making.Delete(key)
		defer gz.release()
		c.encodeBrotli(f.id, &s.feed.Version.Version, gz.Body)
	}) {
		c.making.Delete(key)
		gz.release()
	}
}

func (c *Cache) encodeBrotli(id store.ID, v *version.Version, gz []byte) {
	work, err := c.startWork(c.open, v.Length)
	if err != nil {
		return // the cache is closing
	}
	defer work.release()
	content, err := version.Unpack(version.Gzip, gz, v.Length)
	if err != nil {
		return
	}
	b, err := version.Encode(version.Brotli, content)
	if err != nil {
		return
	}
	if len(b) >= len(gz) {
		b = nil
	}
	if reserved, ok := c.memory.tryReserve(len(b)); ok {
		c.memory.add(id, v.Represent(version.Brotli, b), reserved).release()
	}
}

// Standing is how the validators of a request compare with a feed's versions.
type Standing int

// The results of [Feed.Standing].
const (
	Unconditional Standing = iota // there are none
	Current                       // of the present version: the answer is a 304
	Earlier                       // of a version before
	Unknown                       // of nothing that readers have been given: invented, damaged, or long past
)

// Standing compares a request's validators with the feed's versions. It does not poll.
func (f *Feed) Standing(h http.Header) Standing {
	tags, dates := h["If-None-Match"], h["If-Modified-Since"]
	if len(tags) == 0 && len(dates) == 0 {
		return Unconditional
	}
	s := f.state.Load()
	m := &s.feed
	if m.Version.Tag != "" && m.Version.NotModified(h) {
		return Current
	}
	for i := range m.Past {
		before := version.Version{Tag: m.Past[i].Tag}
		switch {
		case len(tags) > 0 && httpfield.HasTag(tags, before.Names):
			return Earlier
		case len(tags) == 0 && dates[0] == m.Past[i].LastModified.Format(http.TimeFormat):
			return Earlier
		}
	}
	return Unknown
}
