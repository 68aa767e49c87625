// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// Incident is what is or was the matter with a feed for longer than a person would overlook.
type Incident struct {
	Kind  IncidentKind `json:"kind"`
	Began time.Time    `json:"began"`          // it was noticed by a poll that ended then
	Ended time.Time    `json:"ended,omitzero"` // zero or in the future: it goes on
	Cause string       `json:"cause,omitempty"`
}

// IncidentKind is a kind of incident.
type IncidentKind string

// The kinds of incidents.
const (
	IncidentFailing IncidentKind = "failing" // for a day at least
	IncidentGone    IncidentKind = "gone"    // the origin said 410
	IncidentMoved   IncidentKind = "moved"   // it has pointed to another feed for seven days
	IncidentNamed   IncidentKind = "named"   // its document names another address
	IncidentLosing  IncidentKind = "losing"  // entries may be lost between two polls
)

const (
	// incidentKept is how long incidents are shown after their end.
	incidentKept = 30 * 24 * time.Hour
	// quiet is how long nothing must be lost until an incident has ended.
	quiet = 7 * 24 * time.Hour
)

// Over reports whether the incident has ended.
func (i Incident) Over(now time.Time) bool { return !i.Ended.IsZero() && !now.Before(i.Ended) }

// Visible reports whether people are shown the incident.
func (i Incident) Visible(now time.Time) bool {
	return i.Kind != "" && (i.Ended.IsZero() || now.Before(i.Ended.Add(incidentKept)))
}

// Updated returns when the incident was noticed, or ended.
func (i Incident) Updated(now time.Time) time.Time {
	if i.Over(now) {
		return i.Ended
	}
	return i.Began
}

// Begin returns the incident after a poll that shows one of a kind, which may go on. A feed has one
// at a time: the newest.
func (i Incident) Begin(kind IncidentKind, now time.Time, cause string) Incident {
	if i.Kind != kind || i.Over(now) {
		i = Incident{Kind: kind, Began: now, Cause: cause}
	}
	// The end is put off by days, not by each poll, which would write the record each time.
	if end := now.Add(quiet); kind == IncidentLosing && end.Sub(i.Ended) > 24*time.Hour {
		i.Ended = end
	}
	return i
}

// End returns the incident after a good poll.
func (i Incident) End(now time.Time) Incident {
	if i.Kind != "" && i.Ended.IsZero() {
		i.Ended = now
	}
	return i
}

// Headline says in a few words what the incident is.
func (i Incident) Headline(now time.Time) string {
	over := i.Over(now)
	switch i.Kind {
	case IncidentFailing:
		return either(over, "works again", "has failed for a day")
	case IncidentGone:
		return either(over, "is back", "is gone")
	case IncidentMoved:
		return either(over, "is back at its address", "has moved")
	case IncidentNamed:
		return either(over, "names no other address any more", "names another address in its document")
	}
	return either(over, "loses no entries any more", "may lose entries between polls")
}

// Sentences say what has happened and what can be done. They change only when the incident
// begins or ends.
func (i Incident) Sentences(f Feed, now time.Time) string {
	const day = "2 January 2006"
	began := i.Began.UTC().Format(day)
	if i.Over(now) {
		return fmt.Sprintf("It was noticed on %s and ended on %s. There is nothing to do.", began, i.Ended.UTC().Format(day))
	}
	switch i.Kind {
	case IncidentFailing:
		return fmt.Sprintf("On %s its polls had failed for a day%s. Readers get the last good version, if there is one. "+
			"If the site works in a browser, look at the feed's page, and whether the feed has another address now.", began, bracketed(i.Cause))
	case IncidentGone:
		return fmt.Sprintf("Its site said on %s that the feed is gone (410), and polling has ended. Readers get the last good version, if there is one. "+
			"Remove the feed from your readers, or look for its successor at the site.", began)
	case IncidentMoved:
		return fmt.Sprintf("Since %s its site has redirected it to %s for good. Readers get it at both addresses: nothing is lost, and you may change the address.", began, f.Alias)
	case IncidentNamed:
		return fmt.Sprintf("Since %s its document has named another address as its own: %s. After seven days readers get that one's feed, if it has the newest entry. "+
			"You may change the address in your readers.", began, feedurl.Redacted(i.Cause))
	}
	return fmt.Sprintf("Its %s cover less time than passes between two polls, so some may be lost. The feed's page says what decides the time between polls; "+
		"if it is a setting of this gateway, a smaller one helps.", i.Cause)
}
