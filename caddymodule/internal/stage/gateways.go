// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/upstream"
)

// Web answers all polls of a gateway.
type Web func(r *http.Request) (status int, body string, header http.Header)

// RoundTrip implements [http.RoundTripper].
func (w Web) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body, header := w(r)
	if header == nil {
		header = http.Header{"Content-Type": {"application/rss+xml"}}
	}
	return origintest.New(origintest.Answer{Status: status, Header: header, Body: body}).RoundTrip(r)
}

// Gateways are a whole Caddy with gateways whose origins the test answers for.
type Gateways struct {
	T    *testing.T
	Dir  string
	Apps string // more of them, as members of a JSON object: `"failing":{},`
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
func RunGateways(t *testing.T, w Web, run func(t *testing.T, o *Gateways)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dir, release := adopt(t, upstream.New(upstream.WithTransport(w)))
		defer release()
		defer time.Sleep(time.Minute) // Caddy's own background work notices late
		defer stop(t)
		run(t, &Gateways{T: t, Dir: dir})
	})
}

// Load loads a configuration: global options, lines of the app pollard, and
// feeds of the gateway.
func (o *Gateways) Load(options, app, feeds string) error {
	o.T.Helper()
	return o.LoadSites(options, app, `http://feeds.test {
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

// LoadSites is like Load, with sites of any kind.
func (o *Gateways) LoadSites(options, app, sites string) error {
	o.T.Helper()
	config, err := Adapt(o.T, caddyfile(o.Dir, options, app, sites))
	if err != nil {
		o.T.Fatal(err)
	}
	err = caddy.Load(bytes.Replace(config, []byte(`"apps":{`), []byte(`"apps":{`+o.Apps), 1), true)
	synctest.Wait()
	return err
}

// MustLoad is like Load, and fails the test if that returns an error.
func (o *Gateways) MustLoad(options, app, feeds string) {
	o.T.Helper()
	if err := o.Load(options, app, feeds); err != nil {
		o.T.Fatal(err)
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
