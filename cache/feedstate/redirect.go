// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"errors"
	"net/http"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// adoptAfter is how long a redirect must have held before it changes what readers of its
// feed get. Broken sites redirect everything for a day.
const adoptAfter = 7 * 24 * time.Hour

// seenRedirect is a redirect and for how long it has been seen without a break, as of the last
// poll.
type seenRedirect struct {
	To        string        `json:"to"`
	For       time.Duration `json:"for"`
	Temporary bool          `json:"temporary,omitempty"`
}

// Redirected says that a poll has come to a URL that must not be asked now: it was
// asked a short time ago, or is a feed with polls of its own. Its versions are
// not this feed's: nothing passes between feeds because of what an origin answers.
type Redirected struct {
	To     string
	Taken  bool // it has polls of its own
	Served bool // it is a feed that has a version
	Wait   time.Duration
}

func (r *Redirected) Error() string {
	if r.Taken {
		return "it redirects to a URL that is polled as a feed of its own"
	}
	return "it redirects to a URL that must not be asked now"
}

// updateRedirects remembers redirects. Of a chain, only the leading permanent part counts, or the
// feed with polls of its own at which it ends. A redirect changes what readers get after it has
// held for adoptAfter, whatever is known of its target: until then they get the feed's last
// version. A permanent one makes the feed an alias then. A temporary one is not remembered as
// the feed's address (RFC 9110 section 15.4), but its readers are sent on.
func (s *State) updateRedirects(own string, v Classified) {
	m, a := &s.Feed, v.Answer
	if m.Moved.To != "" {
		m.Moved.For += s.Gap
	}
	to, whole := permanently(a.Moves)
	temporary := false
	s.Last.RedirectTo = ""
	var r *Redirected
	switch {
	case errors.As(a.Err, &r):
		switch {
		case !r.Taken && !(whole && r.Served):
			return // it is unknown where the redirect ends
		case !whole:
			to, temporary = r.To, true
		}
	case !v.Good():
		return // a failure proves nothing about where the feed has moved
	}
	if temporary || to == "" || to == own {
		m.Alias = ""
	}
	switch {
	case to == "" || to == own || to == m.Alias:
		m.Moved = seenRedirect{}
	case to != m.Moved.To || temporary != m.Moved.Temporary:
		m.Moved = seenRedirect{To: to, Temporary: temporary}
	case m.Moved.For >= adoptAfter && !temporary:
		m.Alias, m.Moved = to, seenRedirect{}
	}
	if r != nil && m.Alias == "" && (s.Version == 0 || temporary && m.Moved.For >= adoptAfter) {
		s.Last.RedirectTo = r.To
	}
}

// permanently returns the target of the leading permanent redirects of a chain, empty if there
// are none, and whether they are all of it.
func permanently(moves []policy.Move) (to string, whole bool) {
	for i, move := range moves {
		if move.Status != http.StatusMovedPermanently && move.Status != http.StatusPermanentRedirect {
			return to, false
		}
		u, err := feedurl.Parse(move.To)
		if err != nil {
			return to, false
		}
		to, whole = u.String(), i == len(moves)-1
	}
	return to, whole
}
