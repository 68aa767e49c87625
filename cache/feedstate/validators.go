// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/policy"
)

// confirmedFor is how long an origin must have answered only 304 before one poll is
// unconditional: some origins answer 304 although their feed has changed.
const confirmedFor = 30 * 24 * time.Hour

// SuspectNotModified returns why the poll under way should be unconditional although there are
// validators; nil: it should not.
func (s *State) SuspectNotModified() *policy.Term {
	if s.Version == 0 || s.Last.Confirmed+s.Gap < confirmedFor {
		return nil
	}
	return &policy.Term{Hint: policy.HintStuck, Note: "only 304s for 30 days; polled without validators, in case they are wrong"}
}

// updateNotModified counts the time in which there were only 304s.
func (s *State) updateNotModified(v Classified) {
	switch {
	case v.Answer.Unsent():
	case s.Unconditional != nil:
		s.Last.Confirmed = 0 // even if it failed: it is not tried twice
	case v.Good() && v.Answer.Status == http.StatusNotModified:
		s.Last.Confirmed += s.Gap
	case v.Good():
		s.Last.Confirmed = 0
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
	if v.sameBytes && s.Unconditional == nil && fresh.ETag != "" && fresh.ETag == m.Validators.ETag && !a.Asked.Before(m.Muted) {
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
