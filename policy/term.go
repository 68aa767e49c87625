// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// The tokens of a decision: every [Term.Hint] and every [Decision.Winner] that this package
// makes is one of these. A [Document] may name further hints in Malformed; they never win.
const (
	HintSMaxAge         = "s-maxage" // less the age, as the next two
	HintMaxAge          = "max-age"
	HintExpires         = "expires"
	HintTTL             = "ttl"              // of RSS
	HintSy              = "sy"               // syndication module: updatePeriod and updateFrequency
	HintUpdateFrequency = "update-frequency" // podcast:updateFrequency
	HintRhythm          = "rhythm"           // one twelfth of the gap between entries
	HintDefault         = "default"          // default_interval
	HintComplete        = "complete"         // a show that is complete or a feed that has expired: 7 days
	HintFloor           = "floor"            // min_interval
	HintUnvalidated     = "unvalidated"      // unvalidated_interval, or less
	HintCap             = "cap"              // max_interval
	HintBackOff         = "back-off"         // the growing pause after failures
	HintUnasked         = "unasked-304"      // a 304 to an unconditional request: 24 hours
	HintSkipHours       = "skip-hours"
	HintSkipDays        = "skip-days"
	HintRetryAfter      = "retry-after"
	HintRateLimit       = "ratelimit"     // an exhausted RateLimit, RateLimit-* or X-RateLimit-*
	HintHostCooldown    = "host-cooldown" // the pause of the site
	HintHostSlot        = "host-slot"     // the site's next slot
	HintUnsent          = "unsent"        // a poll of which nothing was sent is repeated soon
	HintPoke            = "poke"          // someone has asked for a poll
	HintPause           = "pause"         // a poll cannot be made yet
	HintGone            = "gone"          // 410: never
	HintMoved           = "moved"         // a permanent redirect: max_interval
	HintRedirect        = "redirect"      // a redirect that has to wait

	// These are recorded, but never win.
	HintCacheControl = "cache-control" // a Cache-Control that names no lifetime (no-cache, ...)
	HintInterval     = "interval"      // the feed's interval before it failed
	HintStuck        = "stuck-304"     // 304s may be wrong: the poll was unconditional
	HintJitter       = "jitter"        // a random part that is added to the interval
	HintWindow       = "window"        // the entries cover less time than the interval
)

// Other causes of a delay, which are not part of a decision.
const (
	HintURLCooldown      = "url-cooldown"      // the pause of the URL
	HintRedirectCooldown = "redirect-cooldown" // the pause of what the URL redirects to
	HintStore            = "store"             // the record of polls cannot be written
	HintOffline          = "offline"           // no site can be reached
)

// explicit are the hints by which a site or a feed says how often it may be polled.
var explicit = []string{HintSMaxAge, HintMaxAge, HintExpires, HintTTL, HintSy, HintUpdateFrequency}

// Explicit reports whether a site or a feed says by a hint how often it may be polled. Other hints come
// from dates of entries, from settings, or from what happened at polls.
func Explicit(hint string) bool { return slices.Contains(explicit, hint) }

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

// maxRaw bounds the raw values in records, in characters: a header field may have a megabyte.
const maxRaw = 256

// clip shortens a text of an origin for a record.
func clip(raw string) string { return feedurl.Short(raw, maxRaw) }
