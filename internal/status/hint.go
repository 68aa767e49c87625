// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import "github.com/feedpollard/pollard/policy"

// hint is the wording for a term of a decision.
type hint struct {
	meaning string
	// wish is what the hint asks for, if a bound overrules it. It is given the frequency
	// and, if it has a second verb, the raw value.
	wish string
}

var hints = map[string]hint{
	policy.HintSMaxAge:          {"how long the answer is good for a shared cache (Cache-Control)", "The site allows a poll %s (Cache-Control: %s)"},
	policy.HintMaxAge:           {"how long the answer is good (Cache-Control)", "The site allows a poll %s (Cache-Control: %s)"},
	policy.HintExpires:          {"until when the answer is good", "The site allows a poll %s (Expires: %s)"},
	policy.HintCacheControl:     {meaning: "Cache-Control without a length of time"},
	policy.HintTTL:              {"the RSS ttl, in minutes", "The feed asks for a poll %s (ttl %s)"},
	policy.HintSy:               {"the syndication module's period and frequency", "The feed says that it is updated %s (sy %s)"},
	policy.HintUpdateFrequency:  {"the podcast's own schedule", "The podcast says that an episode comes %s (%s)"},
	policy.HintRhythm:           {"how often entries appear", "By the times of its entries the feed would be polled %s"},
	policy.HintDefault:          {meaning: "default_interval: nothing else sets an interval"},
	policy.HintComplete:         {meaning: "the feed is complete"},
	policy.HintFloor:            {meaning: "min_interval: never more often than this"},
	policy.HintUnvalidated:      {meaning: "unvalidated_interval: each poll is a full download"},
	policy.HintCap:              {meaning: "max_interval: hints cannot ask for more"},
	policy.HintInterval:         {meaning: "the interval that failures double"},
	policy.HintBackOff:          {meaning: "a pause that doubles with each failure"},
	policy.HintUnasked:          {meaning: "a 304 to a request that was not conditional"},
	policy.HintStuck:            {meaning: "304s that may be wrong"},
	policy.HintJitter:           {meaning: "a random delay that spreads polls"},
	policy.HintSkipHours:        {meaning: "hours in which the feed asks not to be polled"},
	policy.HintSkipDays:         {meaning: "days on which the feed asks not to be polled"},
	policy.HintRetryAfter:       {meaning: "the site asks to be left alone until then"},
	policy.HintRateLimit:        {meaning: "the site's limit of requests is used up"},
	policy.HintHostCooldown:     {meaning: "the whole host has a pause"},
	policy.HintDomainCooldown:   {meaning: "all hosts of the domain have a pause"},
	policy.HintURLCooldown:      {meaning: "the URL has a pause"},
	policy.HintRedirectCooldown: {meaning: "a host that the feed redirects to has a pause"},
	policy.HintHostSlot:         {meaning: "the time between two polls of a host"},
	policy.HintRedirect:         {meaning: "the feed redirects to a URL that cannot be polled now"},
	policy.HintMoved:            {meaning: "the feed has moved"},
	policy.HintUnsent:           {meaning: "nothing was sent"},
	policy.HintPause:            {meaning: "a poll cannot be made yet"},
	policy.HintGone:             {meaning: "the site says that the feed is gone"},
	policy.HintStore:            {meaning: "polls cannot be recorded"},
	policy.HintOffline:          {meaning: "no site can be reached"},
	policy.HintPolls:            {meaning: "the limit of polls in flight is reached"},
}

// HintMeaning describes a term of a decision in a few words. It is empty for an
// unknown hint.
func HintMeaning(name string) string { return hints[name].meaning }
