// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Agent is what a User-Agent says of a reader. The zero Agent is no result of [ParseAgent].
type Agent struct {
	UserAgent   string // as sent, cut at 256 bytes, without control characters; "-" where there was none
	Family      string // the product's name without version, at most 64 bytes; "-" where there was none
	Kind        Kind
	FeedID      string // the aggregator's own name for the feed; empty: none given
	Subscribers int64  // people that the aggregator says it asks for; 0: it does not say
}

// Kind tells roughly what stands behind a User-Agent: whether several addresses
// with the same one are likely to be several readers.
type Kind string

// The kinds of reader.
const (
	KindNone    Kind = "none"    // no User-Agent
	KindBrowser Kind = "browser" // the form of a person's browser, and no other name in it
	KindDevice  Kind = "device"  // names an operating system: runs where a person is, or is self-hosted
	KindLibrary Kind = "library" // an HTTP library that many programs use without giving it a name
	KindService Kind = "service" // anything else: most often one operator's machines
)

// nameless stands for a User-Agent that is not there, as in access logs.
const nameless = "-"

// maxName is the longest family and feed ID kept, in bytes.
const maxName = 64

// ParseAgent reads a User-Agent. It accepts any text: what has no recognisable
// name is its own family.
func ParseAgent(text string) Agent {
	text = printable(text[:min(len(text), maxAgent)])
	if text == "" || text == nameless {
		return Agent{UserAgent: nameless, Family: nameless, Kind: KindNone}
	}
	a := Agent{UserAgent: text, FeedID: feedID(text), Subscribers: subscribers(text)}
	outside, comments := split(text)
	var brand bool
	a.Family, brand = family(outside, comments)
	a.Kind = kind(text, a.Family, brand)
	return a
}

// printable is a text without control characters and broken UTF-8, trimmed. It
// shares no memory with the text, which may be part of a larger request.
func printable(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return strings.Clone(strings.TrimSpace(clean))
}

// kind classifies a User-Agent of which the family is known; brand says that the
// family is a browser's.
func kind(text, family string, brand bool) Kind {
	lower := strings.ToLower(text)
	switch {
	case family == nameless:
		return KindNone
	case libraries[strings.ToLower(family)]:
		return KindLibrary
	case brand && strings.HasPrefix(text, "Mozilla/5.0 (") && containsAny(lower, browserPlatforms) && !containsAny(lower, readerWords):
		return KindBrowser
	case containsAny(lower, platforms):
		return KindDevice
	}
	return KindService
}

func containsAny(text string, words []string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
