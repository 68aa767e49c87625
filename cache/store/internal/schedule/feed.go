// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"bytes"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// Feed is what a store keeps of a feed and changes often. It is never changed once
// a [Keeper] has it: another one takes its place.
type Feed struct {
	Token      store.Token
	Next       Time // due from then on
	Polled     Time // granted last
	Asked      Time // for by a reader
	Hold       time.Duration
	Version    uint64
	Size       int64  // of the body, in bytes
	File       uint64 // where the body is, for stores that keep it in a file; 0: nowhere
	State      store.State
	Configured bool
	Host       store.Host
	Here       bool // Host is the one that was polled last
	Facts      []byte
}

// Text is what a store keeps of a feed and changes seldom.
type Text struct {
	URL  string
	Memo []byte
}

// Record is the feed as the engine sees it at a moment. It shares nothing with f.
func (f *Feed) Record(id store.ID, text Text, now Time) store.Record {
	r := f.Given(id, text, now)
	r.Facts, r.Memo = bytes.Clone(r.Facts), bytes.Clone(r.Memo)
	return r
}

// Given is a record that has the very facts and memo, for a feed that is not kept.
func (f *Feed) Given(id store.ID, text Text, now Time) store.Record {
	return store.Record{
		ID: id, URL: text.URL, Token: f.Token,
		In: f.Next.Sub(now), Hold: f.Hold,
		Polled: f.Polled.ago(now), Asked: f.Asked.ago(now),
		Version: f.Version, State: f.State, Host: f.Host, Configured: f.Configured,
		Facts: f.Facts, Memo: text.Memo,
	}
}

// unread tells whether f has nothing to show to readers and nobody has written it
// down: only a reader who asks for it brings it on.
func (f *Feed) unread() bool { return f.Version == 0 && !f.Configured }

// wanted is when somebody last had to do with the feed: the last reader, or the
// last poll where there has been no reader yet.
func (f *Feed) wanted() Time {
	if f.Asked == Never {
		return f.Polled
	}
	return f.Asked
}
