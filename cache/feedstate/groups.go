// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// groupDay is a group of readers that asked for a feed, such as those with a token of a gateway, and the last day on
// which they did. The edition before had them in the state of a feed, apart from its askers.
type groupDay struct {
	Group uint64 `json:"group"`
	Day   int64  `json:"day"` // counted from 1970
}

// askedDays is for how many days an asker counts.
const askedDays = 30

func dayOf(t time.Time) int64 { return t.Unix() / int64(24*time.Hour/time.Second) }

// askersOf returns the owners that groups are which asked in the last 30 days.
func askersOf(groups []groupDay, now time.Time) (askers []store.Owner) {
	for _, g := range groups {
		if dayOf(now)-g.Day < askedDays {
			askers = append(askers, store.OwnerOfHash(store.KindNamed, g.Group))
		}
	}
	return askers
}

// AskersAt returns the owners that asked in the last 30 days.
func (s *State) AskersAt(now time.Time) (askers []store.Owner) {
	for _, a := range s.Askers {
		if dayOf(now)-a.Day < askedDays {
			askers = append(askers, a.Owner)
		}
	}
	return askers
}

// SetAskers takes over who asked, of a record that was read now.
func (s *State) SetAskers(askers []store.Asker, now time.Time) {
	for _, a := range askers {
		s.Askers = append(s.Askers, Asker{a.Owner, dayOf(now) - a.Ago})
	}
}

// TakeGroups returns the owners that the groups are which the edition before has recorded, and forgets the groups.
func (s *State) TakeGroups(now time.Time) []store.Owner {
	askers := askersOf(s.Feed.Groups, now)
	s.Feed.Groups = nil
	return askers
}

func ownersOf(askers []store.Asker) (owners []store.Owner) {
	for _, a := range askers {
		owners = append(owners, a.Owner)
	}
	return owners
}
