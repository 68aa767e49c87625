// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/version"
)

// sending is a representation on its way to a reader.
type sending struct {
	*version.Representation
	stream  *stream // reads what the representation does not have; nil: it has all
	release func()  // of bytes in hand; nil: none were taken
}

// representation returns the version in the coding that a request prefers, from
// memory or else from the store. The caller calls its release.
func (f *Feed) representation(r *http.Request, s *feedstate.State) (sending, error) {
	preference, v := version.PreferenceOf(r.Header["Accept-Encoding"]), &s.Feed.Version
	coding := preference.Best(v.IsGzip())
	if out, ok := f.fromMemory(s, coding, v.Length > store.PartSize); ok {
		return f.takeBytes(r, out, 0)
	}
	out, err := f.fromStore(r, s, coding)
	if err != nil && !errors.Is(err, errBusy) {
		// While the store is away, what is in memory is good enough.
		for c, weight := range preference {
			if instead, ok := f.fromMemory(s, version.Coding(c), true); ok && weight > 0 {
				return f.takeBytes(r, instead, 0)
			}
		}
	}
	return out, err
}

// fromMemory returns the version of a state in a coding, if memory has it or, with decode, has
// what it can be decoded from while it is sent.
func (f *Feed) fromMemory(s *feedstate.State, coding version.Coding, decode bool) (sending, bool) {
	rep := f.cache.memory.get(f.id, s, coding)
	if rep != nil && len(rep.Parts) == 1 {
		return sending{Representation: rep.Representation}, true
	}
	if rep == nil && decode && coding == version.Identity {
		rep = f.cache.memory.get(f.id, s, s.Feed.Version.StoredCoding())
	}
	if rep == nil {
		return sending{}, false
	}
	return f.streamed(s, coding, opened{rep: rep}), true
}

// fromStore reads the version of a state from the store. Parts that memory does not have count as
// bytes in hand of the reader's network.
func (f *Feed) fromStore(r *http.Request, s *feedstate.State, coding version.Coding) (sending, error) {
	got, err := f.cache.readVersion(r.Context(), f, s, coding)
	if err != nil {
		return sending{}, err
	}
	var out sending
	if got.rep != nil && got.rep.Coding == coding && len(got.rep.Parts) == 1 {
		out.Representation = got.rep.Representation
	} else {
		out = f.streamed(s, coding, got)
	}
	return f.takeBytes(r, out, min(out.Size, store.PartSize))
}

// takeBytes counts the bytes in hand of a response: of a part that memory does not have, and what it takes
// to decode the version on its way.
func (f *Feed) takeBytes(r *http.Request, out sending, part int64) (sending, error) {
	if part <= smallPart {
		part = 0
	}
	if t := out.stream; t != nil && t.coding != t.state.Feed.Version.StoredCoding() {
		part += decoderSize
	}
	if part == 0 {
		return out, nil
	}
	if out.release = f.cache.inHand.sending.take(f.cache.network(r), part, false); out.release == nil {
		return sending{}, errBusy
	}
	return out, nil
}

// readable returns the state to publish in place of an old one. If memory has the old one's version, and
// that of the next one cannot be read, the old version stays; if it is lost, the next poll fetches it
// again. An error says that it can perhaps be read later.
func (f *Feed) readable(ctx context.Context, old, next *feedstate.State) (*feedstate.State, error) {
	c, v := f.cache, &next.Feed.Version
	lost := next.Version == 0 && v.Number != 0 && v.Number == f.missing.Load()
	if old.Version == 0 || next.Version == 0 && !lost || v.Tag == old.Feed.Version.Tag ||
		c.memory.get(f.id, old, version.Gzip) == nil && c.memory.get(f.id, old, version.Identity) == nil {
		return next, nil
	}
	shown := *next
	if !lost {
		_, err := c.readVersion(ctx, f, next, v.StoredCoding())
		switch {
		case err == nil:
			return next, nil
		case !errors.Is(err, store.ErrNoBody):
			shown.Version, shown.Response, shown.Feed.Version = old.Version, old.Response, old.Feed.Version
			shown.KeepUnstored(old.Unstored)
			return &shown, err
		}
		f.missing.Store(next.Version)
		f.dropVersion(&shown)
	}
	shown.Version, shown.Response, shown.Feed.Version = old.Version, old.Response, old.Feed.Version
	shown.KeepUnstored(old.Unstored)
	return &shown, nil
}

// errOtherVersion says that the store has a newer version than the state.
var errOtherVersion = errors.New("the store has another version")

// opened is what was read of a version: a representation, in the coding that was asked for or
// in that of the store, or if memory has no room for it, the body in the store.
type opened struct {
	rep  *representation
	body *store.StoredBody
}

// readVersion gets a representation from the store, once for all who want it at one time.
func (c *Cache) readVersion(ctx context.Context, f *Feed, s *feedstate.State, coding version.Coding) (opened, error) {
	// All that the result depends on: who joins a read gets it without a look.
	key := string(f.id[:]) + s.Feed.Version.Tag + " " + strconv.FormatUint(s.Version, 10) + " " + coding.String()
	done := c.reads.DoChan(key, func() (any, error) {
		if rep := c.memory.get(f.id, s, coding); rep != nil { // it may just have come
			return opened{rep: rep}, nil
		}
		return c.readStored(f, s, coding)
	})
	select {
	case got := <-done:
		return got.Val.(opened), got.Err
	case <-ctx.Done():
		return opened{}, ctx.Err()
	}
}

// readStored reads a version from the store, and takes what fits into memory.
func (c *Cache) readStored(f *Feed, s *feedstate.State, coding version.Coding) (opened, error) {
	v := &s.Feed.Version
	rep := c.memory.get(f.id, s, v.StoredCoding())
	var data []byte
	if rep == nil {
		body, err := f.openBody(c.life, s)
		if err != nil {
			return opened{}, err
		}
		if body.Parts() > 1 {
			if !c.memory.fits(body.Size) {
				return opened{body: body}, nil
			}
			done := c.inHand.receiving.try(f.owner(), body.Size)
			if done == nil {
				return opened{body: body}, nil
			}
			defer done()
		}
		if data, err = body.Data(c.life); err != nil {
			return opened{}, err
		}
	} else if len(rep.Parts) == 1 {
		data = rep.Parts[0]
	}
	var content []byte
	if decode := coding != v.StoredCoding() && v.Length <= store.PartSize; decode {
		var err error
		if content, err = version.Unpack(v.StoredCoding(), data, v.Length); err != nil {
			return opened{}, fmt.Errorf("%w: %w", store.ErrNoBody, err)
		}
	}
	switch {
	case content != nil:
		rep = c.memory.add(f.id, s, coding, content)
	case rep == nil:
		rep = c.memory.add(f.id, s, v.StoredCoding(), data)
	}
	return opened{rep: rep}, nil
}

func (f *Feed) content(ctx context.Context, s *feedstate.State) ([]byte, error) {
	v := &s.Feed.Version
	got, err := f.cache.readVersion(ctx, f, s, v.StoredCoding())
	if err != nil {
		return nil, err
	}
	var data []byte
	if got.rep != nil {
		data = bytes.Join(got.rep.Parts, nil)
	} else if data, err = got.body.Data(ctx); err != nil {
		return nil, err
	}
	return version.Unpack(v.StoredCoding(), data, v.Length)
}

func (f *Feed) openBody(ctx context.Context, s *feedstate.State) (*store.StoredBody, error) {
	v := &s.Feed.Version
	b, err := f.cache.store.Body(ctx, f.id)
	switch {
	case err != nil:
	case b.Version != s.Version:
		err = errOtherVersion
	case b.Coding != v.Coding:
		err = fmt.Errorf("%w: it is stored as %s, and described as %s", store.ErrNoBody, b.Coding, v.Coding)
	case !v.IsGzip() && b.Size != int64(v.Length):
		err = fmt.Errorf("%w: it has %d bytes, and is described with %d", store.ErrNoBody, b.Size, v.Length)
	}
	return b, err
}

// Standing compares the validators of a request, at a time, with the feed's versions. It does not poll.
func (f *Feed) Standing(h http.Header, at time.Time) version.Standing {
	return f.state.Load().Standing(h, at)
}
