// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Agent is the parsed User-Agent of a reader. [ParseAgent] never returns the zero Agent.
type Agent struct {
	UserAgent   string // as sent, cut at 256 bytes, without control characters; "-" if it is missing
	Family      string // the product's name without version, at most 64 bytes; "-" if it is missing
	Kind        Kind
	FeedID      string // the aggregator's own name for the feed; may be empty
	Subscribers int64  // the subscribers that the aggregator declares; 0 if it declares none
}

// Kind classifies User-Agents: it decides whether several addresses with the same
// User-Agent are likely to be several readers.
type Kind string

// The kinds of reader.
const (
	KindNone    Kind = "none"    // no User-Agent
	KindBrowser Kind = "browser" // the form of a person's browser, without another product's name
	KindDevice  Kind = "device"  // names an operating system: runs on a person's device, or is self-hosted
	KindLibrary Kind = "library" // the default name of an HTTP library that many programs use
	KindService Kind = "service" // any other: usually the machines of one operator
)

// nameless stands for a missing User-Agent, as in access logs.
const nameless = "-"

// maxName is the longest family and feed ID kept, in bytes.
const maxName = 64

// ParseAgent parses a User-Agent. It accepts any text: if it finds no product's name, the
// text is the family.
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

// printable returns a copy of text, trimmed and without control characters and broken
// UTF-8. It is a copy because text may be part of a larger request.
func printable(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return strings.Clone(strings.TrimSpace(clean))
}

// kind classifies a User-Agent with its family; brand says that the family is a browser.
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
