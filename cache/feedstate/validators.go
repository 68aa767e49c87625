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
	"github.com/feedpollard/pollard/policy"
)

const (
	// Some origins answer 304 although their feed has changed. So one poll is unconditional after so long a
	// time of 304 alone.
	confirmedFor = 8 * 24 * time.Hour
	ownConfirmed = time.Hour // of a site of this process
	// Others answer conditional requests with an error. So one poll is unconditional after so many failures,
	// and then once in this time.
	maxErrors = 3
	errorsFor = 24 * time.Hour
)

// WhyUnconditional returns why the poll under way should be unconditional although there are validators;
// nil: it should not. Polls by hand come in addition to the regular ones, so they are conditional after a
// good answer, but not those of a site of this process: its owner wants to see what has changed.
func (s *State) WhyUnconditional(byHand, ownSite bool) *policy.Term {
	f, wait, note := &s.Last, confirmedFor, ""
	failed := f.Failure != policy.FailureNone && f.Status >= http.StatusBadRequest
	if ownSite {
		wait = ownConfirmed
	}
	switch {
	case s.Version == 0:
	case f.Emptied || f.Unclosed == 1:
		note = "the last document had no entries, or no end; polled without validators, to see whether the next one is like that"
	case byHand && (ownSite || f.Failure != policy.FailureNone):
		note = "by hand; polled without validators, in case they are wrong"
	case failed && (f.Status == http.StatusPreconditionFailed || s.Feed.History.Failures >= maxErrors && (f.Errors == 0 || f.Errors+s.Gap >= errorsFor)):
		note = fmt.Sprintf("status %d; polled without validators, in case they are what the site fails at", f.Status)
	case byHand || f.Confirmed+s.Gap < wait:
	case ownSite:
		note = "only 304s for an hour, or a publish ping; polled without validators, in case they are wrong"
	default:
		note = fmt.Sprintf("only 304s for %d hours; polled without validators, in case they are wrong", wait/time.Hour)
	}
	if note == "" {
		return nil
	}
	return &policy.Term{Hint: policy.HintStuck, Note: note}
}

// AskUnconditionally makes the next poll of a shielded feed unconditional.
func (s *State) AskUnconditionally() { s.Last.Confirmed = max(s.Last.Confirmed, ownConfirmed) }

// updateUnconditional takes over what an answer says for [State.WhyUnconditional].
func (s *State) updateUnconditional(v Classified) {
	f := &s.Last
	f.Emptied = v.emptied || f.Emptied && !v.Good()
	switch {
	case v.unclosed:
		f.Unclosed++
	case v.document != nil || v.emptied:
		f.Unclosed = 0
	}
	switch tried := s.Unconditional != nil && !v.Answer.Unsent(); {
	case v.Good():
		f.Errors = 0
	case tried:
		f.Errors = 1 // from here on it is counted
	case f.Errors > 0:
		f.Errors += s.Gap
	}
	switch {
	case v.Answer.Unsent():
	case s.Unconditional != nil || v.Good() && v.Answer.Status != http.StatusNotModified:
		f.Confirmed = 0 // even if it failed: it is not tried twice
	case v.Good():
		f.Confirmed += s.Gap
	}
}

// Validators are those to be sent: none without a body that a 304 could confirm.
func (s *State) Validators() policy.Validators {
	if s.Version == 0 || s.Unconditional != nil {
		return policy.Validators{}
	}
	return s.Feed.Validators
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
	current := m.Version.NotModified
	if s.Response != nil { // of the same version, and it need not parse the date
		current = s.Response.NotModified
	}
	if m.Version.Tag != "" && current(h, now) {
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
