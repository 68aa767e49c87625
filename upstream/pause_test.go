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
	const host, limit = policy.HintHostCooldown, policy.HintRateLimit
	for _, tt := range []struct {
		name   string
		status int
		fields []string
		want   time.Duration // for which the URL is left alone
		pause  string        // what the site has asked for; empty: nothing
	}{
		{"429 with 60", 429, []string{"Retry-After: 60"}, time.Minute, host},
		{"429 with a date", 429, []string{"Retry-After: Sat, 01 Jan 2000 01:00:00 GMT"}, time.Hour, host},
		{"bare 429", 429, nil, 0, host},
		{"429 with 0", 429, []string{"Retry-After: 0"}, 0, host},
		{"429 with a reset", 429, []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 120"}, 2 * time.Minute, limit},
		{"429 with both", 429, []string{"Retry-After: 60", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 120"}, time.Minute, limit},
		{"503", 503, []string{"Retry-After: 600"}, 10 * time.Minute, host},
		{"bare 503", 503, nil, 0, ""},
		{"403", 403, []string{"Retry-After: 600"}, 10 * time.Minute, ""},
		{"404", 404, []string{"Retry-After: 604800"}, 7 * 24 * time.Hour, ""},
		{"200", 200, []string{"Retry-After: 600"}, 0, ""},
		{"304", 304, []string{"Retry-After: 600"}, 0, ""},
		{"limit exhausted with 200", 200, []string{`RateLimit: "default";r=0;t=90`}, 90 * time.Second, limit},
		{"limit exhausted with 304", 304, []string{"X-RateLimit-Remaining: 0.0", "X-RateLimit-Reset: 90"}, 90 * time.Second, limit},
		{"limit exhausted with 403", 403, []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 90"}, 90 * time.Second, limit},
		{"limit not exhausted", 200, []string{`RateLimit: "default";r=1;t=90`}, 0, ""},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var n memnet
			n.say("example.com:80", answerText(tt.status, "", tt.fields...))
			c := n.client(t, calm)
			a := c.Poll(t.Context(), ask("http://example.com/a"))
			var want []policy.Pause
			if tt.pause != "" {
				want = []policy.Pause{{Site: "example.com", For: tt.want, Why: tt.pause}}
				if tt.fields != nil && strings.HasPrefix(tt.fields[0], "Retry-After: 60") && len(tt.fields) > 1 {
					want[0].For = 2 * time.Minute // of the limit
				}
			}
			if !slices.Equal(a.Pauses, want) {
				t.Errorf("pauses: %+v, want %+v", a.Pauses, want)
			}
			if good := tt.status < 400; good != (len(a.Good) == 1) {
				t.Errorf("answered well: %+v", a.Good)
			}
			if got := a.NotBefore.Sub(a.At); tt.want > 0 && got != tt.want || tt.want == 0 && !a.NotBefore.IsZero() || a.Holder != map[bool]string{true: policy.HintURLCooldown}[tt.want > 0] {
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
			if len(a.Pauses) != want || a.NotBefore.Sub(a.At) != 7*24*time.Hour || a.Holder != policy.HintRedirectCooldown || a.Hops["http://"+to+"/"] != 7*24*time.Hour {
				t.Errorf("%s: pauses %+v, not before %v (%q)", to, a.Pauses, a.NotBefore, a.Holder)
			}
		})
	}
}

// At private addresses and at ports that are not HTTP's a pause is the URL's own.
func TestCooldownOfPrivateHosts(t *testing.T) {
	for _, host := range []string{"rss.example.com", "example.com:8080", "93.184.216.34:8080"} {
		bubble(t, host, func(t *testing.T) {
			var n memnet
			at := host
			if !strings.Contains(host, ":") {
				at += ":80"
			}
			n.say(at, answerText(429, "", "Retry-After: 600"))
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

// A site at a public address is paused as one with a name is.
func TestCooldownOfAPublicAddress(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		var n memnet
		n.say("93.184.216.34:80", answerText(429, ""))
		a := n.client(t, calm).Poll(t.Context(), ask("http://93.184.216.34/a"))
		if want := (policy.Pause{Site: "93.184.216.34:80", Why: policy.HintHostCooldown}); len(a.Pauses) != 1 || a.Pauses[0] != want {
			t.Errorf("pauses: %+v, want %+v", a.Pauses, want)
		}
	})
}
