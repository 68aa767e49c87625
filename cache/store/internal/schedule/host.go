// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"maps"
	"slices"

	"github.com/feedpollard/pollard/cache/store"
)

// pause is a time in which a scope is left alone.
type pause struct {
	until Time
	why   string
	step  int
}

// hop is a redirect that was followed to a URL.
type hop struct {
	at    Time
	until Time // the URL must not be asked before
}

// start is when a host was asked last.
type start struct {
	at    Time
	until Time // when that may be forgotten
}

// set changes one entry of a map, and the note that outlives the process where
// there is one.
func set[K comparable, V any](s *Schedule, in map[K]V, key K, value V, note string, encoded []byte) {
	old, was := in[key]
	in[key] = value
	s.undo = append(s.undo, func() {
		if was {
			in[key] = old
		} else {
			delete(in, key)
		}
	})
	if note != "" {
		s.keeper.Note(note, encoded)
	}
}

// start notes that a host is asked. The record of the feed says so too, so there
// is no need of a note while it stands.
func (s *Schedule) start(host store.Host, at Time) {
	if last, known := s.started[host.Name]; host.Name == "" || known && last.at >= at {
		return
	}
	set(s, s.started, host.Name, start{at, at.Add(host.Spacing)}, "", nil)
}

// keepStart notes the last start of a host that a record tells of which does not
// stand any more.
func (s *Schedule) keepStart(now Time, f *Feed) {
	if last, known := s.started[f.Host.Name]; known && last.until > now {
		s.keeper.Note(noteStart+f.Host.Name, encodeStart(last))
	}
}

// deny tells whether a host has to be left alone, and until when.
func (s *Schedule) deny(host store.Host, now Time) (denied store.Denial, until Time, why string) {
	until = now
	if host.Name != "" {
		if last, known := s.started[host.Name]; known {
			if free := last.at.Add(host.Spacing); free > until {
				denied, until = store.DeniedBusy, free
			}
		}
	}
	// No pause has a scope without a name.
	for _, scope := range [...]string{"host " + host.Name, "domain " + host.Domain} {
		if p, known := s.pauses[scope]; known && p.until > now {
			if until < p.until || why == "" {
				why = p.why
			}
			denied, until = store.DeniedPaused, max(until, p.until)
		}
	}
	return denied, until, why
}

// pause agrees a pause, unless a longer one is in force.
func (s *Schedule) pause(now Time, p store.Pause) {
	agreed := pause{until: now.Add(p.For), why: p.Why, step: p.Step}
	if agreed.until <= now || agreed.until < s.pauses[p.Scope].until {
		return
	}
	set(s, s.pauses, p.Scope, agreed, notePause+p.Scope, encodePause(agreed))
}

// Pauses returns those in force, in the order of their scopes.
func (s *Schedule) Pauses(now Time) []store.Pause {
	var in []store.Pause
	for _, scope := range slices.Sorted(maps.Keys(s.pauses)) {
		if p := s.pauses[scope]; p.until > now {
			in = append(in, store.Pause{Scope: scope, For: p.until.Sub(now), Why: p.why, Step: p.step})
		}
	}
	return in
}

// Tidy drops what is of no consequence any more. To be called every minute or so.
func (s *Schedule) Tidy(now Time) error {
	for name, last := range s.started {
		if last.until <= now {
			delete(s.started, name)
			s.keeper.Note(noteStart+name, nil)
		}
	}
	for scope, p := range s.pauses {
		if p.until <= now {
			delete(s.pauses, scope)
			s.keeper.Note(notePause+scope, nil)
		}
	}
	for id, h := range s.hops {
		if h.until <= now {
			delete(s.hops, id)
			s.keeper.Note(noteHop+string(id[:]), nil)
		}
	}
	return s.compact(now)
}
