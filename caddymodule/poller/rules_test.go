// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// appOf makes an app of its JSON, with rules resolved and without an engine.
func appOf(t *testing.T, config string) (*App, error) {
	t.Helper()
	a := &App{feeds: make(map[string]policy.Rules)}
	if err := caddy.StrictUnmarshalJSON([]byte(config), a); err != nil {
		t.Fatal(err)
	}
	return a, a.check()
}

func TestRulesByPrecedence(t *testing.T) {
	a, err := appOf(t, `{
		"min_interval": "2h", "timeout": "10s",
		"hosts": [
			{"pattern": "*", "max_interval": "18h"},
			{"pattern": "a.example.com", "max_body": 1000},
			{"pattern": "*.example.com", "min_interval": "3h", "jitter": 0},
			{"pattern": "*.b.example.com", "min_interval": "4h"}
		]
	}`)
	if err != nil {
		t.Fatal(err)
	}
	var p config.Policy
	if err := json.Unmarshal([]byte(`{"min_interval": "30m", "max_interval": "12h"}`), &p); err != nil {
		t.Fatal(err)
	}
	if err := a.Name(feedurl.MustParse("https://a.example.com/feed"), p); err != nil {
		t.Fatal(err)
	}
	base := policy.DefaultRules()
	base.MinInterval, base.Timeout = 2*time.Hour, 10*time.Second
	base.MaxInterval = 18 * time.Hour
	domain := base
	domain.MinInterval, domain.Jitter = 3*time.Hour, 0
	host := domain
	host.MaxBody = 1000
	subdomain := domain
	subdomain.MinInterval = 4 * time.Hour
	feed := host
	feed.MinInterval, feed.MaxInterval = 30*time.Minute, 12*time.Hour
	for url, want := range map[string]policy.Rules{
		"https://example.org/":                base,
		"https://example.com/":                base,
		"https://c.example.com/":              domain,
		"https://a.example.com/":              host,
		"https://x.b.example.com/":            subdomain,
		"https://a.example.com/feed":          feed,
		"https://a.example.com/feed?page=two": host,
	} {
		if got := a.RulesFor(feedurl.MustParse(url)); got != want {
			t.Errorf("%s: got %+v, want %+v", url, got, want)
		}
	}
}

func TestTwoPlacesOfAFeed(t *testing.T) {
	feed := feedurl.MustParse("https://example.com/feed")
	half, two := config.Policy{MinInterval: caddy.Duration(30 * time.Minute)}, config.Policy{MinInterval: caddy.Duration(2 * time.Hour)}
	tests := []struct {
		name     string
		policies []config.Policy
		want     time.Duration
	}{
		{"one", []config.Policy{half}, 30 * time.Minute},
		{"with the default", []config.Policy{half, {}}, time.Hour},
		{"the other way round", []config.Policy{{}, half}, time.Hour},
		{"with a stricter one", []config.Policy{half, {}, two}, 2 * time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := appOf(t, `{}`)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range tt.policies {
				if err := a.Name(feed, p); err != nil {
					t.Fatal(err)
				}
			}
			if got := a.RulesFor(feed).MinInterval; got != tt.want {
				t.Errorf("min_interval is %v, want %v", got, tt.want)
			}
		})
	}
}

func TestFloorAboveTheInheritedCap(t *testing.T) {
	r, err := config.Policy{MinInterval: caddy.Duration(72 * time.Hour)}.Over(policy.DefaultRules())
	if err != nil || r.MaxInterval != 72*time.Hour {
		t.Errorf("max_interval is %v, %v; want 72h", r.MaxInterval, err)
	}
}

func TestJSONThatCannotBeMeant(t *testing.T) {
	tests := []struct{ config, want string }{
		{`{"min_interval": "-1h"}`, "min_interval: -1h is negative"},
		{`{"min_interval": "2h", "max_interval": "1h"}`, "min_interval 2h is greater than max_interval 1h"},
		{`{"jitter": 1.5}`, "jitter: 1.5 is not between 0 and 1"},
		{`{"max_body": -1}`, "max_body: -1 is negative"},
		{`{"memory": -1}`, "memory: -1 is negative"},
		{`{"idle_after": "-1h"}`, "idle_after: -1h is negative"},
		{`{"disk": -1}`, "disk: -1 is negative"},
		{`{"polls": -1}`, "polls: -1 is negative"},
		{`{"spacing": "-1s"}`, "spacing: -1s is negative"},
		{`{"private_upstreams": ["x"]}`, `private_upstreams: "x" is not an address range`},
		{`{"hosts": [{"pattern": "a.example"}, {"pattern": "A.example."}]}`, "host A.example. is given twice"},
		{`{"hosts": [{"pattern": ""}]}`, "it names no host"},
		{`{"hosts": [{"pattern": "a.example", "concurrency": -1}]}`, "host a.example: concurrency: -1 is negative"},
		{`{"hosts": [{"pattern": "a.example", "spacing": "-1s"}]}`, "host a.example: spacing: -1s is negative"},
		{`{"proxy": "ftp://u:secret@a.example"}`, `pollard: proxy: a proxy cannot have the scheme "ftp"`},
		{`{"hosts": [{"pattern": "a.example", "proxy": "a.example:80"}]}`, `host a.example: proxy: a proxy cannot have the scheme "a.example"`},
		{`{"hosts": [{"pattern": "a.example", "proxy": "{env.POLLARD_NO_SUCH_PROXY}"}]}`, "proxy of host a.example: "},
		{`{"hosts": [{"pattern": "a.example", "max_interval": "10m"}]}`, "host a.example: max_interval 10m is less than the min_interval 1h"},
	}
	for _, tt := range tests {
		t.Run(tt.config, func(t *testing.T) {
			if _, err := Resolve([]byte(tt.config)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// Lines for all hosts hold for each of them, unless it has its own.
func TestPacingOfAllHosts(t *testing.T) {
	a, err := Resolve([]byte(`{"spacing": 0, "concurrency": 2, "hosts": [{"pattern": "a.example", "spacing": "5s"}, {"pattern": "*", "concurrency": 3}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []upstream.HostRule{{Pattern: "a.example", Spacing: 5 * time.Second}, {Pattern: "*", Spacing: -1, Concurrency: 3}}
	if got := a.Upstream().Hosts; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
