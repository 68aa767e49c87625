// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

const (
	// adoptAfter is how long a redirect must have held before it changes what readers of its
	// feed get. Broken sites redirect everything for a day.
	adoptAfter = 7 * 24 * time.Hour
	// aliasInterval is how often the URL of an alias is asked whether it still redirects.
	aliasInterval = 30 * 24 * time.Hour
)

// seenRedirect is a redirect and for how long it has been seen without a break, as of the last
// poll.
type seenRedirect struct {
	To        string        `json:"to"`
	For       time.Duration `json:"for"`
	Temporary bool          `json:"temporary,omitempty"`
}

// redirected says that a poll has come to a URL that must not be asked now: it was
// asked a short time ago, or is a feed with polls of its own. Its versions are
// not this feed's: nothing passes between feeds because of what an origin answers.
type redirected struct {
	to     string
	taken  bool // it has polls of its own
	served bool // it is a feed that has a version
	wait   time.Duration
}

func (r *redirected) Error() string {
	if r.taken {
		return "it redirects to a URL that is polled as a feed of its own"
	}
	return "it redirects to a URL that must not be asked now"
}

// hop lets a poll follow a redirect if the URL was not asked in the last MinInterval.
func (f *Feed) hop(ctx context.Context, u feedurl.URL, host policy.Host) error {
	to := u.String()
	for {
		p, err := f.cache.store.Hop(ctx, store.Hop{
			ID: IDOf(to), From: f.id, Prefetch: f.cache.settings.Load().Prefetch, Floor: f.rules().MinInterval, Yield: !f.configured(), Host: host,
		})
		switch {
		case err != nil:
			return fmt.Errorf("following a redirect to %s: %w", feedurl.Redact(to), err)
		case p.Denied == "":
			return nil
		case p.Denied != store.DeniedBusy:
			other, err := f.cache.Feed(ctx, to)
			return &redirected{
				to: to, taken: p.Denied == store.DeniedTaken, served: err == nil && other.Served(), wait: p.Wait,
			}
		}
		if !sleep(ctx, p.Wait) {
			return &redirected{to: to, wait: p.Wait}
		}
	}
}

// updateRedirects remembers redirects. Of a chain, only the leading permanent part counts, or the
// feed with polls of its own at which it ends. A redirect changes what readers get after it has
// held for adoptAfter, whatever is known of its target: until then they get the feed's last
// version. A permanent one makes the feed an alias then. A temporary one is not remembered as
// the feed's address (RFC 9110 section 15.4), but its readers are sent on.
func (s *state) updateRedirects(own string, v classified) {
	m, a := &s.feed, v.answer
	if m.Moved.To != "" {
		m.Moved.For += s.gap
	}
	to, whole := permanently(a.Moves)
	temporary := false
	s.last.RedirectTo = ""
	var r *redirected
	switch {
	case errors.As(a.Err, &r):
		switch {
		case !r.taken && !(whole && r.served):
			return // it is unknown where the redirect ends
		case !whole:
			to, temporary = r.to, true
		}
	case !v.good():
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
	if r != nil && m.Alias == "" && (s.version == 0 || temporary && m.Moved.For >= adoptAfter) {
		s.last.RedirectTo = r.to
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

// createTarget makes the record of the feed that an alias leads to, if it has none.
// The URL has just been asked by the alias's own poll, so its first poll comes a floor
// later. Hints of the redirect itself do not count for the URL.
func (c *Cache) createTarget(ctx context.Context, alias *Feed, key string, in time.Duration) error {
	k := ParseKey(key)
	id, rules := IDOf(key), c.settings.Load().Rules(k)
	records, err := c.store.Lookup(ctx, []store.ID{id})
	if err != nil || len(records) > 0 {
		return err
	}
	return c.store.Restore(ctx, []store.Saved{{New: true, Record: store.Record{
		ID: id, URL: key, In: min(in, rules.MinInterval), Hold: (&state{}).leaseTime(rules),
		Polled: -1, Asked: alias.sinceAsked(c.elapsed()), State: store.StateCold,
		Configured: alias.configured(), Host: c.origin.Host(k.url),
	}}})
}

// maxAliases is how many aliases in a row are followed.
const maxAliases = 4

// Resolve returns the feed that answers for this one: itself, unless it has become
// an alias of another. Whether a reader may have that one is for the caller to decide; the
// reader asks for both (see [Feed.Ask]).
func (f *Feed) Resolve(ctx context.Context) *Feed {
	for range maxAliases {
		next := f.target(ctx)
		if next == f {
			break
		}
		f = next
	}
	return f
}

// target is the feed that an alias leads to, or the feed itself.
func (f *Feed) target(ctx context.Context) *Feed {
	s := f.state.Load()
	if s.feed.Alias == "" {
		return f
	}
	target, err := f.cache.Feed(ctx, s.feed.Alias)
	if err != nil {
		return f
	}
	t := target.state.Load()
	if t.feed.History.Failures >= 3 || t.ended {
		// A feed that fails at its new address is asked for at its own again.
		if floor := f.rules().MinInterval; f.cache.now().Sub(s.last.At) > floor {
			f.start(pollRequest{floor: floor})
		}
	}
	// Its own version is from before the move, or from a poll that came to the target
	// later than that one's own polls, which the redirect has put off.
	newer := s.last.Failure == policy.FailureNone && s.granted > t.granted
	if s.version != 0 && (t.version == 0 || newer) {
		if t.dueAt(f.cache.elapsed()) {
			target.start(pollRequest{})
		}
		return f
	}
	return target
}
