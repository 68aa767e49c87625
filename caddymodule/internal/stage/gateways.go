// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"bytes"
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

// RunGateways runs a test in a bubble, with an engine that polls this web. Nothing is
// loaded yet.
func RunGateways(t *testing.T, w Web, run func(t *testing.T, o *Gateways)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		release, err := poller.Adopt(dir, poller.Parts{Origin: upstream.New(upstream.WithTransport(w))})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := release(); err != nil {
				t.Error(err)
			}
		}()
		defer func() {
			if err := caddy.Stop(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute) // Caddy's own background work notices late
		}()
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
	config, err := Adapt(o.T, fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	log {
		output discard
	}
	%s
	pollard {
		store sqlite %s
		jitter 0
		%s
	}
}
%s`, options, o.Dir, app, sites))
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
