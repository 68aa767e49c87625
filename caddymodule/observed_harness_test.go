// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/upstream"
)

// web is all that a gateway polls, as a test wants it to answer.
type web func(r *http.Request) (status int, body string, header http.Header)

func (w web) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body, header := w(r)
	if header == nil {
		header = http.Header{"Content-Type": {"application/rss+xml"}}
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// observed is a whole Caddy with gateways whose origins are of the test's making.
type observed struct {
	t    *testing.T
	dir  string
	apps string // more of them, as members of a JSON object: `"failing":{},`
}

// onGateway runs a test in a bubble, with an engine that polls this web. Nothing is
// loaded yet.
func onGateway(t *testing.T, w web, run func(t *testing.T, o *observed)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		key := "bolt:" + dir
		engines.LoadOrStore(key, newEngine(dir, upstream.New(upstream.WithTransport(w))))
		defer engines.Delete(key)
		defer func() {
			if err := caddy.Stop(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute) // Caddy's own background work notices late
		}()
		run(t, &observed{t: t, dir: dir})
	})
}

// load puts a configuration in force: global options, lines of the app pollard, and
// feeds of the gateway.
func (o *observed) load(options, app, feeds string) error {
	o.t.Helper()
	config, err := adapt(o.t, fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	log {
		output discard
	}
	%s
	pollard {
		store bolt %s
		jitter 0
		%s
	}
}
http://feeds.test {
	bind void/feeds
	handle_path /by-url/* {
		feed_gateway {
			clients any
		}
	}
	feed_gateway {
		%s
	}
}`, options, o.dir, app, feeds))
	if err != nil {
		o.t.Fatal(err)
	}
	err = caddy.Load(bytes.Replace(config, []byte(`"apps":{`), []byte(`"apps":{`+o.apps), 1), true)
	synctest.Wait()
	return err
}

// mustLoad is as load, where nothing can go wrong.
func (o *observed) mustLoad(options, app, feeds string) {
	o.t.Helper()
	if err := o.load(options, app, feeds); err != nil {
		o.t.Fatal(err)
	}
}
