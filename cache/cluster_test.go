// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/cache/transfer"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

var lives = flag.Int("lives", 0, "how many random lives each test tries; 0: a few")

func setFlag(t *testing.T, name, value string) {
	t.Helper()
	f := flag.Lookup(name)
	before := f.Value.String()
	if err := f.Value.Set(value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(before) })
}

// The feeds of the origins: three of one host, two of hosts of one domain, and one by itself.
var clusterFeeds = []string{
	"https://many.test/0.xml", "https://many.test/1.xml", "https://many.test/2.xml",
	"https://a.pair.test/3.xml", "https://b.pair.test/4.xml", "https://single.test/5.xml",
}

// habit is how an origin answers.
type habit struct {
	status int           // 0: with the feed
	fresh  time.Duration // what the feed asks for
	pause  time.Duration // what the answer asks for the whole host
	delay  time.Duration
	fields []string
	moved  bool // it redirects to [movedTo]
}

// movedTo is where feeds redirect to. It is a feed as well.
const movedTo = "https://single.test/5.xml"

// habits of which the first is a good one.
var habits = []habit{
	{},
	{fresh: time.Minute},
	{fresh: 20_000 * time.Second},
	{delay: 20 * time.Second},
	{delay: time.Hour},
	{status: 304}, // also if nothing was asked
	{status: 404},
	{status: 500},
	{status: 429, pause: time.Hour},
	{status: 429, pause: 30_000 * time.Second, fields: []string{"Retry-After", "30000"}},
	{status: 503, pause: 2 * time.Hour, fields: []string{"Retry-After", "7200"}},
	{status: 301, moved: true, fields: []string{"Location", movedTo}},
	{status: 302, moved: true, fields: []string{"Location", movedTo}, delay: 20 * time.Second},
}

// clusterFeed is what an origin and the readers of one feed know.
type clusterFeed struct {
	habit    habit
	next     time.Time // when it may be polled again
	byHand   time.Time // the same, if a person wants it
	insisted bool      // a person does, or a poke waits that stands for that
	calling  bool      // the person waits for the answer
	pause    time.Time // until when its origin asked not to be asked
	refused  time.Time // it was last
	pushes   int       // how many polls pushes may cause
	pushed   time.Time // when one has caused the last
	lost     int       // how often its record was taken away or replaced
	moved    bool      // it has redirected
	given    []policy.Validators
	taken    int // the newest version that a node has taken
	takenAt  time.Time
	served   int // the newest version that a reader has got
	servedAt time.Time
}

// clusterSite is when a site was asked last, when it last answered well, and until when it must not be asked.
type clusterSite struct{ asked, good, pause time.Time }

// siteOf is the site of a host.
func siteOf(host string) string {
	labels := strings.Split(host, ".")
	return strings.Join(labels[len(labels)-2:], ".")
}

// cluster is some nodes over one store, and the origins that they poll, which check each request.
type cluster struct {
	t      *testing.T
	random *rand.Rand
	store  *sqlite.Store
	nodes  []*clusterNode
	saved  bytes.Buffer // what the store had
	hub    origintest.Hub
	heard  atomic.Pointer[gateway] // the node that the hub reaches
	caused int                     // polls, by pushes

	mu     sync.Mutex // guards what follows
	feeds  map[string]*clusterFeed
	sites  map[string]*clusterSite
	events []string
}

// clusterNode is one life of a node.
type clusterNode struct {
	*cluster
	gateway *gateway // nil: it has ended
	client  *upstream.Client
	dead    atomic.Bool // its process has been killed
	cut     atomic.Bool // the store is out of reach
}

var errDead = errors.New("the node is dead")

// check reports what must not be, with what has happened before. The caller holds the lock.
func (c *cluster) check(ok bool, format string, args ...any) {
	if !ok {
		c.t.Errorf("%v: %s, after\n\t%s", time.Since(epoch), fmt.Sprintf(format, args...), strings.Join(c.events[max(0, len(c.events)-40):], "\n\t"))
	}
}

// start begins another life of a node.
func (c *cluster) start(i int) {
	c.t.Helper()
	n := &clusterNode{cluster: c}
	reach := func() error {
		switch {
		case n.dead.Load():
			return errDead
		case n.cut.Load():
			return errAway
		}
		return nil
	}
	db := &hooked{Store: c.store}
	db.hook(func(context.Context, string) error { return reach() }, func(string, any) error { return reach() }) // an answer may be lost, too
	n.client = upstream.New(upstream.WithTransport(n))
	n.gateway = node(c.t, db, polling{n.client}, n.settings())
	c.nodes[i] = n
	c.heard.Store(n.gateway)
}

func (n *clusterNode) settings() cache.Settings {
	post := upstream.New(upstream.WithTransport(&n.hub)).Post
	return cache.Settings{Prefetch: n.random.IntN(2) == 0, Feeds: clusterFeeds[:3], WebSub: callbacks, Post: post}
}

// end ends the life of a node: at once, or in peace.
func (n *clusterNode) end(kill bool) {
	n.t.Helper()
	if n.gateway == nil {
		return
	}
	n.dead.Store(kill)
	n.cut.Store(false)
	if err := n.gateway.Cache.Close(); err != nil {
		n.t.Error(err)
	}
	n.client.Close()
	n.gateway = nil
}

// RoundTrip sends a request. It counts, whatever becomes of the answer.
func (n *clusterNode) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := time.Now()
	h, version, hop, lost, a := n.arrive(r)
	resp, err := (&origintest.Origin{Answer: func(*http.Request) response { return a }}).RoundTrip(r)
	if n.dead.Load() {
		err = errDead
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	f, now := n.feeds[r.URL.String()], time.Now()
	if err == nil && h.status == 0 {
		// Perhaps it is not committed, and of no use. The origin does not know.
		f.given = append(f.given, policy.Validators{ETag: a.Header.Get("ETag")})
	}
	site := n.sites[siteOf(r.URL.Host)]
	before := f.refused
	switch { // which the store may hear of, though the node is cut off now
	case h.pause > 0:
		f.refused = now
	case h.status < 400:
		site.good = now
	}
	n.note("%s, asked %v ago, answers %d: error %v", r.URL, now.Sub(asked), h.status, err)
	if err != nil || n.cut.Load() || hop || lost != f.lost { // the feed's record may not have learned of it
		return resp, err
	}
	if h.moved { // a poll by hand has replaced the plan; the answer of the other URL makes the next
		f.next = f.byHand
		return resp, nil
	}
	wait := time.Hour
	if h.status == 0 {
		wait = max(wait, h.fresh)
		f.taken, f.takenAt = max(f.taken, version), now
	}
	f.next, f.byHand, f.pause = now.Add(max(wait, h.pause)), now.Add(max(time.Hour, h.pause)), now.Add(h.pause)
	if alone := !before.IsZero() && site.good.After(before); h.pause > 0 && !alone && f.taken > 0 {
		site.pause = now.Add(min(h.pause, time.Hour))
	}
	return resp, nil
}

// note adds to what has happened. The caller holds the lock.
func (c *cluster) note(format string, args ...any) {
	c.events = append(c.events, fmt.Sprintf("%v: ", time.Since(epoch))+fmt.Sprintf(format, args...))
}

// arrive checks a request, and makes the answer. A hop follows the redirect of the feed that is polled.
func (n *clusterNode) arrive(r *http.Request) (h habit, version int, hop bool, lost int, a response) {
	n.mu.Lock()
	defer n.mu.Unlock()
	url, now := r.URL.String(), time.Now()
	f, site := n.feeds[url], n.sites[siteOf(r.URL.Host)]
	allowed := f.next
	switch hop = f != n.feeds[r.Context().Value(polledKey{}).(string)]; {
	case hop: // a poll of its own feed, which its host has granted
		allowed = time.Time{}
	case f.pushes > 0 && now.Before(f.next):
		if allowed = f.pushed.Add(5 * time.Minute); f.pause.After(allowed) {
			allowed = f.pause
		}
		f.pushed = now
		f.pushes--
		n.caused++
	case f.insisted:
		allowed, f.insisted = f.byHand, f.calling
	}
	n.check(!now.Before(allowed), "I1: %s was polled %v too early", url, allowed.Sub(now))
	n.check(!now.Before(site.pause), "I1: %s was polled %v before the end of its site's pause", url, site.pause.Sub(now))
	n.check(now.Sub(site.asked) >= 2*time.Second, "I1: %s was polled %v after the last request to its site", url, now.Sub(site.asked))
	sent := policy.Validators{ETag: r.Header.Get("If-None-Match"), LastModified: r.Header.Get("If-Modified-Since")}
	n.check(slices.Contains(f.given, sent), "I3: %s got %q, want one of %q", url, sent, f.given)
	if site.asked = now; !hop {
		if f.byHand = now.Add(time.Hour); f.next.Before(f.byHand) {
			f.next = f.byHand
		}
	}
	f.moved = f.moved || f.habit.moved
	h, lost, version = f.habit, f.lost, 1+int(now.Sub(epoch)/(7*time.Hour))
	if a = origintest.Status(h.status, h.fields...); h.status == 0 {
		body := strings.Replace(rss(version, ""), "<title>Test</title>", "<title>"+url+"</title>", 1)
		a = origintest.Versioned(body, fmt.Sprintf(`"%s %d"`, url, version), "Cache-Control", fmt.Sprintf("max-age=%d", int(h.fresh.Seconds())),
			"Link", fmt.Sprintf("<https://hub.test/>; rel=hub, <%s>; rel=self", url))
	}
	return h, version, hop, lost, a.After(h.delay)
}

// polling adds to each request which feed is polled.
type polling struct{ *upstream.Client }

type polledKey struct{}

func (o polling) Acquire(u feedurl.URL) policy.Slot {
	if slot := o.Client.Acquire(u); slot != nil {
		return pollingSlot{slot, u.String()}
	}
	return nil
}

type pollingSlot struct {
	policy.Slot
	url string
}

func (s pollingSlot) Poll(ctx context.Context, ask policy.Ask) policy.Answer {
	return s.Slot.Poll(context.WithValue(ctx, polledKey{}, s.url), ask)
}

var entry = regexp.MustCompile(`<title>Entry (\d+)</title>`)

// read asks a node for a feed, and checks its answer.
func (n *clusterNode) read(url string) {
	if n.gateway == nil {
		return
	}
	n.mu.Lock()
	patience := 41 * time.Second // a first poll may take its time
	if n.feeds[url].served > 0 {
		patience = 16 * time.Second
	}
	n.mu.Unlock()
	began := time.Now()
	w := n.gateway.get(url, "Cache-Control", "no-cache")
	took, body := time.Since(began), w.Body.String()
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.feeds[url]
	n.check(took <= patience, "I6: a reader of %s waited %v", url, took)
	if w.Code != http.StatusOK {
		n.check(f.served == 0 || n.cut.Load(), "I2: %s was served before: %d %s", url, w.Code, body)
		return
	}
	found := entry.FindStringSubmatch(body)
	if found == nil || !strings.Contains(body, "<title>"+url+"</title>") && !(f.moved && strings.Contains(body, "<title>"+movedTo+"</title>")) {
		n.check(false, "I10: %s is %.200q", url, body)
		return
	}
	version, _ := strconv.Atoi(found[1])
	// A version of one node is on the others shortly after.
	if !n.cut.Load() && began.Sub(f.servedAt) > 2*time.Second {
		n.check(version >= f.served, "I2: %s: version %d after version %d", url, version, f.served)
	}
	if version > f.served && !n.cut.Load() { // it may not know that the version is lost
		f.served, f.servedAt = version, time.Now()
	}
}

// lose expects nothing more of what was stored of a feed. The times of its polls count still.
func (c *cluster) lose(urls ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, url := range urls {
		f := c.feeds[url]
		f.taken, f.served = 0, 0
		f.lost++
	}
}

// happen has something happen to a node or a feed.
func (c *cluster) happen() {
	i, url := c.random.IntN(len(c.nodes)), clusterFeeds[c.random.IntN(len(clusterFeeds))]
	n, do := c.nodes[i], c.random.IntN(16)
	c.mu.Lock()
	f := c.feeds[url]
	c.note("%d of node %d, %s", do, i, url)
	c.mu.Unlock()
	switch {
	case do < 2:
		var crowd sync.WaitGroup
		for k := range 3 * len(c.nodes) {
			crowd.Go(func() { c.nodes[k%len(c.nodes)].read(url) })
		}
		crowd.Wait()
	case do < 5:
		c.mu.Lock()
		f.habit = habits[c.random.IntN(len(habits))]
		c.mu.Unlock()
	case do == 10: // the disk is full
		gone, err := c.store.Sweep(c.t.Context(), store.SweepQuery{Disk: 1})
		if err != nil {
			c.t.Error(err)
		}
		for _, url := range clusterFeeds {
			if slices.Contains(gone, store.IDOf(url)) {
				c.lose(url)
			}
		}
	case do == 11: // a backup
		if c.saved.Reset(); transfer.Export(c.t.Context(), c.store, &c.saved, func(int64) {}) != nil {
			c.t.Error("the export fails")
		}
	case do == 12:
		in := transfer.Importer{Store: c.store, Host: n.client.Host, Report: func(int64) {}}
		if _, err := in.Import(c.t.Context(), bytes.NewReader(c.saved.Bytes())); err != nil {
			c.t.Error(err)
		}
		c.lose(clusterFeeds...)
	case n.gateway == nil:
		c.start(i)
	case do == 13:
		_ = n.gateway.Forget(c.t.Context(), url) // if it fails, the store may have done it
		c.lose(url)
	case do > 13:
		c.heard.Store(n.gateway)
		c.push(url)
	case do == 5:
		n.end(true)
	case do < 8:
		n.cut.Store(!n.cut.Load())
	case do == 8:
		n.gateway.Apply(n.settings())
	default:
		c.refresh(n, url, f)
	}
}

// refresh has a person poll a feed by hand. If it points to another one, that is polled as well.
func (c *cluster) refresh(n *clusterNode, url string, f *clusterFeed) {
	c.mu.Lock()
	target := c.feeds[movedTo]
	if target == f || !f.moved && !f.habit.moved {
		target = new(clusterFeed)
	}
	polled := target.byHand
	for _, f := range []*clusterFeed{f, target} {
		f.insisted, f.calling = true, true
	}
	c.mu.Unlock()
	_, err := n.gateway.Refresh(c.t.Context(), url)
	feed, unknown := n.gateway.Feed(c.t.Context(), url)
	points := unknown == nil && feed.Resolve(c.t.Context()).Key() == movedTo
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note("refreshed %s, which points: %v: %v", url, points, err)
	f.insisted, f.calling = err != nil, false
	target.insisted, target.calling = points && target.byHand.Equal(polled), false
}

// push has the hub say that a feed has changed, if it has been asked for that. A poll under way may have been
// answered before: another one follows it.
func (c *cluster) push(url string) {
	for _, r := range c.hub.Requests() {
		if r.Form.Get("hub.topic") != url {
			continue
		}
		before := make(map[string]int)
		c.mu.Lock()
		for other, f := range c.feeds { // a feed that redirects here may have this topic, too
			before[other], f.pushes = f.pushes, 2 // first, as the poll may come at once
		}
		c.mu.Unlock()
		if c.hub.Push(r, "changed").Code == http.StatusAccepted {
			return
		}
		c.mu.Lock()
		for other, f := range c.feeds {
			f.pushes = min(f.pushes, before[other])
		}
		c.mu.Unlock()
	}
}

// settle lets all be well again, and looks at what has become of everything.
func (c *cluster) settle() {
	c.mu.Lock()
	for _, f := range c.feeds {
		f.habit = habits[0]
	}
	c.mu.Unlock()
	for i, n := range c.nodes {
		if n.cut.Store(false); n.gateway == nil {
			c.start(i)
		}
	}
	for range 16 {
		time.Sleep(2 * time.Hour)
		for _, url := range clusterFeeds {
			for _, n := range c.nodes {
				n.read(url)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for url, f := range c.feeds {
		c.check(time.Since(f.takenAt) < 5*time.Hour && f.served >= f.taken, "%s was polled %v ago, readers have version %d of %d", url, time.Since(f.takenAt), f.served, f.taken)
	}
}

// Whatever readers, origins and nodes do, origins see one polite poller: one poll of a
// feed in its interval, one gap and one pause of a host, over all nodes of a store. No
// version is lost, and in the end no feed is left behind.
func TestClusterLife(t *testing.T) {
	caused, seeds := 0, max(*lives, 3)
	if testing.Short() {
		seeds = 1
	}
	for seed := range uint64(seeds) {
		bubble(t, fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			time.Sleep(time.Until(epoch))
			c := &cluster{
				t: t, random: rand.New(rand.NewPCG(seed, 1)), store: sqlite.NewMemory(nil), nodes: make([]*clusterNode, 1+(seed+2)%3),
				feeds: make(map[string]*clusterFeed), sites: make(map[string]*clusterSite),
			}
			c.hub.Callbacks = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := c.heard.Load()
				if n == nil { // the first node polls before it can be reached
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				n.ServeHub(w, r, strings.TrimPrefix(r.URL.Path, cache.CallbackPath))
			})
			for _, url := range clusterFeeds {
				c.feeds[url] = &clusterFeed{given: []policy.Validators{{}}}
				c.sites[siteOf(strings.Split(url, "/")[2])] = new(clusterSite)
			}
			for i := range c.nodes {
				c.start(i)
			}
			for _, url := range clusterFeeds {
				c.nodes[0].read(url)
			}
			pauses := []time.Duration{0, time.Second, 7 * time.Second, time.Minute, 20 * time.Minute, time.Hour, 3 * time.Hour}
			for range 60 {
				c.happen()
				time.Sleep(pauses[c.random.IntN(len(pauses))] + time.Duration(c.random.IntN(1e9)))
			}
			c.settle()
			for _, n := range c.nodes {
				n.end(false)
			}
			synctest.Wait()
			if err := c.store.Close(); err != nil {
				t.Error(err)
			}
			caused += c.caused
		})
	}
	if caused == 0 {
		t.Error("no push has caused a poll")
	}
}
