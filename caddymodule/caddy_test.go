// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/upstream"
)

func init() {
	caddy.RegisterModule(failing{})
	caddy.RegisterNetwork("void", func(context.Context, string, string, string, uint, net.ListenConfig) (any, error) {
		return &void{done: make(chan struct{})}, nil
	})
}

// void is a listener to which nobody connects. Unlike a socket it waits in a way
// that lets the clock of a bubble go on.
type void struct {
	once sync.Once
	done chan struct{}
}

func (v *void) Accept() (net.Conn, error) { <-v.done; return nil, net.ErrClosed }
func (v *void) Close() error              { v.once.Do(func() { close(v.done) }); return nil }
func (v *void) Addr() net.Addr            { return &net.UnixAddr{Name: "void", Net: "void"} }

// failing is an app that does not start.
type failing struct{}

func (failing) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "failing", New: func() caddy.Module { return failing{} }}
}
func (failing) Start() error { return errors.New("failing as it should") }
func (failing) Stop() error  { return nil }

// get sends a request to the server of the running configuration.
func get(t *testing.T, target, client string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	app, err := caddy.ActiveContext().App("http")
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", target, nil)
	r.RemoteAddr = net.JoinHostPort(client, "1234")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	app.(*caddyhttp.App).Servers["srv0"].ServeHTTP(w, r)
	return w
}

// A whole Caddy, from the Caddyfile to the poll: feeds at a path and by URL, also
// behind handle_path, over a reload, a reload that fails, and the end.
func TestCaddy(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		web := new(origin)
		key := "bolt:" + dir
		engines.LoadOrStore(key, newEngine(dir, upstream.New(upstream.WithTransport(web))))
		defer engines.Delete(key)

		load := func(interval, apps string) error {
			config, err := adapt(t, fmt.Sprintf(`{
				admin off
				persist_config off
				auto_https off
				pollard {
					store bolt %s
					min_interval %s
					jitter 0
				}
			}
			http://feeds.test {
				bind void/feeds
				encode gzip
				handle_path /feeds/* {
					feed_gateway {
						clients any
					}
				}
				feed_gateway {
					feed /one.xml https://one.example/feed
				}
			}`, dir, interval))
			if err != nil {
				t.Fatal(err)
			}
			err = caddy.Load(bytes.Replace(config, []byte(`"apps":{`), []byte(`"apps":{`+apps), 1), true)
			synctest.Wait()
			return err
		}
		interval := func(path string) string {
			w := get(t, "http://feeds.test"+path, home)
			if w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
			return w.Header().Get("Cache-Control")
		}
		if err := load("2h", ""); err != nil {
			t.Fatal(err)
		}
		defer caddy.Stop()
		if got := interval("/one.xml"); got != "max-age=7200" {
			t.Errorf("at a path: %s", got)
		}
		if got := interval("/feeds/https://two.example/a//b"); got != "max-age=7200" {
			t.Errorf("by URL: %s", got)
		}
		if w := get(t, "http://feeds.test/one.xml", home, "If-None-Match", get(t, "http://feeds.test/one.xml", home).Header().Get("Etag")); w.Code != http.StatusNotModified {
			t.Errorf("a conditional request got %d", w.Code)
		}
		time.Sleep(time.Hour)
		if err := load("3h", ""); err != nil {
			t.Fatal(err)
		}
		if got := interval("/one.xml"); got != "max-age=3600" {
			t.Errorf("after a reload the poll before it is forgotten: %s", got)
		}
		time.Sleep(time.Hour + time.Minute)
		if got := interval("/one.xml"); got != "max-age=10800" {
			t.Errorf("with the new interval: %s", got)
		}
		// Another app that cannot start: the configuration before it stays in force.
		// Apps start in random order, so ours has started in some of these.
		for range 5 {
			if err := load("4h", `"failing":{},`); err == nil {
				t.Fatal("a configuration that cannot start was loaded")
			}
		}
		time.Sleep(4 * time.Hour)
		if got := interval("/one.xml"); got != "max-age=10800" {
			t.Errorf("after a reload that failed: %s", got)
		}
		want := "https://one.example/feed https://two.example/a//b https://one.example/feed https://one.example/feed"
		if got := strings.Join(web.asked(), " "); got != want {
			t.Errorf("the origins saw %s, want %s", got, want)
		}
	})
}
