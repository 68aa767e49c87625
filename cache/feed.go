// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// Feed is a feed in memory. It is a view of the store's record. It may leave memory when no
// request uses it and no poll is under way; a handle to it stays good, and leads to the feed
// of the same key that is in memory then.
type Feed struct {
	cache       *Cache
	id          store.ID
	key         feedstate.Key
	state       atomic.Pointer[feedstate.State]
	timedFields atomic.Pointer[timedFields]
	asked       atomic.Int64                       // when a reader asked last, in seconds of [Cache.elapsed]; never: [neverRequested]
	touched     atomic.Int64                       // asked, as the store has it
	own         atomic.Bool                        // one has at its own address
	askers      [8]atomic.Int64                    // the owners that asked, as store.Owner; 0: none, or the store has it
	askedByUser atomic.Bool                        // by a feed reader since the last poll: see [Feed.Ask]
	missing     atomic.Uint64                      // the version whose body cannot be read, or that was withdrawn; 0: none
	hub         atomic.Pointer[feedstate.HubState] // nil: nothing
	ignored     atomic.Int64                       // pushes without a valid signature
	pinged      atomic.Bool                        // the next request has it polled unconditionally: see [Cache.Ping]
	unstored    atomic.Int64                       // when it may be polled by an outcome that the store did not take; 0: it took all

	users   atomic.Int64 // requests that use it: it stays in the table for as long
	inTable atomic.Bool  // it is in the table, whose size counts it; changed under mu

	mu   sync.Mutex               // guards what follows
	poll atomic.Pointer[inFlight] // that waits or is under way; nil: there is none. Changed under mu

	commits  ownCommit
	outdated atomic.Bool // the store has changed while a poll was under way
}

const neverRequested = math.MinInt64

func newFeed(c *Cache, key string, s *feedstate.State) *Feed {
	f := &Feed{cache: c, id: store.IDOf(key), key: feedstate.ParseKey(key)}
	f.asked.Store(neverRequested)
	f.touched.Store(neverRequested)
	f.state.Store(s)
	return f
}

// size is what the feed takes in memory, in bytes, roughly.
func (f *Feed) size() int64 { return f.state.Load().Size + 2*int64(len(f.key.String())) }

// Key returns the text of the feed's key: its canonical URL, unless it is a shield's.
func (f *Feed) Key() string { return f.key.String() }

// Due reports whether a request now causes a poll.
func (f *Feed) Due() bool { return f.state.Load().DueAt(f.cache.elapsed()) }

// PollIfDue starts the feed's poll if it is due, and does not wait for it.
func (f *Feed) PollIfDue() {
	f = f.use()
	defer f.leave()
	if s := f.state.Load(); f.mayPoll(s, f.cache.elapsed()) {
		f.start(f.requestFor(s))
	}
}

// Served reports whether there is a version to serve.
func (f *Feed) Served() bool { return f.state.Load().Version != 0 }

// New reports whether nothing is known of the feed: it is not configured, it was never
// polled, and no poll is under way.
func (f *Feed) New() bool {
	return !f.state.Load().Recorded && !f.configured() && f.underWay() == nil
}

// Hints are what the feed's document says.
func (f *Feed) Hints() *policy.Hints { return &f.state.Load().Feed.History.Hints }

// Title is that of the version, or "".
func (f *Feed) Title() string { return f.state.Load().Feed.Version.Title }

// Fields returns the request header fields, in lower case, on which the responses of a shielded
// feed's origin depend, and the header fields of its last response. Both are read only.
func (f *Feed) Fields() (vary []string, header http.Header) {
	v := &f.state.Load().Feed.Version
	return v.Vary, v.Header
}

func (f *Feed) rules() policy.Rules { return f.cache.settings.Load().Rules(f.key) }

// URL returns the feed's URL, or the zero URL if it is a shield's.
func (f *Feed) URL() feedurl.URL { return f.key.URL() }

func (f *Feed) configured() bool { return f.cache.isConfigured(f.key.String()) }

// origin returns where the feed is polled; nil if its shield is not configured any more.
func (f *Feed) origin() Origin {
	if !f.key.Shielded() {
		return f.cache.origin
	}
	return f.cache.settings.Load().Site(f.key.String())
}

// Ask records that a reader asks for the feed at its own address, on behalf of an owner; 0 is none. So
// does a reader of the feed to which it points. It is to be called before the feed is served, unless a
// page of another site has made the request. A program is not a person with a browser: if it asks for another owner than
// strangers, a feed that never had a version, and whose polls fail, counts as failing.
func (f *Feed) Ask(by store.Owner, program bool) {
	if !f.own.Load() {
		f.own.Store(true)
	}
	f.read(by)
	s := f.state.Load()
	if program && by != 0 && by != store.Any && s.Version == 0 {
		f.askedByUser.Store(true)
	}
	if s.Points != "" {
		f.askTarget(s, by)
	}
}

// read records that a reader asks for the feed, perhaps at the address of one that points to it.
func (f *Feed) read(by store.Owner) {
	f.touch(f.cache.elapsed())
	f.addAsker(by)
}

// addAsker adds an owner to those that the store has to learn of.
func (f *Feed) addAsker(by store.Owner) {
	for i := range f.askers {
		switch had := f.askers[i].Load(); {
		case had == int64(by), had == 0 && f.askers[i].CompareAndSwap(0, int64(by)):
			return
		}
	}
}

// askedBy returns the owners that asked and that the store does not have yet.
func (f *Feed) askedBy() (owners []store.Owner) {
	for i := range f.askers {
		if by := f.askers[i].Load(); by != 0 {
			owners = append(owners, store.Owner(by))
		}
	}
	return owners
}

// askersStored records that the store has some owners that asked.
func (f *Feed) askersStored(askers []store.Owner) {
	for i := range f.askers {
		if by := f.askers[i].Load(); slices.Contains(askers, store.Owner(by)) {
			f.askers[i].CompareAndSwap(by, 0)
		}
	}
}

// allAskers returns the owners that asked in the last 30 days.
func (f *Feed) allAskers(s *feedstate.State) []store.Owner {
	return append(f.askedBy(), s.AskersAt(f.cache.now())...)
}

// owner returns the party that the feed counts for: as the store has it, unless only strangers or none have asked by
// what that knows.
func (f *Feed) owner() store.Owner {
	owner := f.state.Load().Owner
	switch {
	case f.configured():
		return store.Operator
	case owner != 0 && owner != store.Any:
		return owner
	}
	return slices.Max(append(f.askedBy(), owner))
}

// touch records that a reader asks: to the minute, so that requests do not write to the same
// memory each time.
func (f *Feed) touch(now time.Duration) {
	if second := int64(now / time.Second); second-60 >= f.asked.Load() {
		f.asked.Store(second)
	}
}

// sinceAsked returns how long ago a reader asked; negative: never.
func (f *Feed) sinceAsked(now time.Duration) time.Duration {
	if asked := f.asked.Load(); asked != neverRequested {
		return max(0, now-time.Duration(asked)*time.Second)
	}
	return -1
}

// publish sets the state that readers see. A version that cannot be read does not replace one in memory.
func (f *Feed) publish(next *feedstate.State) {
	next, err := f.readable(f.cache.life, f.state.Load(), next)
	if err != nil {
		f.cache.readLater(f)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.setState(f.state.Load(), next)
}

// setState replaces a state, if it is still the one that readers see. The caller holds
// the lock.
func (f *Feed) setState(old, next *feedstate.State) bool {
	if !f.state.CompareAndSwap(old, next) {
		return false
	}
	if f.inTable.Load() {
		f.cache.table.size.Add(next.Size - old.Size)
	}
	return true
}

// adopt publishes the state of a record.
func (f *Feed) adopt(r store.Record) { f.publish(f.stateFrom(r, f.state.Load())) }

// stateFrom makes a state of a record, as the target of an old one.
func (f *Feed) stateFrom(r store.Record, old *feedstate.State) *feedstate.State {
	now := f.cache.elapsed()
	s := feedstate.FromRecord(r, now)
	switch {
	case s.Version != 0 && s.Version == f.missing.Load():
		f.dropVersion(s)
	case s.Version == 0 && old.Version != 0 && old.Version == s.Feed.Version.Number && old.Unstored != nil:
		if r := f.cache.memory.get(f.id, old, old.Feed.Version.StoredCoding()); r != nil {
			s.Version, s.Response = old.Version, old.Response // until memory drops it, too
			s.KeepUnstored(old.Unstored)
		}
	}
	s.SetAskers(r.Askers, f.cache.now())
	for _, by := range s.TakeGroups(f.cache.now()) { // the edition before had them apart
		f.addAsker(by)
	}
	if r.Asked >= 0 {
		asked := int64((now - r.Asked) / time.Second)
		f.touched.Store(asked)
		f.asked.Store(max(asked, f.asked.Load()))
	}
	return s
}

// dropVersion drops the version of a state because its body is lost. A 304 would confirm bytes
// that are gone, so the next poll has no validators. The feed is due as soon as MinInterval and
// the pauses that its origin has asked for allow.
func (f *Feed) dropVersion(s *feedstate.State) {
	s.DropVersion()
	floor := f.rules().MinInterval - f.cache.now().Sub(s.Last.At)
	s.Due = min(s.Due, max(s.NotBefore, f.cache.elapsed()+max(0, floor)))
}

// inFlight is a poll that waits for its turn, or is under way.
type inFlight struct {
	started time.Duration
	sent    chan struct{} // closed when the store has granted it, and the request leaves
	done    chan struct{} // closed when its outcome is published
	once    sync.Once     // closes sent
}

func (p *inFlight) send() { p.once.Do(func() { close(p.sent) }) }

// left reports whether the request has left.
func (p *inFlight) left() bool {
	select {
	case <-p.sent:
		return true
	default:
		return false
	}
}

// sent reports whether a poll is in flight.
func (f *Feed) sent() bool {
	p := f.underWay()
	return p != nil && p.left()
}

// underWay returns the poll under way; nil if there is none.
func (f *Feed) underWay() *inFlight { return f.poll.Load() }

// start has a poll wait for its turn, or joins the one that waits or is under way. It returns nil if the feed is not due,
// as the poll has ended that the caller has seen, if too many polls wait, or if the cache is closing.
func (f *Feed) start(req pollRequest) (p *inFlight, joined bool) {
	f = f.locked()
	defer f.mu.Unlock()
	c := f.cache
	if p := f.underWay(); p != nil {
		if f.state.Load().Version == 0 {
			c.schedule.again(f.queued(c.elapsed()))
		}
		return p, true
	}
	if req.floor == 0 && !f.mayPoll(f.state.Load(), c.elapsed()) {
		return nil, false
	}
	place := c.queued.try(f.owner(), 1)
	if place == nil {
		return nil, false
	}
	p = f.newPoll()
	if !c.schedule.add(f.queued(c.elapsed()), &queued{feed: f, request: req, poll: p, place: place}) {
		place()
		f.poll.Store(nil)
		return nil, false
	}
	c.wake(c.schedule.more)
	return p, false
}

// newPoll returns a poll of the feed. The caller holds the lock.
func (f *Feed) newPoll() *inFlight {
	p := &inFlight{started: f.cache.elapsed(), sent: make(chan struct{}), done: make(chan struct{})}
	f.poll.Store(p)
	return p
}

// latest returns the feed's state and the poll under way. Without one, the state is the outcome
// of the last poll.
func (f *Feed) latest() (*feedstate.State, *inFlight) {
	p := f.underWay() // first: an outcome is published before its poll ends
	return f.state.Load(), p
}

// blockPolls takes the place of a poll, so that none starts until finish is called, or
// returns the one that is under way.
func (f *Feed) blockPolls() (own, other *inFlight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.underWay(); p != nil {
		return nil, p
	}
	return f.newPoll(), nil
}

func (f *Feed) finish(p *inFlight) {
	f.mu.Lock()
	f.poll.Store(nil)
	f.mu.Unlock()
	p.send()
	close(p.done)
}

// wait waits for the end of a poll, or until d has passed since it began. It reports whether
// the poll has ended.
func (p *inFlight) wait(ctx context.Context, d, now time.Duration) bool {
	return await(ctx, p.done, d-(now-p.started))
}

// await waits for a channel to be closed, but not for longer than d.
func await(ctx context.Context, done <-chan struct{}, d time.Duration) bool {
	select {
	case <-done:
		return true
	default:
	}
	select {
	case <-done:
		return true
	case <-time.After(d):
	case <-ctx.Done():
	}
	return false
}
