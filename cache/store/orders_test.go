// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"flag"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
)

var orderDepth = flag.Int("depth", 8, "how many events TestOrders has in a row")

// What happens in the orders of TestOrders, in multiples of a unit.
const (
	orderUnit    = 20 * time.Minute
	orderSpacing = orderUnit
	orderHold    = 3 * orderUnit
	orderIn      = 6 * orderUnit
	orderFloor   = 2 * orderUnit
	orderAsked   = 4 * orderUnit // of a refusal
	orderSite    = "site.test"
)

// What a refusal asks for: for how long the feed is not polled, and its site. Either may be longer.
var (
	orderAlone  = [2]time.Duration{orderAsked, 2 * orderUnit}
	orderPauses = [2]time.Duration{2 * orderUnit, orderAsked}
)

// orderFailing is for how long a feed is not polled after a failure. One that has a version may be remembered for more than a day.
var orderFailing = [2]time.Duration{orderIn, 30 * time.Hour}

// order is a state that some events lead to: two feeds of one site, as their rows have them, and what was promised of them.
// Some methods are exported for the tests of package store_test.
type order struct {
	now   Time
	hold  time.Duration // the longest of a claim
	site  siteRow
	feeds [2]feedRow
	lease [2][2]Token // of polls under way of nodes; 0 if there is none
	stale [2]Token    // of one that another process began before it ended
	asked Time        // the site was asked last
	good  Time        // it answered well last
	row   [2]int      // pauses of it in a row, and of feeds without a version
	known [2]promise
}

// promise is when a URL may be asked next, and what is remembered of it.
type promise struct {
	last     Time // grant
	decision Time
	pause    Time // that it has asked for
	poke     Time // End if there is none
	refused  Time // it has paused its site, or asked for that
	version  bool
	failing  bool
	own      bool // a reader has asked for it at its own address
	askers   [3]Owner
	until    Time // all this is remembered, if it is forgotten
}

func newPromise() promise {
	return promise{last: Never, decision: Never, pause: Never, poke: End, refused: Never, until: Never}
}

// askedBy records who asks.
func (p *promise) askedBy(owners []Owner) {
	for _, owner := range owners {
		n := slices.Index(p.askers[:], owner)
		if n < 0 {
			n = slices.Index(p.askers[:], 0)
		}
		p.askers[n] = owner
	}
}

// event is something that happens. It returns what is wrong, and whether something happened.
type event struct {
	name string
	do   func(o *order) (happened bool, wrong string)
}

func newOrder() *order {
	o := &order{now: at(24*100 + 12), hold: orderHold, site: *newSiteRow(orderSite), asked: Never, good: Never}
	for i := range o.feeds {
		o.feeds[i] = newFeed(IDOf(orderURL(i)))
		o.known[i] = newPromise()
	}
	return o
}

func orderURL(i int) string { return "https://site.test/" + string(rune('a'+i)) }

func (o *order) sites() map[string]*siteRow { return map[string]*siteRow{orderSite: &o.site} }

func (o *order) rows() map[ID]*feedRow {
	return map[ID]*feedRow{o.feeds[0].id: &o.feeds[0], o.feeds[1].id: &o.feeds[1]}
}

func orderClaim(i int) Claim {
	return Claim{ID: IDOf(orderURL(i)), URL: orderURL(i), Hold: orderHold, Own: true, Host: Host{Site: orderSite, Spacing: orderSpacing}}
}

// Claim makes a claim of a node.
func (o *order) Claim(node, i int, c Claim) (lease Lease, wrong string) {
	f, p := &o.feeds[i], &o.known[i]
	if !f.hasURL {
		f.begin(o.now, Never, c.URL, c.Hold)
		p.decision = max(p.decision, p.last.Add(c.Hold))
	}
	before := *o
	lease = f.claim(o.now, c, &o.site)
	p.askedBy(c.By)
	p.own = p.own || c.Own
	allowed := o.now >= p.decision || o.now >= p.poke || c.Floor > 0 && o.now >= p.last.Add(c.Floor)
	switch {
	case lease.Denied == DeniedNotDue && allowed && o.now >= p.pause:
		return lease, "refused as not due, though it is"
	case lease.Denied != "":
		return lease, before.waits(i, c, lease)
	}
	paused := before.paused(f.version == 0)
	switch {
	case c.Configured && !f.configured(o.now):
		return lease, "a feed is not configured, though a node has it"
	case lease.Token == before.feeds[i].token:
		return lease, "two grants have the same token"
	case !allowed:
		return lease, fmt.Sprintf("polled %v after the last grant, which is %v before the decision", o.now.Sub(p.last), p.decision.Sub(o.now))
	case o.now < p.pause:
		return lease, "polled in the pause of its URL"
	case paused:
		return lease, "polled in a pause of its site"
	case o.now < o.asked.Add(c.Host.Spacing):
		return lease, "polled within the spacing of its site"
	case lease.Poked != (p.poke != End):
		return lease, "a poke is forgotten"
	}
	if o.lease[node][i] != 0 {
		o.stale[i] = o.lease[node][i]
	}
	o.lease[node][i] = lease.Token
	o.asked, p.last, p.decision, p.poke = o.now, o.now, o.now.Add(c.Hold), End
	return lease, ""
}

// waits checks that a claim that was refused is granted after the time that it was told, if nothing happens, and not before.
func (o order) waits(i int, c Claim, lease Lease) string {
	if lease.Wait == Ended {
		return ""
	}
	at := o.now.Add(lease.Wait)
	for _, t := range []Time{at - 1, at} {
		f, s := o.feeds[i], o.site
		l := Lease{}
		if c.Hop {
			l = f.hop(t, c, &s)
		} else {
			l = f.claim(t, c, &s)
		}
		if (l.Denied == "") != (t == at) {
			return fmt.Sprintf("refused (%s) for %v, and then %q", lease.Denied, lease.Wait, l.Denied)
		}
	}
	return ""
}

// paused reports whether a pause of the site holds.
func (o *order) paused(isNew bool) bool {
	return o.site.all.until > o.now || isNew && o.site.fresh.until > o.now
}

// Hop follows a redirect to the URL of a feed.
func (o *order) Hop(i int, c Claim) (lease Lease, wrong string) {
	before, paused := *o, o.paused(c.New)
	lease = o.feeds[i].hop(o.now, c, &o.site)
	switch {
	case lease.Denied != "":
		return lease, before.waits(i, c, lease)
	case o.now < o.known[i].pause:
		return lease, "a hop in the pause of its URL"
	case paused:
		return lease, "a hop in a pause of its site"
	case o.now < o.asked.Add(c.Host.Spacing):
		return lease, "a hop within the spacing of its site"
	}
	o.asked = o.now
	return lease, ""
}

// hop follows a redirect of the poll of another feed.
func (o *order) hop(i int) (bool, string) {
	if o.lease[0][1-i] == 0 {
		return false, ""
	}
	c := orderClaim(i)
	c.Hop, c.New = true, o.feeds[1-i].version == 0
	lease, wrong := o.Hop(i, c)
	return lease.Denied == "", wrong
}

// commit ends a poll.
func (o *order) commit(i int, out Outcome) (bool, string) {
	if o.lease[0][i] == 0 {
		return false, ""
	}
	_, wrong := o.Commit(0, i, out)
	return true, wrong
}

// Commit ends a poll of a node. It reports whether the outcome counts.
func (o *order) Commit(node, i int, out Outcome) (counts bool, wrong string) {
	f, p := &o.feeds[i], &o.known[i]
	out.ID, out.Token, out.Site = f.id, o.lease[node][i], orderSite
	if o.lease[node][i] = 0; !f.holds(out.Token) {
		if f.hasURL && f.token == out.Token {
			return false, "a lease does not hold"
		}
		return false, "" // it was forgotten meanwhile, or claimed again
	}
	pauses := [2]Time{o.site.all.until, o.site.fresh.until}
	f.commit(o.now, out, o.sites(), o.rows())
	if len(out.Good) > 0 {
		o.good, o.row = o.now, [2]int{}
	}
	lengths := o.pauses(p, f.configured(o.now), pauses, out.Pauses)
	for n, until := range [2]Time{o.site.all.until, o.site.fresh.until} {
		if want := max(pauses[n], o.now.Add(lengths[n])); max(until, o.now) != max(want, o.now) {
			return true, fmt.Sprintf("a pause of the site is for %v, and should be for %v", until.Sub(o.now), want.Sub(o.now))
		}
	}
	if out.NotBefore > 0 {
		p.pause = max(p.pause, o.now.Add(out.NotBefore))
	}
	for id, length := range out.Hops {
		if id == o.feeds[1-i].id {
			other := &o.known[1-i]
			if other.pause = max(other.pause, o.now.Add(length)); !o.feeds[1-i].hasURL {
				other.until = max(other.until, other.pause)
			}
		}
	}
	p.decision = max(o.now.in(out.In), p.pause)
	if p.failing = out.State == StateFailing; p.failing && p.poke != End {
		p.poke = max(p.poke, p.decision)
	}
	p.version = (p.version || out.Body != nil) && !out.Withdraw
	return true, ""
}

// pauses returns for how long its site is left alone, and feeds of it without a version, after the answer of a feed. until is how
// long that was so before.
func (o *order) pauses(p *promise, configured bool, until [2]Time, asked []Pause) (lengths [2]time.Duration) {
	n := int(number(!p.version)) // such a feed may have been made up: it pauses no other ones
	for _, pause := range asked {
		length := pause.For
		switch alone := p.refused != Never && o.good > p.refused; { // its site answers others well
		case pause.Why == policy.HintRateLimit:
			length = min(length, maxLimited)
		case alone, !p.own && !configured: // only redirects lead there
			p.refused, length = o.now, 0
		case !p.version && o.good != Never && o.good.Add(keepPause) > o.now:
			p.refused, o.row[n], length = o.now, 1, min(length, newPause)
		default:
			if until[n].Add(keepPause) <= o.now {
				o.row[n] = 0
			}
			if until[n] <= o.now || o.row[n] == 0 { // otherwise it was in flight when the pause began
				o.row[n]++
			}
			p.refused, length = o.now, min(length, firstPause<<(o.row[n]-1))
		}
		lengths[n] = max(lengths[n], length)
	}
	return lengths
}

// Poke has a feed polled.
func (o *order) Poke(i int, poke Poke) (bool, string) {
	f, p := &o.feeds[i], &o.known[i]
	if !f.hasURL {
		return false, ""
	}
	f.touch(o.now, Asked{Ago: -1, Poke: &poke})
	at := max(o.now.Add(poke.In), p.last.Add(poke.Floor))
	if poke.Patient && p.failing {
		at = max(at, p.decision)
	}
	p.poke = min(p.poke, at) // the earlier counts
	return true, ""
}

// Forget forgets a feed.
func (o *order) Forget(i int) (bool, string) {
	f, p := &o.feeds[i], &o.known[i]
	if !f.hasURL {
		return false, ""
	}
	if p.decision == End {
		p.decision = p.last.Add(maxPause)
	}
	until := max(p.decision, p.pause, f.asked.Add(keepUnread))
	if !p.version && (f.owner == Any || f.owner == 0) {
		until = min(until, o.now.Add(keepUnread))
	}
	f.forget(o.now)
	p.own = false
	p.poke, p.version, p.failing, p.until = End, false, false, max(p.until, until, o.now.Add(keepForgotten))
	return true, ""
}

// Restore restores a record that is new, as a node does for feeds that it has in its configuration, and for targets of redirects.
func (o *order) Restore(i int, r Saved) (happened bool, wrong string) {
	f, p := &o.feeds[i], &o.known[i]
	if f.hasURL {
		if r.Configured {
			f.restoreConfigured(o.now)
		}
		return r.Configured, ""
	}
	f.restore(o.now, Never, r)
	if r.NotBefore > 0 {
		p.pause = max(p.pause, o.now.Add(r.NotBefore))
	}
	if r.URL == "" {
		p.decision = max(p.decision, o.now.Add(r.In))
		p.until = max(p.until, p.decision, p.pause, f.asked.Add(keepUnread))
		return true, ""
	}
	p.decision = max(p.decision, p.last.Add(r.Hold))
	for _, a := range r.Askers {
		p.askedBy([]Owner{a.Owner})
	}
	if f.configured(o.now) != r.Configured {
		return true, "a feed is not configured, or was not to be"
	}
	return true, ""
}

// Later lets time pass. Rows that are of no use any more are deleted.
func (o *order) Later(d time.Duration) (bool, string) {
	o.now = o.now.Add(d)
	for i := range o.feeds {
		if f := &o.feeds[i]; !f.hasURL && f.until != Never && f.until < o.now {
			*f, o.known[i] = newFeed(f.id), newPromise()
		}
	}
	return true, ""
}

// Restart ends the process of a node, and with it its polls.
func (o *order) Restart(node int) {
	for i, token := range o.lease[node] {
		if token != 0 {
			o.stale[i], o.lease[node][i] = token, 0
		}
	}
}

// orderEvents are all that may happen.
func orderEvents() (all []event) {
	add := func(name string, do func(o *order) (bool, string)) { all = append(all, event{name, do}) }
	good := []string{orderSite}
	version := &Body{Version: 1, Coding: "identity"}
	refused := func(asked time.Duration) []Pause {
		return []Pause{{Site: orderSite, For: asked, Why: policy.HintHostCooldown}}
	}
	owners := map[int][]Owner{0: {Any, OwnerOf(KindNamed, "a")}, 1: {OwnerOf(KindShield, "")}}
	for i := range 2 {
		claim := func(name string, change func(c *Claim)) {
			c := orderClaim(i)
			change(&c)
			add(fmt.Sprint(name, " ", i), func(o *order) (bool, string) {
				_, wrong := o.Claim(0, i, c)
				return true, wrong
			})
		}
		commit := func(name string, out Outcome) {
			add(fmt.Sprint(name, " ", i), func(o *order) (bool, string) { return o.commit(i, out) })
		}
		for _, owner := range owners[i] {
			claim(fmt.Sprint("claim by kind ", owner.Kind()), func(c *Claim) { c.By = []Owner{owner} })
		}
		claim("claim with a floor", func(c *Claim) { c.Floor, c.Own = orderFloor, i == 0 })
		commit("a version", Outcome{In: orderIn, State: StateFresh, Body: version, Good: good})
		commit("a failure", Outcome{In: orderFailing[i], State: StateFailing})
		commit("a refusal", Outcome{In: orderUnit, NotBefore: orderAlone[i], State: StateWaiting, Pauses: refused(orderPauses[i])})
		if i == 0 {
			commit("a refusal of a target", Outcome{In: orderUnit, State: StateFailing, Hops: map[ID]time.Duration{IDOf(orderURL(1)): orderAsked}})
			commit("a withdrawal", Outcome{In: Ended, State: StateGone, Withdraw: true, Good: good})
		}
		add(fmt.Sprint("hop to ", i), func(o *order) (bool, string) { return o.hop(i) })
		add(fmt.Sprint("poke ", i), func(o *order) (bool, string) { return o.Poke(i, Poke{Floor: orderFloor}) })
		add(fmt.Sprint("patient poke ", i), func(o *order) (bool, string) { return o.Poke(i, Poke{In: orderUnit, Patient: true}) })
		add(fmt.Sprint("forget ", i), func(o *order) (bool, string) { return o.Forget(i) })
	}
	restored := Saved{New: true, Hold: orderHold, Record: Record{ID: IDOf(orderURL(1)), URL: orderURL(1), Polled: -1, Asked: -1, First: -1, Configured: true, NotBefore: orderUnit}}
	remembered := Saved{Record: Record{ID: IDOf(orderURL(1)), Polled: -1, Asked: -1, First: -1, In: orderUnit, NotBefore: orderAsked}}
	for i, r := range []Saved{restored, remembered} {
		add([]string{"restore 1", "restore what is remembered of 1"}[i], func(o *order) (bool, string) {
			if o.feeds[1].hasURL {
				return false, ""
			}
			return o.Restore(1, r)
		})
	}
	add("restart", func(o *order) (bool, string) {
		o.Restart(0)
		return true, ""
	})
	for _, d := range []time.Duration{orderUnit, 5 * orderUnit, 25 * time.Hour} {
		add(fmt.Sprint(d, " later"), func(o *order) (bool, string) { return o.Later(d) })
	}
	return all
}

// Check checks what holds in each state.
func (o *order) Check() string {
	if s := &o.site; s.fresh.holds(o.now) && s.paused(false, o.now).until < max(s.fresh.until, s.all.until) {
		return "a pause of the site ends before a longer one"
	}
	for i := range o.feeds {
		f, p := &o.feeds[i], &o.known[i]
		switch {
		case f.hasURL && (f.version != 0) != p.version:
			return fmt.Sprintf("the version of %s is lost, or there is one: %v", f.url, f.version != 0)
		case f.damaged(o.now):
			return "a row looks damaged"
		case !f.hasURL && f.until != p.until:
			return "what is remembered of a feed is deleted too early, or too late"
		case !f.hasURL && o.now < p.decision && f.next < p.decision:
			return "a decision is forgotten"
		case f.hasURL && p.own && f.first == Never:
			return "it is forgotten that a reader has asked"
		case f.hasURL && f.configured(o.now) && f.owner != Operator:
			return "a feed that is configured does not count for the operator"
		case f.holds(0):
			return "an outcome counts that is of no claim"
		case f.earliest < p.pause:
			return "the pause of a URL is forgotten"
		case f.refused < p.refused:
			return "a refusal is forgotten"
		}
		for _, owner := range p.askers {
			switch {
			case owner == 0:
			case !slices.ContainsFunc(f.askers, func(a asker) bool { return a.owner == owner }):
				return "an owner that asked is forgotten"
			case f.hasURL && owner != Any && f.owner.Kind() <= KindAny:
				return "a feed for which another owner asks counts for strangers"
			}
		}
		for _, token := range []Token{o.lease[0][i], o.lease[1][i], o.stale[i]} {
			if token != f.token && f.holds(token) {
				return "two leases hold"
			}
		}
	}
	return ""
}

// orderKey is all of a state that decides on what follows. Moments are counted from the present. Those so long ago that it makes
// no difference when they were are alike.
type orderKey struct {
	site  [7]int32
	feeds [2]struct {
		known, version, first bool
		holds, fenced         [2]bool
		refused               int // 1: it was; 2: and the site has answered well since
		state                 State
		owner                 Owner
		askers, asked         [3]Kind
		refusedAlone          bool
		points                string
		moments               [9]int32
	}
}

func (o *order) key() (k orderKey) {
	const day = 24 * time.Hour
	since := func(t Time, longest time.Duration) int32 {
		const never, end = math.MinInt32, math.MaxInt32
		switch t {
		case Never:
			return never
		case End:
			return end
		}
		return int32(max(t.Sub(o.now), -longest) / time.Second)
	}
	s := &o.site
	k.site = [7]int32{
		since(s.free, orderSpacing), since(o.asked, orderSpacing), since(s.good, day), since(s.all.until, day), since(s.fresh.until, day), int32(s.all.step), int32(s.fresh.step),
	}
	for i := range o.feeds {
		f, p, kf := &o.feeds[i], &o.known[i], &k.feeds[i]
		kf.known, kf.version, kf.first = f.hasURL, f.version != 0, f.first != Never
		for node := range o.lease {
			kf.holds[node] = f.holds(o.lease[node][i])
			kf.fenced[node] = o.lease[node][i] != 0 && !kf.holds[node]
		}
		if kf.refused = int(number(f.refused != Never)); kf.refused > 0 && s.good > f.refused {
			kf.refused = 2
		}
		kf.state, kf.owner, kf.points = f.state, f.owner, f.points
		for n, a := range f.askers {
			kf.askers[n] = a.owner.Kind()
		}
		for n, owner := range p.askers {
			kf.asked[n] = owner.Kind()
		}
		kf.refusedAlone = p.refused != Never && o.good > p.refused
		kf.moments = [9]int32{
			since(f.next, 0), since(f.poke, 0), since(f.last, o.hold), since(f.earliest, 0), since(f.until, orderUnit),
			since(p.decision, 0), since(p.poke, 0), since(p.pause, 0), since(p.until, 0),
		}
	}
	return k
}

// TestOrders has events happen in every order, by the rules that stores apply to their rows. A feed is never polled before its
// decision, unless it is poked or claimed with a floor, and never in a pause; a site is never asked within its spacing; a version is
// lost only if it is withdrawn or the feed is forgotten.
func TestOrders(t *testing.T) {
	depth := *orderDepth
	if testing.Short() {
		depth = min(depth, 6)
	}
	events := orderEvents()
	type node struct {
		order
		path string // an event is a letter
	}
	names := func(path string) string {
		var all []string
		for _, e := range path {
			all = append(all, events[e-'0'].name)
		}
		return strings.Join(all, ", ")
	}
	seed, seen := maphash.MakeSeed(), make(map[uint64]bool) // hashes of keys
	seen[maphash.Comparable(seed, newOrder().key())] = true
	level := []node{{order: *newOrder()}}
	found, count, after := make(map[string]bool), 0, new(order) // one for all, as there are millions
	for d := range depth {
		var next []node
		for _, n := range level {
			for e, event := range events {
				*after = n.order
				happened, wrong := event.do(after)
				if wrong == "" && happened {
					wrong = after.Check()
				}
				if wrong != "" && !found[wrong] {
					found[wrong] = true
					t.Errorf("%s: %s, %s", wrong, names(n.path), event.name)
				}
				if !happened {
					continue
				}
				if count++; wrong != "" || d == depth-1 {
					continue
				}
				if key := maphash.Comparable(seed, after.key()); !seen[key] {
					seen[key] = true
					next = append(next, node{*after, n.path + string(rune('0'+e))})
				}
			}
		}
		level = slices.Clip(next)
	}
	t.Logf("%d events in a row: %d states, in which %d events happened", depth, len(seen), count)
}

// A pause that is longer than any may be is damaged. It does not hold, and a refusal replaces it.
func TestDamagedPause(t *testing.T) {
	o := newOrder()
	f, p := &o.feeds[0], &o.site.all
	f.first, f.version, p.until = o.now, 1, o.now.Add(2*maxSitePause)
	if at, paused := o.site.nextAllowed(true, 0, o.now); paused != nil || at > o.now {
		t.Errorf("the site waits for %v", at.Sub(o.now))
	}
	if o.site.refused(o.now, f, Never, 0); p.until != o.now.Add(firstPause) {
		t.Errorf("after a refusal the site waits for %v", p.until.Sub(o.now))
	}
}
