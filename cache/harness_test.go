// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

const feedURL = "https://origin.test/feed.xml"

// epoch is later than any date in the test documents; bubbles begin in 2000.
var epoch = time.Date(2026, time.March, 2, 10, 0, 0, 0, time.UTC)

// rss is a document with entries 1 to n. The noise is what changes for nothing.
func rss(n int, noise string) string { return origintest.Feed(n, noise) }

// script is an origin that answers polls by a function, and keeps a log.
type script struct {
	mu      sync.Mutex // guards what follows
	answer  func(ask policy.Ask) policy.Answer
	asks    []policy.Ask
	at      []time.Time
	spacing time.Duration
}

func (o *script) Acquire(context.Context, feedurl.URL) (policy.Slot, error) {
	return scriptSlot{o}, nil
}

func (o *script) Host(u feedurl.URL) policy.Host {
	return policy.Host{Name: u.Name(), Domain: u.Domain(), Spacing: o.spacing}
}

func (o *script) Busy() []string { return nil }

// scriptSlot is the right to ask it once.
type scriptSlot struct{ *script }

func (s scriptSlot) Release() {}

func (s scriptSlot) Poll(ctx context.Context, ask policy.Ask) policy.Answer {
	o := s.script
	o.mu.Lock()
	o.asks, o.at = append(o.asks, ask), append(o.at, time.Now())
	answer := o.answer
	o.mu.Unlock()
	a := answer(ask)
	if a.Asked.IsZero() && a.Failure != policy.FailureNotStarted && a.Failure != policy.FailureDNS && a.Failure != policy.FailureConnect && a.Failure != policy.FailureProxy {
		a.Asked = time.Now()
	}
	if a.URL == "" {
		a.URL = ask.URL.String()
	}
	if a.Header == nil {
		a.Header = http.Header{}
	}
	return a
}

// answers has polls answered in another way from now on.
func (o *script) answers(answer func(ask policy.Ask) policy.Answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answer = answer
}

func (o *script) polls() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.asks)
}

// times are when it was asked.
func (o *script) times() []time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.at)
}

func (o *script) last() policy.Ask {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asks[len(o.asks)-1]
}

// ok is a 200 with a body and headers in pairs.
func ok(body string, headers ...string) policy.Answer {
	h := http.Header{"Content-Type": {"application/rss+xml"}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return policy.Answer{Status: http.StatusOK, Header: h, Body: []byte(body)}
}

func unchanged() policy.Answer { return policy.Answer{Status: http.StatusNotModified} }

func failed(status int, failure policy.Failure) policy.Answer {
	return policy.Answer{Status: status, Failure: failure, Err: fmt.Errorf("origin.test answered %d", status)}
}

// gateway is a cache over a store, which can be restarted. With a directory the
// store is a real one.
type gateway struct {
	t        *testing.T
	dir      string
	origin   *script
	client   *upstream.Client   // polls in place of the script, which keeps the log; nil: none
	web      *origintest.Origin // that it polls
	settings cache.Settings
	budget   int64                         // of memory; 0: 1 MiB
	wrap     func(store.Store) store.Store // what stands between cache and store; nil: nothing

	by   store.Owner // that asks
	sent int         // readers that were sent to another feed

	memory *sqlite.Store // the store of gateways without a directory
	store  store.Store
	*cache.Cache
}

// newGateway opens one inside of a bubble, at the epoch. The directory is made outside; it may be empty.
func newGateway(t *testing.T, dir string, answer func(policy.Ask) policy.Answer) *gateway {
	t.Helper()
	time.Sleep(time.Until(epoch))
	g := &gateway{t: t, dir: dir, origin: &script{answer: answer}, memory: sqlite.NewMemory(nil)}
	rules := policy.DefaultRules()
	rules.Jitter = 0
	g.settings.Rules = func(cache.Key) policy.Rules { return rules }
	return g
}

// newWebGateway opens one that polls a web by the real client.
func newWebGateway(t *testing.T, dir string, answer func(url string) response) *gateway {
	t.Helper()
	g := newGateway(t, dir, nil)
	var mu sync.Mutex // held while an answer is made
	g.web = &origintest.Origin{Answer: func(r *http.Request) response {
		mu.Lock()
		defer mu.Unlock()
		return answer(r.URL.String())
	}}
	g.client = upstream.New(upstream.WithTransport(g.web))
	return g
}

func (g *gateway) open() *gateway {
	g.t.Helper()
	var origin cache.Origin = g.origin
	if g.client != nil {
		origin = logged{g.client, g.origin}
	}
	g.store = g.disk()
	if g.wrap != nil {
		g.store = g.wrap(g.store)
	}
	var err error
	g.Cache, err = cache.New(cache.Options{Store: g.store, Origin: origin, Memory: cmp.Or(g.budget, 1<<20), Suspended: awake})
	if err != nil {
		g.t.Fatal(err)
	}
	g.Apply(g.settings)
	return g
}

// pause has the host origin.test ask for a pause.
func (g *gateway) pause(d time.Duration) {
	g.t.Helper()
	var id store.ID
	leases, err := g.store.Claim(g.t.Context(), []store.Claim{{ID: id, URL: "https://other.test/"}})
	if err == nil {
		err = g.store.Commit(g.t.Context(), store.Outcome{ID: id, Token: leases[0].Token, Pauses: []policy.Pause{
			{Scope: "host origin.test", For: d, Why: policy.HintHostCooldown},
		}})
	}
	if err == nil {
		err = g.store.Forget(g.t.Context(), id)
	}
	if err != nil {
		g.t.Error(err)
	}
}

// awake is a machine that never sleeps, whatever the one does that runs the tests.
func awake() time.Duration { return 0 }

func (g *gateway) disk() store.Store {
	g.t.Helper()
	if g.dir == "" {
		g.memory = g.memory.Reopen()
		return g.memory
	}
	store, err := sqlite.Open(g.dir, sqlite.Options{})
	if err != nil {
		g.t.Fatal(err)
	}
	return store
}

func (g *gateway) close() {
	g.t.Helper()
	if err := g.Cache.Close(); err != nil {
		g.t.Error(err)
	}
	if err := g.store.Close(); err != nil {
		g.t.Error(err)
	}
}

func (g *gateway) restart() {
	g.t.Helper()
	g.close()
	g.open()
}

// get asks for a feed as a reader does.
func (g *gateway) get(url string, headers ...string) *httptest.ResponseRecorder {
	g.t.Helper()
	return g.do(http.MethodGet, url, headers...)
}

func (g *gateway) do(method, url string, headers ...string) *httptest.ResponseRecorder {
	g.t.Helper()
	r := httptest.NewRequest(method, "/feed", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f, err := g.Feed(r.Context(), url)
	if err == nil {
		f.Ask(g.by)
		_, err = f.Serve(w, r)
	}
	if u, ok := err.(*cache.Unavailable); ok {
		w.WriteHeader(u.Status)
		w.Body.WriteString(u.Reason)
	} else if err != nil {
		g.t.Fatal(err)
	}
	return w
}

// reopenAt opens the gateway with another clock.
func (g *gateway) reopenAt(now func() time.Time) store.Store {
	g.t.Helper()
	store := g.disk()
	var err error
	g.Cache, err = cache.New(cache.Options{Store: store, Origin: g.origin, Memory: 1 << 20, Now: now})
	if err != nil {
		g.t.Fatal(err)
	}
	g.Apply(g.settings)
	return store
}

func (g *gateway) closeWith(store store.Store) {
	g.t.Helper()
	g.store = store
	g.close()
}

// accounts are all feeds that are known.
func (g *gateway) accounts() (all []status.Feed) {
	g.t.Helper()
	var after store.ID
	for more := true; more; {
		var list []status.Feed
		var err error
		if list, after, more, err = g.Statuses(g.t.Context(), after, 100); err != nil {
			g.t.Fatal(err)
		}
		all = append(all, list...)
	}
	return all
}

// knows reports whether a feed has a record.
func (g *gateway) knows(url string) bool {
	g.t.Helper()
	for _, a := range g.accounts() {
		if string(a.URL) == url {
			return true
		}
	}
	return false
}

func readAll(resp *http.Response) string {
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
