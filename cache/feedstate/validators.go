// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// Some origins answer 304 although their feed has changed. So one poll is unconditional after
// so long a time, and so many polls, of 304 alone. Each one in vain doubles the time.
const (
	confirmedFor   = 8 * 24 * time.Hour
	confirmedPolls = 8
	maxInVain      = 3         // doublings: up to 64 days
	ownConfirmed   = time.Hour // of a site of this process, where it is not doubled
)

// Doubtful returns why the poll under way should be unconditional although there are validators;
// nil: it should not. Polls by hand come in addition to the regular ones, so they are conditional,
// but not those of a site of this process: its owner wants to see what has changed.
func (s *State) Doubtful(byHand, ownSite bool) *policy.Term {
	wait, polls := confirmedFor<<min(s.Last.InVain, maxInVain), confirmedPolls
	if ownSite {
		wait, polls = ownConfirmed, 0
	}
	switch {
	case s.Version == 0:
		return nil
	case byHand && ownSite:
		return &policy.Term{Hint: policy.HintStuck, Note: "by hand; polled without validators, in case they are wrong"}
	case byHand, s.Last.Confirmed+s.Gap < wait, s.Last.Confirmations < polls:
		return nil
	}
	if ownSite {
		return &policy.Term{Hint: policy.HintStuck, Note: "only 304s for an hour, or a publish ping; polled without validators, in case they are wrong"}
	}
	return &policy.Term{Hint: policy.HintStuck, Note: fmt.Sprintf("only 304s for %d hours; polled without validators, in case they are wrong", wait/time.Hour)}
}

// Doubt makes the next poll of a shielded feed unconditional.
func (s *State) Doubt() { s.Last.Confirmed = max(s.Last.Confirmed, ownConfirmed) }

// updateNotModified counts the polls, and the time, in which there were only 304s.
func (s *State) updateNotModified(v Classified) {
	f := &s.Last
	switch {
	case v.Answer.Unsent():
	case s.Unconditional != nil && v.Result != status.ResultNew:
		f.Confirmed, f.Confirmations = 0, 0 // even if it failed: it is not tried twice
		f.InVain = min(f.InVain+1, maxInVain)
	case v.Good() && v.Answer.Status == http.StatusNotModified:
		f.Confirmed += s.Gap
		f.Confirmations++
	case v.Good():
		f.Confirmed, f.Confirmations, f.InVain = 0, 0, 0
	}
}

// Validators are those to be sent: none without a body that a 304 could confirm.
func (s *State) Validators(now time.Time) policy.Validators {
	v := s.Feed.Validators
	if s.Version == 0 || s.Unconditional != nil {
		return policy.Validators{}
	}
	// An origin that alters ETags when it compresses (Apache's "-gzip") never
	// matches its own. If-None-Match would override If-Modified-Since there (RFC
	// 9110 section 13.1.3), so the date goes alone for a while.
	if v.LastModified != "" && now.Before(s.Feed.Muted) {
		v.ETag = ""
	}
	return v
}

// updateValidators keeps the origin's validators. A 200 replaces the whole set, also
// if it brought nothing new: they are for the origin, not for readers.
func (s *State) updateValidators(v Classified) {
	a, m, f := v.Answer, &s.Feed, &s.Last
	if a.Status != 200 {
		f.Unmatched = 0
		return
	}
	fresh := policy.ValidatorsOf(a)
	// A URL is not sent the validators of another one, to which redirects led before.
	if v.sameBytes && s.Unconditional == nil && fresh.ETag != "" && fresh.ETag == m.Validators.ETag && fresh.URL == m.Validators.URL && !a.Asked.Before(m.Muted) {
		f.Unmatched++
	} else {
		f.Unmatched = 0
	}
	if f.Unmatched >= 3 && fresh.LastModified != "" {
		m.Muted, f.Unmatched = a.At.Add(7*24*time.Hour).Round(0).UTC(), 0
	}
	m.Validators = fresh
}

// codingSuffix is what servers append to an ETag when they compress: "a-gzip" and
// "a"-gzip (Apache), "a--gzip" and "a;gzip" (Jetty), "a-br" (Caddy), "a.gz".
var codingSuffix = regexp.MustCompile(`[-;.:"]+(gzip|gz|deflate|br|zstd|zst)$`)

// ofAnother reports whether a 304 speaks of another response than the stored one: it
// has a strong ETag that is not the stored one's. Nothing that is stored may be updated
// with it (RFC 9111 section 4.3.4), and its validators are not those of the stored
// body. Tags that differ in weakness or by what a coding adds are the same here: many
// servers compress a 200 and give it such a tag, but have no body to compress in a 304.
func (s *State) ofAnother(a policy.Answer) bool {
	given, stored := httpfield.ParseTag(a.Header.Get("ETag")), httpfield.ParseTag(s.Feed.Validators.ETag)
	switch {
	case a.Status != http.StatusNotModified || given.Weak || given.Opaque == "":
		return false
	case stored.Opaque == "":
		// Some servers leave out the ETag of a 200 that they transform. The date decides then.
		return a.Header.Get("Last-Modified") != s.Feed.Validators.LastModified
	}
	plain := func(t httpfield.Tag) string {
		return strings.Trim(codingSuffix.ReplaceAllString(t.Opaque, ""), `"`)
	}
	return plain(given) != plain(stored)
}

// Standing compares a request's validators with the feed's versions.
func (s *State) Standing(h http.Header, now time.Time) version.Standing {
	tags, dates := h["If-None-Match"], h["If-Modified-Since"]
	if len(tags) == 0 && len(dates) == 0 {
		return version.Unconditional
	}
	m := &s.Feed
	if m.Version.Tag != "" && m.Version.NotModified(h, now) {
		return version.Current
	}
	for i := range m.Past {
		before := version.Version{Tag: m.Past[i].Tag}
		switch {
		case len(tags) > 0 && httpfield.HasTag(tags, before.Names):
			return version.Earlier
		case len(tags) == 0 && dates[0] == m.Past[i].LastModified.Format(http.TimeFormat):
			return version.Earlier
		}
	}
	return version.Unknown
}
