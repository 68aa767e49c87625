// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/standard" // the directives of Caddyfiles

	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/upstream"
)

func init() {
	caddy.RegisterModule(failing{})
	// Listeners on void get no connections. Unlike sockets they let the clock of a bubble go on.
	caddy.RegisterNetwork("void", func(context.Context, string, string, string, uint, net.ListenConfig) (any, error) {
		return new(Network).Listen("void"), nil
	})
}

// failing is an app that does not start. It takes a second, in which others may have started.
type failing struct{}

func (failing) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "failing", New: func() caddy.Module { return failing{} }}
}
func (failing) Start() error { time.Sleep(time.Second); return errors.New("failing as it should") }
func (failing) Stop() error  { return nil }

// Adapt makes JSON of a Caddyfile.
func Adapt(t *testing.T, caddyfile string) ([]byte, error) {
	t.Helper()
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), map[string]any{"filename": "Caddyfile"})
	return config, err
}

// caddyfile returns a Caddyfile with global options, lines of the app pollard, and sites.
func caddyfile(dir, options, app, sites string) string {
	return fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	log {
		output discard
	}
	%s
	pollard {
		store sqlite %s
		contact https://example.com/about
		jitter 0
		%s
	}
}
%s`, options, dir, app, sites)
}

// Serve has a server of the running configuration, by its number, serve a request.
func Serve(t *testing.T, server int, w http.ResponseWriter, r *http.Request) {
	t.Helper()
	app, err := caddy.ActiveContext().App("http")
	if err != nil {
		t.Fatal(err)
	}
	app.(*caddyhttp.App).Servers[fmt.Sprint("srv", server)].ServeHTTP(w, r)
}

// Get sends a request to the server of the running configuration.
func Get(t *testing.T, target, client string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("GET", target, nil)
	r.RemoteAddr = net.JoinHostPort(client, "1234")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Serve(t, 0, w, r)
	return w
}

// Call sends a request to the admin routes and returns status and body; an error's
// text is the body.
func Call(t *testing.T, method, target string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for _, route := range (poller.Admin{}).Routes() {
		if route.Pattern != r.URL.Path {
			continue
		}
		w := httptest.NewRecorder()
		if err := route.Handler.ServeHTTP(w, r); err != nil {
			api, ok := errors.AsType[caddy.APIError](err)
			if !ok {
				t.Fatalf("%s %s: %v is not an API error", method, target, err)
			}
			return api.HTTPStatus, api.Err.Error()
		}
		return w.Code, w.Body.String()
	}
	t.Fatalf("no route for %s", target)
	return 0, ""
}

// ReportOfReaders returns what the admin API reports about readers. It is empty if the feed is not known.
func ReportOfReaders(t *testing.T, query string) (report status.ReaderReport) {
	t.Helper()
	code, text := Call(t, "GET", "/pollard/readers"+query)
	if code == 404 {
		return report
	}
	if err := json.Unmarshal([]byte(text), &report); code != 200 || err != nil {
		t.Fatalf("%d %v: %s", code, err, text)
	}
	return report
}

// Web answers all polls of a gateway.
type Web func(r *http.Request) (status int, body string, header http.Header)

func (w Web) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body, header := w(r)
	if header == nil {
		header = http.Header{"Content-Type": {"application/rss+xml"}}
	}
	return origintest.New(origintest.Answer{Status: status, Header: header, Body: body}).RoundTrip(r)
}

// adopt makes an engine that polls through the client, in a new directory.
func adopt(t testing.TB, client *upstream.Client) (dir string, release func()) {
	t.Helper()
	dir = StoreDirectory(t)
	done, err := poller.Adopt(dir, poller.Parts{Origin: client})
	if err != nil {
		t.Fatal(err)
	}
	return dir, func() {
		if err := done(); err != nil {
			t.Error(err)
		}
	}
}

// RunGateways runs a test in a bubble, with an engine that polls this web. Nothing is
// loaded yet.
func RunGateways(t *testing.T, w Web, run func(t *testing.T, s *Stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dir, release := adopt(t, upstream.New(upstream.WithTransport(w)))
		defer release()
		s := &Stage{T: t, Dir: dir, settle: synctest.Wait}
		defer time.Sleep(time.Minute) // Caddy's own background work notices late
		defer s.Stop()
		run(t, s)
	})
}

// LoadFeeds loads a configuration: global options, lines of the app pollard, and
// feeds of the gateway.
func (s *Stage) LoadFeeds(options, app, feeds string) error {
	s.T.Helper()
	return s.LoadSites(options, app, `http://feeds.test {
	bind void/feeds
	handle_path /by-url/* {
		feed_gateway {
			clients any
		}
	}
	feed_gateway {
		`+feeds+`
	}
}`)
}

// MustLoadFeeds is like LoadFeeds, and fails the test if that returns an error.
func (s *Stage) MustLoadFeeds(options, app, feeds string) {
	s.T.Helper()
	if err := s.LoadFeeds(options, app, feeds); err != nil {
		s.T.Fatal(err)
	}
}

// Provision provisions an app without starting it, for a test of one handler. Its
// engine, which ends with the test, polls through the client. There may be more
// members of the app's JSON, each with a comma before it.
func Provision(t testing.TB, client *upstream.Client, members string) (caddy.Context, *poller.App) {
	t.Helper()
	dir, release := adopt(t, client)
	defer release() // the app holds on to it
	ctx, err := caddy.ProvisionContext(&caddy.Config{
		Admin:   &caddy.AdminConfig{Disabled: true},
		Logging: &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": {BaseLog: caddy.BaseLog{WriterRaw: json.RawMessage(`{"output":"discard"}`)}}}},
		AppsRaw: caddy.ModuleMap{"pollard": json.RawMessage(fmt.Sprintf(`{"store":{"engine":"sqlite","directory":%q},"jitter":0%s}`, dir, members))},
	})
	if err != nil {
		t.Fatal(err)
	}
	app, err := ctx.App("pollard")
	if err != nil {
		t.Fatal(err)
	}
	a := app.(*poller.App)
	t.Cleanup(func() {
		if err := a.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	return ctx, a
}
