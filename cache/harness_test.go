// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/feedstate"
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

// rss is a document with entries 1 to n. volatile is what changes for nothing.
func rss(n int, volatile string) string { return origintest.Feed(n, volatile) }

// script is an origin that answers polls by a function, and keeps a log.
type script struct {
	mu      sync.Mutex // guards what follows
	answer  func(ask policy.Ask) policy.Answer
	asks    []policy.Ask
	at      []time.Time
	spacing time.Duration
}

func (o *script) Acquire(feedurl.URL) policy.Slot { return scriptSlot{o} }

func (o *script) Host(u feedurl.URL) policy.Host {
	return policy.Host{Site: u.Site(), Spacing: o.spacing}
}

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

// gateway is a cache over a store, which can be restarted. It is closed at the end of the test.
type gateway struct {
	t        *testing.T
	dir      string // of the store; empty: it is in memory
	origin   *script
	polled   cache.Origin       // in place of the script; nil: that
	client   *upstream.Client   // polls in place of the script, which keeps the log; nil: none
	web      *origintest.Origin // that it polls
	answers  sync.Mutex         // held while the web answers
	settings cache.Settings
	budget   int64 // of memory; 0: 1 MiB

	now       func() time.Time     // nil: time.Now
	suspended func() time.Duration // nil: the machine never sleeps
	space     func(dir string) (free, all uint64)

	by store.Owner // that asks

	memory *sqlite.Store // the store of gateways without a directory
	store  hooked
	*cache.Cache
}

// bubble is a subtest in fake time.
func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// slow skips a test of a second or more with -short.
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes a second or more")
	}
}

// some is a table of cases; with -short, one of them: each takes a good part of a second.
func some[C any](cases map[string]C) map[string]C {
	if testing.Short() {
		first := slices.Min(slices.Collect(maps.Keys(cases)))
		return map[string]C{first: cases[first]}
	}
	return cases
}

// newGateway makes one inside of a bubble, at the epoch.
func newGateway(t *testing.T, answer func(policy.Ask) policy.Answer) *gateway {
	t.Helper()
	time.Sleep(time.Until(epoch))
	g := &gateway{t: t, origin: &script{answer: answer}, memory: sqlite.NewMemory(nil)}
	rules := policy.DefaultRules()
	rules.Jitter = 0
	g.rules(rules)
	t.Cleanup(g.close)
	return g
}

// rules are those of all feeds from the next [cache.Cache.Apply] on.
func (g *gateway) rules(rules policy.Rules) {
	g.settings.Rules = func(feedstate.Key) policy.Rules { return rules }
}

// often lets feeds be polled as often as that, without jitter.
func (g *gateway) often(interval time.Duration) {
	rules := policy.DefaultRules()
	rules.MinInterval, rules.Jitter = interval, 0
	g.rules(rules)
}

// newWebGateway makes one that polls a web by the real client.
func newWebGateway(t *testing.T, answer func(url string) response) *gateway {
	t.Helper()
	g := newGateway(t, nil)
	g.web = &origintest.Origin{Answer: func(r *http.Request) response {
		g.answers.Lock()
		defer g.answers.Unlock()
		return answer(r.URL.String())
	}}
	g.client = upstream.New(upstream.WithTransport(g.web))
	g.polled = logged{g.client, g.origin}
	return g
}

// change changes what the web answers, while it does not.
func (g *gateway) change(do func()) {
	g.answers.Lock()
	defer g.answers.Unlock()
	do()
}

func (g *gateway) open() *gateway {
	g.t.Helper()
	if g.polled == nil {
		g.polled = g.origin
	}
	if g.suspended == nil {
		g.suspended = awake
	}
	g.store.Store = g.disk()
	var err error
	g.Cache, err = cache.New(cache.Options{Store: &g.store, Origin: g.polled, Memory: cmp.Or(g.budget, 1<<20), Now: g.now, Suspended: g.suspended})
	if err != nil {
		g.t.Fatal(err)
	}
	g.Apply(g.settings)
	return g
}

// pause has the host origin.test ask for a pause, which holds for all its feeds.
func (g *gateway) pause(d time.Duration) {
	g.t.Helper()
	err := g.store.Restore(g.t.Context(), []store.Saved{{Pause: &policy.Pause{Site: "origin.test", For: d, Why: policy.HintHostCooldown}}})
	if err != nil {
		g.t.Error(err)
	}
}

// awake is a machine that never sleeps, whatever the one does that runs the tests.
func awake() time.Duration { return 0 }

func (g *gateway) disk() Store {
	g.t.Helper()
	if g.dir == "" {
		g.memory = g.memory.Reopen()
		return g.memory
	}
	store, err := sqlite.Open(g.dir, sqlite.Options{Space: g.space})
	if err != nil {
		g.t.Fatal(err)
	}
	return store
}

// close closes the gateway, unless it is closed.
func (g *gateway) close() {
	if g.Cache == nil {
		return
	}
	if err := errors.Join(g.Cache.Close(), g.store.Close()); err != nil {
		g.t.Error(err)
	}
	g.Cache = nil
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
	return g.ask(g.by, url, r)
}

// ask sends a request of an owner.
func (g *gateway) ask(by store.Owner, url string, r *http.Request) *httptest.ResponseRecorder {
	g.t.Helper()
	w := httptest.NewRecorder()
	err := g.serve(w, r, by, url)
	if u, ok := err.(*cache.Unavailable); ok {
		w.WriteHeader(u.Status)
		w.Body.WriteString(u.Reason)
	} else if err != nil {
		g.t.Error(err)
	}
	return w
}

// serve answers a request of an owner for a feed.
func (g *gateway) serve(w http.ResponseWriter, r *http.Request, by store.Owner, url string) error {
	f, err := g.Feed(r.Context(), url)
	if err != nil {
		return err
	}
	f.Ask(by, false)
	_, err = f.Serve(w, r, cache.ServeOptions{})
	return err
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

func wantBody(t *testing.T, w *httptest.ResponseRecorder, code int, contains string) {
	t.Helper()
	if w.Code != code || !strings.Contains(w.Body.String(), contains) {
		t.Fatalf("got %d %.200q, want %d with %q", w.Code, w.Body, code, contains)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// response is an answer of an origin for the real [upstream.Client].
type response = origintest.Answer

var given, redirect = origintest.OK, origintest.Redirect

// requested is when a URL was asked, by its own polls or by redirects to it.
func (g *gateway) requested(url string) (at []time.Time) {
	for _, r := range g.web.For(url) {
		at = append(at, r.Time)
	}
	return at
}

// logged is a client whose polls are written down.
type logged struct {
	*upstream.Client
	log *script
}

func (o logged) Acquire(url feedurl.URL) policy.Slot {
	if slot := o.Client.Acquire(url); slot != nil {
		return loggedSlot{slot, o.log}
	}
	return nil
}

type loggedSlot struct {
	policy.Slot
	log *script
}

func (s loggedSlot) Poll(ctx context.Context, ask policy.Ask) policy.Answer {
	s.log.mu.Lock()
	s.log.asks, s.log.at = append(s.log.asks, ask), append(s.log.at, time.Now())
	s.log.mu.Unlock()
	return s.Slot.Poll(ctx, ask)
}
