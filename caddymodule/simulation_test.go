// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"math/big"
	mathrand "math/rand/v2"
	"os"
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
	"github.com/feedpollard/pollard/cache/store/bolt"
	_ "github.com/feedpollard/pollard/caddymodule"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/upstream"
)

// simulation is a whole Caddy with origins and readers, in fake time and in memory.
type simulation struct {
	t        *testing.T
	seed     uint64
	rng      *mathrand.Rand // of the conductor
	dir      string
	always   bool // prefetching is never switched off
	prefetch bool // is on
	net      *memNet
	web      *web
	roots    *x509.CertPool
	subjects []*subject
	epoch    time.Time
	clock    clock         // of the gateway's machine
	laptop   bool          // which is one: its clock is disturbed
	lost     time.Duration // in which the machine was asleep or off
	loads    int
	release  func() error // the engine

	life   atomic.Int64 // of the gateway: counts its starts
	ending atomic.Bool  // the gateway is being stopped

	mu         sync.Mutex // guards what follows
	violations []string
	events     []string
	count      int
	promises   map[string]time.Time // next polls, as the gateway has shown them
	since      time.Time            // when prefetching was switched on, or the machine has woken up
	stepped    time.Time            // when its clock was set last
}

// violation notes what must not be.
func (sim *simulation) violation(format string, args ...any) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if sim.count++; len(sim.violations) < 40 {
		at := sim.clock.truth().Sub(sim.epoch)
		sim.violations = append(sim.violations, fmt.Sprintf("day %d, %v: ", at/day, at%day)+fmt.Sprintf(format, args...)+strings.Join(sim.events[max(0, len(sim.events)-5):], ""))
	}
}

// event notes what happens to the gateway: with a violation, the last of it is told.
func (sim *simulation) event(format string, args ...any) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	at := sim.clock.truth().Sub(sim.epoch)
	sim.events = append(sim.events, fmt.Sprintf("\n\tday %d, %v: it ", at/day, at%day)+fmt.Sprintf(format, args...))
}

// simulate runs a simulation in a bubble. What is to be prepared is so before the
// gateway starts.
func simulate(t *testing.T, seed uint64, resources []*resource, run func(sim *simulation), prepare ...func(sim *simulation)) {
	t.Helper()
	// Whatever a simulation allocates is small beside a test binary with Caddy in it.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	dir := storeDirectory(t)
	certificate, roots := certify(t, resources)
	synctest.Test(t, func(t *testing.T) {
		// Bubbles begin in 2000; a day's beginning, as origins have habits by the hour.
		time.Sleep(time.Until(time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)))
		sim := &simulation{
			t: t, seed: seed, rng: mathrand.New(mathrand.NewPCG(seed, 99)), dir: dir,
			net: new(memNet), roots: roots, epoch: time.Now(), promises: make(map[string]time.Time),
		}
		sim.clock.since = sim.epoch
		memory.Store(sim.net)
		sim.web = &web{sim: sim, resources: make(map[string]*resource), machines: make(map[string]*machine)}
		for i, r := range resources {
			r.sets, r.bodies = []pair{{}}, make(map[uint64]int)
			sim.web.resources[r.url] = r
			sim.web.serve(mustHost(r.url), certificate)
			if !r.quiet {
				sim.subjects = append(sim.subjects, &subject{resource: r, path: fmt.Sprintf("/%02d.xml", i), counts: make(map[string]int)})
			}
		}
		for _, do := range prepare {
			do(sim)
		}
		sim.start()
		run(sim)
		sim.stop()
		for _, s := range sim.web.servers {
			s.Close()
		}
		time.Sleep(time.Minute) // connections see that nobody is there any more
		for _, v := range sim.violations {
			t.Error(v)
		}
		if more := sim.count - len(sim.violations); more > 0 {
			t.Errorf("and %d more", more)
		}
	})
}

// start begins a life of the gateway.
func (sim *simulation) start() {
	sim.t.Helper()
	// The app finds its engine in the pool by the store's directory. This one polls
	// the network in memory.
	tls := &tls.Config{RootCAs: sim.roots, Time: time.Now} // whatever the machine's clock says
	release, err := poller.Adopt(sim.dir, poller.Parts{
		Origin: upstream.New(upstream.WithDial(sim.net.dial), upstream.WithTLS(tls), upstream.WithClock(sim.clock.now, sim.clock.suspended)),
		Open: func(_ context.Context, log *zap.Logger) (store.Store, error) {
			return bolt.Open(sim.dir, bolt.Options{Log: log, Now: sim.clock.now, Suspended: sim.clock.suspended, Booted: sim.clock.booted})
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

// stop ends it.
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
	clear(sim.promises) // what was only put off in memory may come earlier now
	sim.mu.Unlock()
}

// load puts a configuration in force. Each time some lines differ that make no
// difference to polls.
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
	synctest.Wait() // the servers before have gone
}

func (sim *simulation) caddyfile() string {
	pick := func(texts ...string) string { return texts[sim.rng.IntN(len(texts))] }
	var feeds strings.Builder
	for _, i := range sim.rng.Perm(len(sim.subjects)) {
		fmt.Fprintf(&feeds, "\t\tfeed %s %s\n", sim.subjects[i].path, sim.subjects[i].url)
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
		store bolt %s
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

// live lets readers ask, and restarts, reloads and refreshes at random, for a time.
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
			time.Sleep(time.Minute) // what is due is looked at once more
		case 1, 2:
			sim.load()
		case 3:
			sim.refresh(sim.subjects[sim.rng.IntN(len(sim.subjects))])
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

// refresh is a person who wants a feed polled at once.
func (sim *simulation) refresh(s *subject) {
	sim.event("polls %s by hand", s.url)
	sim.web.mu.Lock()
	s.insisted = true
	sim.web.mu.Unlock()
	sim.mu.Lock()
	delete(sim.promises, s.url)
	sim.mu.Unlock()
	_, _ = runningCache().Refresh(sim.t.Context(), s.url)
	sim.web.mu.Lock()
	s.insisted = false
	sim.web.mu.Unlock()
}

// look reads what the gateway tells of its feeds, which must explain each pause
// (I9) and hold.
func (sim *simulation) look() {
	accounts := make(map[string]cache.Account)
	var after store.ID
	for more := true; more; {
		var list []cache.Account
		var err error
		if list, after, more, err = runningCache().Accounts(sim.t.Context(), after, 100); err != nil {
			sim.violation("I9: %v", err)
			return
		}
		for _, a := range list {
			accounts[a.URL] = a
		}
	}
	for _, s := range sim.subjects {
		url, err := feedurl.Canonical(s.url)
		a, ok := accounts[url]
		if err != nil || !ok {
			sim.violation("I9: %s is not known: %v", s.url, err)
			continue
		}
		sim.judgeAccount(s, a)
	}
}

func (sim *simulation) judgeAccount(s *subject, a cache.Account) {
	if a.LastPoll.IsZero() {
		return
	}
	explained := false
	for _, term := range a.Considered {
		explained = explained || term.Hint == a.Winner && term.Used
	}
	if !explained {
		sim.violation("I9: %s waits for %q, of which its account says nothing: %+v", s.url, a.Winner, a.Considered)
	}
	if a.NextPoll.IsZero() != (a.State == "gone") {
		sim.violation("I9: %s is %s and its next poll %v", s.url, a.State, a.NextPoll)
	}
	next, now := a.NextPoll.Add(-sim.clock.off()), sim.clock.truth()
	sim.mu.Lock()
	sim.promises[s.url] = next
	overdue := min(now.Sub(next), now.Sub(sim.since))
	sim.mu.Unlock()
	if sim.prefetch && overdue > 10*time.Minute && a.State != "gone" {
		sim.violation("%s is overdue by %v (%s)", s.url, overdue, a.Winner)
	}
}

// promised is the next poll of a feed as it was shown last.
func (sim *simulation) promised(url string) (time.Time, bool) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	t, ok := sim.promises[url]
	return t, ok
}

// storeDirectory is a place where syncing costs nothing, if there is one.
func storeDirectory(t *testing.T) string {
	t.Helper()
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		dir, err := os.MkdirTemp("/dev/shm", "pollard")
		if err == nil {
			t.Cleanup(func() { os.RemoveAll(dir) })
			return dir
		}
	}
	return t.TempDir()
}

// certify makes a certificate for all hosts.
func certify(t *testing.T, resources []*resource) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	hosts := make(map[string]bool)
	for _, r := range resources {
		hosts[mustHost(r.url)] = true
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(4e9, 0), IsCA: true, BasicConstraintsValid: true,
	}
	for host := range maps.Keys(hosts) {
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, roots
}

// runningCache is the cache of the configuration in force.
func runningCache() *cache.Cache {
	_, c := poller.Running()
	return c
}
