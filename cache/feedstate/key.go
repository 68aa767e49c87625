// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"strings"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// A Key names a feed: by its canonical URL or, behind a shield, by a text that the
// shield makes of a request. Two keys are equal (==) if and only if their texts are.
type Key struct {
	text string
	url  feedurl.URL // parsed once, for all that is asked about the feed; zero: a shield's
}

// ParseKey returns the key of a text: of a canonical URL, or of a shield's.
func ParseKey(text string) Key {
	k := Key{text: text}
	if strings.HasPrefix(text, "http") {
		k.url, _ = feedurl.Parse(text) // without a URL it has no origin
	}
	return k
}

// String returns the text of the key.
func (k Key) String() string { return k.text }

// URL returns the URL of the feed; zero if it is a shield's.
func (k Key) URL() feedurl.URL { return k.url }

// Shielded reports whether the feed is one of a site of this process.
func (k Key) Shielded() bool { return k.url == feedurl.URL{} }

// Shielded reports whether the text of a key is that of a feed of a site of this process.
func Shielded(key string) bool { return !strings.HasPrefix(key, "http") }
