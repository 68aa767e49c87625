// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
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
	"github.com/feedpollard/pollard/cache/store/sqlite"
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
}

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
}

// clusterFeed is what an origin and the readers of one feed know.
type clusterFeed struct {
	habit    habit
	next     time.Time // when it may be polled again
	byHand   time.Time // the same, if a person wants it
	insisted bool      // a person does
	given    []policy.Validators
	taken    int // the newest version that a node has taken
	takenAt  time.Time
	served   int // the newest version that a reader has got
	servedAt time.Time
}

// clusterHost is when a host was asked last, when it was asked for what it refused, and until when it must not be.
type clusterHost struct{ asked, refused, pause time.Time }

// cluster is some nodes over one store, and the origins that they poll, which check each request.
type cluster struct {
	t      *testing.T
	random *rand.Rand
	store  *sqlite.Store
	nodes  []*clusterNode

	mu     sync.Mutex // guards what follows
	feeds  map[string]*clusterFeed
	hosts  map[string]*clusterHost
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
	n.gateway = node(c.t, db, n.client, cache.Settings{Prefetch: c.random.IntN(2) == 0, Feeds: clusterFeeds[:3]})
	c.nodes[i] = n
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
	h, version, a := n.arrive(r)
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
	host := n.hosts[r.URL.Host]
	if h.pause == 0 && h.status < 400 && asked.After(host.refused) { // which the store may hear of, though the node is cut off now
		host.pause = time.Time{}
	}
	n.note("%s, asked %v ago, answers %d: error %v", r.URL, now.Sub(asked), h.status, err)
	if err != nil || n.cut.Load() {
		return resp, err
	}
	wait := time.Hour
	if h.status == 0 {
		wait = max(wait, h.fresh)
		f.taken, f.takenAt = max(f.taken, version), now
	}
	f.next, f.byHand = now.Add(max(wait, h.pause)), now.Add(max(time.Hour, h.pause))
	if h.pause > 0 { // for the other feeds, which have the same rank
		host.refused, host.pause = asked, now.Add(min(h.pause, time.Hour))
	}
	return resp, nil
}

// note adds to what has happened. The caller holds the lock.
func (c *cluster) note(format string, args ...any) {
	c.events = append(c.events, fmt.Sprintf("%v: ", time.Since(epoch))+fmt.Sprintf(format, args...))
}

// arrive checks a request, and makes the answer.
func (n *clusterNode) arrive(r *http.Request) (h habit, version int, a response) {
	n.mu.Lock()
	defer n.mu.Unlock()
	url, now := r.URL.String(), time.Now()
	f, host := n.feeds[url], n.hosts[r.URL.Host]
	allowed := f.next
	if f.insisted {
		allowed = f.byHand
	}
	n.check(!now.Before(allowed), "I1: %s was polled %v too early", url, allowed.Sub(now))
	n.check(!now.Before(host.pause) || f.insisted && slices.Contains(clusterFeeds[:3], url), "I1: %s was polled %v before the end of its host's pause", url, host.pause.Sub(now))
	n.check(now.Sub(host.asked) >= 2*time.Second, "I1: %s was polled %v after the last request to its host", url, now.Sub(host.asked))
	sent := policy.Validators{ETag: r.Header.Get("If-None-Match"), LastModified: r.Header.Get("If-Modified-Since")}
	n.check(slices.Contains(f.given, sent), "I3: %s got %q, want one of %q", url, sent, f.given)
	host.asked, f.next, f.byHand = now, now.Add(time.Hour), now.Add(time.Hour)
	h, version = f.habit, 1+int(now.Sub(epoch)/(7*time.Hour))
	if a = origintest.Status(h.status, h.fields...); h.status == 0 {
		body := strings.Replace(rss(version, ""), "<title>Test</title>", "<title>"+url+"</title>", 1)
		a = origintest.Versioned(body, fmt.Sprintf(`"%s %d"`, url, version), "Cache-Control", fmt.Sprintf("max-age=%d", int(h.fresh.Seconds())))
	}
	return h, version, a.After(h.delay)
}

var entry = regexp.MustCompile(`<title>Entry (\d+)</title>`)

// read asks a node for a feed, and checks its answer.
func (n *clusterNode) read(url string) {
	if n.gateway == nil {
		return
	}
	began := time.Now()
	w := n.gateway.get(url, "Cache-Control", "no-cache")
	took, body := time.Since(began), w.Body.String()
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.feeds[url]
	n.check(took <= 16*time.Second, "I6: a reader of %s waited %v", url, took)
	if w.Code != http.StatusOK {
		n.check(f.served == 0 || n.cut.Load(), "I2: %s was served before: %d %s", url, w.Code, body)
		return
	}
	found := entry.FindStringSubmatch(body)
	if found == nil || !strings.Contains(body, "<title>"+url+"</title>") {
		n.check(false, "I10: %s is %.200q", url, body)
		return
	}
	version, _ := strconv.Atoi(found[1])
	// A version of one node is on the others shortly after.
	if !n.cut.Load() && began.Sub(f.servedAt) > 2*time.Second {
		n.check(version >= f.served, "I2: %s: version %d after version %d", url, version, f.served)
	}
	if version > f.served {
		f.served, f.servedAt = version, time.Now()
	}
}

// happen has something happen to a node or a feed.
func (c *cluster) happen() {
	i, url := c.random.IntN(len(c.nodes)), clusterFeeds[c.random.IntN(len(clusterFeeds))]
	n, do := c.nodes[i], c.random.IntN(10)
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
	case n.gateway == nil:
		c.start(i)
	case do == 5:
		n.end(true)
	case do < 8:
		n.cut.Store(!n.cut.Load())
	case do == 8:
		n.gateway.Apply(cache.Settings{Prefetch: c.random.IntN(2) == 0, Feeds: clusterFeeds[:3]})
	default:
		c.mu.Lock()
		f.insisted = true
		c.mu.Unlock()
		_, err := n.gateway.Refresh(c.t.Context(), url)
		c.mu.Lock()
		c.note("refreshed %s: %v", url, err)
		f.insisted = false
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
	for seed := range uint64(max(*lives, 3)) {
		bubble(t, fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			time.Sleep(time.Until(epoch))
			c := &cluster{
				t: t, random: rand.New(rand.NewPCG(seed, 1)), store: sqlite.NewMemory(nil), nodes: make([]*clusterNode, 1+(seed+2)%3),
				feeds: make(map[string]*clusterFeed), hosts: make(map[string]*clusterHost),
			}
			for _, url := range clusterFeeds {
				c.feeds[url] = &clusterFeed{given: []policy.Validators{{}}}
				c.hosts[strings.Split(url, "/")[2]] = new(clusterHost)
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
		})
	}
}
