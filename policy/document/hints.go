// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"encoding/xml"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/feedpollard/pollard/internal/markup"
	"github.com/feedpollard/pollard/internal/namespace"
	"github.com/feedpollard/pollard/policy"
)

// The names of malformed hints that package policy does not use.
const (
	hintNewFeedURL = "new-feed-url"
	hintHub        = "hub"
	hintSelf       = "self"
)

const (
	maxNumber    = 1_000_000_000_000 // of minutes or polls: arithmetic with it cannot overflow
	maxLinks     = 100               // to hubs or to the feed itself that are read
	maxHubs      = 5                 // a feed has one or two
	maxURL       = 2048              // of what is kept
	maxRule      = 512               // of a recurrence rule; a real one has less than 100 characters
	maxMalformed = 20                // terms kept
)

// oneTooMany is the note of a second hint of one kind.
const oneTooMany = "there is more than one: the first counts"

// dayNames are the values of skipDays, in the order that they are reported in.
var dayNames = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}

// hintReader collects the hints of a document, valid or not.
type hintReader struct {
	hints     policy.Hints
	malformed []policy.Term
	hours     [24]bool
	days      [7]bool
	cast      bool // podcast:updateFrequency was read: the first one counts
	links     int  // to hubs or to the feed itself
}

// result returns what was collected, normalised.
func (h *hintReader) result() (policy.Hints, []policy.Term) {
	for hour, skipped := range h.hours {
		if skipped {
			h.hints.SkipHours = append(h.hints.SkipHours, hour)
		}
	}
	for day, skipped := range h.days {
		if skipped {
			h.hints.SkipDays = append(h.hints.SkipDays, dayNames[day])
		}
	}
	return h.hints, h.malformed
}

// reject records a malformed hint.
func (h *hintReader) reject(hint, raw, note string) {
	if len(h.malformed) < maxMalformed {
		h.malformed = append(h.malformed, policy.Term{Hint: hint, Raw: clip(raw), Note: note})
	}
}

// field reads a child of a channel or feed.
func (h *hintReader) field(f *field) {
	text := strings.Trim(string(f.text), markup.Space)
	switch f.vocabulary {
	case namespace.RSS:
		h.rss(f, text)
	case namespace.Atom:
		if f.name == "link" {
			h.link(f)
		}
	case namespace.Syndication:
		h.syndication(f.name, text)
	case namespace.ITunes:
		h.itunes(f.name, text)
	case namespace.Podcasting:
		if f.name == "updatefrequency" {
			h.updateFrequency(f.attributes, text)
		}
	}
}

// rss reads the elements of RSS 2.0 itself.
func (h *hintReader) rss(f *field, text string) {
	switch f.name {
	case "ttl":
		// "60.0" comes from programs with only one kind of number. Any other fraction means
		// that the unit is a different one, hours for example.
		whole, fraction, _ := strings.Cut(text, ".")
		n, ok := number(whole)
		ok = ok && strings.Trim(fraction, "0") == ""
		switch {
		case !ok:
			h.reject(policy.HintTTL, text, "not a whole number of minutes")
		case h.hints.TTL == nil:
			h.hints.TTL = &n
		case *h.hints.TTL != n:
			h.reject(policy.HintTTL, text, oneTooMany)
		}
	case "skiphours":
		if f.children == 0 {
			h.reject(policy.HintSkipHours, text, "no <hour> in it")
		}
	case "skipdays":
		if f.children == 0 {
			h.reject(policy.HintSkipDays, text, "no <day> in it")
		}
	}
}

// child reads a child of skipHours or skipDays.
func (h *hintReader) child(f *field) {
	if f.vocabulary != namespace.RSS {
		return
	}
	text := strings.Trim(string(f.childText), markup.Space)
	switch f.name {
	case "skiphours":
		if f.child != "hour" || f.childVocabulary != namespace.RSS {
			h.reject(policy.HintSkipHours, "<"+f.child+">", "not an <hour>")
			return
		}
		// UserLand counted 1 to 24, Netscape 0 to 23 (RSS 0.91): both mean
		// midnight by 24 and 0 (rssboard.org/skip-hours-days).
		n, ok := number(text)
		if !ok || n > 24 {
			h.reject(policy.HintSkipHours, text, "not an hour from 0 to 23")
			return
		}
		h.hours[n%24] = true
	case "skipdays":
		day := slices.IndexFunc(dayNames, func(day string) bool {
			return strings.EqualFold(day, text) || strings.EqualFold(day[:3], text)
		})
		switch {
		case f.child != "day" || f.childVocabulary != namespace.RSS:
			h.reject(policy.HintSkipDays, "<"+f.child+">", "not a <day>")
		case day < 0:
			h.reject(policy.HintSkipDays, text, "not an English name of a weekday")
		default:
			h.days[day] = true
		}
	}
}

// syndication reads the module of that name (web.resource.org/rss/1.0/modules/syndication).
func (h *hintReader) syndication(name, text string) {
	switch name {
	case "updateperiod":
		period := strings.ToLower(text)
		switch period {
		case "hourly", "daily", "weekly", "monthly", "yearly":
			if h.hints.SyPeriod == "" {
				h.hints.SyPeriod = period
			} else if h.hints.SyPeriod != period {
				h.reject(policy.HintSy, text, oneTooMany)
			}
		default:
			h.reject(policy.HintSy, text, "updatePeriod is not hourly, daily, weekly, monthly or yearly")
		}
	case "updatefrequency":
		n, ok := number(text)
		switch {
		case !ok || n == 0:
			h.reject(policy.HintSy, text, "updateFrequency is not a positive whole number")
		case h.hints.SyFrequency == nil:
			h.hints.SyFrequency = &n
		case *h.hints.SyFrequency != n:
			h.reject(policy.HintSy, text, oneTooMany)
		}
	case "updatebase":
		if policy.ParseISODate(text).IsZero() {
			h.reject(policy.HintSy, text, "updateBase is not a W3C date and time")
		} else if h.hints.SyBase == "" {
			h.hints.SyBase = text
		}
	}
}

// itunes reads Apple's elements for podcasts.
func (h *hintReader) itunes(name, text string) {
	switch name {
	case "complete":
		// "Specifying any value other than Yes has no effect", but "no" is not malformed.
		if strings.EqualFold(text, "yes") {
			h.hints.Complete = true
		} else if !strings.EqualFold(text, "no") {
			h.reject(policy.HintComplete, text, `only "Yes" has an effect`)
		}
	case "new-feed-url":
		if _, note := webURL(text, nil); note != "" {
			h.reject(hintNewFeedURL, text, note)
		} else if h.hints.NewFeedURL == "" {
			h.hints.NewFeedURL = text
		}
	}
}

// updateFrequency reads the Podcasting 2.0 element of that name, of which there
// can be one (podcastindex-org/podcast-namespace, docs/tags/update-frequency.md).
func (h *hintReader) updateFrequency(attributes []xml.Attr, text string) {
	if h.cast {
		h.reject(policy.HintUpdateFrequency, text, oneTooMany)
		return
	}
	h.cast = true
	u := policy.UpdateFrequency{
		Text:    clip(text),
		RRule:   strings.Trim(markup.Attribute(attributes, "rrule"), markup.Space),
		DTStart: strings.Trim(markup.Attribute(attributes, "dtstart"), markup.Space),
	}
	if len(u.RRule) > maxRule {
		h.reject(policy.HintUpdateFrequency, u.RRule, fmt.Sprintf("a rule of more than %d characters", maxRule))
		u.RRule = ""
	}
	if u.DTStart != "" && policy.ParseISODate(u.DTStart).IsZero() {
		h.reject(policy.HintUpdateFrequency, u.DTStart, "dtstart is not an ISO 8601 date")
		u.DTStart = ""
	}
	switch complete := strings.Trim(markup.Attribute(attributes, "complete"), markup.Space); complete {
	case "true":
		u.Complete = true
	case "", "false":
	default:
		h.reject(policy.HintUpdateFrequency, complete, "complete is neither true nor false")
	}
	if u == (policy.UpdateFrequency{}) {
		h.reject(policy.HintUpdateFrequency, "", "says nothing")
		return
	}
	h.hints.UpdateFrequency = &u
}

// link reads an Atom link, which RSS feeds have as well. Its rel is one relation
// by RFC 4287 and several by RFC 8288.
func (h *hintReader) link(f *field) {
	rels := markup.Attribute(f.attributes, "rel")
	if len(rels) > maxURL {
		return
	}
	for rel := range strings.FieldsSeq(rels) {
		rel = markup.Relation(rel)
		if rel != "hub" && rel != "self" {
			continue
		}
		if h.links++; h.links > maxLinks {
			return
		}
		href := strings.Trim(markup.Attribute(f.attributes, "href"), markup.Space)
		target, note := webURL(href, f.base)
		if note != "" {
			h.reject(rel, href, note)
		}
		if rel == "self" {
			h.self(target)
		} else if note == "" {
			h.hub(target)
		}
	}
}

// self keeps the first URL that the feed gives for itself, even if it is relative or
// invalid: it is shown, and never polled.
func (h *hintReader) self(target string) {
	if h.hints.Self == "" && len(target) <= maxURL {
		h.hints.Self = target
	}
}

func (h *hintReader) hub(target string) {
	if len(h.hints.Hubs) < maxHubs && len(target) <= maxURL && !slices.Contains(h.hints.Hubs, target) {
		h.hints.Hubs = append(h.hints.Hubs, target)
	}
}

func number(text string) (int64, bool) {
	n, ok := policy.ParseNumber(text)
	return n, ok && n <= maxNumber
}

// webURL returns a URL as written or, if it is relative, resolved. The note says why it
// cannot be polled, and is empty if it can.
func webURL(text string, base *url.URL) (target, note string) {
	if len(text) > maxURL {
		return text, fmt.Sprintf("a URL of more than %d characters", maxURL)
	}
	u, err := url.Parse(text)
	if err != nil || strings.ContainsAny(text, markup.Space) {
		return text, "not a URL"
	}
	if !u.IsAbs() && base != nil {
		u = base.ResolveReference(u)
		text = u.String()
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return text, "not an http or https URL"
	}
	return text, ""
}
