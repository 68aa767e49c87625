// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
	"github.com/feedpollard/pollard/internal/origintest"
)

// killedFeeds is the number of feeds: enough that some are being polled whenever a process
// is killed.
const killedFeeds = 24

// newestEntry finds the newest entry of an [origintest.Document]: its version.
var newestEntry = regexp.MustCompile(`Entry (\d+)`)

// changing is an origin whose feeds change with each poll.
type changing struct {
	url   string
	floor time.Duration // min_interval of the feeds, in real time

	mu    sync.Mutex // guards what follows
	polls int
	early []string
	feeds [killedFeeds]struct {
		polls int
		last  time.Time
	}
}

func newChanging(t *testing.T, floor time.Duration) *changing {
	t.Helper()
	c := &changing{floor: floor}
	origin := &origintest.Origin{Answer: func(r *http.Request) origintest.Answer {
		i, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			return origintest.Status(http.StatusNotFound)
		}
		version := c.poll(i)
		document := origintest.Document{Entries: version, Text: strings.Repeat("words ", 50)}
		return origintest.OK(document.String(), "ETag", fmt.Sprintf("%q", fmt.Sprint(version))).After(rand.N(120 * time.Millisecond))
	}}
	c.url = origin.Start(t).URL
	return c
}

// poll records a poll, and returns the version that it gets.
func (c *changing) poll(i int) (version int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, now := &c.feeds[i], time.Now()
	if gap := now.Sub(f.last); f.polls > 0 && gap < c.floor {
		c.early = append(c.early, fmt.Sprintf("feed %d was polled again after %v", i, gap))
	}
	f.polls, f.last = f.polls+1, now
	c.polls++
	return f.polls
}

func (c *changing) polled() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.polls
}

// newNode configures a node with a gateway for the origin's feeds.
func newNode(t *testing.T, store string, origin *changing) *child {
	t.Helper()
	var feeds strings.Builder
	for i := range killedFeeds {
		fmt.Fprintf(&feeds, "feed /%d.xml %s/%d\n", i, origin.url, i)
	}
	app := fmt.Sprintf("min_interval %[1]v\ndefault_interval %[1]v\nunvalidated_interval %[1]v\nmax_interval 10s\njitter 0\ntimeout 3s\n"+
		"private_upstreams 127.0.0.0/8\nprefetch\nhost 127.0.0.1 {\nspacing 0\nconcurrency %d\n}", origin.floor, killedFeeds)
	return configure(t, setup{store: store, app: app, site: "feed_gateway {\n" + feeds.String() + "}"})
}

func (c *child) signal(s syscall.Signal) { _ = syscall.Kill(c.pid(), s) } // it may have ended

// crowd are readers who ask without pause, and remember which versions they got. One
// whose node does not answer asks the next one, as a load balancer would.
type crowd struct {
	nodes  []*child
	client http.Client

	mu      sync.Mutex // guards what follows
	seen    map[*child]*[killedFeeds]int
	answers int
	lost    []string // versions that were served once, and then not
	refused []string // requests that no node answered
}

func newCrowd(nodes ...*child) *crowd {
	c := &crowd{nodes: nodes, seen: make(map[*child]*[killedFeeds]int)}
	for _, n := range nodes {
		c.seen[n] = new([killedFeeds]int)
	}
	c.client = http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return c
}

// run lets readers ask until stop is called.
func (c *crowd) run(readers int) (stop func()) {
	over := make(chan struct{})
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(2*time.Millisecond + rand.N(10*time.Millisecond)):
					c.ask(rand.IntN(killedFeeds))
				}
			}
		})
	}
	return func() { close(over); all.Wait() }
}

// ask asks one node after the other for a feed, until one answers.
func (c *crowd) ask(i int) {
	began, first := time.Now(), rand.IntN(len(c.nodes))
	var errs []string
	for k := range c.nodes {
		err := c.get(c.nodes[(first+k)%len(c.nodes)], i)
		if err == nil {
			return
		}
		errs = append(errs, err.Error())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = append(c.refused, fmt.Sprintf("%s feed %d: %s", began.Format(time.TimeOnly), i, strings.Join(errs, "; ")))
}

// get asks a node for a feed. It must not serve an older version than it has served
// before, in this process or an earlier one.
func (c *crowd) get(n *child, i int) error {
	c.mu.Lock()
	before := c.seen[n][i]
	c.mu.Unlock()
	resp, err := c.client.Get(fmt.Sprintf("http://%s/%d.xml", n.address, i))
	if err != nil {
		return err // what happens to requests while a process dies is not its fault
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	version := 0
	if found := newestEntry.FindSubmatch(body); found != nil {
		version, _ = strconv.Atoi(string(found[1]))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// A node that cannot reach the database may have nothing to serve: others have.
	if version < before && (len(c.nodes) == 1 || resp.StatusCode == http.StatusOK) {
		c.lost = append(c.lost, fmt.Sprintf("feed %d was served in version %d, now: %d, %.100s", i, before, resp.StatusCode, body))
	}
	if version == 0 {
		return fmt.Errorf("%d %.100s", resp.StatusCode, body)
	}
	c.seen[n][i] = max(before, version, c.seen[n][i])
	c.answers++
	return nil
}

// judge reports polls that came too early, and versions that were lost.
func judge(t *testing.T, o *changing, c *crowd) {
	t.Helper()
	for _, problem := range append(o.early, c.lost...) {
		t.Error(problem)
	}
	if o.polls < 2*killedFeeds || c.answers < 100 {
		t.Errorf("only %d polls and %d answers to readers: the test proves nothing", o.polls, c.answers)
	}
	t.Logf("%d polls, %d answers to readers", o.polls, c.answers)
}

// A process that is killed again and again, at any moment, polls nothing too early
// afterwards and has every version that a reader got from it. It runs alone: the readers must get
// their turn.
func TestKilledProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds of real time")
	}
	origin := newChanging(t, time.Second)
	n := newNode(t, "", origin)
	readers := newCrowd(n)
	stop := readers.run(3)
	for range 10 {
		n.start()
		time.Sleep(300*time.Millisecond + rand.N(900*time.Millisecond))
		n.end(syscall.SIGKILL)
	}
	stop()
	n.start()
	for i := range killedFeeds {
		readers.ask(i)
	}
	judge(t, origin, readers)
}

// Nodes that share a database stand in for each other. While they are killed, stopped and
// cut off from the database, and while the database is down, each reader is answered by
// one of them, no feed is polled too early, and without a database none is polled.
func TestNodesFailOver(t *testing.T) {
	if testing.Short() {
		t.Skip("runs three processes and a database for twenty seconds")
	}
	cluster := postgrestest.Start(t)
	database, err := url.Parse(cluster.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	origin := newChanging(t, 2*time.Second)
	var nodes []*child
	var proxies []*postgrestest.Proxy
	for range 3 {
		p := postgrestest.StartProxy(t, database.Host)
		through := *database
		through.Host = p.Address()
		nodes, proxies = append(nodes, newNode(t, "postgres "+through.String(), origin)), append(proxies, p)
	}
	for _, n := range nodes {
		n.start()
	}
	readers := newCrowd(nodes...)
	// inMemory has a node read all feeds. Without a database, it has no others.
	inMemory := func(n *child) {
		for i := range killedFeeds {
			await(t, "a version of each feed at each node", func() bool { return readers.get(n, i) == nil })
		}
	}
	for _, n := range nodes {
		inMemory(n)
	}
	stop := readers.run(10)
	seconds := func(from, to int) {
		time.Sleep(time.Duration(from)*time.Second + rand.N(time.Duration(to-from)*time.Second))
	}
	for i, n := range nodes {
		n.end(syscall.SIGKILL)
		n.start()
		inMemory(n)
		other, p := nodes[(i+1)%len(nodes)], proxies[(i+2)%len(nodes)]
		other.signal(syscall.SIGSTOP) // its claims lapse meanwhile
		p.Set(postgrestest.Fault{Cut: i == 0, Hang: i == 1, Delay: 200 * time.Millisecond})
		seconds(2, 4)
		p.Set(postgrestest.Fault{})
		other.signal(syscall.SIGCONT)
	}
	cluster.Crash()
	var before int
	await(t, "the end of polls that were claimed before the crash", func() bool {
		before = origin.polled()
		time.Sleep(time.Second)
		return origin.polled() == before
	})
	seconds(2, 3)
	if n := origin.polled() - before; n > 0 {
		t.Errorf("%d polls without a database", n)
	}
	cluster.Start(t)
	await(t, "a poll after the database was back", func() bool { return origin.polled() > before })
	stop()
	for _, problem := range readers.refused {
		t.Errorf("no node answered: %s", problem)
	}
	judge(t, origin, readers)
}

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > 3*time.Minute {
			t.Fatalf("%s: not within three minutes", what)
		}
	}
}
