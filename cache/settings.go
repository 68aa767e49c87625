// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// Options are what a cache is made of. They do not change.
type Options struct {
	Store  store.Store
	Origin Origin
	Memory int64            // budget of what is held in memory, in bytes; 0: 64 MiB
	Now    func() time.Time // nil: time.Now
	// Suspended returns how long the machine has been suspended since some fixed moment: a
	// monotonic clock may not count that time. Nil: what the system says.
	Suspended func() time.Duration
}

// Settings are what a new configuration may change while the cache runs.
type Settings struct {
	// Rules returns the operator's rules for a feed. Nil: the default rules for all.
	Rules func(key feedstate.Key) policy.Rules
	// Site returns the origin of a shielded feed; nil if its shield is not configured. Nil:
	// there are no shields.
	Site func(key string) Origin
	// Feeds are the keys of configured feeds: they are never forgotten.
	Feeds []string
	// Prefetch polls due feeds in the background. Without it, a poll happens when a reader asks.
	Prefetch bool
	// IdleAfter is after how long without readers a feed is not prefetched any more. 0: 30 days.
	IdleAfter time.Duration
	// Polls is how many polls may be in flight. 0: 128.
	Polls int
	// Disk is the budget of stored bodies, in bytes. 0: 10 GiB.
	Disk int64
	// Subscribers returns how many readers a feed has; 0: it is unknown. Nil: it always is.
	Subscribers func(key string) int
	// Client returns the address that a request comes from, invalid if it is not known: what is
	// in hand for readers is shared between their networks. Nil: it is not known of any.
	Client func(*http.Request) netip.Addr
	// WebSub is the URL below which hubs can reach the callbacks ([CallbackPath]). Empty: no hub is
	// asked for anything.
	WebSub string
	// Post sends a form to a hub. It returns the status of the response, and until when the hub asks
	// not to be asked. A private feed is one at a private address.
	Post func(ctx context.Context, hub feedurl.URL, form url.Values, private bool) (status int, until time.Time, err error)
	// Listed returns the keys of feeds that are in subscription lists: they count for the operator, too. Nil: there are
	// none.
	Listed func() []string
	// Observe is called after each poll, without locks held. Nil: nothing is called.
	Observe func(Poll)
	// LogName returns the URL that the log has for a key. Nil: the key itself.
	LogName func(key string) string
	// Forgotten is called with the keys of feeds that have been forgotten. Nil: nothing is called.
	Forgotten func(keys []string)
	Log       *zap.Logger // nil: nothing is logged

	configured map[string]bool
	listed     *atomic.Pointer[map[string]bool] // when they were recorded last
	recorded   *atomic.Bool                     // the store has records of all of them
	tried      func()                           // called when that was tried
	listable   <-chan struct{}                  // closed by the first call
}

// What holds if [Settings] or [Options] say nothing.
const (
	DefaultMemory    = 64 << 20
	DefaultDisk      = 10 << 30
	DefaultPolls     = 128
	DefaultIdleAfter = 30 * 24 * time.Hour
)

// filled returns the settings with their defaults.
func (s Settings) filled() *Settings {
	if s.Rules == nil {
		s.Rules = func(feedstate.Key) policy.Rules { return policy.DefaultRules() }
	}
	if s.Site == nil {
		s.Site = func(string) Origin { return nil }
	}
	s.IdleAfter = cmp.Or(max(s.IdleAfter, 0), DefaultIdleAfter)
	s.Polls = cmp.Or(max(s.Polls, 0), DefaultPolls)
	s.Disk = cmp.Or(max(s.Disk, 0), DefaultDisk)
	s.Log = cmp.Or(s.Log, zap.NewNop())
	if s.Subscribers == nil {
		s.Subscribers = func(string) int { return 0 }
	}
	if s.Client == nil {
		s.Client = func(*http.Request) netip.Addr { return netip.Addr{} }
	}
	if s.Listed == nil {
		s.Listed = func() []string { return nil }
	}
	if s.Observe == nil {
		s.Observe = func(Poll) {}
	}
	if s.LogName == nil {
		s.LogName = func(key string) string { return key }
	}
	if s.Forgotten == nil {
		s.Forgotten = func([]string) {}
	}
	s.recorded, s.listed = new(atomic.Bool), new(atomic.Pointer[map[string]bool])
	s.listed.Store(new(map[string]bool))
	listable := make(chan struct{})
	s.tried, s.listable = sync.OnceFunc(func() { close(listable) }), listable
	s.configured = make(map[string]bool, len(s.Feeds))
	for _, key := range s.Feeds {
		s.configured[key] = true
	}
	return &s
}

// Apply puts settings in force, for all feeds and at once. Times of next polls that were
// decided under earlier rules stand, unless MinInterval has been raised.
func (c *Cache) Apply(s Settings) {
	c.settings.Store(s.filled())
	c.inFlight.resize(int64(c.settings.Load().Polls))
	c.again.Store(true) // more feeds may be prefetched
	c.wake(c.changed)
	c.wake(c.schedule.more) // more polls may be in flight
	c.wake(c.full)          // the budget may be smaller
}
