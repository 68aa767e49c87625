// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/origintest"
)

// A page whose name resolves to the gateway gets nothing that only the addresses of its readers
// may have (DNS rebinding).
func TestNamesOfStrangers(t *testing.T) {
	const token = "/~" + secret
	gateway := "feed_gateway {\nfeed /one.xml https://one.example/feed\ntoken alice " + secret + "\n}"
	sites := "http:// {\nbind void/feeds\n" + gateway + "\n}\n" +
		"http://feeds.example.com, http://*.home.example.com {\nbind void/feeds\n" + gateway + "\n}\n" +
		"http://own.example.org {\nbind void/feeds\nhandle {\n@inner host inner.example.org\nhandle @inner {\n" + gateway + "\n}\n}\n}\n" +
		"http://any.example.org {\nbind void/other\nfeed_gateway {\nclients any\n}\n}\n"
	onSites(t, "", sites, func(t *testing.T) {
		for _, tt := range []struct {
			host, target string
			want         int
		}{
			{"evil.example.net", "/https://two.example/feed", 403},
			{"evil.example.net", "/https://one.example/feed", 403},
			{"evil.example.net", "/-/feeds", 403},
			{"evil.example.net", "/?find=two.example", 403},
			{"evil.example.net", "/one.xml", 200}, // every client may have it
			{"evil.example.net", token + "/https://two.example/feed", 200},
			{"evil.example.net", token + "/-/feeds", 200},
			{"192.168.1.5", "/https://two.example/feed", 200},
			{"nas", "/-/feeds", 200},
			{"FEEDS.example.com.", "/https://two.example/feed", 200},
			{"a.home.example.com", "/-/feeds", 200},
			{"inner.example.org", "/https://two.example/feed", 200},
		} {
			w := stage.Get(t, "http://"+tt.host+tt.target, stage.Home)
			if w.Code != tt.want {
				t.Errorf("%s%s: %d %.200s, want %d", tt.host, tt.target, w.Code, w.Body, tt.want)
			}
			if by := strings.HasPrefix(tt.target, "/https"); by && tt.want == 403 && !strings.Contains(w.Body.String(), "http://"+tt.host+" as the address of the gateway's site") {
				t.Errorf("%s%s: the error does not say what to write: %s", tt.host, tt.target, w.Body)
			}
		}
	})
}

// Behind a proxy that is trusted, each of the two names of a request must be one that no stranger can
// own, as the proxy may replace the one and pass the other on. Pages have the second, if there is one.
func TestNamesBehindProxy(t *testing.T) {
	const proxy, other = "192.168.1.2", "192.168.1.3"
	sites := "http:// {\nbind void/feeds\nfeed_gateway\n}\nhttp://feeds.example.com {\nbind void/feeds\nfeed_gateway\n}\n"
	onSites(t, "servers {\ntrusted_proxies static "+proxy+"\n}", sites, func(t *testing.T) {
		for _, tt := range []struct {
			from, host, forwarded string
			want                  string // the address of the gateway, or a part of the error
		}{
			{proxy, "pollard:8080", "", "http://pollard:8080/"},
			{proxy, "pollard:8080", "feeds.home.arpa", "http://feeds.home.arpa/"},
			{proxy, "pollard:8080", "feeds.example.com:8443", "http://feeds.example.com:8443/"},
			{proxy, "pollard:8080", "evil.example.org", "needs http://evil.example.org as the address"},
			{proxy, "evil.example.org", "feeds.home.arpa", "needs http://evil.example.org as the address"},
			{proxy, "evil.example.org", "evil.example.org", "needs http://evil.example.org as the address"},
			{proxy, "pollard:8080", "evil.example.org, feeds.home.arpa", "http://feeds.home.arpa/"},
			{proxy, "pollard:8080", "feeds.home.arpa, evil.example.org", "needs http://evil.example.org as the address"},
			{proxy, "pollard:8080", "no host/<b>", "http://pollard:8080/"},
			{proxy, "pollard:8080", "user@feeds.home.arpa", "http://pollard:8080/"},
			{proxy, "evil.example.org", "a b", "needs http://evil.example.org as the address"},
			{other, "nas", "feeds.home.arpa", "http://nas/"},
			{other, "evil.example.org", "feeds.home.arpa", "needs http://evil.example.org as the address"},
		} {
			header := []string{"Accept", "application/json"}
			if tt.forwarded != "" {
				header = append(header, "X-Forwarded-Host", tt.forwarded)
			}
			if tt.from == proxy {
				header = append(header, "X-Forwarded-For", "192.168.1.9")
			}
			home := stage.Get(t, "http://"+tt.host+"/-/", tt.from, header...)
			got := stage.Get(t, "http://"+tt.host+"/https://two.example/feed", tt.from, header...)
			admitted := !strings.HasPrefix(tt.want, "needs")
			if admitted && (got.Code != 200 || !strings.Contains(home.Body.String(), `"gateway": "`+tt.want+`"`)) {
				t.Errorf("%s, %s and %s: %d %.100s, home page %.200s; want %s", tt.from, tt.host, tt.forwarded, got.Code, got.Body, home.Body, tt.want)
			}
			if !admitted && (got.Code != 403 || home.Code != 403 || !strings.Contains(got.Body.String(), tt.want)) {
				t.Errorf("%s, %s and %s: %d %.200s, home page %d; want 403 with %s", tt.from, tt.host, tt.forwarded, got.Code, got.Body, home.Code, tt.want)
			}
		}
	})
}

// kind is what a request may have by URL.
type kind int

const (
	anything  kind = iota // a feed, and a new one
	knownOnly             // a feed that is known
	nothing               // the same 403 for every feed
)

// senders are requests for feeds with the fields by which their senders are told apart. Those of browsers are of
// Chromium 156 and Firefox 153.
var senders = map[string]struct {
	may    kind
	header []string
}{
	"a reader":                       {anything, nil},
	"newsboat":                       {anything, []string{"Accept", "*/*"}},
	"a reader with a page":           {anything, []string{"Referer", "http://feeds.home.arpa:8080/x"}},
	"a reader with a Referer":        {knownOnly, []string{"Referer", "http://reader.example/", "Accept", "*/*"}},
	"a link":                         {anything, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Accept", "text/html", "Referer", "https://evil.example/"}},
	"a link of a sibling":            {anything, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Accept", "text/html"}},
	"a link over http":               {anything, []string{"Referer", "https://evil.example/", "Accept", "text/html,*/*;q=0.8"}},
	"an address typed":               {anything, []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Accept", "text/html"}},
	"a page of this site":            {anything, []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Dest", "document"}},
	"a script of this site":          {anything, []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Origin", "http://feeds.home.arpa", "Referer", "http://feeds.home.arpa/"}},
	"a reader of Electron":           {anything, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Accept", "*/*"}},
	"a reader of Electron, the same": {anything, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}},
	"an extension of Chromium":       {anything, []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Accept", "*/*"}},
	"an extension of Firefox":        {anything, []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Accept", "*/*"}},
	"an extension without rights":    {nothing, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Origin", "moz-extension://5d7d9cf4", "Accept", "*/*"}},

	"a script":              {nothing, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Origin", "https://evil.example"}},
	"a script without CORS": {nothing, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "empty"}},
	"a sibling with CORS":   {nothing, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Origin", "https://evil.home.arpa"}},
	"an image":              {nothing, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image", "Accept", "image/*"}},
	"a script of a sibling": {nothing, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "empty"}},
	"a frame":               {nothing, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe", "Accept", "text/html"}},
	"an object":             {nothing, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "object", "Accept", "text/html"}},
	"a prefetch":            {nothing, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "empty", "Sec-Purpose", "prefetch", "Accept", "text/html"}},
	"a prefetch over http":  {nothing, []string{"Sec-Purpose", "prefetch", "Accept", "text/html"}},
	"speculation rules":     {nothing, []string{"Sec-Purpose", "prefetch;prerender", "Sec-Fetch-Site", "none", "Sec-Fetch-Dest", "document", "Accept", "text/html"}},
	"an image over http":    {knownOnly, []string{"Referer", "http://evil.example/page", "Accept", "image/*"}},
	"a script over http":    {nothing, []string{"Origin", "http://evil.example", "Accept", "*/*"}},
	"a page that links":     {nothing, []string{"Origin", "http://evil.example", "Accept", "text/html"}},
	"a script of a sandbox": {nothing, []string{"Origin", "null"}},
}

// A page of another site gets no feed by URL, adds none, and does not learn which are known: neither as an
// image nor by a script nor by prefetching. With the line cors it gets those that are known. Readers get all.
func TestPagesOfOtherSites(t *testing.T) {
	for _, cors := range []string{"", "cors\n"} {
		onGateway(t, cors+"token alice "+secret, func(t *testing.T, g *Gateway, o *origintest.Origin) {
			for name, tt := range senders {
				known, new := "/https://known.example/"+word(name), "/https://new.example/"+word(name)
				if w := ask(t, g, "GET", known, stage.Home); w.Code != 200 {
					t.Fatal(w.Code)
				}
				before := len(o.Requests())
				gotKnown, gotNew := ask(t, g, "GET", known, stage.Home, tt.header...), ask(t, g, "GET", new, stage.Home, tt.header...)
				may := tt.may
				if cors != "" && may == nothing {
					may = knownOnly
				}
				if (gotKnown.Code == 200) != (may != nothing) || (gotNew.Code == 200) != (may == anything) {
					t.Errorf("%s, cors %v: %d for a known feed, %d for a new one", name, cors != "", gotKnown.Code, gotNew.Code)
				}
				if may == nothing && (gotKnown.Code != 403 || fmt.Sprint(gotKnown.Code, gotKnown.Header(), gotKnown.Body) != fmt.Sprint(gotNew.Code, gotNew.Header(), gotNew.Body)) {
					t.Errorf("%s: %v %s for a known feed, %v %s for a new one", name, gotKnown.Header(), gotKnown.Body, gotNew.Header(), gotNew.Body)
				}
				if gotNew.Code == 403 && (gotNew.Header().Get("Cache-Control") != "no-store" || !strings.Contains(gotNew.Body.String(), "open it in a window of its own")) {
					t.Errorf("%s: the error does not say what to do: %v %s", name, gotNew.Header(), gotNew.Body)
				}
				for _, w := range []*httptest.ResponseRecorder{gotKnown, gotNew, ask(t, g, "GET", "/https://none.example/", stage.Home), ask(t, g, "GET", "/http:///", stage.Home)} {
					if policy := w.Header().Get("Cross-Origin-Resource-Policy"); policy != "same-origin" && cors == "" || policy != "" && cors != "" && w.Code == 200 {
						t.Errorf("%s, cors %v: %d with Cross-Origin-Resource-Policy %q", name, cors != "", w.Code, policy)
					}
				}
				ask(t, g, "GET", "/?find=found.example/"+word(name), stage.Home, tt.header...)
				if w := ask(t, g, "GET", "/~"+secret+"/https://token.example/"+word(name), stage.Home, tt.header...); w.Code != 200 {
					t.Errorf("%s with a token: %d %s", name, w.Code, w.Body)
				}
				for _, r := range o.Requests()[before:] {
					if strings.Contains(r.URL, "new.example") && may != anything || strings.Contains(r.URL, "found.example") && tt.may != anything {
						t.Errorf("%s, cors %v: %s was polled", name, cors != "", r.URL)
					}
				}
			}
		})
	}
}

// SimplePie sends the address of the feed as Referer. Behind a proxy that sends another Host, that is of another host.
func TestRefererOfTheFeedItself(t *testing.T) {
	onGateway(t, "feed /one.xml https://one.example/feed", func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		for target, tests := range map[string]map[string]int{
			"/https://new.example/feed?a=b": {
				"http://reader.example/https://new.example/feed?a=c": 403, "http://reader.example/feed?a=b": 403, "http://reader.example/": 403, "%": 403,
				"http://feeds.example/https://new.example/feed?a=b": 200,
			},
			"/https:/merged.example/feed": {"http://feeds.example/https://merged.example/feed": 200}, // nginx merges slashes
		} {
			for _, want := range []int{403, 200} { // first those that do not add it
				for referer, status := range tests {
					if status != want {
						continue
					}
					if w := ask(t, g, "GET", target, stage.Home, "Referer", referer, "Accept", "application/rss+xml, */*;q=0.1"); w.Code != want {
						t.Errorf("%s with the Referer %s: %d %s", target, referer, w.Code, w.Body)
					}
				}
			}
		}
	})
}

func word(text string) string {
	return strings.NewReplacer(" ", "-", ",", "").Replace(strings.ToLower(text))
}

// Answers by URL depend on the client; only its own answers may be read by scripts
// of other sites; and a request may ask for one version alone.
func TestHeadersByURL(t *testing.T) {
	onGateway(t, "cors\nfeed /one.xml https://one.example/feed", func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		for target, want := range map[string]string{"/one.xml": "max-age=", "/https://one.example/feed": "private, max-age="} {
			w := ask(t, g, "GET", target, stage.Home)
			if got := w.Header().Get("Cache-Control"); !strings.HasPrefix(got, want) || strings.HasSuffix(got, stage.MayServeStale) == strings.HasPrefix(want, "private") {
				t.Errorf("%s: Cache-Control %q, want %s", target, got, want)
			}
			w = ask(t, g, "GET", target, stage.Home, "If-None-Match", w.Header().Get("ETag"))
			if got := w.Header().Get("Cache-Control"); w.Code != 304 || !strings.HasPrefix(got, want) {
				t.Errorf("%s: %d, Cache-Control %q, want %s", target, w.Code, got, want)
			}
		}
		tag := ask(t, g, "GET", "/one.xml", stage.Home).Header().Get("ETag")
		for _, tt := range []struct {
			want   int
			header []string
		}{
			{200, []string{"If-Match", tag}},
			{200, []string{"If-Match", "*"}},
			{200, []string{"If-Match", `"x", ` + tag, "If-Unmodified-Since", "Mon, 01 Jan 2001 00:00:00 GMT"}},
			{412, []string{"If-Match", `"x"`}},
			{412, []string{"If-Match", "W/" + tag}},
			{412, []string{"If-Match", `"x"`, "If-None-Match", tag}},
			{304, []string{"If-Match", tag, "If-None-Match", tag}},
			{412, []string{"If-Unmodified-Since", "Sun, 01 Jan 1989 00:00:00 GMT"}},
			{200, []string{"If-Unmodified-Since", "no date"}},
		} {
			if w := ask(t, g, "GET", "/one.xml", stage.Home, tt.header...); w.Code != tt.want {
				t.Errorf("%q: %d %s, want %d", tt.header, w.Code, w.Body, tt.want)
			}
		}
		for _, target := range []string{"/index.php/apps/files", "/socket.io/?EIO=4", "/v1.io/feed", "/none"} {
			w := ask(t, g, "GET", target, stage.Home)
			if w.Code != 404 || w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: %d %v", target, w.Code, w.Header())
			}
		}
	})
}
