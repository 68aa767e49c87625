// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"context"
	"fmt"
	"maps"
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
	s.seen = append(s.seen, visit{r.Clone(context.WithoutCancel(r.Context())), said})
	answer := s.answer
	s.mu.Unlock()
	return answer(w, r.WithContext(context.WithValue(r.Context(), saidKey{}, said)))
}

// saidKey is where an answer finds what the configuration has the backend say.
type saidKey struct{}

// visit is a request as the backend got it.
type visit struct {
	*http.Request
	said string
}

// staged is the stage of the running test. Caddy is one per process.
var staged atomic.Pointer[stage]

// stage is a whole Caddy with a site in it.
type stage struct {
	t            *testing.T
	dir, options string
	settle       func() // waits for servers that a configuration has replaced

	mu     sync.Mutex // guards what follows
	answer answer
	seen   []visit
}

type answer = func(w http.ResponseWriter, r *http.Request) error

// onStage runs a test on a Caddy with these sites, in a bubble.
func onStage(t *testing.T, sites string, answer answer, run func(s *stage)) {
	t.Helper()
	onStageWith(t, "", sites, answer, run)
}

// onStageWith is as onStage, with more global options.
func onStageWith(t *testing.T, options, sites string, answer answer, run func(s *stage)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, dir: dir, options: options, answer: answer, settle: synctest.Wait}
		staged.Store(s)
		s.load(sites)
		defer time.Sleep(2 * time.Hour) // handlers that notice late that nobody waits
		defer s.stop()
		run(s)
	})
}

// load puts sites in force.
func (s *stage) load(sites string) {
	s.t.Helper()
	config, err := adapt(s.t, fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	log {
		output discard
	}
	pollard {
		store bolt %s
		contact https://example.com/about
		jitter 0
	}
	%s
}
%s`, s.dir, s.options, sites))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		s.t.Fatal(err)
	}
	s.settle()
}

// stop ends the process, as it were.
func (s *stage) stop() {
	s.t.Helper()
	if err := caddy.Stop(); err != nil {
		s.t.Error(err)
	}
	synctest.Wait()
}

// now changes what the backend answers.
func (s *stage) now(answer answer) {
	s.mu.Lock()
	s.answer = answer
	s.mu.Unlock()
}

// calls are the requests that the backend has had since the last call of calls.
func (s *stage) calls() []visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// expect fails unless the backend has had so many requests since the last time.
func (s *stage) expect(n int, why string) []visit {
	s.t.Helper()
	calls := s.calls()
	if len(calls) != n {
		s.t.Fatalf("%s: the origin had %d requests, want %d", why, len(calls), n)
	}
	return calls
}

// request is a reader's request as net/http makes it of what comes over the network.
func request(method, target string, header ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.URL.Scheme, r.URL.Host, r.RequestURI = "", "", r.URL.RequestURI() // what came over the network is a path
	r.RemoteAddr = net.JoinHostPort(abroad, "1234")
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

// send serves a request.
func (s *stage) send(r *http.Request) *httptest.ResponseRecorder {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.sendTo(w, r)
	return w
}

func (s *stage) sendTo(w http.ResponseWriter, r *http.Request) {
	s.t.Helper()
	app, err := caddy.ActiveContext().App("http")
	if err != nil {
		s.t.Fatal(err)
	}
	app.(*caddyhttp.App).Servers["srv0"].ServeHTTP(w, r)
}

// get asks for a feed, or for anything else.
func (s *stage) get(target string, header ...string) *httptest.ResponseRecorder {
	s.t.Helper()
	return s.send(request("GET", target, header...))
}

// feedNamed is a feed with a title.
func feedNamed(title string) string {
	return strings.Replace(sample, "<title>T<", "<title>"+title+"<", 1)
}

// feed answers with a feed.
func feed(body string, header ...string) answer {
	return func(w http.ResponseWriter, r *http.Request) error {
		h := http.Header{"Content-Type": {"application/rss+xml"}}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		maps.Copy(w.Header(), h)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader([]byte(body)))
		return nil
	}
}

// plain answers with a status and a body, as they are.
func plain(status int, body string, header ...string) answer {
	return func(w http.ResponseWriter, _ *http.Request) error {
		for i := 0; i < len(header); i += 2 {
			w.Header().Add(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, err := w.Write([]byte(body))
		return err
	}
}

// site is a shielded site at an address.
func shieldedSite(address, shield string) string {
	return address + " {\n\tbind void/site\n\tfeed_shield " + shield + "\n\tbackend\n}\n"
}

func wantBody(t *testing.T, what string, w *httptest.ResponseRecorder, status int, part string) {
	t.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), part) {
		t.Errorf("%s: %d %.200q, want %d with %q", what, w.Code, w.Body, status, part)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// modtime is when what backends serve was written.
var modtime = time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)
