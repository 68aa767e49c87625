// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"slices"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// failingFor is how long the polls of a feed fail before that is an incident. Some sites, even
// large ones, fail for hours each day.
const failingFor = 24 * time.Hour

// movedFor is how long a feed points to another one before that is an incident.
const movedFor = 7 * 24 * time.Hour

// updateIncident records whether an incident began, goes on or ended with the last poll, and its decision.
func (s *State) updateIncident() {
	f, i := &s.Last, &s.Feed.Incident
	if f.Failure == policy.FailureHeld { // a redirect that has to wait has not failed, and brings nothing
		return
	}
	failed := f.Failure != policy.FailureNone
	switch {
	case !failed:
		f.FailingSince = time.Time{}
	case f.FailingSince.IsZero():
		f.FailingSince = f.At
	}
	lost := slices.IndexFunc(s.Feed.Considered, func(t policy.Term) bool { return t.Hint == policy.HintWindow })
	switch {
	case f.Failure == policy.FailureGone:
		*i = i.Begin(status.IncidentGone, f.At, "")
	case s.Points != "" && f.At.Sub(s.Feed.Pointing.Since) >= movedFor:
		*i = i.Begin(status.IncidentMoved, f.At, "")
	case s.Points != "":
		*i = i.End(f.At)
	case failed && f.At.Sub(f.FailingSince) >= failingFor:
		*i = i.Begin(status.IncidentFailing, f.At, feedurl.RedactText(f.Error))
	case failed:
	case s.Feed.Named.URL != "":
		*i = i.Begin(status.IncidentNamed, s.Feed.Named.Since, s.Feed.Named.URL)
	default:
		if *i = i.End(f.At); lost >= 0 {
			*i = i.Begin(status.IncidentLosing, f.At, s.Feed.Considered[lost].Raw)
		}
	}
}
