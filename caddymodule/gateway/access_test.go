// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/origintest"
)

func TestAuthorize(t *testing.T) {
	list := filepath.Join(t.TempDir(), "subs.opml")
	stage.WriteFile(t, list, `<OPML><body><outline text="folder"><outline xmlurl=" https://LISTED.example:443/feed?x=1&y=2 "/></outline>
		<outline xmlUrl="https://listed.example/feed"/><outline xmlUrl="https://Listed.example/feed"/><outline xmlUrl="ftp://a.example/f"/><outline htmlUrl="https://other.example/"/>
		<outline xmlUrl="https://bad.example/feed"/></body></OPML>`)
	t.Setenv("POLLARD_TEST_SECRET", "s3cret-of-alice-0001")
	open := Gateway{}
	allow := Gateway{Allow: []string{"good.example", "*.good.example"}, Deny: []string{"bad.good.example"}}
	listed := Gateway{OPML: list, Deny: []string{"bad.example"}}
	both := Gateway{OPML: list, Allow: []string{"good.example"}}
	clients := Gateway{Clients: []string{"private", "203.0.113.0/24", "2001:db8::/32", "::ffff:198.18.0.0/111"}}
	ranges := Gateway{Clients: []string{"203.0.113.5"}}
	tokens := Gateway{Tokens: map[string]string{"a": "the-first-of-the-tokens", "b": "{env.POLLARD_TEST_SECRET}"}, Deny: []string{"bad.example"}}
	byAddress := func(client string) (urlRequest, string) { return urlRequest{}, client }
	byToken := func(secret string) (urlRequest, string) {
		return urlRequest{token: secret, hasToken: true}, stage.Outside
	}
	type who func(string) (urlRequest, string)
	tests := []struct {
		name string
		g    Gateway
		who  who
		arg  string
		feed string
		want string // "": admitted
	}{
		{"default, at home", open, byAddress, stage.Home, "https://x.example/f", ""},
		{"default, loopback IPv6", open, byAddress, "::1", "https://x.example/f", ""},
		{"default, ULA", open, byAddress, "fd12::1", "https://x.example/f", ""},
		{"default, link-local", open, byAddress, "fe80::1", "https://x.example/f", ""},
		{"default, abroad", open, byAddress, stage.Outside, "https://x.example/f", "`clients` line does not cover 203.0.113.5"},
		{"any", Gateway{Clients: []string{"any"}}, byAddress, "", "https://x.example/f", ""},
		{"a range", clients, byAddress, stage.Outside, "https://x.example/f", ""},
		{"a mapped range", clients, byAddress, "198.19.0.1", "https://x.example/f", ""},
		{"an IPv6 range", clients, byAddress, "2001:db8::1", "https://x.example/f", ""},
		{"private beside ranges", clients, byAddress, stage.Home, "https://x.example/f", ""},
		{"outside of all", clients, byAddress, "198.51.100.1", "https://x.example/f", "`clients` line does not cover 198.51.100.1"},
		{"ranges without private", ranges, byAddress, stage.Home, "https://x.example/f", "`clients` line does not cover 192.168.1.7"},

		{"a configured feed at a private address", open, byAddress, stage.Home, "http://10.1.2.3/f", "10.1.2.3 is a private address: add it to private_upstreams to allow it"},

		{"allowed host", allow, byAddress, stage.Home, "https://good.example/f", ""},
		{"not allowed", allow, byAddress, stage.Home, "https://x.example/f", "`allow` lines do not cover x.example"},
		{"denied", allow, byAddress, stage.Home, "https://bad.good.example/f", "`deny` lines cover bad.good.example"},
		{"denied in another spelling", allow, byAddress, stage.Home, "https://BAD.good.example.:443/f", "`deny` lines cover bad.good.example"},

		{"listed", listed, byAddress, stage.Home, "https://listed.example/feed", ""},
		{"listed in another spelling, in a folder", listed, byAddress, stage.Home, "https://listed.example/feed?x=1&y=2", ""},
		{"only the page is listed", listed, byAddress, stage.Home, "https://other.example/", "`opml` does not list this feed"},
		{"another feed of a listed host", listed, byAddress, stage.Home, "https://listed.example/other", "`opml` does not list this feed"},
		{"listed and denied", listed, byAddress, stage.Home, "https://bad.example/feed", "`deny` lines cover bad.example"},
		{"listed, with allow", both, byAddress, stage.Home, "https://listed.example/feed", ""},
		{"allowed, with a list", both, byAddress, stage.Home, "https://good.example/feed", ""},
		{"neither", both, byAddress, stage.Home, "https://x.example/feed", "`opml` does not list this feed, and its `allow` lines do not cover x.example"},

		{"token of the environment", tokens, byToken, "s3cret-of-alice-0001", "https://x.example/f", ""},
		{"unknown token", tokens, byToken, "the-third-of-the-tokens", "https://x.example/f", "the token in this URL is not known"},
		{"empty token", tokens, byToken, "", "https://x.example/f", "the token in this URL is not known"},
		{"a placeholder is no secret", tokens, byToken, "{env.POLLARD_TEST_SECRET}", "https://x.example/f", "not known"},
		{"token does not beat deny", tokens, byToken, "the-first-of-the-tokens", "https://bad.example/f", "`deny` lines cover bad.example"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.g.log = zap.NewNop()
			a, err := newAccess(&tt.g, caddy.NewReplacer())
			if err != nil {
				t.Fatal(err)
			}
			a.private = func(u feedurl.URL) bool { return u.Name() == "10.1.2.3" }
			by, from := tt.who(tt.arg)
			address, _ := netip.ParseAddr(from)
			feed, err := feedurl.Parse(tt.feed)
			if err != nil {
				t.Fatal(err)
			}
			who := client{Client: door.Client{Address: address}, hasToken: by.hasToken, token: a.tokenOf(by.token)}
			who.named = a.clients.name(who)
			no := a.authorize(who, feed)
			switch {
			case no == nil && tt.want != "":
				t.Errorf("admitted, want: %s", tt.want)
			case no != nil && (tt.want == "" || no.Status != 403 || !strings.Contains(no.Reason, tt.want)):
				t.Errorf("refused with %d %s, want: %s", no.Status, no.Reason, tt.want)
			}
		})
	}
}

func TestInvalidAccess(t *testing.T) {
	dir := t.TempDir()
	feed := filepath.Join(dir, "feed.xml")
	stage.WriteFile(t, feed, stage.Sample)
	tests := []struct {
		name string
		g    Gateway
		want string
	}{
		{"no such list", Gateway{OPML: filepath.Join(dir, "none.opml")}, "none.opml: no such file"},
		{"no list", Gateway{OPML: feed}, "not OPML: the document is <rss>, expected <opml>: expected a subscription list that a feed reader has exported"},
		{"empty secret", Gateway{Tokens: map[string]string{"a": "{env.POLLARD_TEST_UNSET}"}}, "token a: "},
		{"secret with a slash", Gateway{Tokens: map[string]string{"a": "0123456789abcdefx/y"}}, "token a: the secret may hold"},
		{"one secret twice", Gateway{Tokens: map[string]string{"a": "same-secret-1", "b": "same-secret-1"}}, "the tokens a and b have the same secret"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.g.log = zap.NewNop()
			_, err := newAccess(&tt.g, caddy.NewReplacer())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "x/y") {
				t.Error("the error tells the secret")
			}
		})
	}
}

// A network that requests many new feeds uses up its own limit only. Existing feeds are still served to
// it.
func TestNewFeedsAreLimitedPerNetwork(t *testing.T) {
	onGateway(t, "feed /one.xml https://one.example/feed\nclients any\ntoken alice s3cret-of-alice-0001", func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		long := "/https://long.example/feed?" + strings.Repeat("x", 2048)
		if w := ask(t, g, "GET", long, "203.0.113.5"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "2048 bytes") {
			t.Errorf("a long URL: %d %s", w.Code, w.Body)
		}
		for i := range 60 {
			if w := ask(t, g, "GET", fmt.Sprintf("/https://site%d.example/feed", i), "203.0.113.5"); w.Code == http.StatusTooManyRequests {
				t.Fatalf("feed %d: %d %s", i, w.Code, w.Body)
			}
		}
		w := ask(t, g, "GET", "/https://more.example/feed", "203.0.113.77")
		after, err := strconv.Atoi(w.Header().Get("Retry-After"))
		if w.Code != http.StatusTooManyRequests || err != nil || after < 1 || after > 10 {
			t.Fatalf("another address of the network: %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
		}
		for name, r := range map[string][2]string{
			"a known feed":     {"/https://site0.example/feed", "203.0.113.5"},
			"a configured one": {"/one.xml", "203.0.113.5"},
			"the same by URL":  {"/https://one.example/feed", "203.0.113.5"},
			"another network":  {"/https://two.example/feed", "198.51.100.1"},
			"IPv6":             {"/https://three.example/feed", "2001:db8::1"},
			"a token":          {"/~s3cret-of-alice-0001/https://four.example/feed", "203.0.113.5"},
			"a long URL":       {"/~s3cret-of-alice-0001" + long, "203.0.113.5"},
			"at home":          {"/https://five.example/feed", stage.Home},
		} {
			if w := ask(t, g, "GET", r[0], r[1]); w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		}
		time.Sleep(time.Duration(after) * time.Second)
		if w := ask(t, g, "GET", "/https://more.example/feed", "203.0.113.5"); w.Code != http.StatusOK {
			t.Errorf("after Retry-After: %d %s", w.Code, w.Body)
		}
		if w := ask(t, g, "GET", "/https://again.example/feed", "203.0.113.5"); w.Code != http.StatusTooManyRequests {
			t.Errorf("one more: %d", w.Code)
		}
	})
}
