// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

func init() {
	caddy.RegisterModule(keeper{})
	httpcaddyfile.RegisterHandlerDirective("keeper", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		k := new(keeper)
		h.Next()
		h.Args(&k.Name, &k.Fails)
		return k, nil
	})
	httpcaddyfile.RegisterDirectiveOrder("keeper", httpcaddyfile.Before, "respond")
}

// keeper is a handler that keeps a number over reloads: of how many keepers had to begin
// again before it did.
type keeper struct {
	Name  string `json:"name,omitempty"`
	Fails string `json:"fails,omitempty"`
	keeps int
}

func (keeper) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.keeper", New: func() caddy.Module { return new(keeper) }}
}

func (k *keeper) Provision(ctx caddy.Context) error {
	app, err := ctx.App("pollard")
	if err != nil {
		return err
	}
	k.keeps = app.(*poller.App).Keep("keeper "+k.Name, func() any { begun++; return begun }).(int)
	if k.Fails != "" {
		return errors.New("failing as it should")
	}
	return nil
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, _ *http.Request, _ caddyhttp.Handler) error {
	_, err := fmt.Fprint(w, k.keeps)
	return err
}

var begun int // keepers of the running test

// Values that handlers keep outlive reloads. A configuration that comes to nothing, or is gone,
// leaves nothing of it.
func TestWhatHandlersKeep(t *testing.T) {
	begun = 0
	nothing := func(*http.Request) (int, string, http.Header) { return 404, "", nil }
	stage.RunGateways(t, nothing, func(t *testing.T, o *stage.Gateways) {
		load := func(failure string, keepers ...string) {
			t.Helper()
			sites := ""
			for _, words := range keepers {
				name, _, _ := strings.Cut(words, " ")
				sites += fmt.Sprintf("http://%s.test {\nbind void/site\nkeeper %s\n}\n", name, words)
			}
			if err := o.LoadSites("", "", sites); (err != nil) != (failure != "") || err != nil && !strings.Contains(err.Error(), failure) {
				t.Fatalf("loading %q: %v", keepers, err)
			}
		}
		keeps := func(name string, want int) {
			t.Helper()
			if got := stage.Get(t, "http://"+name+".test/", stage.Home).Body.String(); got != fmt.Sprint(want) {
				t.Errorf("%s has number %s, want %d", name, got, want)
			}
		}
		load("", "a")
		keeps("a", 1)
		load("failing as it should", "a", "b", "c fails") // c or b may come first, or b not at all
		keeps("a", 1)
		o.Apps = `"failing":{},`
		load("failing as it should", "a", "b")
		o.Apps = ""
		keeps("a", 1)
		before := begun
		load("", "a", "b")
		keeps("a", 1)
		keeps("b", before+1)
		load("", "b")
		keeps("b", before+1)
		load("", "a", "b")
		keeps("a", before+2)
		keeps("b", before+1)
	})
}

// Nor does it leave feeds, or polls of them.
func TestFailedReloadLeavesNoFeed(t *testing.T) {
	var one, two atomic.Int64
	web := func(r *http.Request) (int, string, http.Header) {
		if r.URL.Host == "one.example" {
			one.Add(1)
		} else {
			two.Add(1)
		}
		return 200, stage.Sample, nil
	}
	stage.RunGateways(t, web, func(t *testing.T, o *stage.Gateways) {
		o.MustLoad("", "prefetch", "feed /one.xml https://one.example/feed")
		for _, apps := range []string{`"failing":{},`, `"events":{"subscriptions":[{"handlers":[{"handler":"none"}]}]},`} {
			o.Apps = apps
			if o.Load("", "prefetch", "feed /one.xml https://one.example/feed\nfeed /two.xml https://two.example/feed") == nil {
				t.Fatalf("it loads with %s", apps)
			}
			time.Sleep(50 * time.Hour)
		}
		if w := stage.Get(t, "http://feeds.test/one.xml", stage.Home); w.Code != 200 {
			t.Errorf("the feed of the configuration in force: %d", w.Code)
		}
		if one.Load() < 4 || two.Load() > 0 {
			t.Errorf("%d polls, and %d of what was never in force", one.Load(), two.Load())
		}
		for _, path := range []string{"/pollard/feeds", "/pollard/readers"} {
			if code, text := stage.Call(t, "GET", path); code != 200 || strings.Contains(text, "two.example") {
				t.Errorf("%s: %d %s", path, code, text)
			}
		}
	})
}
