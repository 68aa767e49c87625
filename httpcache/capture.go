// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"bytes"
	"io"
	"slices"
	"sync"
)

// capture is the body of an answer while it arrives. One goroutine fills it at the
// origin's speed; any number of readers take from it at theirs. What it can not
// hold it hands over to the one reader who caused the fetch.
type capture struct {
	mu        sync.Mutex
	data      []byte // grows, and never changes
	state     captureState
	changed   chan struct{} // closed at every change, and replaced
	rest      io.ReadCloser // what comes after data, once it is handed over
	abandoned bool          // nobody is there to take a rest
}

type captureState int

const (
	growing  captureState = iota // more will come
	complete                     // data is all
	broken                       // the origin broke off
	handed                       // the rest is to be read from rest
)

func newCapture() *capture { return &capture{changed: make(chan struct{})} }

// captured is a body that is there already.
func captured(body []byte) *capture {
	return &capture{data: body, state: complete}
}

// from returns what is there after the first n bytes, and a channel that is closed
// when that has changed.
func (b *capture) from(n int) (chunk []byte, state captureState, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data[n:], b.state, b.changed
}

func (b *capture) append(chunk []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data, chunk...)
	b.change(growing)
}

// expect makes room for a body of a length.
func (b *capture) expect(length int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(make([]byte, 0, length), b.data...)
}

func (b *capture) end(state captureState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.change(state)
}

func (b *capture) change(state captureState) {
	b.state = state
	close(b.changed)
	b.changed = make(chan struct{})
}

// hand gives the rest of the body to the reader, and reports whether there is one
// to take, and close, it.
func (b *capture) hand(read []byte, body io.ReadCloser) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.abandoned {
		b.rest = behind(slices.Clone(read), body)
	}
	b.change(handed)
	return !b.abandoned
}

// behind is a body with some bytes in front of it.
func behind(data []byte, body io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(data), body), body}
}

// abandon says that its reader has gone, or is done. It returns the rest that was
// handed over, for the caller to close, or nil.
func (b *capture) abandon() io.Closer {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.abandoned = true
	if b.rest == nil {
		return nil
	}
	return b.rest
}

// whole is all data, in no more memory than it needs.
func (b *capture) whole() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cap(b.data)-len(b.data) > len(b.data)/8 {
		return bytes.Clone(b.data)
	}
	return b.data
}
