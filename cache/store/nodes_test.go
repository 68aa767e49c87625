// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"hash/maphash"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/queue"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

var (
	nodesDepth = flag.Int("nodes.depth", 0, "how many events TestNodesInEveryOrder has in a row; 0: 8 with one that is rare, and 6 with any number of them")
	nodesRare  = flag.Int("nodes.rare", 8, "with nodes.depth: how many of them are a redirect, a restart, a refusal, a failure, a poke or a forgetting at most")
)

// The rules of its two feeds. An origin that answers well says that its feed is good for 20 minutes, and one that refuses
// asks to be left alone for as long.
const (
	nodesMin     = 10 * time.Minute
	nodesFresh   = 20 * time.Minute
	nodesMax     = time.Hour
	nodesRefused = 20 * time.Minute
	nodesSpacing = time.Minute
	// nodesPatience is how long readers wait for the turn of a poll, and nodesShortly the longest pause that they wait for,
	// as in package cache.
	nodesPatience = 5 * time.Minute
	nodesShortly  = 15 * time.Second
	never         = time.Duration(-1 << 62)
)

var (
	nodesRules = policy.Rules{MinInterval: nodesMin, DefaultInterval: nodesMin, UnvalidatedInterval: nodesMax, MaxInterval: nodesMax, MaxBody: 1 << 20}
	nodesEpoch = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	nodesStart = func() store.Time { o := store.NewOrder(0); return o.Now() }()
	nodesHost  = store.Host{Site: store.OrderSite, Spacing: nodesSpacing}
	nodesURLs  = [2]string{store.OrderURL(0), store.OrderURL(1)}
	nodesKeys  = [2]feedstate.Key{feedstate.ParseKey(nodesURLs[0]), feedstate.ParseKey(nodesURLs[1])}
	nodesIDs   = [2]store.ID{store.IDOf(nodesURLs[0]), store.IDOf(nodesURLs[1])}
	household  = store.OwnerOf(store.KindNamed, "a")
)

// nodes is a state that some events lead to: two nodes over the rows of one store. The rules are those of the product: of rows
// (package store), of turns (package queue), and of what an answer means (package feedstate). What lies between them in package
// cache has goroutines and is not pure: changed, asks, ask, start, look, turn, hold, leave, hop, answer and point say in short what
// it does. Nodes hear of changes at once, but not of claims; they look for what is due when time has passed, after a poke, and when
// they start; a node that is asked claims at once if the site is free. Places at hosts, limits of polls, and the texts of records
// are left out.
type nodes struct {
	store.Order
	nodes  [2]oneNode
	stored [2]*feedstate.State // what a row remembers for the engine
	points bool                // the first feed should point to the second
	rare   int                 // how often something has happened that seldom does
	wrong  string
}

// oneNode is what a node has in memory.
type oneNode struct {
	configured bool         // it has the first feed in its configuration
	calls      *call        // the last
	queue      *queue.Queue // after these calls; nil: it has to be made
	own        bool         // the queue is that of no other state
	feeds      [2]*feedstate.State
	by         [2]store.Owner   // has asked since the last claim
	waits      [2]bool          // a poll waits, for its readers
	floor      [2]time.Duration // of that
	polls      [2]*nodePoll
	held       [2]time.Duration // pauses of the site, and of its feeds without a version
	blamed     store.Owner      // for the last of the second kind
	marked     [2]bool          // the last answer of the feed paused the site
	passed     [2]passers       // had a slot that the feed could have had
	hopped     time.Duration    // the last slot was for a hop; never if it was not
}

// passers are owners that had slots of a site while another one waited: the operator the last one, and the others.
type passers struct {
	operator bool
	others   [2]store.Owner
}

// nodePoll is a poll under way.
type nodePoll struct {
	*feedstate.State
	hops  int  // redirects that it has followed
	waits bool // a redirect waits
}

// call is a call of a queue. Queues cannot be copied: the same calls make the same queue.
type call struct {
	last  *call
	do    func(q *queue.Queue, c *call) queue.Feed
	feed  queue.Feed
	now   time.Duration
	at    time.Duration
	fresh bool
	owner store.Owner
	n     int
}

func calling(do func(q *queue.Queue, c *call)) func(q *queue.Queue, c *call) queue.Feed {
	return func(q *queue.Queue, c *call) queue.Feed {
		do(q, c)
		return queue.Feed{}
	}
}

var (
	callWait     = calling(func(q *queue.Queue, c *call) { q.Wait(c.feed) })
	callLeave    = calling(func(q *queue.Queue, c *call) { q.Leave(c.feed.ID) })
	callDue      = calling(func(q *queue.Queue, c *call) { q.Due(c.feed) })
	callDropDue  = calling(func(q *queue.Queue, _ *call) { q.DropDue() })
	callBack     = calling(func(q *queue.Queue, c *call) { q.Back(c.feed, c.at) })
	callAsked    = calling(func(q *queue.Queue, c *call) { q.Asked(store.OrderSite, queue.Owner(c.owner), c.now, c.at) })
	callFree     = calling(func(q *queue.Queue, _ *call) { q.Free(store.OrderSite) })
	callHold     = calling(func(q *queue.Queue, c *call) { q.Hold(store.OrderSite, c.fresh, c.at, queue.Owner(c.owner)) })
	callHopWaits = calling(func(q *queue.Queue, c *call) { q.HopWaits(store.OrderSite, c.n, c.now) })
	callGiveHop  = calling(func(q *queue.Queue, _ *call) { q.GiveHop(store.OrderSite) })
	callPaused   = calling(func(q *queue.Queue, c *call) { q.Paused(c.feed.ID) })
	callAnswered = calling(func(q *queue.Queue, c *call) { q.Answered(c.feed.ID) })
)

// callNext returns the feed whose turn it is; the zero feed if there is none.
func callNext(q *queue.Queue, c *call) queue.Feed {
	if feeds := q.Next(c.now, 1); len(feeds) > 0 {
		return feeds[0]
	}
	return queue.Feed{}
}

// callTakeHop returns how long a hop has to wait, as Due.
func callTakeHop(q *queue.Queue, c *call) queue.Feed {
	return queue.Feed{Due: q.TakeHop(store.OrderSite, nodesSpacing, c.now)}
}

// made returns the queue of a node, which must not be changed.
func (n *oneNode) made() *queue.Queue {
	if n.queue == nil {
		n.queue = queue.New(queue.Owner(store.Operator))
		n.calls.again(n.queue)
	}
	return n.queue
}

// again makes all calls up to one.
func (c *call) again(q *queue.Queue) {
	if c != nil {
		c.last.again(q)
		c.do(q, c)
	}
}

// call calls the queue.
func (n *oneNode) call(c call) queue.Feed {
	if !n.own {
		n.queue = nil
		n.made()
		n.own = true
	}
	c.last = n.calls
	n.calls = &c
	return c.do(n.queue, &c)
}

// copied returns a copy, which makes queues of its own.
func (w nodes) copied() nodes {
	for node := range w.nodes {
		w.nodes[node].queue, w.nodes[node].own = nil, false
	}
	return w
}

func (w *nodes) elapsed() time.Duration { return w.Now().Sub(nodesStart) }

func (w *nodes) wall() time.Time { return nodesEpoch.Add(w.elapsed()) }

// must records what is wrong.
func (w *nodes) must(wrong string) {
	if w.wrong == "" {
		w.wrong = wrong
	}
}

// load returns what the store knows of a feed, as a node has it in memory. The texts of a record are left out.
func (w *nodes) load(i int) *feedstate.State {
	r, known := w.Record(i)
	if !known {
		return &feedstate.State{Granted: feedstate.NeverGranted}
	}
	version := r.Version
	r.Version = 0
	s := feedstate.FromRecord(r, w.elapsed())
	if s.Version = version; w.stored[i] != nil {
		s.Last, s.Feed = w.stored[i].Last, w.stored[i].Feed
	}
	return s
}

// owner returns the owner that a feed counts for, as a node knows.
func (n *oneNode) owner(i int) store.Owner {
	owner := n.feeds[i].Owner
	switch {
	case n.configured && i == 0:
		return store.Operator
	case owner != 0 && owner != store.Any:
		return owner
	}
	return max(n.by[i], owner)
}

// queued returns a feed as the queue has it.
func (n *oneNode) queued(i int, now time.Duration) queue.Feed {
	s := n.feeds[i]
	return queue.Feed{ID: queue.ID(nodesIDs[i]), Site: store.OrderSite, Owner: queue.Owner(n.owner(i)), New: s.Version == 0, Due: min(s.Due, now)}
}

// keeps reports whether a feed keeps its turn although its readers have gone.
func keeps(f queue.Feed) bool { return !f.New || store.Owner(f.Owner) != store.Any && f.Owner != 0 }

// mayPoll reports whether a feed may be polled, as far as a node knows.
func (w *nodes) mayPoll(n *oneNode, i int) bool {
	s, now := n.feeds[i], w.elapsed()
	return s.DueAt(now) && n.held[0] <= now && (s.Version != 0 || n.held[1] <= now)
}

// start has a poll wait for its turn.
func (w *nodes) start(n *oneNode, i int, floor time.Duration) {
	f := n.queued(i, w.elapsed())
	switch {
	case n.polls[i] != nil:
	case !n.waits[i]:
		n.waits[i], n.floor[i] = true, floor
		n.call(call{do: callWait, feed: f})
	case f.New && n.made().Waits(f.ID):
		n.call(call{do: callWait, feed: f})
	}
}

func (w *nodes) pollIfDue(n *oneNode, i int) {
	if w.mayPoll(n, i) {
		w.start(n, i, 0)
	}
}

// changed has nodes hear of a change of a row: they read it, unless a poll is under way.
func (w *nodes) changed(i int) {
	for node := range w.nodes {
		if n := &w.nodes[node]; n.polls[i] == nil {
			n.feeds[i] = w.load(i)
		}
	}
}

// asks records that a reader asks a node for a feed, or for one that points to it.
func (w *nodes) asks(n *oneNode, i int, by store.Owner) {
	n.by[i] = by
	w.Read(i, by)
}

// ask has a reader ask a node for a feed.
func (w *nodes) ask(node, i int, by store.Owner) bool {
	n := &w.nodes[node]
	w.asks(n, i, by)
	w.pollIfDue(n, i)
	s := n.feeds[i]
	if s.Points == "" {
		return true
	}
	w.asks(n, 1, by)
	w.pollIfDue(n, 1)
	if own := max(s.Feed.History.Interval, nodesMin); !n.feeds[1].Works() && !s.Ended && s.NotBefore <= w.elapsed() && w.elapsed()-s.Granted > own {
		w.start(n, 0, own)
	}
	return true
}

// configure gives a node another configuration, which has the first feed.
func (w *nodes) configure(node int) bool {
	n := &w.nodes[node]
	if n.configured {
		return false
	}
	n.configured = true
	defer w.changed(0)
	_, wrong := w.Restore(0, store.Saved{New: true, Hold: (&feedstate.State{}).LeaseTime(nodesRules), Record: store.Record{
		ID: nodesIDs[0], URL: nodesURLs[0], Polled: -1, First: -1, State: store.StateCold, Configured: true, Site: store.OrderSite,
	}})
	w.must(wrong)
	return true
}

// look has a node read what is due and what is poked.
func (w *nodes) look(node int) bool {
	n := &w.nodes[node]
	n.call(call{do: callDropDue})
	for i := range n.feeds {
		due, poked := w.Due(i)
		if r, _ := w.Record(i); due {
			n.call(call{do: callDue, feed: queue.Feed{ID: queue.ID(r.ID), Site: r.Site, Owner: queue.Owner(r.Owner), New: r.Version == 0, Due: w.elapsed() + r.In}})
		}
		if poked {
			w.pollIfDue(n, i)
		}
	}
	return true
}

// turn has the feed of a node claimed whose turn it is.
func (w *nodes) turn(node int) bool {
	n, now := &w.nodes[node], w.elapsed()
	before := linesOf(n.made())
	f := n.call(call{do: callNext, now: now})
	i := slices.Index(nodesIDs[:], store.ID(f.ID))
	if i < 0 {
		return false
	}
	w.mayGo(n, i, store.Owner(f.Owner), &before)
	waited, floor := n.waits[i], time.Duration(0)
	if waited {
		floor = n.floor[i]
	}
	n.waits[i], n.floor[i] = false, 0
	if floor == 0 && !w.mayPoll(n, i) || n.polls[i] != nil {
		n.call(call{do: callFree})
		return true
	}
	c := store.Claim{
		ID: nodesIDs[i], URL: nodesURLs[i], Hold: n.feeds[i].LeaseTime(nodesRules), Floor: floor, Configured: n.configured && i == 0, Own: true, Host: nodesHost,
	}
	if n.by[i] != 0 {
		c.By = []store.Owner{n.by[i]}
	}
	if s := n.feeds[i]; c.Hold < max(nodesMin, s.Feed.History.Interval, min(s.Last.Pause, nodesMax))+policy.MaxHopWait {
		w.must(fmt.Sprintf("a claim is for %v", c.Hold))
	}
	lease, wrong := w.Claim(node, i, c)
	w.must(wrong)
	n.by[i] = 0
	if lease.Denied == store.DeniedPaused {
		f.New = lease.Version == 0
	}
	switch {
	case lease.Denied == "":
		n.call(call{do: callAsked, owner: store.Owner(f.Owner), now: now, at: now + nodesSpacing})
		n.feeds[i] = w.load(i)
		n.polls[i] = &nodePoll{State: n.feeds[i]}
		w.went(n, i, store.Owner(f.Owner), &before)
	case lease.Denied == store.DeniedBusy:
		n.call(call{do: callBack, feed: f, at: now + lease.Wait})
		n.waits[i], n.floor[i] = waited, floor
	case lease.Denied == store.DeniedPaused && lease.Wait <= nodesShortly:
		w.hold(n, &lease)
		n.call(call{do: callBack, feed: f, at: now})
		n.waits[i], n.floor[i] = waited, floor
	default:
		n.feeds[i] = w.load(i)
		n.call(call{do: callFree})
		if lease.Denied == store.DeniedPaused {
			if keeps(f) {
				n.call(call{do: callDue, feed: f})
			}
			w.hold(n, &lease)
		}
	}
	return true
}

// hold records the pause that a claim has met.
func (w *nodes) hold(n *oneNode, lease *store.Lease) {
	var by store.Owner
	if i := slices.Index(nodesURLs[:], lease.Pause.URL); i >= 0 {
		by = n.owner(i)
	}
	p, until := lease.Pause, w.elapsed()+lease.Wait
	n.call(call{do: callHold, fresh: p.New, at: until, owner: by})
	if p.New {
		if n.held[1] = until; by != 0 {
			n.blamed = by
		}
	} else {
		n.held[0] = until
	}
	for i := range n.waits {
		if n.waits[i] && lease.Wait > nodesShortly && (!p.New || n.feeds[i].Version == 0) {
			w.leave(n, i)
		}
	}
}

// leave has the readers of a feed wait no more.
func (w *nodes) leave(n *oneNode, i int) {
	f := n.queued(i, w.elapsed())
	n.call(call{do: callLeave, feed: f})
	if keeps(f) {
		n.call(call{do: callDue, feed: f})
	}
	n.waits[i], n.floor[i] = false, 0
}

// redirect has the poll of the first feed follow a temporary redirect to the second one.
func (w *nodes) redirect(node int) bool {
	n := &w.nodes[node]
	if n.polls[0] == nil || n.polls[0].waits {
		return false
	}
	n.polls[0] = &nodePoll{n.polls[0].State, n.polls[0].hops, true}
	n.call(call{do: callHopWaits, n: 1, now: w.elapsed()})
	return w.hop(node)
}

// hop has a redirect followed that waits, if it may be now.
func (w *nodes) hop(node int) bool {
	n, now := &w.nodes[node], w.elapsed()
	if n.polls[0] == nil || !n.polls[0].waits {
		return false
	}
	p := *n.polls[0]
	n.polls[0] = &p
	before := linesOf(n.made())
	if n.call(call{do: callTakeHop, now: now}).Due > 0 {
		return true
	}
	lease, wrong := w.Hop(1, store.Claim{Hop: true, ID: nodesIDs[1], URL: nodesURLs[1], New: p.Version == 0, Host: nodesHost})
	w.must(wrong)
	if lease.Denied != "" {
		n.call(call{do: callGiveHop})
		n.hopped = never
		return true
	}
	p.waits = false
	p.hops++
	n.call(call{do: callHopWaits, n: -1, now: now})
	w.hasHopped(n, &before)
	return true
}

// poke has a feed polled.
func (w *nodes) poke(i int) bool {
	happened, wrong := w.Poke(i, store.Poke{Floor: nodesMin, Patient: i == 1})
	w.must(wrong)
	w.changed(i)
	return happened
}

// forget forgets the first feed.
func (w *nodes) forget() bool {
	happened, wrong := w.Forget(0)
	w.must(wrong)
	w.stored[0], w.points = nil, false
	w.changed(0)
	return happened
}

// restart ends the process of a node, which is started again.
func (w *nodes) restart(node int) bool {
	n := &w.nodes[node]
	if n.calls == nil {
		return false
	}
	*n = oneNode{configured: n.configured, hopped: never}
	w.Order.Restart(node)
	n.feeds = [2]*feedstate.State{w.load(0), w.load(1)}
	return true
}

// later lets time pass.
func (w *nodes) later(d time.Duration) bool {
	for node := range w.nodes {
		n := &w.nodes[node]
		for i := range n.waits {
			if n.waits[i] && d >= nodesPatience {
				w.leave(n, i)
			}
		}
	}
	_, wrong := w.Later(d)
	w.must(wrong)
	for i := range w.stored {
		if _, known := w.Record(i); !known {
			w.stored[i] = nil
		}
	}
	return true
}

var nodesDocuments = [2][]byte{nodesDocument("a"), nodesDocument("b")}

func nodesDocument(name string) []byte {
	return fmt.Appendf(nil, `<rss version="2.0"><channel><title>%s</title><ttl>%d</ttl><item><guid>%[1]s</guid></item></channel></rss>`, name, nodesFresh/time.Minute)
}

// How a poll may end.
const (
	wentWell   = "a good answer"
	hasFailed  = "a failure"
	wasRefused = "a refusal"
	hasMoved   = "a permanent redirect"
	wasHeld    = "a redirect that has to wait"
)

// answered returns the answer of a poll of a feed.
func (w *nodes) answered(p *nodePoll, i int, kind string) policy.Answer {
	a := policy.Answer{Asked: w.wall(), At: w.wall(), URL: nodesURLs[i], Header: http.Header{}}
	redirected := p.hops > 0 || p.waits
	if redirected {
		a.URL, a.Moves, a.Good = nodesURLs[1], []policy.Move{{From: nodesURLs[0], To: nodesURLs[1], Status: http.StatusFound}}, []string{store.OrderSite}
	}
	switch {
	case kind == wasHeld:
		a.Status, a.Failure, a.Err, a.HeldFor = http.StatusFound, policy.FailureHeld, errors.New("held"), nodesSpacing
	case kind == wentWell && p.Version != 0:
		a.Status, a.Good = http.StatusNotModified, []string{store.OrderSite}
	case kind == wentWell:
		a.Status, a.Body, a.Good = http.StatusOK, nodesDocuments[i], []string{store.OrderSite}
		a.Header.Set("ETag", `"1"`)
	case kind == hasFailed:
		a.Status, a.Failure, a.Err = http.StatusInternalServerError, policy.FailureStatus, errors.New("failed")
	case kind == wasRefused:
		a.Status, a.Failure, a.Err = http.StatusTooManyRequests, policy.FailureRateLimited, errors.New("refused")
		a.NotBefore, a.Holder = a.At.Add(nodesRefused), policy.HintURLCooldown
		a.Pauses = []policy.Pause{{Site: store.OrderSite, Why: policy.HintHostCooldown, For: nodesRefused}}
		if redirected || i == 1 { // the second URL has a rate limit that is used up: its site waits for ten minutes alone
			a.Pauses[0].Why = policy.HintRateLimit
		}
		if redirected {
			a.Holder, a.Hops = policy.HintRedirectCooldown, map[string]time.Duration{nodesURLs[1]: nodesRefused}
		}
	case kind == hasMoved:
		a.Status, a.Failure, a.Good = http.StatusMovedPermanently, policy.FailureMoved, []string{store.OrderSite}
		a.Moves = []policy.Move{{From: nodesURLs[0], To: nodesURLs[1], Status: a.Status}}
	}
	return a
}

// answer ends a poll.
func (w *nodes) answer(node, i int, kind string) bool {
	n := &w.nodes[node]
	p := n.polls[i]
	switch {
	case p == nil, p.waits != (kind == wasHeld), kind == hasMoved && (i != 0 || p.hops > 0):
		return false
	}
	if p.waits {
		n.call(call{do: callHopWaits, n: -1, now: w.elapsed()})
	}
	a := w.answered(p, i, kind)
	v, classified := p.ClassifyUnread(a)
	if !classified {
		v = p.ClassifyDocument(nodesKeys[i], n.configured && i == 0, a, a.At, func() []byte { return nil })
	}
	w.point(n, p.State, i, &v)
	next := *p.State
	next.Update(nodesKeys[i], v)
	o := store.Outcome{Pauses: a.Pauses, Good: a.Good, Hops: make(map[store.ID]time.Duration)}
	for url, length := range a.Hops {
		o.Hops[store.IDOf(url)] = length
	}
	o.In = next.Plan(feedstate.Moment{Wall: a.At, Elapsed: w.elapsed()}, v, nodesRules)
	if next.NotBefore > p.NotBefore {
		o.NotBefore = next.NotBefore - w.elapsed()
	}
	if v.Body != nil {
		next.Version = next.Feed.Version.Number
		o.Body = &store.Body{Version: next.Version, Coding: v.Body.Coding, Data: v.Body.Data}
	}
	next.Recorded, o.State, o.Points = true, next.StoreState(n.configured && i == 0), &next.Points
	next.Last.Polls = nil
	counts, wrong := w.Commit(node, i, o)
	w.must(wrong)
	n.polls[i] = nil
	if n.marked[i] = len(o.Pauses) > 0; n.marked[i] {
		n.call(call{do: callPaused, feed: queue.Feed{ID: queue.ID(nodesIDs[i])}})
	} else {
		n.call(call{do: callAnswered, feed: queue.Feed{ID: queue.ID(nodesIDs[i])}})
	}
	if !counts {
		n.feeds[i] = w.load(i)
		return true
	}
	w.stored[i] = &next
	w.changed(i)
	w.decided(&a, &v, i, kind, o.In)
	return true
}

// point decides where a feed points after an answer.
func (w *nodes) point(n *oneNode, s *feedstate.State, i int, v *feedstate.Classified) {
	to := s.Target(nodesKeys[i], *v)
	if to == "" {
		return
	}
	configured := n.configured || s.Configured
	saved := store.Saved{New: true, Hold: (&feedstate.State{}).LeaseTime(nodesRules), Record: store.Record{
		ID: nodesIDs[1], URL: nodesURLs[1], Polled: -1, Asked: -1, First: -1, State: store.StateCold, Configured: configured, Site: store.OrderSite,
	}}
	if configured {
		saved.Asked = 0
	}
	if s.Owner != 0 {
		saved.Askers = []store.Asker{{Owner: s.Owner}}
	}
	_, wrong := w.Restore(1, saved)
	w.must(wrong)
	w.changed(1)
	works := n.feeds[1].Works()
	if v.Points, v.Answer.Pointing = to, works; !works {
		w.pollIfDue(n, 1)
	}
}

// decided checks what has become of an answer that counts.
func (w *nodes) decided(a *policy.Answer, v *feedstate.Classified, i int, kind string, in time.Duration) {
	if i == 0 {
		switch {
		case kind == hasMoved:
			w.points = true
		case kind == wentWell, len(a.Moves) > 0:
			w.points = false
		}
	}
	switch r, _ := w.Record(i); {
	case (r.Points != "") != (w.points && i == 0):
		w.must(fmt.Sprintf("after %s the feed points to %q", kind, r.Points))
	case kind == wasRefused && r.NotBefore < nodesRefused:
		w.must(fmt.Sprintf("its origin is left alone for %v", r.NotBefore))
	case in < nodesMin, kind == wasRefused && in < nodesRefused:
		w.must(fmt.Sprintf("the next poll comes after %v", in))
	case v.Answer.Pointing && v.Answer.Failure != policy.FailureRateLimited && in != nodesMax, kind == hasMoved && !v.Answer.Pointing && in >= nodesMax:
		w.must(fmt.Sprintf("the next poll of a feed that points comes after %v; its target works: %v", in, v.Answer.Pointing))
	}
}

// mayGo checks that a feed may have the slot that the queue of a node gives it.
func (w *nodes) mayGo(n *oneNode, i int, owner store.Owner, lines *lines) {
	now := w.elapsed()
	if p := n.polls[0]; p != nil && p.waits && n.hopped+2*nodesSpacing <= now {
		w.must("I12: a poll goes before a redirect that waits")
	}
	if own, other := lines.of(i, owner), lines.of(1-i, 0); own != nil && other != nil && own.pausing && !other.pausing && !(other.fresh && n.held[1] > now) {
		w.must("I12: a feed that pauses the site goes before another one")
	}
}

// went checks that the slot that a poll has taken was not that of another owner.
func (w *nodes) went(n *oneNode, i int, owner store.Owner, lines *lines) {
	other := lines.of(1-i, 0)
	p := &n.passed[1-i]
	switch {
	case other == nil:
		*p = passers{}
	case other.owner == owner, other.pausing, other.fresh && (n.held[1] > w.elapsed() || n.blamed == other.owner):
	case owner == store.Operator:
		if p.operator {
			w.must("I12: the operator has two slots in a row while another owner waits")
		}
		p.operator = true
	case p.others[0] == owner, p.others[1] == owner, p.others[0] != 0 && other.owner == store.Operator:
		w.must("I12: an owner has another slot while one waits whose turn it is")
	default:
		p.operator, p.others[0], p.others[1] = false, owner, p.others[0]
	}
	n.hopped = never
	for node := range w.nodes {
		w.nodes[node].passed[i] = passers{}
	}
}

// hasHopped checks that the slot that a hop has taken was not that of a poll.
func (w *nodes) hasHopped(n *oneNode, lines *lines) {
	now := w.elapsed()
	if other := lines.of(1, 0); other != nil && n.hopped+2*nodesSpacing > now && !(other.fresh && n.held[1] > now) {
		w.must("I12: redirects have two slots in a row while a poll waits")
	}
	n.hopped = now
}

// calm checks that no feed is left behind: when all goes well from here on, those that readers ask for, that are configured or
// that are poked are polled.
func (w nodes) calm() string {
	w = w.copied()
	for node := range w.nodes {
		for i := range w.nodes[node].polls {
			if p := w.nodes[node].polls[i]; p != nil && p.waits {
				w.answer(node, i, wasHeld)
			} else {
				w.answer(node, i, wentWell)
			}
		}
	}
	w.later(25 * time.Hour)
	from := w.Now()
	w.ask(0, 0, household)
	w.ask(1, 1, store.Any)
	for range 3 {
		for node := range w.nodes {
			w.look(node)
			w.turn(node)
			w.answer(node, 0, wentWell)
			w.answer(node, 1, wentWell)
		}
		w.later(nodesSpacing)
	}
	for i := range nodesURLs {
		if last, poked := w.Polled(i); last < from || poked {
			w.must(fmt.Sprintf("%s is left behind", nodesURLs[i]))
		}
	}
	return w.wrong
}

// lines are the feeds that are in a queue.
type lines struct {
	all [6]line
	n   int
}

type line struct {
	owner          store.Owner
	fresh, pausing bool
	entries        [6]lineEntry
	n              int
}

// lineEntry is a feed, and its place in the order of the keys of all.
type lineEntry struct {
	feed  int8
	waits bool
	rank  int8
}

// of returns the line that has a feed for an owner; nil if there is none. If the owner is 0, the feed must have only one.
func (l *lines) of(feed int, owner store.Owner) (found *line) {
	for i := range l.all[:l.n] {
		one := &l.all[i]
		for _, e := range one.entries[:one.n] {
			switch {
			case int(e.feed) != feed || owner != 0 && one.owner != owner:
			case owner == 0 && found != nil && found.owner != one.owner:
				return nil
			default:
				found = one
			}
		}
	}
	return found
}

// The parts of a queue on which depends what it does next. The others are heaps of these, the turn
// among sites, of which there is one, and the rate of starts, which one site never reaches.
var (
	queueFields = indexes[queue.Queue]("Room operator waiters places due sites timed idle owners active turn starts paused")
	sitesType   = reflect.TypeFor[queue.Queue]().Field(queueFields["sites"]).Type.Elem().Elem()
	siteFields  = indexesOf(sitesType, "name line free held heldNew by last hopUntil hops in at index busy ready operator")
	lineType    = sitesType.Field(siteFields["line"]).Type.Elem()
	lineFields  = indexesOf(lineType, "site owner next feeds index fresh pausing")
	ownerType   = lineType.Field(lineFields["owner"]).Type.Elem()
	ownerFields = indexesOf(ownerType, "id lines ready unpaced active room")
)

func indexes[T any](names string) map[string]int { return indexesOf(reflect.TypeFor[T](), names) }

// indexesOf returns the indexes of the fields of a type, which must be these.
func indexesOf(t reflect.Type, names string) map[string]int {
	all := make(map[string]int)
	for i, name := range strings.Fields(names) {
		if i >= t.NumField() || t.Field(i).Name != name || len(strings.Fields(names)) != t.NumField() {
			panic(fmt.Sprintf("%v has other fields than %q: what the tests of package store know of a queue has to be changed", t, names))
		}
		all[name] = i
	}
	return all
}

func siteIn(q *queue.Queue) reflect.Value {
	return reflect.ValueOf(q).Elem().Field(queueFields["sites"]).MapIndex(reflect.ValueOf(store.OrderSite))
}

// linesOf returns the feeds that are in a queue.
func linesOf(q *queue.Queue) (all lines) {
	s := siteIn(q)
	if !s.IsValid() {
		return all
	}
	var keys [len(all.all)][len(all.all[0].entries)]int64
	for l := s.Elem().Field(siteFields["line"]); !l.IsNil(); l = l.Elem().Field(lineFields["next"]) {
		v := l.Elem()
		one := line{
			owner: store.Owner(v.Field(lineFields["owner"]).Elem().Field(ownerFields["id"]).Int()),
			fresh: v.Field(lineFields["fresh"]).Bool(), pausing: v.Field(lineFields["pausing"]).Bool(),
		}
		feeds := v.Field(lineFields["feeds"])
		for i := range feeds.Len() {
			e := feeds.Index(i)
			var of lineEntry
			key := e.Field(1).Int()
			if byte(e.Field(0).Index(0).Uint()) != nodesIDs[0][0] {
				of.feed = 1
			}
			of.waits = key < -1<<61
			one.entries[i], keys[all.n][i] = of, key
			one.n++
		}
		all.all[all.n] = one
		all.n++
	}
	for i := range all.all[:all.n] {
		for n := range all.all[i].entries[:all.all[i].n] {
			for other := range keys {
				for _, key := range keys[other] {
					if key < keys[i][n] {
						all.all[i].entries[n].rank++
					}
				}
			}
		}
	}
	slices.SortFunc(all.all[:all.n], func(a, b line) int {
		return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(number(a.fresh), number(b.fresh)), cmp.Compare(number(a.pausing), number(b.pausing)))
	})
	return all
}

// nodesKey is all of a state that decides on what follows. Moments are counted from the present.
type nodesKey struct {
	rows   store.OrderKey
	stored [2]stateKey
	points bool
	rare   int
	nodes  [2]uint64 // hashes of keys
}

type nodeKey struct {
	leases        store.LeaseKey
	configured    bool
	feeds         [2]stateKey
	by            [2]store.Owner
	waits, marked [2]bool
	floor         [2]time.Duration
	polls         [2]struct {
		state stateKey
		hops  int
		waits bool
	}
	held   [2]int32
	blamed store.Owner
	passed [2]passers
	hopped int32
	queue  struct {
		lines    lines
		moments  [4]int32
		by, last int64
		hops     int64
		operator bool
	}
}

type stateKey struct {
	there, known, poked, ended, points, version bool
	owner                                       store.Owner
	moments                                     [3]int32
	failures, refusals                          int
	failure                                     policy.Failure
	interval, pause                             time.Duration
}

// ahead returns how far ahead a moment is. It makes no difference how long ago one was that is longer ago than that.
func ahead(at, now, longest time.Duration) int32 { return int32(max(at-now, -longest) / time.Second) }

func keyOfState(s *feedstate.State, now time.Duration) (k stateKey) {
	if s == nil {
		return k
	}
	h := &s.Feed.History
	return stateKey{
		there: true, known: s.Recorded, poked: s.Poked, ended: s.Ended, points: s.Points != "", version: s.Version != 0, owner: s.Owner,
		moments:  [3]int32{ahead(s.Due, now, 0), ahead(s.NotBefore, now, 0), ahead(s.Granted, now, nodesFresh)},
		failures: h.Failures, refusals: h.Refusals, failure: s.Last.Failure, interval: h.Interval, pause: s.Last.Pause,
	}
}

func (w *nodes) keyOf(n *oneNode) (k nodeKey) {
	now := w.elapsed()
	k.configured, k.by, k.waits, k.marked, k.floor, k.blamed, k.passed = n.configured, n.by, n.waits, n.marked, n.floor, n.blamed, n.passed
	k.hopped = ahead(n.hopped, now, 2*nodesSpacing)
	for i := range n.feeds {
		k.feeds[i], k.held[i] = keyOfState(n.feeds[i], now), ahead(n.held[i], now, 0)
		if p := n.polls[i]; p != nil {
			k.polls[i].state, k.polls[i].hops, k.polls[i].waits = keyOfState(p.State, now), p.hops, p.waits
		}
	}
	q := n.made()
	k.queue.lines = linesOf(q)
	if site := siteIn(q); site.IsValid() {
		s := site.Elem()
		for i, name := range [...]string{"free", "held", "heldNew", "hopUntil"} {
			longest := time.Duration(0)
			if name == "heldNew" {
				longest = nodesMax // for so long it is known who caused it
			}
			k.queue.moments[i] = ahead(time.Duration(s.Field(siteFields[name]).Int()), now, longest)
		}
		k.queue.by, k.queue.last, k.queue.hops = s.Field(siteFields["by"]).Int(), s.Field(siteFields["last"]).Int(), s.Field(siteFields["hops"]).Int()
		k.queue.operator = s.Field(siteFields["operator"]).Bool()
	}
	return k
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

var nodesSeed = maphash.MakeSeed()

// key is that of a state, and of the one in which each node is in the place of the other.
func (w *nodes) key() uint64 {
	now := w.elapsed()
	k := nodesKey{points: w.points, rare: w.rare}
	var leases [2]store.LeaseKey
	k.rows, leases = w.Key()
	for i := range w.stored {
		k.stored[i] = keyOfState(w.stored[i], now)
		k.stored[i].moments = [3]int32{}
		n := w.keyOf(&w.nodes[i])
		n.leases = leases[i]
		k.nodes[i] = maphash.Comparable(nodesSeed, n)
	}
	if k.nodes[0] > k.nodes[1] {
		k.nodes[0], k.nodes[1] = k.nodes[1], k.nodes[0]
	}
	return maphash.Comparable(nodesSeed, k)
}

// nodesEvent is something that happens. It reports false if nothing can.
type nodesEvent struct {
	name string
	rare bool
	do   func(w *nodes) bool
}

// nodesEvents are all that may happen.
func nodesEvents() (all []nodesEvent) {
	add := func(do func(w *nodes) bool, name string, args ...any) {
		all = append(all, nodesEvent{name: fmt.Sprintf(name, args...), do: do})
	}
	rarely := func(do func(w *nodes) bool, name string, args ...any) {
		add(do, name, args...)
		all[len(all)-1].rare = true
	}
	for node := range 2 {
		turn := func(happened bool, w *nodes) bool { return w.turn(node) || happened } // a node claims at once
		add(func(w *nodes) bool { return turn(w.ask(node, 0, store.Any), w) }, "a stranger asks node %d for a", node)
		add(func(w *nodes) bool { return turn(w.ask(node, 1, household), w) }, "the household asks node %d for b", node)
		add(func(w *nodes) bool { return w.turn(node) }, "turn of node %d", node)
		add(func(w *nodes) bool { return w.answer(node, 0, wasHeld) }, "node %d gets %s of a", node, wasHeld)
		rarely(func(w *nodes) bool { return w.answer(node, 0, hasMoved) }, "node %d gets %s of a", node, hasMoved)
		rarely(func(w *nodes) bool { return w.redirect(node) }, "node %d follows a redirect", node)
		add(func(w *nodes) bool { return w.hop(node) }, "hop of node %d", node)
		rarely(func(w *nodes) bool { return w.restart(node) && w.look(node) }, "restart of node %d", node)
		for i := range 2 {
			add(func(w *nodes) bool { return w.answer(node, i, wentWell) }, "node %d gets %s of %c", node, wentWell, 'a'+i)
			rarely(func(w *nodes) bool { return w.answer(node, i, wasRefused) }, "node %d gets %s of %c", node, wasRefused, 'a'+i)
			rarely(func(w *nodes) bool { return w.answer(node, i, hasFailed) }, "node %d gets %s of %c", node, hasFailed, 'a'+i)
		}
	}
	rarely(func(w *nodes) bool { return w.poke(0) && w.look(0) && w.look(1) }, "poke of a")
	rarely(func(w *nodes) bool { return w.poke(1) && w.look(0) && w.look(1) }, "ping of b")
	rarely((*nodes).forget, "a is forgotten")
	later := func(w *nodes, d time.Duration) bool { return d > 0 && w.later(d) && w.look(0) && w.look(1) }
	add(func(w *nodes) bool { return later(w, w.Spaced(nodesSpacing)) }, "the site is free")
	add(func(w *nodes) bool { return later(w, 11*time.Minute) }, "11 minutes later")
	return all
}

// nodesRoots are the states in which orders of events begin: nothing is known; both feeds have a version, and a is the
// operator's, a stranger's, or points to b.
func nodesRoots() (all []nodes) {
	w := nodes{Order: store.NewOrder(nodesMax + 5*time.Minute), nodes: [2]oneNode{{hopped: never}, {hopped: never}}}
	w.changed(0)
	w.changed(1)
	empty := w
	w.ask(0, 0, store.Any)
	w.turn(0)
	w.answer(0, 0, wentWell)
	w.later(nodesSpacing)
	w.ask(0, 1, household)
	w.turn(0)
	w.answer(0, 1, wentWell)
	w.later(time.Hour)
	w = w.copied()
	operator, points := w, w
	operator.configure(0)
	operator.configure(1)
	points.ask(1, 0, store.Any)
	points.turn(1)
	points.answer(1, 0, hasMoved)
	points.later(2 * time.Hour)
	all = []nodes{operator.copied(), empty.copied(), w.copied(), points.copied()}
	for i := range all {
		all[i].look(0)
		all[i].look(1)
		all[i] = all[i].copied()
	}
	return all
}

// TestNodesInEveryOrder has events happen in every order to two nodes over one store, by the rules of rows, of queues and of what
// an answer means. Besides what TestOrders checks: a feed points to another one for as long as its redirects say so; no owner has a
// slot of a site while it is another one's turn; no feed is left behind.
func TestNodesInEveryOrder(t *testing.T) {
	switch {
	case *nodesDepth > 0:
		ordersOfNodes(t, *nodesDepth, *nodesRare)
	case testing.Short():
		ordersOfNodes(t, 5, 1)
	default:
		ordersOfNodes(t, 6, 6)
		ordersOfNodes(t, 8, 1)
	}
}

// ordersOfNodes has so many events in a row. Those that are rare are at most so many of them.
func ordersOfNodes(t *testing.T, depth, rare int) {
	events := nodesEvents()
	type node struct {
		nodes
		path string // an event is a letter
	}
	names := func(path string) string {
		var all []string
		for _, e := range path {
			all = append(all, events[e-'0'].name)
		}
		return fmt.Sprintf("%d events: %s", len(all), strings.Join(all, ", "))
	}
	seen, found, count := make(map[uint64]bool), make(map[string]bool), 0
	check := func(w *nodes, path string) bool {
		if w.wrong != "" && !found[w.wrong] {
			found[w.wrong] = true
			t.Errorf("%s, after %s", w.wrong, names(path))
		}
		return w.wrong == ""
	}
	var level, roots []node
	for _, root := range nodesRoots() {
		roots = append(roots, node{nodes: root})
		seen[root.key()] = true
		root.wrong = root.calm()
		check(&root, "")
	}
	level, roots = roots[:1], roots[1:]
	for d := range depth {
		if d == 2 { // the others have fewer events
			level = append(level, roots...)
		}
		last := d == depth-1
		var next []node
		for i := range level {
			n := level[i]
			level[i] = node{}
			n.nodes.nodes[0].made()
			n.nodes.nodes[1].made()
			for e, event := range events {
				after := n.nodes
				after.nodes[0].own, after.nodes[1].own = false, false // they are made again if they change
				if event.rare {
					after.rare++
				}
				if after.rare > rare || !event.do(&after) {
					continue
				}
				count++
				after.must(after.Check())
				path := n.path + string(rune('0'+e))
				if !check(&after, path) || last {
					continue
				}
				key := after.key()
				if seen[key] {
					continue
				}
				seen[key] = true
				if d < 4 || key%16 == 0 { // of longer orders, some
					after.wrong = after.calm()
				}
				if check(&after, path) {
					next = append(next, node{after.copied(), path})
				}
			}
		}
		level = next
	}
	t.Logf("%d events in a row, of which %d are rare: %d states, in which %d events happened", depth, rare, len(seen), count)
}
