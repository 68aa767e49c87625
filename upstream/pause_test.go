// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// calm has no gaps.
var calm = Settings{Hosts: unpaced}

// policy's TestRetryAfter and TestRateLimit have the values of the fields. A bubble begins with the year 2000.
func TestCooldown(t *testing.T) {
	const host, url, limit = policy.HintHostCooldown, policy.HintURLCooldown, policy.HintRateLimit
	for _, tt := range []struct {
		name   string
		status int
		fields []string
		want   time.Duration // for which the URL is left alone
		holder string
		pause  string // what the host has asked for; empty: nothing
	}{
		{"429 with 60", 429, []string{"Retry-After: 60"}, time.Minute, host, host},
		{"429 with a date", 429, []string{"Retry-After: Sat, 01 Jan 2000 01:00:00 GMT"}, time.Hour, host, host},
		{"bare 429", 429, nil, time.Hour, host, host},
		{"429 with 0", 429, []string{"Retry-After: 0"}, time.Hour, host, host},
		{"429 with a reset", 429, []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 120"}, 2 * time.Minute, host, host},
		{"429 with both", 429, []string{"Retry-After: 60", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 120"}, time.Minute, host, host},
		{"503", 503, []string{"Retry-After: 600"}, 10 * time.Minute, host, host},
		{"bare 503", 503, nil, 0, "", ""},
		{"403", 403, []string{"Retry-After: 600"}, 10 * time.Minute, url, ""},
		{"404", 404, []string{"Retry-After: 604800"}, 7 * 24 * time.Hour, url, ""},
		{"200", 200, []string{"Retry-After: 600"}, 0, "", ""},
		{"304", 304, []string{"Retry-After: 600"}, 0, "", ""},
		{"limit exhausted with 200", 200, []string{`RateLimit: "default";r=0;t=90`}, 90 * time.Second, url, limit},
		{"limit exhausted with 304", 304, []string{"X-RateLimit-Remaining: 0.0", "X-RateLimit-Reset: 90"}, 90 * time.Second, url, limit},
		{"limit exhausted with 403", 403, []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 90"}, 90 * time.Second, url, ""},
		{"limit not exhausted", 200, []string{`RateLimit: "default";r=1;t=90`}, 0, "", ""},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var n memnet
			n.say("example.com:80", answerText(tt.status, "", tt.fields...))
			c := n.client(t, calm)
			a := c.Poll(t.Context(), ask("http://example.com/a"))
			var want []policy.Pause
			if tt.pause != "" {
				want = []policy.Pause{{Scope: "host example.com", For: tt.want, Why: tt.pause, Limited: tt.status == 429, Domain: "example.com"}}
				if len(tt.fields) == 0 || tt.fields[0] == "Retry-After: 0" {
					want[0].For = 0
				}
			}
			if !slices.Equal(a.Pauses, want) {
				t.Errorf("pauses: %+v, want %+v", a.Pauses, want)
			}
			said := len(tt.fields) > 0 && strings.Contains(tt.fields[0], "RateLimit")
			if good := tt.status < 400; good != (len(a.Good) == 1) || good && a.Good[0].RateLimit != said {
				t.Errorf("answered well: %+v", a.Good)
			}
			if got := a.NotBefore.Sub(a.At); tt.want > 0 && got != tt.want || tt.want == 0 && !a.NotBefore.IsZero() || a.Holder != tt.holder {
				t.Errorf("not before %v (%q), want %v", got, a.Holder, tt.want)
			}
		})
	}
}

// A refusal by a host of another domain that a URL redirects to is the URL's own affair: anyone can make such a URL.
func TestRefusalBehindARedirect(t *testing.T) {
	for to, want := range map[string]int{"www.example.com": 1, "victim.example.net": 0} {
		synctest.Test(t, func(t *testing.T) {
			var n memnet
			n.say("example.com:80", answerText(302, "", "Location: http://"+to+"/"))
			n.say(to+":80", answerText(429, "", "Retry-After: 604800"))
			a := n.client(t, calm).Poll(t.Context(), ask("http://example.com/a"))
			if len(a.Pauses) != want || a.NotBefore.Sub(a.At) != 7*24*time.Hour || a.Holder != policy.HintRedirectCooldown {
				t.Errorf("%s: pauses %+v, not before %v (%q)", to, a.Pauses, a.NotBefore, a.Holder)
			}
		})
	}
}

// On IP literals, private names and names of private addresses a pause is the URL's own.
func TestCooldownOfPrivateHosts(t *testing.T) {
	for _, host := range []string{"192.0.2.1", "[2001:db8::1]", "localhost", "bridge", "rss.local", "rss.home.arpa", "nas.lan", "rss.example.com"} {
		bubble(t, host, func(t *testing.T) {
			var n memnet
			n.say(host+":80", answerText(429, "", "Retry-After: 600"))
			c := n.client(t, calm)
			if host == "rss.example.com" {
				c = n.guardedClient(t, Settings{Hosts: unpaced, Private: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, map[string]string{host: "10.0.0.5"})
			}
			a := c.Poll(t.Context(), ask("http://"+host+"/a"))
			if a.Holder != policy.HintURLCooldown || time.Until(a.NotBefore) != 10*time.Minute {
				t.Errorf("held until %v (%q)", a.NotBefore, a.Holder)
			}
			if len(a.Pauses) != 0 {
				t.Errorf("pauses: %+v", a.Pauses)
			}
		})
	}
}
