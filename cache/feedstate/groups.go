// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Group names the readers that are admitted in one way, such as by a token of a gateway. A feed
// remembers for 30 days which groups asked for it, whichever handler served them.
type Group uint64

// GroupOf returns the group of a text, which cannot be read from it.
func GroupOf(text string) Group {
	sum := sha256.Sum256([]byte(text))
	return Group(binary.BigEndian.Uint64(sum[:]))
}

const (
	groupDays = 30 // for how many days a group counts
	maxGroups = 16 // of a feed; the one that asked the longest ago is forgotten first
)

// GroupDay is a group, and the last day on which its readers asked.
type GroupDay struct {
	Group Group `json:"group"`
	Day   int64 `json:"day"` // counted from 1970
}

// AddGroups returns the groups of two lists that count on a day.
func AddGroups(a, b []GroupDay, day int64) (all []GroupDay) {
	for _, g := range slices.Concat(a, b) {
		if day-g.Day >= groupDays {
			continue
		}
		if i := slices.IndexFunc(all, func(d GroupDay) bool { return d.Group == g.Group }); i >= 0 {
			all[i].Day = max(all[i].Day, g.Day)
			continue
		}
		all = append(all, g)
	}
	slices.SortStableFunc(all, func(a, b GroupDay) int { return int(b.Day - a.Day) })
	return all[:min(len(all), maxGroups)]
}

// GroupsOf returns the groups without their days.
func GroupsOf(days []GroupDay) []Group {
	groups := make([]Group, 0, len(days))
	for _, d := range days {
		groups = append(groups, d.Group)
	}
	return groups
}

// AddNewsTo adds the groups that asked, and what a hub has said, to what is stored of a feed. It
// returns nil if nothing is stored yet, or if that is damaged: the next poll replaces it.
func AddNewsTo(stored []byte, groups []GroupDay, day int64, hub *HubState) []byte {
	m, err := decodeFeedState(stored)
	if err != nil {
		return nil
	}
	m.Groups = AddGroups(m.Groups, groups, day)
	m.Push.State = m.Push.State.With(hub)
	stored, _ = m.encode()
	return stored
}
