// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/browser"
	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
)

// surroundings are a gateway on real sockets, an origin, and the network of a browser.
type surroundings struct {
	port, tls string // of 127.0.0.1
	feed      string // the URL of a feed at the origin, to be completed
	log       string // a file with the requests that the gateway has answered
	browser.Network
}

// inBrowsers runs a test in each browser, with a gateway at these names.
func inBrowsers(t *testing.T, names []string, run func(t *testing.T, s *surroundings, w browser.Window)) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts browsers")
	}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.WriteString(w, stage.Sample)
	}))
	defer origin.Close()
	s := &surroundings{feed: origin.URL + "/feed.xml?", log: filepath.Join(t.TempDir(), "log")}
	s.port, s.tls = portOf(loopback.FreeAddress(t)), portOf(loopback.FreeAddress(t))
	s.Network = browser.Network{Names: names, HTTP: s.port}
	gateway := "bind 127.0.0.1\nlog {\noutput file " + s.log + " {\nroll_disabled\n}\n}\nfeed_gateway {\nfeed /chosen.xml " + s.feed + "\ntoken alice " + secret + "\n}\n}\n"
	sites := "http://:" + s.port + " {\n" + gateway + "https://127.0.0.1:" + s.tls + " {\n" + stage.TLS(t) + gateway
	const trust = "servers {\ntrusted_proxies static 127.0.0.1\ntrusted_proxies_strict\n}\n"
	stage.RunInstanceWith(t, trust, "private_upstreams 127.0.0.0/8\nspacing 0\nmin_interval 1ms", sites, func(*stage.Stage, string) {
		browser.Each(t, s.Network, func(t *testing.T, w browser.Window) { run(t, s, w) })
	})
}

// logged is an answer in the access log.
type logged struct {
	Status  int
	Request struct {
		Host, Method, URI string
		Headers           http.Header
	}
}

// forms waits until the log has so many forms whose target contains a text, and returns them.
func (s *surroundings) forms(t *testing.T, contains string, n int) (found []logged) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		text, err := os.ReadFile(s.log)
		if err != nil {
			t.Fatal(err)
		}
		found = nil
		for line := range strings.Lines(string(text)) {
			var l logged
			if json.Unmarshal([]byte(line), &l) == nil && l.Request.Method == "POST" && strings.Contains(l.Request.URI, contains) {
				found = append(found, l)
			}
		}
		if len(found) >= n {
			return found
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d forms for %s were sent, want %d:\n%s", len(found), contains, n, text)
		}
	}
}

// get reads an address at the gateway, as a reader does.
func (s *surroundings) get(t *testing.T, target string) {
	t.Helper()
	resp, err := http.Get("http://127.0.0.1:" + s.port + target)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Fatalf("%s: %s", target, resp.Status)
	}
}

// proxy returns the port of a proxy in front of the gateway, with TLS or without, that sends it this Host.
func (s *surroundings) proxy(t *testing.T, secure bool, host string) string {
	t.Helper()
	handler := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: "127.0.0.1:" + s.port})
		r.SetXForwarded()
		r.Out.Host = host
	}}
	start := httptest.NewServer
	if secure {
		start = httptest.NewTLSServer
	}
	server := start(handler)
	t.Cleanup(server.Close)
	return portOf(server.URL)
}

func portOf(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// The forms of the pages work in browsers, wherever the gateway is, and no request tells a token by its Referer.
func TestFormsInBrowsers(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list.opml")
	stage.WriteFile(t, list, `<opml><body><outline xmlUrl="https://a.example/f"/></body></opml>`)
	inBrowsers(t, []string{"feeds.home.arpa", "nas"}, func(t *testing.T, s *surroundings, w browser.Window) {
		sent := 0
		for _, at := range []string{
			"http://feeds.home.arpa", "http://nas:" + s.port, "http://127.0.0.1:" + s.port, "https://127.0.0.1:" + s.tls,
			"http://feeds.home.arpa/~" + secret, "https://127.0.0.1:" + s.proxy(t, true, "127.0.0.1"), "https://nas:" + s.proxy(t, true, "pollard:8080"),
			"http://nas:" + s.proxy(t, false, "nas"), "http://nas:" + s.proxy(t, false, "pollard:8080"),
		} {
			sent++
			feed := s.feed + t.Name() + fmt.Sprint(sent)
			s.get(t, "/"+feed)
			s.get(t, "/~"+secret+"/"+feed)
			w.Open(t, at+"/")
			w.Choose(t, "#opml", list)
			w.Click(t, "form.drop button:not(.copy)")
			upload := s.forms(t, "/-/opml", sent)[sent-1]
			w.Open(t, at+"/-/feeds?url="+url.QueryEscape(feed))
			w.Click(t, ".refresh button")
			w.Wait(t, ".note")
			poll := s.forms(t, "/-/refresh", sent)[sent-1]
			if upload.Status != 200 || poll.Status != 303 {
				t.Errorf("%s: the list %d, the poll %d", at, upload.Status, poll.Status)
			}
			for _, l := range []logged{upload, poll} {
				h := l.Request.Headers
				t.Logf("%s: Host %s, Origin %q, Sec-Fetch-Site %q, Referer %q", l.Request.URI, l.Request.Host, h["Origin"], h["Sec-Fetch-Site"], h["Referer"])
				if strings.Contains(fmt.Sprint(h), "~") {
					t.Errorf("%s: the header has the token: %v", at, h)
				}
			}
		}
		if err := os.Truncate(s.log, 0); err != nil { // for the next browser
			t.Fatal(err)
		}
	})
}

// Forms that a page of another site sends are refused.
func TestFormsOfOtherSitesInBrowsers(t *testing.T) {
	inBrowsers(t, []string{"feeds.home.arpa", "evil.example"}, func(t *testing.T, s *surroundings, w browser.Window) {
		var gateway string
		evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Referrer-Policy", strings.TrimPrefix(r.URL.Path, "/"))
			form := fmt.Sprintf(`<form method=post action="%s/-/refresh?%s"><input name=url value=x></form><script>document.forms[0].submit()</script>`, gateway, "%s")
			fmt.Fprintf(w, `<!doctype html><title>Evil</title><iframe srcdoc='%s'></iframe><iframe sandbox="allow-forms allow-scripts" srcdoc='%s'></iframe>
				<script>fetch(%q, {method: "POST", mode: "no-cors", body: new URLSearchParams({url: "x"})})</script>`,
				fmt.Sprintf(form, "form"), fmt.Sprintf(form, "sandbox"), gateway+"/-/refresh?script")
		}))
		defer evil.Close()
		sent := 0
		for _, gateway = range []string{"http://feeds.home.arpa", "http://feeds.home.arpa:" + s.port, "http://127.0.0.1:" + s.port} {
			for _, page := range []string{"http://evil.example:" + portOf(evil.URL), evil.URL} {
				for _, policy := range []string{"unsafe-url", "no-referrer"} {
					w.Open(t, page+"/"+policy)
					sent += 3
					for _, l := range s.forms(t, "/-/refresh", sent)[sent-3:] {
						h := l.Request.Headers
						t.Logf("%s: %d, Host %s, Origin %q, Sec-Fetch-Site %q, Referer %q", l.Request.URI, l.Status, l.Request.Host, h["Origin"], h["Sec-Fetch-Site"], h["Referer"])
						if l.Status != 403 {
							t.Errorf("%s from %s with %s: %d %v", l.Request.URI, page, policy, l.Status, h)
						}
					}
				}
			}
		}
		if err := os.Truncate(s.log, 0); err != nil {
			t.Fatal(err)
		}
	})
}

// leak is a page that asks a gateway for feeds as pages may without permission, and tells its own site
// for each of these ways which event came for each feed.
const leak = `<!doctype html><title>Evil</title><body><script>
const load = (name, fields) => new Promise((done) => {
	const node = Object.assign(document.createElement(name), fields);
	for (const event of ["load", "error", "loadeddata"]) node.addEventListener(event, () => done(event));
	document.body.append(node);
});
const ways = {
	prefetch: (u) => load("link", { rel: "prefetch", href: u }),
	preload: (u) => load("link", { rel: "preload", as: "fetch", href: u }),
	style: (u) => load("link", { rel: "stylesheet", href: u }),
	script: (u) => load("script", { src: u }),
	image: (u) => load("img", { src: u }),
	audio: (u) => load("audio", { src: u, preload: "auto" }),
	object: (u) => load("object", { data: u }),
	iframe: (u) => load("iframe", { src: u }),
	fetch: (u) => fetch(u, { mode: "no-cors" }).then((r) => "load " + r.type, () => "error"),
	cors: (u) => fetch(u).then((r) => "load " + r.status, () => "error"),
};
(async () => {
	const saw = {};
	for (const way of %s) saw[way] = await Promise.all(%s.map((u) => ways[way](u + way)));
	await fetch("/saw", { method: "POST", body: JSON.stringify(saw) });
})();
</script>`

// A page of another site cannot tell which feeds a gateway knows.
func TestOtherSitesInBrowsers(t *testing.T) {
	inBrowsers(t, []string{"feeds.home.arpa", "evil.example"}, func(t *testing.T, s *surroundings, w browser.Window) {
		var page string
		saw := make(chan map[string][]string, 1)
		evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/saw" {
				var events map[string][]string
				if err := json.NewDecoder(r.Body).Decode(&events); err != nil {
					t.Error(err)
				}
				saw <- events
				return
			}
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Referrer-Policy", strings.TrimPrefix(r.URL.Path, "/"))
			_, _ = io.WriteString(w, page)
		}))
		defer evil.Close()
		for at, ways := range map[string][]string{
			// Here browsers send Sec-Fetch fields.
			"http://127.0.0.1:" + s.port: {"prefetch", "preload", "style", "script", "image", "audio", "object", "iframe", "fetch", "cors"},
			// Here they do not, and Firefox saves a feed in a frame without an event.
			"http://feeds.home.arpa": {"prefetch", "preload", "style", "script", "image", "audio", "object", "fetch", "cors"},
		} {
			for _, policy := range []string{"unsafe-url", "no-referrer"} {
				var feeds []string
				for i := range 4 { // two that are known
					feed := fmt.Sprintf("/%s%s,%s,%s,%d", s.feed, t.Name(), url.QueryEscape(at), policy, i)
					feeds = append(feeds, at+feed)
					for _, way := range ways {
						if i < 2 {
							s.get(t, feed+way)
						}
					}
				}
				wayList, _ := json.Marshal(ways)
				feedList, _ := json.Marshal(feeds)
				page = fmt.Sprintf(leak, wayList, feedList)
				w.Open(t, "http://evil.example:"+portOf(evil.URL)+"/"+policy)
				select {
				case events := <-saw:
					for _, way := range ways {
						if e := events[way]; len(e) != 4 || e[0] != e[1] || e[0] != e[2] || e[0] != e[3] {
							t.Errorf("%s at %s with %s: two known feeds and two others give %q", way, at, policy, e)
						}
					}
				case <-time.After(2 * time.Minute):
					t.Errorf("%s with %s: a feed gives no event", at, policy)
				}
			}
		}
	})
}
