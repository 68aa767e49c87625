// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"strconv"
	"strings"
)

// maxSubscribers is the largest number accepted, about that of all people.
const maxSubscribers = 10_000_000_000

// subscribers returns the number of subscribers that a User-Agent declares, as "12
// subscribers", "1 subscribers", "12 readers", "12 users" or "subscribers=12", or 0.
func subscribers(text string) int64 {
	lower := lowered(text)
	for i := 0; i < len(lower); i++ {
		if !digit(lower[i]) {
			continue
		}
		end := i
		for end < len(lower) && digit(lower[end]) {
			end++
		}
		if standsAlone(lower[:i]) && countsPeople(lower[:i], lower[end:]) {
			if n, err := strconv.ParseInt(lower[i:end], 10, 64); err == nil && n > 0 && n <= maxSubscribers {
				return n
			}
		}
		i = end
	}
	return 0
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// standsAlone reports whether a number after this text is not part of a version or name.
func standsAlone(before string) bool {
	return before == "" || strings.IndexByte(" ;,(:=-+", before[len(before)-1]) >= 0
}

func countsPeople(before, after string) bool {
	trimmed := strings.TrimLeft(after, " ")
	if trimmed != after {
		for _, noun := range []string{"subscriber", "readers", "users", "feed subscriber"} {
			if strings.HasPrefix(trimmed, noun) {
				return true
			}
		}
	}
	before = strings.TrimRight(before, " ")
	if n := len(before); n > 0 && (before[n-1] == '=' || before[n-1] == ':') {
		return strings.HasSuffix(strings.TrimRight(before[:n-1], " "), "subscribers")
	}
	return false
}

// feedID returns the aggregator's ID of the feed in its User-Agent, as "feed-id=5",
// "feed-id:5" or "id=5", or "".
func feedID(text string) string {
	lower := lowered(text)
	for _, key := range []string{"feed-id", "feed_id", "feedid", "id"} {
		for from := 0; ; {
			at := strings.Index(lower[from:], key)
			if at < 0 {
				break
			}
			at += from
			from = at + len(key)
			if at > 0 && strings.IndexByte(" ;,(", lower[at-1]) < 0 {
				continue
			}
			rest := strings.TrimLeft(text[from:], " ")
			if rest == "" || rest[0] != '=' && rest[0] != ':' {
				continue
			}
			if value := idValue(strings.TrimLeft(rest[1:], " ")); value != "" {
				return value
			}
		}
	}
	return ""
}

// idValue returns the identifier at the beginning of a text.
func idValue(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("-_.", r)
	})
	if end < 0 {
		end = len(text)
	}
	return text[:min(end, maxName)]
}

// lowered converts ASCII letters to lower case. Unlike [strings.ToLower], it keeps the
// positions of all bytes.
func lowered(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
