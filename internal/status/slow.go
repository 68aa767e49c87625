// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
)

// SlowSite is a site whose pace does not fit its feeds.
type SlowSite struct {
	Site    string  `json:"site"`
	Feeds   int64   `json:"feeds"`
	Round   Seconds `json:"round_seconds"`     // one poll of each feed, one spacing after the other
	Refuses bool    `json:"refuses,omitempty"` // more than one poll of the last day, while it answers others
}

// Sentence says what is the matter, and which line mends it.
func (s SlowSite) Sentence() string {
	spacing := time.Duration(s.Round) / time.Duration(max(s.Feeds, 1))
	if s.Refuses {
		return fmt.Sprintf("%s refuses polls and answers others. A longer spacing helps: host %[1]s { spacing %[2]s }, and the same for *.%[1]s.", s.Site, 2*spacing)
	}
	spacing = max((time.Hour / time.Duration(s.Feeds)).Truncate(100*time.Millisecond), 100*time.Millisecond)
	return fmt.Sprintf("%s has %s feeds, and a round of polls takes %s at its pace. If the site allows more: host %[1]s { spacing %[4]s }, and the same for *.%[1]s.",
		s.Site, humanize.Comma(s.Feeds), Length(time.Duration(s.Round)), spacing)
}
