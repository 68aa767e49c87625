// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/origintest"
)

var form = url.Values{"hub.mode": {"subscribe"}, "hub.secret": {"secret"}}

// websub.rocks 203 and 204: a hub redirects with 307 and 308, and with nothing else.
func TestPostRedirects(t *testing.T) {
	for _, tt := range []struct {
		status, hops int
		asked, want  int
		err          string
	}{
		{307, 1, 2, 202, ""}, {308, 3, 4, 202, ""}, {307, 4, 4, 307, "too many"},
		{301, 1, 1, 301, ""}, {302, 1, 1, 302, ""}, {303, 1, 1, 303, ""},
	} {
		bubble(t, fmt.Sprint(tt.status, " ", tt.hops), func(t *testing.T) {
			hub := &origintest.Hub{Answer: func(r origintest.HubRequest) origintest.Answer {
				if n := strings.Count(r.URL, "x"); n < tt.hops {
					return origintest.Redirect(tt.status, "/"+strings.Repeat("x", n+1))
				}
				return origintest.Status(202)
			}}
			c := New(WithTransport(hub))
			t.Cleanup(c.Close)
			status, _, err := c.Post(t.Context(), feedurl.MustParse("https://hub.test/"), form, false)
			if status != tt.want || len(hub.Requests()) != tt.asked || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%d, %v after %d requests", status, err, len(hub.Requests()))
			}
			for _, r := range hub.Requests() {
				if r.Form.Encode() != form.Encode() {
					t.Errorf("%s got %v", r.URL, r.Form)
				}
			}
		})
	}
}

// A hub at a private address is only asked if private_upstreams has it, for feeds at private
// addresses alone; those are not told to any other hub. Nothing else is sent a byte.
func TestPostGuard(t *testing.T) {
	var asked []string
	record := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Host)
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	server := httptest.NewServer(record)
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	for _, tt := range []struct {
		name, hub        string
		allowed, private bool // private_upstreams has loopback; the feed is at a private address
		ok               bool
	}{
		{"private hub of a private feed", server.URL, true, true, true},
		{"private hub of a public feed", server.URL, true, false, false},
		{"not allowed", server.URL, false, true, false},
		{"mapped", "http://[::ffff:127.0.0.1]:" + port, false, false, false},
		{"by name", "http://localhost:" + port, false, true, false},
		{"allowed by name", "http://localhost:" + port, true, true, true},
		{"carrier-grade NAT", "http://100.64.0.1", true, true, false},
		{"link-local", "http://169.254.169.254", true, true, false},
		{"redirect to what is not allowed", server.URL + "/?to=http%3A%2F%2F10.0.0.1%2F", true, true, false},
	} {
		c := New()
		c.Apply(Settings{Hosts: unpaced, Own: func(feedurl.URL) bool { return true }})
		if tt.allowed {
			c.Apply(Settings{Hosts: unpaced, Private: loopback, Own: func(feedurl.URL) bool { return true }})
		}
		asked = nil
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		status, _, err := c.Post(ctx, feedurl.MustParse(tt.hub), form, tt.private)
		cancel()
		c.Close()
		redirected := strings.Contains(tt.hub, "?to=")
		if (err == nil) != tt.ok || tt.ok && status != 202 || (len(asked) > 0) != (tt.ok || redirected) {
			t.Errorf("%s: %d, %v; asked %v", tt.name, status, err, asked)
		}
	}
}

// The secret is not sent in the clear, and a feed at a private address is not told to a public hub.
// The hubs are behind a proxy, which takes all requests.
func TestPostToPublicHub(t *testing.T) {
	proxy := new(origintest.Proxy)
	address := proxy.Start(t)
	for _, tt := range []struct {
		hub     string
		private bool
		want    string
	}{
		{"http://hub.test/", false, errNoTLS.Error()},
		{"http://hub.test/", true, errPublic.Error()},
		{"http://hub.lan/", true, "private address"},
		{"https://hub.lan/", false, "private address"},
		{"https://hub.test/", false, "could not connect"}, // which the proxy says
	} {
		c := proxied(t, map[string]string{"*": "http://" + address})
		_, _, err := c.Post(t.Context(), feedurl.MustParse(tt.hub), form, tt.private)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	for _, r := range proxy.Asked() {
		if !strings.HasPrefix(r.Line, "CONNECT 93.184.216.34:443") {
			t.Errorf("the proxy got %s", r.Line)
		}
	}
}

// One request per spacing, and none in a pause that the hub has asked for.
func TestPostPacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := false
		hub := &origintest.Hub{Answer: func(origintest.HubRequest) origintest.Answer {
			if limited {
				return origintest.Status(429)
			}
			return origintest.Status(202)
		}}
		c := New(WithTransport(hub))
		t.Cleanup(c.Close)
		c.Apply(Settings{Private: []netip.Prefix{}})
		post := func(to string) (int, time.Time) {
			status, until, _ := c.Post(t.Context(), feedurl.MustParse(to), form, false)
			return status, until
		}
		began := time.Now()
		for range 3 {
			post("https://hub.test/")
		}
		post("https://other.test/")
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("3 requests to one hub and one to another took %v", took)
		}
		limited = true
		if status, until := post("https://hub.test/"); status != 429 || time.Until(until).Round(time.Second) != time.Hour {
			t.Errorf("%d, a pause of %v", status, time.Until(until))
		}
		limited = false
		if status, until := post("https://hub.test/other"); status != 0 || time.Until(until) < 59*time.Minute {
			t.Errorf("in the pause: %d, until %v", status, until)
		}
		if status, _ := post("https://other.test/"); status != 202 {
			t.Errorf("another hub: %d", status)
		}
		time.Sleep(time.Hour)
		if status, _ := post("https://hub.test/"); status != 202 {
			t.Errorf("after the pause: %d", status)
		}
	})
}
