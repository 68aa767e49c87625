// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package stage runs a whole Caddy for tests: in a synctest bubble with an origin that the
// test answers for ([Run], [RunGateways]), or with real servers on loopback ([RunInstance]).
// [Network] is a network in memory for Caddy's own servers
// in a bubble.
package stage

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/internal/loopback"
)

func init() {
	caddy.RegisterModule(new(backend))
	httpcaddyfile.RegisterHandlerDirective("backend", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		b := new(backend)
		h.Next()
		for h.NextArg() {
			b.Says = h.Val()
		}
		return b, nil
	})
	httpcaddyfile.RegisterDirectiveOrder("backend", httpcaddyfile.After, "respond")
}

// backend is a content handler that answers as the running test wants.
type backend struct {
	Says string `json:"says,omitempty"` // with placeholders
}

func (*backend) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.backend", New: func() caddy.Module { return new(backend) }}
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	s := staged.Load()
	said := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).ReplaceAll(b.Says, "")
	s.mu.Lock()
	s.seen = append(s.seen, Visit{r.Clone(context.WithoutCancel(r.Context())), said})
	answer := s.answer
	s.mu.Unlock()
	return answer(w, r.WithContext(context.WithValue(r.Context(), textKey{}, said)))
}

// textKey is the context key of the text that the configuration gives the backend.
type textKey struct{}

// Visit is a request as the backend got it.
type Visit struct {
	*http.Request
	Text string
}

// staged is the stage of the running test. There is one Caddy per process.
var staged atomic.Pointer[Stage]

// Stage is a whole Caddy with sites.
type Stage struct {
	T            *testing.T
	Dir          string
	Apps         string // more of them, as members of a JSON object: `"failing":{},`
	app, options string
	settle       func() // waits for servers that a configuration has replaced

	mu     sync.Mutex // guards what follows
	answer Answer
	seen   []Visit
}

// Answer is what a backend does.
type Answer = func(w http.ResponseWriter, r *http.Request) error

// Run runs a test on a Caddy with these sites, in a bubble.
func Run(t *testing.T, sites string, answer Answer, run func(s *Stage)) {
	t.Helper()
	RunWith(t, "", "", sites, answer, run)
}

// RunWith is like Run, with more global options and lines of the app pollard.
func RunWith(t *testing.T, options, app, sites string, answer Answer, run func(s *Stage)) {
	t.Helper()
	dir := StoreDirectory(t)
	synctest.Test(t, func(t *testing.T) {
		s := &Stage{T: t, Dir: dir, options: options, app: app, answer: answer, settle: synctest.Wait}
		s.Load(sites)
		defer time.Sleep(2 * time.Hour) // until handlers have noticed that their clients have left
		defer s.Stop()
		run(s)
	})
}

// RunInstance runs a test on a Caddy that reaches real servers, without a bubble. Its
// admin endpoint is at the address.
func RunInstance(t *testing.T, app, sites string, run func(s *Stage, address string)) {
	t.Helper()
	RunInstanceWith(t, "", app, sites, run)
}

// RunInstanceWith is like RunInstance, with more global options.
func RunInstanceWith(t *testing.T, options, app, sites string, run func(s *Stage, address string)) {
	t.Helper()
	address := loopback.FreeAddress(t)
	s := &Stage{T: t, Dir: StoreDirectory(t), options: "admin " + address + "\n" + options, app: app, settle: func() {}}
	s.Load(sites)
	defer func() {
		s.options = "" // Caddy itself would leave its admin endpoint open
		s.Load("")
		s.Stop()
	}()
	run(s, address)
}

// Load loads sites, and fails the test if that returns an error.
func (s *Stage) Load(sites string) {
	s.T.Helper()
	if err := s.LoadSites(s.options, s.app, sites); err != nil {
		s.T.Fatal(err)
	}
}

// LoadSites loads sites with other global options and lines of the app pollard.
func (s *Stage) LoadSites(options, app, sites string) error {
	s.T.Helper()
	staged.Store(s)
	config, err := Adapt(s.T, caddyfile(s.Dir, options, app, sites))
	if err != nil {
		s.T.Fatal(err)
	}
	err = caddy.Load(bytes.Replace(config, []byte(`"apps":{`), []byte(`"apps":{`+s.Apps), 1), true)
	s.settle()
	return err
}

// Stop stops Caddy.
func (s *Stage) Stop() {
	s.T.Helper()
	if err := caddy.Stop(); err != nil {
		s.T.Error(err)
	}
	s.settle()
}

// Now changes what the backend answers.
func (s *Stage) Now(answer Answer) {
	s.mu.Lock()
	s.answer = answer
	s.mu.Unlock()
}

// Calls are the requests that the backend has had since the last call of calls.
func (s *Stage) Calls() []Visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// Expect fails unless the backend has had so many requests since the last time.
func (s *Stage) Expect(n int, why string) []Visit {
	s.T.Helper()
	calls := s.Calls()
	if len(calls) != n {
		s.T.Fatalf("%s: the origin had %d requests, want %d", why, len(calls), n)
	}
	return calls
}

// Addresses of clients.
const (
	Home    = "192.168.1.7"
	Outside = "203.0.113.5"
)

// Request is a reader's request as net/http makes it of what comes over the network.
func Request(method, target string, header ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.URL.Scheme, r.URL.Host, r.RequestURI = "", "", r.URL.RequestURI() // what came over the network is a path
	r.RemoteAddr = net.JoinHostPort(Outside, "1234")
	port := 80
	if r.TLS != nil {
		port = 443
	}
	ctx := context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 10), Port: port})
	r = r.WithContext(ctx)
	r.Header.Set("User-Agent", "FreshRSS/1.24.1 (Linux; https://freshrss.org)")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		} else {
			r.Header.Set(header[i], header[i+1])
		}
	}
	return r
}

// Send serves a request.
func (s *Stage) Send(r *http.Request) *httptest.ResponseRecorder {
	s.T.Helper()
	w := httptest.NewRecorder()
	Serve(s.T, 0, w, r)
	return w
}

// Get asks for a feed, or for anything else.
func (s *Stage) Get(target string, header ...string) *httptest.ResponseRecorder {
	s.T.Helper()
	return s.Send(Request("GET", target, header...))
}

// MayServeStale is what follows max-age where other caches may serve a feed stale.
const MayServeStale = ", stale-while-revalidate=60, stale-if-error=86400"

// Sample is a feed with one entry.
const Sample = `<?xml version="1.0"?><rss version="2.0"><channel><title>T</title><link>https://example.com/</link>` +
	`<item><title>One</title><link>https://example.com/1</link></item></channel></rss>`

// FeedNamed is a feed with a title.
func FeedNamed(title string) string {
	return strings.Replace(Sample, "<title>T<", "<title>"+title+"<", 1)
}

// Feed answers with a feed.
func Feed(body string, header ...string) Answer {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Type", "application/rss+xml")
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader([]byte(body)))
		return nil
	}
}

// Plain answers with a status and a body, as they are.
func Plain(status int, body string, header ...string) Answer {
	return func(w http.ResponseWriter, _ *http.Request) error {
		for i := 0; i < len(header); i += 2 {
			w.Header().Add(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, err := w.Write([]byte(body))
		return err
	}
}

// ShieldedSite is a shielded site at an address. The shield is what may stand behind
// the name of the directive: a matcher, and a block without an origin.
func ShieldedSite(address, shield string) string {
	matcher, lines, _ := strings.Cut(shield, "{")
	lines = strings.TrimSuffix(strings.TrimSpace(lines), "}")
	return address + " {\n\tbind void/site\n\tfeed_shield " + matcher + " {\n\t\torigin {\n\t\t\tbackend\n\t\t}\n" + lines + "\n\t}\n}\n"
}

// WantBody fails unless an answer has a status, and a body with this part.
func WantBody(t *testing.T, what string, w *httptest.ResponseRecorder, status int, part string) {
	t.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), part) {
		t.Errorf("%s: %d %.200q, want %d with %q", what, w.Code, w.Body, status, part)
	}
}

// WriteFile writes a file.
func WriteFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Text is what the configuration has the backend say to a request.
func Text(r *http.Request) string {
	said, _ := r.Context().Value(textKey{}).(string)
	return said
}

// StoreDirectory returns a directory for a store: in memory if the system has such a place,
// as syncing costs nothing there.
func StoreDirectory(t testing.TB) string {
	t.Helper()
	if dir, err := os.MkdirTemp("/dev/shm", "pollard"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
}
