// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// hint is the wording for a term of a decision. In sentences, names in braces stand for
// the [values] and [clauses].
type hint struct {
	short    string // for a list: the name of a field, an element or a setting if there is one
	meaning  string
	sentence string // why the next poll is not earlier, if the hint sets its time
	request  string // what the hint asks for, if a bound overrules it
}

var hints = map[string]hint{
	policy.HintSMaxAge: {"s-maxage", "how long the answer is good for a shared cache (Cache-Control)",
		"The site says that its answer is good for {length} (Cache-Control: {raw}).{poll}{sooner}", "The site allows a poll {wished} (Cache-Control: {wish})"},
	policy.HintMaxAge: {"max-age", "how long the answer is good (Cache-Control)",
		"The site says that its answer is good for {length} (Cache-Control: {raw}).{poll}{sooner}", "The site allows a poll {wished} (Cache-Control: {wish})"},
	policy.HintExpires: {"Expires", "until when the answer is good",
		"The site says that its answer is good for {length} (Expires: {raw}).{poll}{sooner}", "The site allows a poll {wished} (Expires: {wish})"},
	policy.HintTTL: {"ttl", "the RSS ttl, in minutes",
		"The feed asks to be left alone for {length}, in its <ttl>{raw}</ttl>.{poll}", "The feed asks for a poll {wished} (ttl {wish})"},
	policy.HintSy: {"sy:updatePeriod", "the syndication module's period and frequency",
		"The feed says that it is updated {every}, in its sy:updatePeriod {period} and sy:updateFrequency {times}.{poll}", "The feed says that it is updated {wished} (sy {wish})"},
	policy.HintUpdateFrequency: {"podcast:updateFrequency", "the podcast's own schedule",
		"The podcast says that {episodes}, in its podcast:updateFrequency ({raw}).{poll}", "The podcast says that an episode comes {wished} ({wish})"},
	policy.HintRhythm: {"dates of entries", "how often entries appear",
		"{entries come}, so the feed is polled {every}.{poll}", "By the times of its entries the feed would be polled {wished}"},
	policy.HintDefault: {"default_interval", "nothing else sets an interval",
		"Neither the site nor the feed says how often to poll; {every} is this gateway's setting (default_interval).{poll}", ""},
	policy.HintComplete: {"complete", "the feed is complete",
		"The feed says that no more entries are expected ({raw}); it is looked at {every}, in case it goes on.{poll}", ""},
	policy.HintFloor:       {"min_interval", "never more often than this", "{bound} polls at most {every} (min_interval).{poll}", ""},
	policy.HintCap:         {"max_interval", "hints cannot ask for more", "{bound} polls at least {every} (max_interval).{poll}", ""},
	policy.HintUnvalidated: {"unvalidated_interval", "each poll is a full download", "{unvalidated}{poll}", ""},
	policy.HintBackOff:     {"failures", "a pause that doubles with each failure", "{failed}", ""},
	policy.HintUnasked:     {"304 unasked", "a 304 to a request that was not conditional", "The site answered \"304 Not Modified\" to a request for the whole feed.{poll}", ""},
	policy.HintSkipHours:   {"skipHours", "hours in which the feed asks not to be polled", "The feed asks {hours} GMT (skipHours).{poll}", ""},
	policy.HintSkipDays:    {"skipDays", "days on which the feed asks not to be polled", "The feed asks not to be polled on {days}, GMT (skipDays).{poll}", ""},
	policy.HintRetryAfter: {"Retry-After", "the site asks to be left alone until then",
		"The site answered {status} and asked to be left alone for {length} (Retry-After: {raw}).{poll}", ""},
	policy.HintRateLimit: {"rate limit", "the site's limit of requests is used up", "The site's rate limit{given} {is} used up until {next}.", ""},
	policy.HintHostCooldown: {"pause of the site", "the site has refused a poll",
		"The site refused a poll of {refused} (429, or 503 with Retry-After).{waits}", ""},
	policy.HintURLCooldown:      {"pause of the URL", "the URL has a pause", "The site has asked for a pause until {next}.", ""},
	policy.HintRedirectCooldown: {"pause of the target", "a site that the feed redirects to has a pause", "The feed redirects to a site that has asked for a pause until {next}.", ""},
	policy.HintHostSlot: {"spacing", "the time between two polls of a site",
		"Waiting for its turn: feeds of {host} are polled one at a time{spacing} (spacing).{poll}", ""},
	policy.HintPoke: {"asked for", "someone has asked for a poll",
		"Someone has asked for a poll, which is made as soon as the interval and the site allow it.{poll}", ""},
	policy.HintRedirect: {"redirect", "a redirect to an address that must not be polled yet", "The feed redirects to an address that must not be polled yet.{poll}", ""},
	policy.HintMoved:    {"moved", "the feed has moved", "The feed has moved{target} for good{there}. It is looked at {every} whether it still redirects.{poll}", ""},
	policy.HintUnsent:   {"not reached", "nothing was sent", "{unreached}{because}; nothing was sent.{again}", ""},
	policy.HintPause:    {"pause", "a poll cannot be made yet", "The feed cannot be polled yet{error}.{again}", ""},
	policy.HintGone: {"410", "the site says that the feed is gone",
		"The site says that the feed is gone for good (410).{ended}{served}", ""},
	policy.HintStore: {"no store", "polls cannot be recorded", "The record of polls cannot be written{error}, so nothing is polled.{served}{again}", ""},
	policy.HintOffline: {"no network", "no site can be reached",
		"No site can be reached from here right now{cause}. Polls go on when the network is back.{served}", ""},

	// These do not set the time of a poll.
	policy.HintCacheControl: {short: "Cache-Control", meaning: "Cache-Control without a length of time"},
	policy.HintInterval:     {short: "interval", meaning: "the interval that failures double"},
	policy.HintStuck:        {short: "doubtful 304s", meaning: "304s that may be wrong"},
	policy.HintJitter:       {short: "jitter", meaning: "a random time added to the interval, so that polls spread"},
	policy.HintWindow:       {short: "few entries", meaning: "the time that the feed's entries cover"},
}

// HintMeaning describes a term of a decision in a few words. It is empty for an
// unknown hint.
func HintMeaning(name string) string { return hints[name].meaning }

// Meaning is [HintMeaning] for the people who read about this feed.
func (f *Feed) Meaning(hint string) string { return f.address(HintMeaning(hint)) }

// HintShort is what people read for the name of a hint: in the log, on pages, in commands and in texts.
// JSON and Cache-Status have the name.
func HintShort(name string) string { return cmp.Or(hints[name].short, name) }

// HintNames are the names of all hints, in the order of what people read for them.
func HintNames() []string {
	return slices.SortedFunc(maps.Keys(hints), func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.ToLower(hints[a].short), strings.ToLower(hints[b].short)), cmp.Compare(a, b))
	})
}

// Given is what a site, a feed or its entries have given for a term: not the name of a failure or of a
// pause.
func Given(t policy.Term) string {
	switch gap, err := time.ParseDuration(t.Raw); {
	case t.Hint == policy.HintBackOff || t.Hint == policy.HintUnsent || t.Raw == t.Hint:
		return ""
	case t.Hint == policy.HintRhythm && err == nil:
		return Short(gap)
	}
	return t.Raw
}

// Why says in a word or two what set the time of the next poll: "max-age", "3 failures".
func (f *Feed) Why() string {
	if f.Winner == policy.HintBackOff && f.Failures > 0 {
		return Count(int64(f.Failures), "failure")
	}
	return HintShort(f.Winner)
}

// Outcome is the result of the last poll in a word: the status of the response or, if that says
// nothing of what failed, the failure. It is empty before the first poll.
func (f *Feed) Outcome() string {
	switch {
	case f.LastPoll.IsZero():
		return ""
	case f.LastFailure == policy.FailureNotFeed:
		return "not a feed"
	case f.LastStatus != 0 && (f.LastStatus != http.StatusOK || f.LastFailure == ""):
		return strconv.Itoa(f.LastStatus)
	}
	return cmp.Or(string(f.LastFailure), string(f.LastResult))
}

// Next says in a few words when the next poll is, and why not earlier: "poll in 12 min: max-age".
func (f *Feed) Next(now time.Time) string {
	poll := "poll " + Until(f.NextPoll, now)
	switch {
	case f.State == StateUnread || f.NextPoll.IsZero():
		return f.Headline(now)
	case f.State == StateDue || f.Winner == "":
		return poll
	}
	poll += ": " + f.Why()
	if f.State == StateFailing || f.Winner == policy.HintBackOff {
		poll += bracketed(f.Outcome())
	}
	return poll
}
