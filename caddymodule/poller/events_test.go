// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller_test

import (
	_ "github.com/feedpollard/pollard/caddymodule/gateway"
	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
	_ "github.com/feedpollard/pollard/caddymodule/shield"

	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/caddyevents/eventsconfig" // the global option

	"github.com/feedpollard/pollard/cache"
)

func init() {
	caddy.RegisterModule(new(recorder))
	caddy.RegisterModule(dawdling{})
}

// dawdling is an app that takes its time to start.
type dawdling struct{}

func (dawdling) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "dawdling", New: func() caddy.Module { return dawdling{} }}
}
func (dawdling) Start() error { time.Sleep(time.Minute); return nil }
func (dawdling) Stop() error  { return nil }

// recorder is a handler of events that keeps them for the running test.
type recorder struct {
	Name string `json:"name,omitempty"`
}

func (*recorder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "events.handlers.recorder", New: func() caddy.Module { return new(recorder) }}
}

func (r *recorder) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	d.Args(&r.Name)
	return nil
}

func (r *recorder) Handle(ctx context.Context, e caddy.Event) error {
	repl := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	line := r.Name + " " + e.Name() + " " + repl.ReplaceAll("{event.data.feed}", "")
	records.mu.Lock()
	records.lines = append(records.lines, line)
	records.data = e.Data
	slow := records.slow
	records.mu.Unlock()
	if slow > 0 {
		time.Sleep(slow)
	}
	if strings.HasSuffix(r.Name, "panicking") {
		panic("as it should")
	}
	return nil
}

// records are the events that handlers have got since [recorded] was called last.
var records struct {
	mu    sync.Mutex
	lines []string
	data  map[string]any // of the last one
	slow  time.Duration  // how long handlers take
}

func recorded(t *testing.T) ([]string, map[string]any) {
	t.Helper()
	synctest.Wait()
	records.mu.Lock()
	defer records.mu.Unlock()
	lines, data := records.lines, records.data
	records.lines, records.data = nil, nil
	return lines, data
}

// wantEvents fails unless handlers have got these events since the last time.
func wantEvents(t *testing.T, what string, want ...string) map[string]any {
	t.Helper()
	lines, data := recorded(t)
	if !slices.Equal(lines, want) {
		t.Errorf("%s: got %q, want %q", what, lines, want)
	}
	return data
}

func slowHandlers(d time.Duration) {
	records.mu.Lock()
	records.slow = d
	records.mu.Unlock()
}

// subscribed is a configuration in which a recorder of this name listens to all of
// our events.
func subscribed(name string) string {
	var b strings.Builder
	b.WriteString("events {\n")
	for _, event := range []string{"pollard.updated", "pollard.failed", "pollard.recovered", "pollard.moved", "pollard.gone", "pollard.refused"} {
		fmt.Fprintf(&b, "on %s recorder %q\n", event, name)
	}
	return b.String() + "}"
}

// A feed's life as handlers of events see it, over reloads, one of which fails.
func TestEvents(t *testing.T) {
	const (
		secret = "https://one.example/feed?token=s3cret"
		told   = " https://one.example/feed?token=***"
	)
	var answer atomic.Pointer[stage.Web]
	says := func(status int, body string, header http.Header) {
		answer.Store(new(stage.Web(func(*http.Request) (int, string, http.Header) { return status, body, header })))
	}
	stage.RunGateways(t, func(r *http.Request) (int, string, http.Header) { return (*answer.Load())(r) }, func(t *testing.T, o *stage.Stage) {
		feeds := "feed /one.xml " + secret
		ask := func(after time.Duration) {
			time.Sleep(after)
			stage.Get(t, "http://feeds.test/one.xml", stage.Home)
		}
		is := func(what string, data map[string]any, want map[string]any) {
			t.Helper()
			for name, value := range want {
				if data[name] != value {
					t.Errorf("%s: %s is %v, want %v", what, name, data[name], value)
				}
			}
			if names := slices.Collect(maps.Keys(data)); len(data) != len(want)+2 || data["feed"] == nil || data["next_poll"] == nil {
				t.Errorf("%s: the data are %q", what, names)
			}
		}
		o.MustLoadFeeds(subscribed("a"), "min_interval 1h\nmax_interval 2h\nunvalidated_interval 1h", feeds)
		recorded(t)

		says(503, "sorry", nil)
		ask(0)
		data := wantEvents(t, "never worked", "a pollard.failed"+told)
		is("never worked", data, map[string]any{
			"status": 503, "hint": "back-off", "entries": 0, "failure": "status", "error": data["error"],
		})
		if text, _ := data["error"].(string); !strings.Contains(text, "503") {
			t.Errorf("the error is %q", text)
		}
		says(200, stage.Sample, nil)
		ask(3 * time.Hour)
		data = wantEvents(t, "works", "a pollard.recovered"+told, "a pollard.updated"+told)
		is("works", data, map[string]any{"status": 200, "hint": data["hint"], "entries": 1, "first": true})
		if at, err := time.Parse(time.RFC3339, fmt.Sprint(data["next_poll"])); err != nil || !at.After(time.Now()) {
			t.Errorf("next_poll is %v: %v", data["next_poll"], err)
		}
		ask(3 * time.Hour)
		wantEvents(t, "unchanged")

		says(503, "sorry", nil)
		for i := range 3 {
			ask(3 * time.Hour)
			var want []string
			if i == 0 {
				want = []string{"a pollard.failed" + told}
			}
			wantEvents(t, fmt.Sprint("failure ", i), want...)
		}
		o.MustLoadFeeds(subscribed("b"), "min_interval 1h\nmax_interval 2h\nunvalidated_interval 1h", feeds)
		ask(3 * time.Hour)
		wantEvents(t, "failure after a reload")
		says(200, stage.Sample, nil)
		ask(3 * time.Hour)
		data = wantEvents(t, "works after a reload", "b pollard.recovered"+told)
		is("works after a reload", data, map[string]any{"status": 200, "hint": data["hint"], "entries": 1, "failures": 4})

		o.Apps = `"failing":{},`
		for range 3 { // ours may have started before
			if err := o.LoadFeeds(subscribed("c"), "", feeds); err == nil {
				t.Fatal("a configuration that cannot start was loaded")
			}
		}
		says(200, stage.FeedNamed("another"), nil)
		ask(3 * time.Hour)
		data = wantEvents(t, "changed", "b pollard.updated"+told)
		is("changed", data, map[string]any{"status": 200, "hint": data["hint"], "entries": 1, "first": false})

		answer.Store(new(stage.Web(func(r *http.Request) (int, string, http.Header) {
			if r.URL.Host == "one.example" {
				return 301, "", http.Header{"Location": {"https://two.example/feed"}}
			}
			return 200, stage.FeedNamed("another"), nil
		})))
		ask(3 * time.Hour)
		wantEvents(t, "redirected, and polled there", "b pollard.updated https://two.example/feed")
		for range 6 { // for a week
			ask(25 * time.Hour)
			wantEvents(t, "redirected")
		}
		ask(25 * time.Hour)
		data = wantEvents(t, "moved", "b pollard.moved"+told)
		is("moved", data, map[string]any{
			"status": 301, "hint": data["hint"], "entries": 1, "moved_to": "https://two.example/feed",
		})

		told := " https://two.example/feed" // which is the feed from now on
		says := func(status int, body string, header http.Header) {
			answer.Store(new(stage.Web(func(r *http.Request) (int, string, http.Header) {
				if r.URL.Host == "one.example" {
					return 301, "", http.Header{"Location": {"https://two.example/feed"}}
				}
				return status, body, header
			})))
		}
		says(410, "gone", nil)
		ask(3 * time.Hour)
		data = wantEvents(t, "gone", "b pollard.gone"+told)
		is("gone", data, map[string]any{"status": 410, "hint": data["hint"], "entries": 1, "failure": "gone", "error": data["error"]})
		if data["next_poll"] != "never" {
			t.Errorf("gone: next_poll is %v", data["next_poll"])
		}
		byHand := func() {
			t.Helper()
			time.Sleep(3 * time.Hour)
			if _, err := runningCache(t).Refresh(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		}
		byHand()
		wantEvents(t, "gone, and asked for by hand")
		says(200, stage.FeedNamed("a third"), nil)
		byHand()
		wantEvents(t, "there again", "b pollard.recovered"+told, "b pollard.updated"+told)
	})
}

// A reader that a rule refuses causes one event an hour. Of a gateway's reader it says nothing.
func TestEventsOfRefusals(t *testing.T) {
	sites := stage.ShieldedSite("http://blog.test", "{\ndefend {\nunconditional 4h\nrequire_user_agent\nskip_hours\n}\n}") +
		"http://feeds.test {\nbind void/site\nfeed_gateway {\ntoken alice 0123456789abcdef\n}\n}\n"
	stage.RunWith(t, subscribed("r"), "", sites, stage.Feed(stage.Sample, "Cache-Control", "max-age=60"), func(s *stage.Stage) {
		shield := func(agent string) { s.Get("http://blog.test/feed?key=s3cret", "User-Agent", agent) }
		shield("Greedy/1.0")
		shield("Greedy/1.0")
		recorded(t)
		const feed = "r pollard.refused http://blog.test/feed?key=***"
		for range 5 {
			shield("Greedy/1.0")
		}
		data := wantEvents(t, "too many requests", feed)
		if data["rule"] != "unconditional" || data["status"] != 429 || data["user_agent"] != "Greedy/1.0" || data["network"] != "203.0.113.0/24" {
			t.Errorf("%v", data)
		}
		shield("")
		if data := wantEvents(t, "another reader", feed); data["rule"] != "require_user_agent" || data["status"] != 403 {
			t.Errorf("%v", data)
		}
		time.Sleep(59 * time.Minute)
		shield("")
		wantEvents(t, "within the hour")
		time.Sleep(time.Minute)
		shield("")
		wantEvents(t, "an hour later", feed)

		for range 2 {
			s.Get("http://feeds.test/~no-such-token-0001/https://one.example/feed?key=s3cret", "User-Agent", "Lost/1.0")
		}
		data = wantEvents(t, "a gateway", "r pollard.refused https://one.example/feed?key=***")
		if data["rule"] != "access" || data["status"] != 403 || len(data) != 4 {
			t.Errorf("%v", data)
		}
	})
}

// runningCache is the cache of the configuration in force.
func runningCache(t *testing.T) *cache.Cache {
	t.Helper()
	_, c := poller.Running()
	if c == nil {
		t.Fatal("nothing runs")
	}
	return c
}

// Events name a shield's feeds by the URL that readers know, and its site's pages not
// at all.
func TestEventsOfShield(t *testing.T) {
	sites := strings.Replace(stage.ShieldedSite("http://blog.test", ""), "feed_shield", "rewrite /old /feed.xml\n\tfeed_shield", 1)
	stage.RunWith(t, subscribed("s"), "", sites, stage.Plain(200, "<!DOCTYPE html><html></html>"), func(s *stage.Stage) {
		recorded(t)
		s.Get("http://blog.test/page")
		wantEvents(t, "a page")
		s.Now(stage.Feed(stage.Sample))
		s.Get("http://blog.test/old")
		wantEvents(t, "a feed", "s pollard.updated http://blog.test/old")
		s.Now(stage.Plain(500, "sorry"))
		time.Sleep(time.Hour)
		s.Get("http://blog.test/old")
		wantEvents(t, "a failure", "s pollard.failed http://blog.test/old")
	})
}

// No reader waits for handlers of events, whose panics do no harm, and the events
// come in order.
func TestSlowHandlers(t *testing.T) {
	answer := func(*http.Request) (int, string, http.Header) { return 200, stage.Sample, nil }
	stage.RunGateways(t, answer, func(t *testing.T, o *stage.Stage) {
		o.MustLoadFeeds(subscribed("panicking"), "", "")
		recorded(t)
		slowHandlers(time.Hour)
		defer slowHandlers(0)
		began := time.Now()
		var want []string
		for i := range 3 {
			url := fmt.Sprintf("https://host%d.example/feed", i)
			want = append(want, "panicking pollard.updated "+url)
			if w := stage.Get(t, "http://feeds.test/by-url/"+url, stage.Home); w.Code != 200 {
				t.Fatal(w.Code)
			}
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("readers waited %v", waited)
		}
		time.Sleep(4 * time.Hour)
		wantEvents(t, "all", want...)
	})
}

// Apps start in any order: feeds may be polled before the events app is ready.
func TestEventsBeforeAllHasStarted(t *testing.T) {
	answer := func(*http.Request) (int, string, http.Header) { return 200, stage.Sample, nil }
	stage.RunGateways(t, answer, func(t *testing.T, o *stage.Stage) {
		o.Apps = `"dawdling":{},`
		recorded(t)
		for i := range 6 {
			url := fmt.Sprintf("https://host%d.example/feed", i)
			began := time.Now()
			o.MustLoadFeeds(subscribed("x"), "prefetch", "feed /one.xml "+url)
			if time.Since(began) < time.Minute {
				t.Fatal("nothing was slow to start")
			}
			time.Sleep(time.Minute)
			wantEvents(t, url, "x pollard.updated "+url)
			if err := caddy.Stop(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
