// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	_ "github.com/feedpollard/pollard/caddymodule"
	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/upstream"
)

// simulation is a whole Caddy with origins and readers, in fake time and in memory.
type simulation struct {
	t        *testing.T
	seed     uint64
	rng      *rand.Rand // what happens to the gateway, and when
	dir      string
	always   bool // prefetch is in every configuration
	prefetch bool // it is in the one that runs
	net      *stage.Network
	origins  *origins
	roots    *x509.CertPool
	feeds    []*feed
	epoch    time.Time
	clock    clock // the machine's, which the gateway runs on
	laptop   bool  // the machine sleeps, and its clock is set
	loads    int
	release  func() error // releases the engine

	life   atomic.Int64 // starts of the gateway so far
	ending atomic.Bool  // the gateway is being stopped

	mu         sync.Mutex // guards what follows
	violations []string
	events     []string
	count      int
	shown      map[string]time.Time // next polls, by URL, as the gateway showed them last
	since      time.Time            // when prefetch was switched on, or the machine woke up
	stepped    time.Time            // when its clock was set last
}

// violation records what must not happen, with the last events before it.
func (sim *simulation) violation(format string, args ...any) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if sim.count++; len(sim.violations) < 40 {
		at := sim.clock.truth().Sub(sim.epoch)
		sim.violations = append(sim.violations, fmt.Sprintf("day %d, %v: ", at/day, at%day)+fmt.Sprintf(format, args...)+strings.Join(sim.events[max(0, len(sim.events)-5):], ""))
	}
}

// event records what happens to the gateway.
func (sim *simulation) event(format string, args ...any) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	at := sim.clock.truth().Sub(sim.epoch)
	sim.events = append(sim.events, fmt.Sprintf("\n\tday %d, %v: it ", at/day, at%day)+fmt.Sprintf(format, args...))
}

// simulate runs a simulation in a bubble. The functions prepare run before the gateway
// starts.
func simulate(t *testing.T, seed uint64, resources []*resource, run func(sim *simulation), prepare ...func(sim *simulation)) {
	t.Helper()
	// A simulation allocates little beside a test binary with Caddy in it.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	dir := stage.StoreDirectory(t)
	server := httptest.NewTLSServer(nil) // for its certificate, which is for example.com
	certificate, roots := server.TLS.Certificates[0], x509.NewCertPool()
	roots.AddCert(server.Certificate())
	server.Close()
	synctest.Test(t, func(t *testing.T) {
		// Bubbles begin in 2000. Origins have habits by the hour, so this one begins at midnight.
		time.Sleep(time.Until(time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)))
		sim := &simulation{
			t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 99)), dir: dir,
			net: new(stage.Network), roots: roots, epoch: time.Now(), shown: make(map[string]time.Time),
		}
		sim.clock.since = sim.epoch
		sim.net.Use()
		sim.origins = &origins{sim: sim, resources: make(map[string]*resource), hosts: make(map[string]*originHost)}
		for i, r := range resources {
			r.sets, r.bodies = []validators{{}}, make(map[uint64]int)
			sim.origins.resources[r.url] = r
			sim.origins.serve(mustHost(r.url), certificate)
			if !r.quiet {
				sim.feeds = append(sim.feeds, &feed{resource: r, path: fmt.Sprintf("/%02d.xml", i)})
			}
		}
		for _, do := range prepare {
			do(sim)
		}
		sim.start()
		run(sim)
		sim.stop()
		for _, s := range sim.origins.servers {
			s.Close()
		}
		time.Sleep(time.Minute) // until connections have noticed that the other side has left
		for _, v := range sim.violations {
			t.Error(v)
		}
		if more := sim.count - len(sim.violations); more > 0 {
			t.Errorf("and %d more", more)
		}
	})
}

// start starts the gateway.
func (sim *simulation) start() {
	sim.t.Helper()
	// The app finds its engine in the pool by the store's directory. This one polls over
	// the network in memory.
	tls := &tls.Config{RootCAs: sim.roots, Time: time.Now} // not the machine's clock
	release, err := poller.Adopt(sim.dir, poller.Parts{
		Origin: upstream.New(upstream.WithDial(sim.net.Dial), upstream.WithTLS(tls), upstream.WithClock(sim.clock.now)),
		Open: func(_ context.Context, log *zap.Logger) (poller.Database, error) {
			return sqlite.Open(sim.dir, sqlite.Options{Log: log, Clocks: sim.clock.moment})
		},
		Now: sim.clock.now, Suspended: sim.clock.suspended,
	})
	if err != nil {
		sim.t.Fatal(err)
	}
	sim.event("starts")
	sim.release = release
	sim.life.Add(1)
	sim.load()
	sim.ending.Store(false)
}

// stop stops it.
func (sim *simulation) stop() {
	sim.t.Helper()
	sim.event("stops")
	sim.ending.Store(true)
	if err := caddy.Stop(); err != nil {
		sim.t.Fatal(err)
	}
	if err := sim.release(); err != nil {
		sim.t.Error(err)
	}
	synctest.Wait()
	sim.mu.Lock()
	clear(sim.shown) // a poll that was put off in memory alone may come earlier now
	sim.mu.Unlock()
}

// load loads a configuration. Lines that make no difference to polls change each time.
func (sim *simulation) load() {
	sim.t.Helper()
	sim.loads++
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(sim.caddyfile()), nil)
	if err != nil {
		sim.t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		sim.t.Fatal(err)
	}
	synctest.Wait() // until the servers of the configuration before have ended
}

func (sim *simulation) caddyfile() string {
	pick := func(texts ...string) string { return texts[sim.rng.IntN(len(texts))] }
	var feeds strings.Builder
	for _, i := range sim.rng.Perm(len(sim.feeds)) {
		fmt.Fprintf(&feeds, "\t\tfeed %s %s\n", sim.feeds[i].path, sim.feeds[i].url)
	}
	prefetch := ""
	if sim.always || sim.rng.IntN(3) == 0 {
		prefetch = "prefetch"
		if !sim.prefetch {
			sim.woken()
		}
		sim.prefetch = true
	} else {
		sim.prefetch = false
	}
	return fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	log {
		output discard
	}
	pollard {
		store sqlite %s
		contact https://gateway.test/about
		memory %s
		%s
		%s
	}
}
http://%s {
	bind mem/%s
	%s
	feed_gateway {
		clients any
		%s
%s	}
}
%s
`, sim.dir, pick("8KiB", "40KiB", "1MiB"), prefetch, pick("idle_after 90d", "private_upstreams 10.0.0.0/8", "host nobody.test {\n spacing 1m\n }", ""),
		gateway, gateway, pick("encode zstd gzip", "encode", "header X-Load "+fmt.Sprint(sim.loads), ""),
		pick("cors", "token alice s3cret-of-alice-0001", "deny *.evil.test", ""), feeds.String(),
		pick("http://other.test {\n\tbind mem/other.test\n\trespond hello\n}", ""))
}

// live lets readers request feeds for a time, in which the gateway is restarted, reloaded
// and asked to refresh feeds at random.
func (sim *simulation) live(readers int, long time.Duration) {
	ctx, leave := context.WithCancel(context.Background())
	crowd := new(sync.WaitGroup)
	for i := range readers {
		crowd.Go(func() { newReader(sim, i).live(ctx) })
	}
	for end := sim.clock.truth().Add(long); sim.clock.truth().Before(end); {
		time.Sleep(10*time.Minute + time.Duration(sim.rng.Int64N(int64(5*time.Hour))))
		switch sim.rng.IntN(6) {
		case 0:
			sim.stop()
			time.Sleep(time.Duration(sim.rng.Int64N(int64(time.Minute))))
			sim.start()
			time.Sleep(time.Minute) // until polls that came due meanwhile have begun
		case 1, 2:
			sim.load()
		case 3:
			sim.refresh(sim.feeds[sim.rng.IntN(len(sim.feeds))])
		case 4, 5:
			if sim.laptop {
				sim.disturb()
			}
		}
		sim.look()
	}
	leave()
	crowd.Wait()
}

// refresh polls a feed by hand.
func (sim *simulation) refresh(s *feed) {
	sim.event("polls %s by hand", s.url)
	sim.origins.mu.Lock()
	s.byHand = true
	sim.origins.mu.Unlock()
	sim.mu.Lock()
	delete(sim.shown, s.url)
	sim.mu.Unlock()
	_, err := runningCache().Refresh(sim.t.Context(), s.url)
	if _, early := errors.AsType[*cache.TooEarly](err); early { // it is polled as soon as it may be
		return
	}
	sim.origins.mu.Lock()
	s.byHand = false
	sim.origins.mu.Unlock()
}

// look reads what the gateway reports about its feeds. It must explain each pause, and no
// poll may come before the time that it shows.
func (sim *simulation) look() {
	accounts := make(map[string]status.Feed)
	var after store.ID
	for more := true; more; {
		var list []status.Feed
		var err error
		if list, after, more, err = runningCache().Statuses(sim.t.Context(), after, 100); err != nil {
			sim.violation("%v", err)
			return
		}
		for _, a := range list {
			accounts[string(a.URL)] = a
		}
	}
	for _, s := range sim.feeds {
		url, err := feedurl.Canonical(s.url)
		a, ok := accounts[url]
		if err != nil || !ok {
			sim.violation("%s is not known: %v", s.url, err)
			continue
		}
		sim.checkStatus(s, a)
	}
}

func (sim *simulation) checkStatus(s *feed, a status.Feed) {
	if a.LastPoll.IsZero() {
		return
	}
	explained := false
	for _, term := range a.Considered {
		explained = explained || term.Hint == a.Winner && term.Used
	}
	if !explained {
		sim.violation("%s waits for %q, which is not among the terms that it reports: %+v", s.url, a.Winner, a.Considered)
	}
	if a.NextPoll.IsZero() != (a.LastFailure == "gone") {
		sim.violation("%s is %s and its next poll %v", s.url, a.State, a.NextPoll)
	}
	next, now := a.NextPoll.Add(-sim.clock.off()), sim.clock.truth()
	sim.origins.mu.Lock()
	polled := s.inFlight > 0
	sim.origins.mu.Unlock()
	sim.mu.Lock()
	if sim.shown[s.url] = next; polled { // it shows the end of the claim, and the outcome may be earlier
		delete(sim.shown, s.url)
	}
	overdue := min(now.Sub(next), now.Sub(sim.since))
	sim.mu.Unlock()
	const most = 10 * time.Minute // until prefetch looks
	if sim.prefetch && overdue > most && a.State != "gone" && !s.skips(now.Add(sim.clock.off()-most)) {
		sim.violation("%s is overdue by %v (%s)", s.url, overdue, a.Winner)
	}
}

// shownNext returns the next poll of a feed as the gateway showed it last.
func (sim *simulation) shownNext(url string) (time.Time, bool) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	t, ok := sim.shown[url]
	return t, ok
}

// runningCache returns the cache of the running configuration.
func runningCache() *cache.Cache {
	_, c := poller.Running()
	return c
}
