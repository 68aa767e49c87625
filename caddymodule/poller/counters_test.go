// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/internal/status"
)

const someFeed = "https://example.com/feed"

// counting is a store that counts what is saved, and fails on demand.
type counting struct {
	Database
	mu    sync.Mutex
	away  bool
	saved atomic.Int32
}

func newCounting() *counting { return &counting{Database: sqlite.NewMemory(nil)} }

// Secret returns the same key in each run: with some keys, two of a few readers have one hash in a
// sketch, and are counted once.
func (c *counting) Secret(context.Context) ([]byte, error) { return []byte(someFeed), nil }

var errAway = errors.New("the store is away")

func (c *counting) setAway(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = away
}

func (c *counting) SaveCounters(ctx context.Context, node string, data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return errAway
	}
	c.saved.Add(1)
	return c.Database.SaveCounters(ctx, node, data)
}

func (c *counting) Counters(ctx context.Context) (map[string][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return nil, errAway
	}
	return c.Database.Counters(ctx)
}

// startNode starts the counters of a node.
func startNode(t *testing.T, s Database, node string) *Engine {
	t.Helper()
	e := newEngine(Parts{})
	e.app.Store(&App{log: zap.NewNop()})
	e.counters.open(t.Context(), s, node)
	return e
}

// count counts a request, and a poll.
func count(e *Engine, client string) {
	e.Answered(readers.Request{Feed: someFeed, UserAgent: "A/1", Client: netip.MustParseAddr(client), Status: 200, Bytes: 100})
	e.counters.readers.Record(readers.Request{
		Time: time.Now(), Feed: someFeed, UserAgent: "A/1", Client: netip.MustParseAddr(client),
		Method: "GET", Status: 200, Bytes: 100,
	})
	e.counters.traffic.countPoll(&cache.Poll{URL: someFeed, Result: status.ResultNew, Wire: 7})
}

func all(string) bool { return true }

// want checks what a node shows.
func want(t *testing.T, when string, e *Engine, requests int64, subscribers int) {
	t.Helper()
	traffic := e.Traffic(t.Context(), all, all)
	sum := status.Traffic{Requests: requests, Polls: requests, Served: requests * 100, Fetched: requests * 7}
	if traffic.Total != sum || traffic.Origins["https://example.com"] != sum {
		t.Errorf("%s: traffic %+v, want %+v", when, traffic, sum)
	}
	if n := e.Readers(t.Context(), readers.ReportOptions{}).Total.Requests; n != requests {
		t.Errorf("%s: %d requests of readers, want %d", when, n, requests)
	}
	if n := e.Subscribers(someFeed); n != subscribers {
		t.Errorf("%s: %d subscribers, want %d", when, n, subscribers)
	}
}

// Counters are saved every 10 minutes and at the end, and are there after a restart; a
// crash loses what came since.
func TestCountersSurvive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		e := startNode(t, s, "one")
		count(e, "192.0.2.1")
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		if s.saved.Load() != 0 {
			t.Errorf("saved %d times after 9 minutes", s.saved.Load())
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if s.saved.Load() != 1 {
			t.Errorf("saved %d times after 10 minutes", s.saved.Load())
		}
		count(e, "198.51.100.1")
		want(t, "before the end", e, 2, 2)

		crashed := startNode(t, s, "one")
		want(t, "after a crash", crashed, 1, 1)
		close(crashed.counters.stop) // as the test goes on without it
		<-crashed.counters.ended

		e.counters.close()
		for range 2 { // restarts
			e = startNode(t, s, "one")
			want(t, "after a restart", e, 2, 2)
			e.counters.close()
		}
	})
}

// Nodes show what all of them have saved, and count each request once, however often
// they are restarted.
func TestNodesAreMerged(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			s := newCounting()
			r := rand.New(rand.NewPCG(seed, 3))
			nodes := []*Engine{startNode(t, s, "0"), startNode(t, s, "1")}
			const requests = 200
			for range requests {
				n := r.IntN(len(nodes))
				count(nodes[n], fmt.Sprintf("192.0.%d.1", n))
				time.Sleep(time.Duration(r.IntN(300)) * time.Second)
				switch r.IntN(10) {
				case 0:
					nodes[n].counters.close()
					nodes[n] = startNode(t, s, fmt.Sprint(n))
				case 1:
					nodes[n].Traffic(t.Context(), all, all)
				case 2:
					s.setAway(true)
					nodes[n].Traffic(t.Context(), all, all)
					time.Sleep(15 * time.Minute)
					s.setAway(false)
				}
			}
			time.Sleep(2 * saveEvery)
			synctest.Wait()
			for i, e := range nodes {
				want(t, fmt.Sprintf("seed %d, node %d", seed, i), e, requests, 2)
				e.counters.close()
			}
		})
	}
}

// While the store is away a node counts in memory, and loses nothing that was saved.
func TestStoreOfCountersIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		e := startNode(t, s, "one")
		count(e, "192.0.2.1")
		e.counters.close()
		s.setAway(true)
		logger, logged := observer.New(zapcore.InfoLevel)
		e = newEngine(Parts{})
		e.app.Store(&App{log: zap.New(logger)})
		e.counters.open(t.Context(), s, "one")
		count(e, "192.0.2.1")
		want(t, "while the store is away", e, 1, 1)
		time.Sleep(time.Hour)
		s.setAway(false)
		time.Sleep(saveEvery)
		synctest.Wait()
		want(t, "when it is back", e, 2, 1)
		e.counters.close()
		var said []string
		for _, entry := range logged.All() {
			said = append(said, entry.Message)
		}
		if len(said) != 2 || !strings.Contains(said[0], "kept in memory") || !strings.Contains(said[1], "saved again") {
			t.Errorf("logged %q", said)
		}
	})
}

// Counters that cannot be read are logged and left out. If they are the node's own, they are
// replaced.
func TestForeignCounters(t *testing.T) {
	compressed := func(text string) []byte {
		var data bytes.Buffer
		data.WriteByte(countersVersion)
		w := gzip.NewWriter(&data)
		_, _ = w.Write([]byte(text))
		w.Close()
		return data.Bytes()
	}
	for name, data := range map[string][]byte{
		"another version":  {countersVersion + 1, 'x'},
		"no gzip":          {countersVersion, 'x'},
		"cut off":          compressed(`{}`)[:12],
		"no JSON":          compressed(`<`),
		"another form":     compressed(`{"traffic":7}`),
		"more than 64 MiB": compressed(`"` + strings.Repeat("x", maxDecoded) + `"`),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newCounting()
				for _, node := range []string{"one", "other"} {
					if err := s.SaveCounters(t.Context(), node, data); err != nil {
						t.Fatal(err)
					}
				}
				logger, logged := observer.New(zapcore.InfoLevel)
				e := newEngine(Parts{})
				e.app.Store(&App{log: zap.New(logger)})
				e.counters.open(t.Context(), s, "one")
				if n := logged.FilterLevelExact(zapcore.ErrorLevel).Len(); n != 1 || logged.Len() != 2 {
					t.Errorf("logged %v", logged.All())
				}
				want(t, "at first", e, 0, 0)
				count(e, "192.0.2.1")
				e.counters.close()
				e = startNode(t, s, "one")
				want(t, "after a restart", e, 1, 1)
				e.counters.close()
			})
		})
	}
}

// Of the counters of version 3, the readers of gateways go at once, in the store too, and on all
// nodes. Counts without names stay: traffic, the statistics of shields, and the numbers of subscribers
// until they age out.
func TestEarlierCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Unix(3000*7*24*3600, 0))) // a week begins
		const shielded = "shield:0123 https://blog.example/feed"
		statistics := readers.NewStatistics(readers.Period)
		for feed, agent := range map[string]string{someFeed: "AliceReader/1", shielded: "B/1"} {
			statistics.Record(readers.Request{Time: time.Now(), Feed: feed, UserAgent: agent, Client: netip.MustParseAddr("192.0.2.1"), Method: "GET", Status: 200, Bytes: 1})
		}
		feeds := readers.NewFeeds(nil)
		for i := range uint64(3) {
			feeds.Feed(someFeed).CountReader(i * 0x9e3779b97f4a7c15)
		}
		saved := savedCounters{
			Saved: time.Now(), Readers: statistics.Snapshot(time.Now(), 10), Sketches: feeds.Sketches(time.Now(), 10),
			Traffic: []savedTraffic{{trafficKey{Feed: someFeed}, status.Traffic{Requests: 5}}},
		}
		data, err := saved.encode()
		if err != nil {
			t.Fatal(err)
		}
		data[0] = 3
		s := newCounting()
		for _, node := range []string{"one", "stopped"} {
			if err := s.Database.SaveCounters(t.Context(), node, data); err != nil {
				t.Fatal(err)
			}
		}
		e := startNode(t, s, "one")
		rows, err := s.Counters(t.Context())
		if err != nil || len(rows) != 2 {
			t.Fatal(len(rows), err)
		}
		for node, data := range rows {
			saved, err := decodeCounters(data)
			if err != nil || data[0] != countersVersion {
				t.Fatalf("%s: version %d, %v", node, data[0], err)
			}
			if text, _ := json.Marshal(saved); strings.Contains(string(text), "Alice") || !strings.Contains(string(text), "B/1") {
				t.Errorf("the store has of node %s: %s", node, text)
			}
		}
		if r := e.Readers(t.Context(), readers.ReportOptions{}); len(r.Families) != 1 || r.Families[0].Family != "B" || r.Total.Requests != 2 {
			t.Errorf("readers: %+v", r.Families)
		}
		if n := e.Traffic(t.Context(), all, all).Total.Requests; n != 10 {
			t.Errorf("%d requests, want 10", n)
		}
		e.Answered(readers.Request{Feed: someFeed, UserAgent: "A/1", Client: netip.MustParseAddr("192.0.2.1"), Status: 200})
		for _, want := range []int{3, 3, 0} { // weeks later; of the new reader the week is not repeated
			if n := e.Subscribers(someFeed); n != want {
				t.Errorf("%d subscribers, want %d", n, want)
			}
			e.counters.close()
			time.Sleep(7*24*time.Hour + time.Minute)
			e = startNode(t, s, "one")
		}
		e.counters.close()
	})
}

// All nodes of a store know readers by the same hashes, which trying names without its secret does not
// find.
func TestAskersAreKeyed(t *testing.T) {
	s := sqlite.NewMemory(nil)
	one, two, elsewhere := startNode(t, s, "one"), startNode(t, s, "two"), startNode(t, sqlite.NewMemory(nil), "one")
	of := func(e *Engine) string {
		address := netip.MustParseAddr("192.168.1.7")
		return fmt.Sprint(e.OwnerOf(AskerOf("alice")), e.OwnerOf(AskerOf("bob")), e.counters.key.Load().Reader("A/1", address))
	}
	if of(one) != of(two) || of(one) == of(elsewhere) {
		t.Errorf("%s, %s, elsewhere %s", of(one), of(two), of(elsewhere))
	}
	alice := AskerOf("alice")
	if o := one.OwnerOf(alice); o == store.OwnerOfHash(store.KindNamed, uint64(alice)) || o.Kind() != store.KindNamed || one.OwnerOf(0) != store.Any {
		t.Errorf("owner %d", o)
	}
	for _, e := range []*Engine{one, two, elsewhere} {
		e.counters.close()
	}
}

// The counters of a node that has stopped count for 90 days, and are removed then.
func TestCountersOfStoppedNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		old := savedCounters{
			Saved:   time.Now().Add(2*time.Hour - countersFor),
			Traffic: []savedTraffic{{trafficKey{Feed: someFeed, Day: "2000-01-01"}, status.Traffic{Polls: 1}}},
		}
		data, err := old.encode()
		if err := errors.Join(err, s.SaveCounters(t.Context(), "old", data)); err != nil {
			t.Fatal(err)
		}
		e := startNode(t, s, "new")
		defer func() { e.counters.close() }()
		for _, step := range []struct {
			after time.Duration
			polls int64
			nodes int
		}{{time.Hour, 1, 2}, {2 * time.Hour, 0, 1}} {
			time.Sleep(step.after)
			synctest.Wait()
			saved, err := s.Counters(t.Context())
			if polls := e.Traffic(t.Context(), all, all).Total.Polls; polls != step.polls || len(saved) != step.nodes || err != nil {
				t.Errorf("%v later: %d polls, counters of %d nodes, %v", step.after, polls, len(saved), err)
			}
		}
	})
}

// Counters that are too much for a store are saved in part: the latest ones.
func TestSavedCountersAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("encodes 24 MB several times")
	}
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		e := startNode(t, s, "one")
		const requests = 12_000
		noise := func() string {
			text := make([]byte, 1000)
			for i := range text {
				text[i] = byte('a' + rand.IntN(26))
			}
			return string(text)
		}
		for i := range requests {
			e.counters.readers.Record(readers.Request{
				Time: time.Now(), Feed: "https://example.com/" + noise(), UserAgent: noise(), Method: "GET", Status: 200,
				Client: netip.AddrFrom4([4]byte{byte(i >> 8), byte(i), 0, 1}),
			})
		}
		e.counters.close()
		saved, err := s.Counters(t.Context())
		if n := len(saved["one"]); n == 0 || n > store.MaxCounters || err != nil {
			t.Fatalf("%d bytes are saved, %v", n, err)
		}
		e = startNode(t, s, "one")
		if r := e.Readers(t.Context(), readers.ReportOptions{}); len(r.Feeds) < 500 || len(r.Readers) < 500 {
			t.Errorf("%d feeds and %d readers after a restart", len(r.Feeds), len(r.Readers))
		}
		e.counters.close()
	})
}

// Of many counts, days of long ago are summed up by feed, and feeds with little traffic are left out. No
// day is kept in part.
func TestTrafficIsBounded(t *testing.T) {
	now, one := time.Now(), status.Traffic{Requests: 1, Polls: 2, Served: 3, Fetched: 4}
	for _, tt := range []struct{ feeds, days, limit, keptDays, keptFeeds int }{
		{3, 100, 1 << 20, 100, 3}, {3, 100, 30, 9, 3}, {3, 100, 5, 0, 3}, {50, 2, 20, 0, 20}, {3, maxTraffic, 1 << 20, -1, 3},
	} {
		c := &traffic{counts: make(map[trafficKey]status.Traffic)}
		for feed := range tt.feeds {
			for day := range tt.days {
				c.count(fmt.Sprintf("https://%d.example/", feed), now.AddDate(0, 0, -day), one)
			}
		}
		var all status.Traffic
		days, feeds := make(map[string]int), make(map[string]int)
		saved := c.saved(tt.limit)
		for _, s := range saved {
			all.Add(s.Traffic)
			feeds[s.Feed]++
			if s.Day != "" {
				days[s.Day]++
			}
		}
		if n := int64(tt.keptFeeds * tt.days); all != (status.Traffic{Requests: n, Polls: 2 * n, Served: 3 * n, Fetched: 4 * n}) {
			t.Errorf("%+v: the sum is %+v", tt, all)
		}
		if len(saved) > min(tt.limit, maxTraffic) || len(feeds) != tt.keptFeeds || tt.keptDays >= 0 && len(days) != tt.keptDays {
			t.Errorf("%+v: %d counts, %d days, %d feeds", tt, len(saved), len(days), len(feeds))
		}
	}
}

func (c *counting) Lookup(ctx context.Context, ids []store.ID) ([]store.Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return nil, errAway
	}
	return c.Database.Lookup(ctx, ids)
}

// A feed is not said to be unknown because the store cannot be read.
func TestUnreadableFeedIsNotUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		c, err := cache.New(cache.Options{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		e := newEngine(Parts{})
		e.app.Store(&App{log: zap.NewNop()})
		if _, err := e.keysOf(t.Context(), c, someFeed); err == nil || !strings.Contains(err.Error(), "no such feed") {
			t.Errorf("unknown: %v", err)
		}
		s.setAway(true)
		if _, err := e.keysOf(t.Context(), c, someFeed); err == nil || !strings.Contains(err.Error(), "the store cannot be read") {
			t.Errorf("while the store is away: %v", err)
		}
	})
}
