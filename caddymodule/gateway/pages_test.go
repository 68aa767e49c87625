// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/origintest"
)

func TestPagesAndWhoMaySeeThem(t *testing.T) {
	const alice = "/~" + secret
	onGateway(t, "feed /one.xml https://one.example/feed\ntoken alice "+secret, func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		ask(t, g, "GET", "/one.xml", stage.Outside)
		for _, tt := range []struct {
			name, target, client string
			status               int
			body                 string
		}{
			{"home", "/", stage.Home, 200, "<title>Home"},
			{"home below", "/-/", stage.Home, 200, `href="/-/feeds"`},
			{"home from abroad", "/", stage.Outside, 403, "only for users"},
			{"home with a token", alice + "/", stage.Outside, 200, `href="` + alice + `/-/feeds"`},
			{"home with a wrong token", "/~wrong-secret-00001/", stage.Home, 403, "only for users"},
			{"feeds", "/-/feeds", stage.Home, 200, "one.example"},
			{"feeds from abroad", "/-/feeds", stage.Outside, 403, "only for users"},
			{"feeds with a token", alice + "/-/feeds", stage.Outside, 200, alice + "/-/feeds?url="},
			{"one feed", "/-/feeds?url=https://one.example/feed", stage.Home, 200, "one.example"},
			{"an unknown feed", "/-/feeds?url=https://none.example/feed", stage.Home, 404, "no record"},
			{"readers", "/-/readers", stage.Home, 404, "no such page"},
			{"savings", "/-/savings", stage.Home, 200, "Savings"},
			{"style", "/-/pollard.css", stage.Outside, 200, "color-scheme"},
			{"icon", "/favicon.ico", stage.Outside, 200, ""},
			{"no page", "/-/nothing", stage.Home, 404, "no such path"},
			{"a feed in the parameter url", "/?url=https%3A%2F%2Ftwo.example%2Ffeed", stage.Home, 200, "<rss"},
		} {
			w := ask(t, g, "GET", tt.target, tt.client)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.body) {
				t.Errorf("%s: %d %.300s", tt.name, w.Code, w.Body)
			}
		}
	})
	onGateway(t, "pages off", func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		for _, target := range []string{"/", "/-/feeds", "/favicon.ico"} {
			if w := ask(t, g, "GET", target, stage.Home); w.Code != 404 || !strings.Contains(w.Body.String(), "no such path") {
				t.Errorf("without pages, %s: %d %s", target, w.Code, w.Body)
			}
		}
		if w := ask(t, g, "GET", "/https://site.example/", stage.Home); w.Code != 502 {
			t.Errorf("a site without pages: %d %s", w.Code, w.Body)
		}
	})
	onGateway(t, "", func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		if w := ask(t, g, "GET", "/-/about", stage.Outside); w.Code != 200 || !strings.Contains(w.Body.String(), "User-Agent") {
			t.Errorf("about from abroad: %d %s", w.Code, w.Body)
		}
	})
}

// A reader that requests a site's address finds its feeds, at the cost of one poll.
func TestSiteByURL(t *testing.T) {
	onGateway(t, "token alice "+secret+"\ndeny private.site.example", func(t *testing.T, g *Gateway, o *origintest.Origin) {
		const target = "/~" + secret + "/https://site.example/"
		for range 2 {
			w := ask(t, g, "GET", target, stage.Outside)
			for _, want := range []string{
				`<link rel="alternate" type="application/atom+xml" title="Posts" href="http://feeds.home.arpa/~` + secret + `/https://site.example/atom.xml">`,
				"<h1><bdi>A &amp; B</bdi></h1>",
			} {
				if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
					t.Errorf("%d %s, want %s", w.Code, w.Body, want)
				}
			}
		}
		w := ask(t, g, "GET", "/?find=site.example", stage.Home)
		if !strings.Contains(w.Body.String(), "http://feeds.home.arpa/https://site.example/atom.xml") {
			t.Errorf("find: %d %s", w.Code, w.Body)
		}
		if n := len(o.For("https://site.example/")); n != 1 {
			t.Errorf("the site was asked %d times", n)
		}
		if w := ask(t, g, "GET", "/https://empty.example/", stage.Home); w.Code != 502 {
			t.Errorf("a page without feeds: %d", w.Code)
		}
		polled := len(o.Requests())
		for _, path := range []string{"favicon.ico", "a/picture.PNG", "robots.txt", "apple-touch-icon.png"} {
			if w := ask(t, g, "GET", "/https://site.example/"+path, stage.Home); w.Code != 404 {
				t.Errorf("%s: %d", path, w.Code)
			}
		}
		if len(o.Requests()) != polled {
			t.Errorf("what never was a feed was polled: %v", o.Requests())
		}
	})
}

// The finder takes what people paste: a site, a feed, an address of this gateway. It never polls
// the gateway itself, and mistyped addresses are not counted as feeds.
func TestFinder(t *testing.T) {
	onGateway(t, "feed /chosen.xml https://one.example/feed\nfeed /posts.xml https://site.example/atom.xml\ndeny private.site.example", func(t *testing.T, g *Gateway, o *origintest.Origin) {
		const here = "http://feeds.home.arpa/"
		for _, tt := range []struct{ find, want string }{
			{"https://two.example/feed", "<code data-copy>" + here + "https://two.example/feed</code>"},
			{"https://two.example/feed", "<bdi>My weblog</bdi>"}, // what is known of it
			{here, `<li><span class="state due">due</span>`},     // of chosen ones
			{"https://one.example/feed", "<code data-copy>" + here + "chosen.xml</code>"},
			{here + "chosen.xml", "<code data-copy>" + here + "chosen.xml</code>"},
			{"/chosen.xml", "<code data-copy>" + here + "chosen.xml</code>"},
			{here + "https://two.example/feed", "<code data-copy>" + here + "https://two.example/feed</code>"},
			{here + "?url=two.example/feed", "<code data-copy>" + here + "https://two.example/feed</code>"},
			{here + here + "/https://two.example/feed", "<code data-copy>" + here + "https://two.example/feed</code>"},
			{"site.example", "<code data-copy>" + here + "posts.xml</code>"},
			{here, "an address of this gateway itself"},
			{here + "-/feeds", "an address of this gateway itself"},
			{"empty.example", "an HTML page"},
			{"https://empty.example/2026/article", `<a href="/?find=https%3a%2f%2fempty.example%2f">Look for feeds at https://empty.example/`},
			{"https://private.site.example/", "deny"},
			{"https://site.example/favicon.ico", "not the address of a feed"},
			{"https://nope.invalid/", "<bdi>nope.invalid: looking up the address"}, // in lower case
			{"site.example:99999", "not the address of a site: its port is not between 1 and 65535."},
			{"ftp://x/", "not the address of a site"},
			{"mailto:x@y", "not the address of a site"},
			{"@alice@mastodon.example", "not the address of a site"},
			{"nothing", "not the address of a site"},
		} {
			if w := ask(t, g, "GET", "/?find="+url.QueryEscape(tt.find), stage.Home); w.Code != 200 || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("find %s: %d %s, want %s", tt.find, w.Code, w.Body, tt.want)
			}
		}
		if w := ask(t, g, "GET", "/https://site.example/", stage.Home); !strings.Contains(w.Body.String(), `title="Posts" href="`+here+`posts.xml"`) {
			t.Errorf("readers do not find the chosen address: %s", w.Body)
		}
		for _, polled := range o.Requests() {
			if strings.HasPrefix(polled.URL, here) {
				t.Errorf("polled %s", polled.URL)
			}
		}
		if w := ask(t, g, "GET", "/-/feeds", stage.Home); !strings.Contains(w.Body.String(), ">2 are fresh</a>. <a href=\"/-/feeds?state=unread\">4 addresses</a> that") {
			t.Errorf("%s", w.Body)
		}
		for _, find := range []string{"https://nope.invalid/feed", "ftp://site.example/feed"} {
			if w := ask(t, g, "GET", "/?find="+url.QueryEscape(find), stage.Home); strings.Contains(w.Body.String(), "Look for feeds at") {
				t.Errorf("find %s: another address there would not help: %s", find, w.Body)
			}
		}
	})
}

// Browsers get an error as a page, and readers as a line of text.
func TestErrorsInBrowsers(t *testing.T) {
	onGateway(t, "token alice "+secret, func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		for _, tt := range []struct {
			target, client string
			status         int
			want           string
		}{
			{"/nothing-here", stage.Home, 404, `<a href="/">To the home page`},
			{"/https://empty.example/article", stage.Home, 502, `<a href="/?find=https%3a%2f%2fempty.example%2f">`},
			{"/https://none.example/feed", stage.Outside, 403, `<a href="/-/about">`},
			{"/~" + secret + "/https://none.example/feed", stage.Outside, 404, `<a href="/~` + secret + `/">To the home page`},
		} {
			w := ask(t, g, "GET", tt.target, tt.client, "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s in a browser: %d %s, want %s", tt.target, w.Code, w.Body, tt.want)
			}
			for _, accept := range []string{"", "*/*", "application/rss+xml, application/xml;q=0.9, text/html;q=0.1"} {
				if w := ask(t, g, "GET", tt.target, tt.client, "Accept", accept); w.Code != tt.status || strings.Count(w.Body.String(), "\n") != 1 {
					t.Errorf("%s with Accept %q: %d %s", tt.target, accept, w.Code, w.Body)
				}
			}
		}
	})
}

// A chosen feed that is a web page: its readers, its page and the log learn which feeds it names.
func TestChosenPage(t *testing.T) {
	onGateway(t, "feed /home.xml https://site.example/", func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		const names = "names https://site.example/atom.xml and https://***@other.example/feed"
		w := ask(t, g, "GET", "/home.xml", stage.Home)
		if w.Code != 502 || w.Body.String() != "the URL gives an HTML page, not a feed; the page "+names+"\n" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		page := ask(t, g, "GET", "/-/feeds?url=https://site.example/", stage.Home).Body.String()
		if !strings.Contains(page, "This is a web page, not a feed, which "+names+": write the URL of a feed into the configuration. Next try: ") ||
			strings.Contains(page, "A reader that asks") || strings.Contains(page, "another address now") {
			t.Errorf("its page: %s", page)
		}
		if w := ask(t, g, "GET", "/https://site.example/", stage.Home); w.Code != 200 || !strings.Contains(w.Body.String(), "/https://site.example/atom.xml") {
			t.Errorf("by URL: %d %s", w.Code, w.Body)
		}
	})
}

func TestPollByHand(t *testing.T) {
	onGateway(t, "feed /one.xml https://one.example/feed", func(t *testing.T, g *Gateway, o *origintest.Origin) {
		const form = "application/x-www-form-urlencoded"
		send := func(client string, header ...string) *httptest.ResponseRecorder {
			return post(t, g, "/-/refresh", client, form, "url=https%3A%2F%2Fone.example%2Ffeed", header...)
		}
		if w := send(stage.Outside); w.Code != 403 {
			t.Errorf("from abroad: %d", w.Code)
		}
		if len(o.Requests()) != 0 {
			t.Errorf("polled all the same: %v", o.Requests())
		}
		for _, want := range []string{"polled=new", "polled=early"} {
			if w := send(stage.Home); w.Code != 303 || !strings.Contains(w.Header().Get("Location"), want) {
				t.Errorf("%d %s, want %s", w.Code, w.Header().Get("Location"), want)
			}
		}
	})
}
