// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"time"
)

// The tokens of a decision: every [Term.Hint] and every [Decision.Winner] that
// this package makes is one of these. (A [Document] may name further hints in
// Malformed; they never win.) The third column says what may win.
//
//	token             the term                                                  wins
//	s-maxage          Cache-Control: s-maxage, less the age                     yes
//	max-age           Cache-Control: max-age, less the age                      yes
//	expires           Expires less Date, less the age                           yes
//	cache-control     a Cache-Control that names no lifetime (no-cache, ...)    no
//	ttl               RSS ttl                                                   yes
//	sy                syndication module: updatePeriod / updateFrequency        yes
//	update-frequency  podcast:updateFrequency                                   yes
//	rhythm            one twelfth of the median gap between entries             yes
//	default           default_interval                                          yes
//	complete          a show that is complete or a feed that has expired: 7 d   yes
//	floor             min_interval                                              yes
//	unvalidated       unvalidated_interval                                      yes
//	cap               max_interval                                              yes
//	interval          the feed's interval before it failed                      no
//	back-off          the growing pause after failures                          yes
//	unasked-304       a 304 to an unconditional request: 24 h                   yes
//	stuck-304         304s may be wrong: the poll was unconditional            no
//	jitter            a random part that is added to the interval               no
//	skip-hours        RSS skipHours                                             yes
//	skip-days         RSS skipDays                                              yes
//	retry-after       Retry-After                                               yes
//	ratelimit         an exhausted RateLimit, RateLimit-* or X-RateLimit-*      yes
//	host-cooldown     the pause of the whole host                               yes
//	host-slot         the host's next slot                                      yes
//	unsent            a poll of which nothing was sent is tried again soon      yes
//	pause             a poll cannot be made yet                                 yes
//	gone              410: never                                                yes
//
// Other causes of a delay, which are not part of a decision, have tokens as well:
// domain-cooldown, url-cooldown and redirect-cooldown (as host-cooldown, for the
// hosts of a registrable domain, one URL, or a redirect's target), redirect (the feed
// redirects to a URL that must not be polled now), moved (it has become another feed's
// alias), store (the record of polls cannot be written), offline (no site can be
// reached) and polls (too many are in flight).
const (
	HintSMaxAge         = "s-maxage"
	HintMaxAge          = "max-age"
	HintExpires         = "expires"
	HintCacheControl    = "cache-control"
	HintTTL             = "ttl"
	HintSy              = "sy"
	HintUpdateFrequency = "update-frequency"
	HintRhythm          = "rhythm"
	HintDefault         = "default"
	HintComplete        = "complete"
	HintFloor           = "floor"
	HintUnvalidated     = "unvalidated"
	HintCap             = "cap"
	HintInterval        = "interval"
	HintBackOff         = "back-off"
	HintUnasked         = "unasked-304"
	HintStuck           = "stuck-304"
	HintJitter          = "jitter"
	HintSkipHours       = "skip-hours"
	HintSkipDays        = "skip-days"
	HintRetryAfter      = "retry-after"
	HintRateLimit       = "ratelimit"
	HintHostCooldown    = "host-cooldown"
	HintHostSlot        = "host-slot"
	HintUnsent          = "unsent"
	HintPause           = "pause"
	HintGone            = "gone"

	HintDomainCooldown   = "domain-cooldown"   // two hosts of the registrable domain asked for a pause
	HintURLCooldown      = "url-cooldown"      // the origin asked for a pause, on a private network or IP literal
	HintRedirectCooldown = "redirect-cooldown" // a host that the URL redirects to asked for a pause
	HintRedirect         = "redirect"
	HintMoved            = "moved"
	HintStore            = "store"
	HintOffline          = "offline"
	HintPolls            = "polls"
)

// candidate is the interval that one hint asks for.
type candidate struct {
	hint  string
	raw   string
	note  string
	wait  time.Duration // from the end of the poll
	valid bool          // false: it is recorded, but says nothing about an interval
}

func (w candidate) term() Term {
	return Term{Hint: w.hint, Raw: clip(w.raw), Seconds: seconds(w.wait), Note: w.note}
}

// seconds rounds up, so that no record shows less than the decided interval.
func seconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return whole
}

// maxRaw bounds the raw values in records, in bytes: a header field may have a megabyte.
const maxRaw = 256

// clip shortens a text of an origin for a record, and makes it valid UTF-8.
func clip(raw string) string {
	if len(raw) > maxRaw {
		raw = raw[:maxRaw] + "..."
	}
	return strings.ToValidUTF8(raw, "\uFFFD")
}
