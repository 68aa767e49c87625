// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"cmp"
	"time"

	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// A feed points to the feed of another URL (State.Points) while its own URL redirects there permanently, or, after
// some days, while its document says that it is there.

// follows is how long a document must have named another address before the feed may point there: what a
// publisher writes by mistake is mended by then.
const follows = 7 * 24 * time.Hour

// pointing is what is remembered of a feed that points to another one, besides its URL.
type pointing struct {
	Since    time.Time `json:"since,omitzero"`
	Document bool      `json:"document,omitempty"` // its document began it, and no redirect
}

// named is another address that the document of a feed gives as its own (itunes:new-feed-url).
type named struct {
	URL   string    `json:"url,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// From returns the URL from which readers get the feed, if redirects have led there.
func (s *State) From() string { return cmp.Or(s.Points, s.Feed.Version.From) }

// Target returns the URL to which an answer has the feed point: that of a permanent redirect, or the one that its
// document has named for some days. It is empty if the feed points nowhere.
func (s *State) Target(own Key, v Classified) string {
	switch a := v.Answer; {
	case own.Shielded():
		return ""
	case a.Failure == policy.FailureMoved:
		return movedTo(a)
	case v.Good():
		to, known := s.names(own, v), s.Points != "" && s.Feed.Pointing.Document
		if to.URL != "" && (known && to.URL == s.Points || a.At.Sub(to.Since) >= follows) {
			return to.URL
		}
		return ""
	case len(a.Moves) > 0 && !s.Feed.Pointing.Document:
		return "" // a temporary redirect, to something that fails
	}
	return s.Points // an error ends nothing
}

// movedTo returns the URL at which the feed is, of an answer with [policy.FailureMoved].
func movedTo(a policy.Answer) string { return a.Moves[len(a.Moves)-1].To }

// names returns what the feed's document names after an answer.
func (s *State) names(own Key, v Classified) named {
	if v.document == nil {
		return s.Feed.Named
	}
	u, err := feedurl.Parse(v.document.Hints.NewFeedURL)
	if err != nil || own.Shielded() || u.String() == own.String() || u.Redacted() != u.String() {
		return named{}
	}
	if s.Feed.Named.URL == u.String() {
		return s.Feed.Named
	}
	return named{u.String(), v.Answer.At.Round(0).UTC()}
}

// point has the feed point to a URL from now on; nowhere if it is empty.
func (s *State) point(to string, v Classified) {
	now, byDocument := v.Answer.At.Round(0).UTC(), v.Answer.Failure != policy.FailureMoved
	switch {
	case to == s.Points && to != "":
		s.Feed.Pointing.Document = s.Feed.Pointing.Document && byDocument
	case to != "":
		s.Points, s.Feed.Pointing = to, pointing{now, byDocument}
	case s.Points != "":
		s.Points, s.Feed.Pointing = "", pointing{}
		if m := &s.Feed.Version; !m.LastModified.IsZero() && v.Result != status.ResultNew {
			// Readers may have the other feed's content with any date: that of the own version has to be a new one.
			m.LastModified = version.LastModified(m.LastModified, now)
		}
	}
}

// Newest reports whether the feed has the newest entry of another one: it may take its place.
func (s *State) Newest(other *State) bool {
	have, want := s.Feed.History.Rhythm, other.Feed.History.Rhythm
	return s.Version != 0 && have.Entries > 0 && (have.IDs == want.IDs || !want.Newest.IsZero() && !have.Newest.Before(want.Newest))
}

// Works reports whether readers of a feed that points to this one have nothing to miss: it has a version, and its
// polls succeed. A pause is not a failure.
func (s *State) Works() bool {
	return s.Version != 0 && (s.Feed.History.Failures == 0 || s.Last.Failure == policy.FailureRateLimited)
}
