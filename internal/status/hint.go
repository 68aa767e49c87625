// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"strconv"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// hint is the wording for a term of a decision.
type hint struct {
	short   string // for a list: the name of a field, an element or a setting if there is one
	meaning string
	// request is what the hint asks for, if a bound overrules it. It is given the frequency
	// and, if it has a second verb, the raw value.
	request string
}

var hints = map[string]hint{
	policy.HintSMaxAge:          {"s-maxage", "how long the answer is good for a shared cache (Cache-Control)", "The site allows a poll %s (Cache-Control: %s)"},
	policy.HintMaxAge:           {"max-age", "how long the answer is good (Cache-Control)", "The site allows a poll %s (Cache-Control: %s)"},
	policy.HintExpires:          {"Expires", "until when the answer is good", "The site allows a poll %s (Expires: %s)"},
	policy.HintCacheControl:     {short: "Cache-Control", meaning: "Cache-Control without a length of time"},
	policy.HintTTL:              {"ttl", "the RSS ttl, in minutes", "The feed asks for a poll %s (ttl %s)"},
	policy.HintSy:               {"sy:updatePeriod", "the syndication module's period and frequency", "The feed says that it is updated %s (sy %s)"},
	policy.HintUpdateFrequency:  {"podcast:updateFrequency", "the podcast's own schedule", "The podcast says that an episode comes %s (%s)"},
	policy.HintRhythm:           {"dates of entries", "how often entries appear", "By the times of its entries the feed would be polled %s"},
	policy.HintDefault:          {short: "default_interval", meaning: "nothing else sets an interval"},
	policy.HintComplete:         {short: "complete", meaning: "the feed is complete"},
	policy.HintFloor:            {short: "min_interval", meaning: "never more often than this"},
	policy.HintUnvalidated:      {short: "unvalidated_interval", meaning: "each poll is a full download"},
	policy.HintPush:             {short: "push", meaning: "a hub announces changes"},
	policy.HintCap:              {short: "max_interval", meaning: "hints cannot ask for more"},
	policy.HintInterval:         {short: "interval", meaning: "the interval that failures double"},
	policy.HintBackOff:          {short: "failures", meaning: "a pause that doubles with each failure"},
	policy.HintUnasked:          {short: "304 unasked", meaning: "a 304 to a request that was not conditional"},
	policy.HintStuck:            {short: "doubtful 304s", meaning: "304s that may be wrong"},
	policy.HintJitter:           {short: "jitter", meaning: "a random delay that spreads polls"},
	policy.HintSkipHours:        {short: "skipHours", meaning: "hours in which the feed asks not to be polled"},
	policy.HintSkipDays:         {short: "skipDays", meaning: "days on which the feed asks not to be polled"},
	policy.HintRetryAfter:       {short: "Retry-After", meaning: "the site asks to be left alone until then"},
	policy.HintRateLimit:        {short: "rate limit", meaning: "the site's limit of requests is used up"},
	policy.HintHostCooldown:     {short: "pause of the host", meaning: "the whole host has a pause"},
	policy.HintDomainCooldown:   {short: "pause of the domain", meaning: "all hosts of the domain have a pause"},
	policy.HintURLCooldown:      {short: "pause of the URL", meaning: "the URL has a pause"},
	policy.HintRedirectCooldown: {short: "pause of the target", meaning: "a host that the feed redirects to has a pause"},
	policy.HintHostSlot:         {short: "spacing", meaning: "the time between two polls of a host"},
	policy.HintRedirect:         {short: "redirect", meaning: "the feed redirects to a URL that cannot be polled now"},
	policy.HintMoved:            {short: "moved", meaning: "the feed has moved"},
	policy.HintUnsent:           {short: "not reached", meaning: "nothing was sent"},
	policy.HintPause:            {short: "pause", meaning: "a poll cannot be made yet"},
	policy.HintGone:             {short: "410", meaning: "the site says that the feed is gone"},
	policy.HintStore:            {short: "no store", meaning: "polls cannot be recorded"},
	policy.HintOffline:          {short: "no network", meaning: "no site can be reached"},
	policy.HintWindow:           {short: "few entries", meaning: "the time that the feed's entries cover"},
	policy.HintPolls:            {short: "polls", meaning: "the limit of polls in flight is reached"},
}

// HintMeaning describes a term of a decision in a few words. It is empty for an
// unknown hint.
func HintMeaning(name string) string { return hints[name].meaning }

// HintShort is the name of a hint for people.
func HintShort(name string) string { return cmp.Or(hints[name].short, name) }

// Why says in a word or two what set the time of the next poll: "max-age", "3 failures".
func (f *Feed) Why() string {
	if f.Winner == policy.HintBackOff && f.Failures > 0 {
		return Count(int64(f.Failures), "failure")
	}
	return HintShort(f.Winner)
}

// Outcome is the result of the last poll in a word: the status of the response or, if there was
// none, the failure. It is empty before the first poll.
func (f *Feed) Outcome() string {
	switch {
	case f.LastPoll.IsZero():
		return ""
	case f.LastStatus != 0:
		return strconv.Itoa(f.LastStatus)
	}
	return cmp.Or(string(f.LastFailure), string(f.LastResult))
}

// Next says in a few words when the next poll is, and why not earlier: "in 12 min, max-age".
func (f *Feed) Next(now time.Time) string {
	switch why := f.Why(); {
	case f.State == StateGone || f.State == StateUnread || f.NextPoll.IsZero():
		return f.Headline(now)
	case f.State == StateFailing && f.Outcome() != "":
		return Until(f.NextPoll, now) + ", " + why + bracketed(f.Outcome())
	case f.State == StateDue || why == "":
		return Until(f.NextPoll, now)
	default:
		return Until(f.NextPoll, now) + ", " + why
	}
}
