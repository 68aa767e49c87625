// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/policy/document/site"

	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// ask sends a request to the page of a name and query.
func ask(p *Pages, at Place, method, target string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://feeds.home.arpa/-/"+target, nil)
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, door.Read(r), at, strings.TrimPrefix(r.URL.Path, "/-/"))
	return w
}

func accept(value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Accept", value) }
}

// form sends a form from a page of the same origin, as a browser does.
func form(values string) func(*http.Request) {
	return func(r *http.Request) {
		r.Body = io.NopCloser(strings.NewReader(values))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
}

func upload(list string) func(*http.Request) {
	return func(r *http.Request) {
		var body bytes.Buffer
		parts := multipart.NewWriter(&body)
		file, _ := parts.CreateFormFile("opml", "../../subscriptions.opml")
		_, _ = file.Write([]byte(list))
		_ = parts.Close()
		r.Body = io.NopCloser(&body)
		r.Header.Set("Content-Type", parts.FormDataContentType())
	}
}

func TestServe(t *testing.T) {
	const feed = "feeds?url=https%3A%2F%2Fblog.example%2Fposts%2Ffeed-0.xml"
	const list = `<opml><body><outline xmlUrl="https://a.example/f"/></body></opml>`
	tests := []struct {
		name     string
		stranger bool
		method   string
		target   string
		change   func(*http.Request)
		status   int
		want     string // in the body
	}{
		{"home", false, "GET", "", nil, 200, "1,000 feeds. "},
		{"home, a site", false, "GET", "?find=blog.example", nil, 200, "http://feeds.home.arpa/https://blog.example/posts/feed-0.xml"},
		{"home, a site without feeds", false, "GET", "?find=x.example", nil, 200, "This site names no feeds."},
		{"home, far too long", false, "GET", "?find=" + strings.Repeat("a", 5000), nil, 400, "too long"},
		{"feeds", false, "GET", "feeds", nil, 200, "50 of them on this page"},
		{"feeds, one state", false, "GET", "feeds?state=waiting", nil, 200, "11 feeds found"},
		{"feeds, no such state", false, "GET", "feeds?state=happy", nil, 400, "Expected a state of [failing gone waiting due fresh unread], sort of [state next name failures]"},
		{"feeds, too many", false, "GET", "feeds?limit=1001", nil, 400, "limit of 1 to 1000."},
		{"feeds, a long search", false, "GET", "feeds?q=" + strings.Repeat("a", 201), nil, 400, "too long"},
		{"feeds, none found", false, "GET", "feeds?q=nowhere", nil, 200, "No feed matches."},
		{"feed", false, "GET", feed, nil, 200, "Willows &amp; water"},
		{"feed that redirects", false, "GET", feed, nil, 200, "which redirects to https://blog.example/atom"},
		{"feed that is not known", false, "GET", "feeds?url=https://x.example/", nil, 404, "There is no record of this feed."},
		{"feed, after a poll", false, "GET", feed + "&polled=unchanged", nil, 200, "nothing has changed"},
		{"readers of a gateway", false, "GET", "readers", nil, 404, "There is no such page."},
		{"savings", false, "GET", "savings", nil, 200, "Sites were spared"},
		{"about", false, "GET", "about", nil, 200, "Pollard/1.0 (&#43;https://example.com/about; 14 subscribers)"},
		{"refresh", false, "POST", "refresh", form("url=https%3A%2F%2Fblog.example%2Fposts%2Ffeed-0.xml"), 303, ""},
		{"opml", false, "POST", "opml", upload(list), 200, `xmlUrl="http://feeds.home.arpa/https://a.example/f"`},
		{"opml that is none", false, "POST", "opml", upload("<html>"), 400, "Not OPML: the document is &lt;html&gt;"},
		{"opml that is text", false, "POST", "opml", upload("https://a.example/f"), 400, "Not OPML: there is no XML in it."},
		{"opml without a file", false, "POST", "opml", upload(""), 400, "no subscription list"},
		{"opml that is no form", false, "POST", "opml", form("opml=x"), 400, "no subscription list"},
		{"opml that is too large", false, "POST", "opml", upload(strings.Repeat("x", 5<<20)), 413, "4 MiB"},
		{"another page", false, "GET", "nothing", nil, 404, "There is no such page."},

		{"POST to a page", false, "POST", "feeds", nil, 405, "Expected GET, HEAD."},
		{"DELETE", false, "DELETE", "feeds", nil, 405, ""},
		{"GET of refresh", false, "GET", "refresh?url=https%3A%2F%2Fblog.example%2Fposts%2Ffeed-0.xml", nil, 405, "Expected POST."},
		{"HEAD of refresh", false, "HEAD", "refresh?url=https%3A%2F%2Fblog.example%2Fposts%2Ffeed-0.xml", nil, 405, ""},
		{"PUT of opml", false, "PUT", "opml", nil, 405, "Expected GET, HEAD, POST."},
		{"list of feeds", false, "GET", "opml", nil, 200, `<opml version="2.0">`},
		{"stranger at home", true, "GET", "", nil, 403, "only for users of this gateway"},
		{"stranger at the feeds", true, "GET", "feeds", nil, 403, ""},
		{"stranger at a feed", true, "GET", feed, nil, 403, ""},
		{"stranger at the savings", true, "GET", "savings", nil, 403, ""},
		{"stranger who polls", true, "POST", "refresh", form("url=x"), 403, ""},
		{"stranger who wants the list", true, "GET", "opml", nil, 403, ""},
		{"stranger with a list", true, "POST", "opml", upload(list), 403, ""},
		{"stranger who reads about us", true, "GET", "about", nil, 200, "How to slow it down or stop it"},
		{"stranger, style", true, "GET", "pollard.css", nil, 200, "color-scheme"},
		{"stranger, icon", true, "GET", "favicon.ico", nil, 200, "\x89PNG"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, source, at := newPages(t, 1000)
			at.Member = !tt.stranger
			change := tt.change
			if change == nil {
				change = func(*http.Request) {}
			}
			w := ask(p, at, tt.method, tt.target, change)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Body, tt.status, tt.want)
			}
			if name := w.Header().Get("Content-Disposition"); tt.name == "opml" && name != `attachment; filename="pollard-1-changed-0-left.opml"` {
				t.Errorf("the list is saved as %s", name)
			}
			if tt.status == 405 && w.Header().Get("Allow") == "" {
				t.Error("405 without Allow")
			}
			if polled := len(source.polledByHand()) > 0; polled != (tt.status == 303) {
				t.Errorf("polled a feed: %v", polled)
			}
			h := w.Header()
			if policy := h.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
				t.Errorf("Content-Security-Policy: %s", policy)
			}
			if h.Get("Referrer-Policy") != "strict-origin" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers %v", h)
			}
			if tt.stranger && strings.Contains(w.Body.String(), `href="/-/feeds`) {
				t.Error("a stranger is led to pages that are not for strangers")
			}
		})
	}
}

// A stranger gets the page about the poller and nothing else, and no page asks its source for one. A gateway
// that lists no feeds shows none on any page.
func TestStrangersSeeNoPage(t *testing.T) {
	for _, name := range pageNames() {
		p, source, at := newPages(t, 1000)
		p, at = homeOf(name, p, at)
		at.Member = false
		p.Source = nil // asking it panics
		if w := ask(p, at, "GET", name); name != pageAbout && w.Code != 403 {
			t.Errorf("a stranger at %q gets %d", name, w.Code)
		}
		at.Member, at.Unlisted, p.Source = true, true, source
		for _, kind := range []string{"text/html", "application/json"} {
			if w := ask(p, at, "GET", name, accept(kind)); strings.Contains(w.Body.String(), "/posts/feed-") {
				t.Errorf("a gateway that lists no feeds shows some at %q as %s: %s", name, kind, w.Body)
			}
		}
	}
}

// A HEAD is answered as a GET is, without the body.
func TestHead(t *testing.T) {
	for _, target := range append(pageNames(), "pollard.css", "nothing") {
		p, _, at := newPages(t, 100)
		p, at = homeOf(target, p, at)
		get, head := ask(p, at, "GET", target), ask(p, at, "HEAD", target)
		if head.Code != get.Code || head.Body.Len() != 0 || head.Header().Get("Content-Length") != get.Header().Get("Content-Length") {
			t.Errorf("%s: HEAD gives %d, %d bytes, %v; GET gives %d, %v", target, head.Code, head.Body.Len(), head.Header(), get.Code, get.Header())
		}
	}
}

func TestJSON(t *testing.T) {
	p, _, at := newPages(t, 1000)
	tests := []struct {
		name, target, accept string
		status               int
		want                 string // a member of the document; empty: a page
	}{
		{"feeds", "feeds?limit=3&q=feed-1", "application/json", 200, "feeds"},
		{"one feed", "feeds?url=https%3A%2F%2Fblog.example%2Fposts%2Ffeed-0.xml", "application/json", 200, "considered"},
		{"savings", "savings", "application/json, */*;q=0.1", 200, "days"},
		{"preferred", "feeds", "text/html;q=0.5, application/json;q=0.9", 200, "feeds"},
		{"unknown feed", "feeds?url=https://x.example/", "application/json", 404, "error"},
		{"bad query", "feeds?state=x", "application/json", 400, "error"},
		{"browser", "feeds", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", 200, ""},
		{"anything", "feeds", "*/*", 200, ""},
		{"equal", "feeds", "application/json, text/html", 200, ""},
		{"refused", "feeds", "application/json;q=0", 200, ""},
		{"nonsense", "feeds", ";;;,,=application/json", 200, ""},
		{"home", "", "application/json", 200, "gateway"},
		{"what a site has", "?find=blog.example", "application/json", 200, "site"},
		{"too long an address", "?find=" + strings.Repeat("x", maxFind+1), "application/json", 400, "site"},
		{"about", "about", "application/json", 200, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := ask(p, at, "GET", tt.target, accept(tt.accept))
			if w.Code != tt.status {
				t.Fatalf("got %d, want %d", w.Code, tt.status)
			}
			if tt.want == "" {
				if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/html") {
					t.Errorf("got %s", got)
				}
				return
			}
			var document map[string]json.RawMessage
			if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil || document[tt.want] == nil || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("got %s: %v", w.Body, err)
			}
			if w.Header().Get("Vary") != "Accept" {
				t.Errorf("Vary: %s", w.Header().Get("Vary"))
			}
		})
	}
}

// A part of a list begins after the one before. (That all parts are the list is tested in package status.)
func TestParts(t *testing.T) {
	p, _, at := newPages(t, 333)
	part := func(query string) (list status.FeedList) {
		if err := json.Unmarshal(ask(p, at, "GET", "feeds?limit=100"+query, accept("application/json")).Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	first := part("")
	second := part("&after=" + url.QueryEscape(first.Next))
	if len(first.Feeds) != 100 || len(second.Feeds) != 100 || first.Feeds[99].ID == second.Feeds[0].ID || second.Next <= first.Next {
		t.Errorf("%d feeds until %q, then %d until %q", len(first.Feeds), first.Next, len(second.Feeds), second.Next)
	}
}

func TestRefresh(t *testing.T) {
	tests := []struct {
		name, form string
		early      bool
		want       string // Location
	}{
		{"by URL", "url=https%3A%2F%2Fblog.example%2Ff%3Fa%3D1%26b", false, "/~secret/-/feeds?url=https%3A%2F%2Fblog.example%2Ff%3Fa%3D1%26b&polled=unchanged"},
		{"by ID", "id=0a%2F..", false, "/~secret/-/feeds?id=0a%2F..&polled=unchanged"},
		{"too early", "url=https%3A%2F%2Fblog.example%2Ff", true, "/~secret/-/feeds?url=https%3A%2F%2Fblog.example%2Ff&polled=early"},
		{"to another site", "url=%2F%2Fevil.example%2F%0d%0aX:y", false, "/~secret/-/feeds?id=&polled=unchanged"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, source, _ := newPages(t, 10)
			source.early = tt.early
			at := Place{Home: "/~secret/", Below: "/~secret/-/", Token: true, Member: true}
			w := ask(p, at, "POST", "refresh", form(tt.form))
			if got := w.Header().Get("Location"); w.Code != 303 || got != tt.want {
				t.Errorf("got %d to %s, want %s", w.Code, got, tt.want)
			}
		})
	}
}

// Links keep the token, and what leaves has none.
func TestToken(t *testing.T) {
	p, _, _ := newPages(t, 100)
	at := Place{Home: "/~secret/", Below: "/~secret/-/", Gateway: "http://feeds.home.arpa/~secret/", Token: true, Member: true}
	targets := []string{"?find=blog.example", "feeds?url=https%3A%2F%2Fblog.example%2Fposts%2Ffeed-0.xml", "nothing"}
	for _, name := range pageNames() {
		if !notHTML[name] && !routes[name].shield { // lists and feeds name the gateway, and a shield has no tokens
			targets = append(targets, name)
		}
	}
	for _, target := range targets {
		body := ask(p, at, "GET", target).Body.String()
		for _, own := range []string{`href="/-/`, `action="/-/`, `src="/-/`, `href="/"`, "javascript:"} {
			if strings.Contains(body, own) {
				t.Errorf("%s has %s", target, own)
			}
		}
		if !strings.Contains(body, `href="/~secret/-/about"`) {
			t.Errorf("%s loses the token", target)
		}
	}
}

// Only a visit to the home page makes it look for feeds.
func TestFindFromElsewhere(t *testing.T) {
	for dest, want := range map[string]bool{"": true, "document": true, "image": false, "iframe": false, "empty": false, "script": false} {
		p, _, at := newPages(t, 1)
		asked := false
		p.Discover = func(*door.Request, string) (Site, error) { asked = true; return Site{}, nil }
		ask(p, at, "GET", "?find=https://blog.example/", func(r *http.Request) {
			if dest != "" {
				r.Header.Set("Sec-Fetch-Dest", dest)
			}
		})
		if asked != want {
			t.Errorf("asked for as %q: a site was asked: %v", dest, asked)
		}
	}
}

// The home page of a gateway for any client is made without a pass over all feeds.
func TestUnlistedHome(t *testing.T) {
	p, source, at := newPages(t, 10)
	at.Unlisted = true
	source.list = func(status.Query) (status.FeedList, error) { panic("asked for feeds") }
	if w := ask(p, at, "GET", ""); w.Code != 200 || strings.Contains(w.Body.String(), "feeds.home.arpa/-/opml") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A shield has neither addresses by URL nor lists to rewrite, but a page of its readers.
func TestShield(t *testing.T) {
	p, _, _ := newPages(t, 10)
	p, at := ofShield(p)
	body := ask(p, at, "GET", "").Body.String()
	for _, not := range []string{`name="find"`, `name="opml"`} {
		if strings.Contains(body, not) {
			t.Errorf("the home page offers %s", not)
		}
	}
	if !strings.Contains(body, `<ol class="rows feeds">`) || !strings.Contains(body, `action="/status/feeds"`) {
		t.Error("the home page does not list the feeds")
	}
	if w := ask(p, at, "POST", "opml", upload("<opml/>")); w.Code != 404 {
		t.Errorf("opml is answered with %d", w.Code)
	}
	if body := ask(p, at, "GET", "feeds?url=https%3A%2F%2Fblog.example%2Fposts%2Ffeed-0.xml").Body.String(); strings.Contains(body, "For your reader") {
		t.Error("a feed has an address that does not exist")
	}
	for target, wants := range map[string][]string{
		"readers":              {"they take 94 % of the bytes", `href="/status/readers?sort=requests#by"`, "<b>bytes</b>", "A score is what is left of 100 points: A from 90"},
		"readers?sort=refused": {`href="/status/readers?sort=requests#by"`, "<b>refused requests</b>"},
	} {
		body := ask(p, at, "GET", target).Body.String()
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s has no %s", target, want)
			}
		}
	}
	if w := ask(p, at, "GET", "readers", accept("application/json")); !strings.Contains(w.Body.String(), `"families": [`) {
		t.Errorf("readers as JSON: %s", w.Body)
	}
	at.Member = false
	for _, target := range []string{"", "feeds", "readers", "savings"} {
		if w := ask(p, at, "GET", target); w.Code != 403 {
			t.Errorf("%s is answered with %d to a stranger", target, w.Code)
		}
	}
}

// Errors of the source are logged, not shown.
func TestFailingSource(t *testing.T) {
	p, source, at := newPages(t, 10)
	var logged bytes.Buffer
	p.Log = slog.New(slog.NewTextHandler(&logged, nil))
	failed := errors.New("open /var/lib/pollard/feeds.db: no space left")
	source.list = func(status.Query) (status.FeedList, error) { return status.FeedList{}, failed }
	source.account = func(Which) (status.Feed, []byte, error) { return status.Feed{}, nil, failed }
	source.who = func() (status.Readers, error) { return status.Readers{}, failed }
	source.saved = func() (status.Savings, error) { return status.Savings{}, failed }
	p.Discover = func(*door.Request, string) (Site, error) { return Site{}, failed }
	for _, target := range []string{"?find=x", "feeds", "feeds?url=x", "savings", "readers"} {
		if target == "readers" {
			p, at = ofShield(p)
		}
		for _, kind := range []string{"text/html", "application/json"} {
			logged.Reset()
			w := ask(p, at, "GET", target, accept(kind))
			if w.Code != 500 || strings.Contains(w.Body.String(), "/var/lib") {
				t.Errorf("%s: %d %s", target, w.Code, w.Body)
			}
			if !strings.Contains(logged.String(), "no space left") {
				t.Errorf("%s: nothing is logged", target)
			}
		}
	}
}

// Readers find the feeds of a site that was asked for by URL.
func TestServeSite(t *testing.T) {
	p, _, at := newPages(t, 10)
	at.Gateway = "http://feeds.home.arpa/~secret/"
	w := httptest.NewRecorder()
	p.ServeSite(w, door.Read(httptest.NewRequest("GET", "/https://blog.example/", nil)), at, Site{
		URL: "https://blog.example/", Title: "A blog",
		Feeds: []Found{{URL: "https://blog.example/atom.xml?a=1&b", Title: `All "posts"`, Type: "application/atom+xml"}},
	})
	// Readers look for exactly this.
	found := site.Read(w.Body.Bytes(), w.Header().Get("Content-Type"), "http://feeds.home.arpa/~secret/https://blog.example/")
	want := site.Feed{URL: "http://feeds.home.arpa/~secret/https://blog.example/atom.xml?a=1&b", Title: `All "posts"`, Type: "application/atom+xml"}
	if w.Code != 200 || len(found.Feeds) != 1 || found.Feeds[0] != want {
		t.Errorf("got %d with %+v", w.Code, found.Feeds)
	}
}

func TestAssets(t *testing.T) {
	p, _, at := newPages(t, 10)
	for _, name := range []string{"pollard.css", "pollard.js", "favicon.ico"} {
		w := ask(p, at, "GET", name+"?"+assets[name].tag)
		if got := w.Header().Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("%s: Cache-Control: %s", name, got)
		}
		if got := ask(p, at, "GET", name+"?old").Header().Get("Cache-Control"); strings.Contains(got, "immutable") {
			t.Errorf("%s in another edition: Cache-Control: %s", name, got)
		}
		again := ask(p, at, "GET", name, func(r *http.Request) { r.Header.Set("If-None-Match", w.Header().Get("ETag")) })
		if again.Code != 304 || again.Body.Len() != 0 {
			t.Errorf("%s is answered with %d again", name, again.Code)
		}
	}
}

// The pages stay small: people open them on phones, beside their readers.
func TestWeight(t *testing.T) {
	p, _, at := newPages(t, 10_000)
	css, js, icon := len(assets[pageStyle].body), len(assets[pageScript].body), len(assets[pageIcon].body)
	home := ask(p, at, "GET", "").Body.Len()
	feeds := ask(p, at, "GET", "feeds").Body.Len()
	t.Logf("style %d, script %d, icon %d, home %d, a page of feeds %d bytes", css, js, icon, home, feeds)
	if css >= 8<<10 {
		t.Errorf("the stylesheet has %d bytes", css)
	}
	if all := css + js + icon + home; all >= 30_000 {
		t.Errorf("the home page has %d bytes in all", all)
	}
	if feeds >= 80_000 {
		t.Errorf("a page of feeds has %d bytes", feeds)
	}
}

// Trouble heads every page, also one that cannot be made because of it. Strangers learn nothing of it.
func TestTroubleIsShownFirst(t *testing.T) {
	p, source, at := newPages(t, 3)
	source.trouble = status.Trouble{Offline: true, StoreAway: true, OfflineSince: time.Now().Add(-time.Hour)}
	source.saved = func() (status.Savings, error) { return status.Savings{}, errors.New("no such table") }
	for _, target := range []string{"", "feeds", "feeds?url=x", "savings", "about", "nothing"} {
		body := ask(p, at, "GET", target).Body.String()
		store, offline, heading := strings.Index(body, "The store cannot be reached, so nothing is polled"), strings.Index(body, "No site can be reached since <time"), strings.Index(body, "<h1")
		if store < 0 || offline < store || heading < offline {
			t.Errorf("%q: the store is at %d, the network at %d, the heading at %d", target, store, offline, heading)
		}
	}
	at.Member = false
	if body := ask(p, at, "GET", "about").Body.String(); strings.Contains(body, "cannot be reached") {
		t.Error("a stranger learns of the trouble")
	}
}

// A browser gets a page in place of a line of text: with the reason, when to try again, a way
// back, and the site's home page if the URL was that of an article.
func TestServeProblem(t *testing.T) {
	p, _, at := newPages(t, 3)
	for _, tt := range []struct{ url, home string }{{"https://blog.example/2026/article", "https://blog.example/"}, {"https://blog.example/", ""}, {"", ""}} {
		w := httptest.NewRecorder()
		w.Header().Set("Retry-After", "7200")
		p.ServeProblem(w, door.Read(httptest.NewRequest("GET", "/", nil)), at, 502, "It is <b>no feed</b>.", tt.url)
		body := w.Body.String()
		if w.Code != 502 || !strings.Contains(body, "Try again in 2 h, at <time") || !strings.Contains(body, "It is &lt;b&gt;no feed&lt;/b&gt;.") || !strings.Contains(body, `<a href="/">To the home page`) || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s", tt.url, w.Code, body)
		}
		if got := strings.Contains(body, `href="/?find=https%3a%2f%2fblog.example%2f"`); got != (tt.home != "") {
			t.Errorf("%s: offers the home page: %v", tt.url, got)
		}
	}
	w := httptest.NewRecorder()
	w.Header().Set("Retry-After", "60")
	if p.ServeProblem(w, door.Read(httptest.NewRequest("GET", "/", nil)), at, 403, "It is a private address.", ""); strings.Contains(w.Body.String(), "Try again") {
		t.Errorf("a 403 says %s", w.Body)
	}
}

// The page of a failing feed says what is wrong and what to do before anything else, and its polls before
// the decision. It links to the feed itself.
func TestPageOfFailingFeed(t *testing.T) {
	p, source, at := newPages(t, 3)
	for _, tt := range []struct {
		failure policy.Failure
		status  int
		remedy  string
	}{{policy.FailureNotFound, 404, "look for it at the site"}, {policy.FailureStatus, 503, "nothing needs to be done"}, {policy.FailureConnect, 0, "nothing needs to be done"}} {
		source.account = func(Which) (status.Feed, []byte, error) {
			f := source.detailed(source.row(0))
			f.State, f.Failures, f.LastFailure, f.LastStatus, f.LastError = status.StateFailing, 2, tt.failure, tt.status, "x.example: <b>broken</b>"
			return f, nil, nil
		}
		body, at0 := ask(p, at, "GET", "feeds?url=https%3A%2F%2Fblog.example%2Fposts%2Ffeed-0.xml").Body.String(), -1
		for _, want := range []string{">failing<", "x.example: &lt;b&gt;broken", tt.remedy, `href="http://feeds.home.arpa/https://blog.example/posts/feed-0.xml">raw</a>`, "Last polls", "How the next poll was decided"} {
			found := strings.Index(body, want)
			if found <= at0 {
				t.Errorf("%d: %q is at %d, and what comes before it at %d", tt.status, want, found, at0)
			}
			at0 = found
		}
	}
}

// A remedy is that of the failure: only what is not a feed may be one at another address.
func TestRemedyOfFailure(t *testing.T) {
	p, source, at := newPages(t, 3)
	for _, tt := range []struct {
		failure policy.Failure
		status  int
		remedy  string
	}{
		{policy.FailureNotFeed, 200, status.LookElsewhere},
		{policy.FailureTruncated, 200, ""}, {policy.FailureOversize, 200, ""}, {policy.FailureProtocol, 200, ""},
		{policy.FailureProtocol, 0, ""}, {policy.FailureConnect, 0, "nothing needs to be done"},
		{policy.FailureAddress, 0, ""}, {policy.FailureInternal, 0, ""}, {policy.FailureProxy, 0, "look whether it runs"},
	} {
		source.account = func(Which) (status.Feed, []byte, error) {
			f := source.detailed(source.row(0))
			f.State, f.Failures, f.LastFailure, f.LastStatus, f.LastError = status.StateFailing, 2, tt.failure, tt.status, "broken"
			return f, nil, nil
		}
		body := ask(p, at, "GET", "feeds?url=https%3A%2F%2Fblog.example%2Fposts%2Ffeed-0.xml").Body.String()
		for _, remedy := range []string{status.LookElsewhere, "nothing needs to be done", "look whether it runs"} {
			if got, want := strings.Contains(body, remedy), remedy == tt.remedy; got != want {
				t.Errorf("%s with status %d: says %q: %v", tt.failure, tt.status, remedy, got)
			}
		}
	}
}

// A headline's counts are links.
func TestLinks(t *testing.T) {
	p, _, at := newPages(t, 1000)
	at.Chosen = func() ([]status.Feed, error) {
		return []status.Feed{{URL: "https://blog.example/feed", Address: "http://feeds.home.arpa/river.xml", State: status.StateFailing}}, nil
	}
	for target, wants := range map[string][]string{
		"feeds": {`<a href="/-/feeds?state=failing">31 are failing</a>`, "3 addresses</a> that readers asked for never gave a feed"},
		"":      {`<a href="/-/feeds?state=failing">31 are failing</a>`, `<code data-copy>http://feeds.home.arpa/river.xml</code>`, `<li><span class="state failing">failing</span>`},
	} {
		body := ask(p, at, "GET", target).Body.String()
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s has no %s", target, want)
			}
		}
	}
}

// Pages tell no other site where they are, as their paths may hold a token.
func TestLinksToOtherSitesHideTheirPage(t *testing.T) {
	p, _, at := newPages(t, 3)
	server := serve(t, p, at)
	anchor, others := regexp.MustCompile(`<a [^>]*href="https?://[^>]*>`), 0
	for _, path := range everyPage() {
		resp, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range anchor.FindAllString(string(text), -1) {
			if strings.Contains(link, `href="`+server.URL+"/") {
				continue
			}
			if others++; !strings.Contains(link, `rel="noreferrer`) {
				t.Errorf("%s: %s", path, link)
			}
		}
	}
	if others < 4 {
		t.Errorf("pages have %d links to other sites", others)
	}
}
