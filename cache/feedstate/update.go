// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"net/http"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// Update takes over what an answer says, besides when to poll next.
func (s *State) Update(own Key, v Classified) {
	a, m, another := v.Answer, &s.Feed, s.ofAnother(v.Answer)
	if another {
		a.Header = nil // only the decision considers it: a Retry-After counts for any request
	}
	m.History = m.History.Update(a, v.document, v.Result == status.ResultUnchanged && s.Unconditional == nil)
	if v.Result == status.ResultNew {
		if known := m.Version; known.Tag != "" {
			m.Past = append([]past{{known.Tag, known.LastModified}}, m.Past[:min(len(m.Past), maxPast-1)]...)
		}
		number := max(s.Version, m.Version.Number) + 1 // never used twice, also if a body was lost
		m.Version, m.Inherited = v.version, false
		m.Version.Number = number
	} else if v.version.Tag != "" {
		m.Version = v.version
	}
	if v.document != nil {
		m.Version.Title = v.document.Title
	}
	f := &s.Last
	f.At, f.Status, f.Result, f.Failure, f.Error = a.At.Round(0).UTC(), a.Status, v.Result, a.Failure, ""
	if a.Err != nil {
		f.Error = feedurl.Message(a.Err.Error())
	}
	if a.Failure == policy.FailureMoved {
		f.Failure = policy.FailureNone // it has not failed
	}
	if v.Good() {
		if m.Version.From = ""; len(a.Moves) > 0 && a.URL != own.text {
			m.Version.From = a.URL
		}
		if !another && !v.emptied {
			f.Validated = f.At
		}
		if a.Status == http.StatusOK && !v.emptied { // the whole set, also if it brought nothing new
			m.Validators = policy.ValidatorsOf(a)
		}
		if own.Shielded() {
			m.Version.Update(a.Status, a.Header)
		}
	}
	s.updateUnconditional(v)
	s.countUnserved(v)
	s.Feed.Named = s.names(own, v)
	s.point(v.Points, v)
	if a.Status == http.StatusOK {
		f.Site = v.site
	}
	if !a.Unsent() {
		f.Polls = f.Polls.with(status.Poll{At: f.At, Status: a.Status, Result: v.Result, Bytes: a.Wire, Took: status.Seconds(a.At.Sub(a.Asked))})
	}
}
