// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	_ "github.com/caddyserver/caddy/v2/modules/logging" // files and filters

	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

func feeds(r *http.Request) (int, string, http.Header) {
	if r.URL.Host == "broken.example" {
		return 503, "", nil
	}
	return 200, stage.Sample, nil
}

// onSite runs a test with a Caddy that has a site at feeds.test.
func onSite(t *testing.T, options, site string, run func(t *testing.T)) {
	t.Helper()
	onSites(t, options, "http://feeds.test {\nbind void/feeds\n"+site+"\n}\n", run)
}

func onSites(t *testing.T, options, sites string, run func(t *testing.T)) {
	t.Helper()
	stage.RunGateways(t, feeds, func(t *testing.T, o *stage.Stage) {
		if err := o.LoadSites(options, "", sites); err != nil {
			t.Fatal(err)
		}
		run(t)
	})
}

// On a site with other content, a gateway answers for its feeds only.
func TestGatewayPassesOn(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"v1.x", "~carol"} {
		if err := os.Mkdir(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"index.html": "home", "robots.txt": "robots", "favicon.ico": "icon", "v1.x/users": "users", "~carol/index.html": "carol's", "~carol/favicon.ico": "carol's icon",
	} {
		stage.WriteFile(t, filepath.Join(root, name), text)
	}
	for _, tt := range []struct {
		name, after string
		want        map[string]string // status and body by target
	}{
		{"before files", "file_server {\nroot " + root + "\n}", map[string]string{
			"/": "200 home", "/robots.txt": "200 robots", "/favicon.ico": "200 icon", "/v1.x/users": "200 users", "/none": "404 ", "/-/": "403 <!doctype html>",
			// Without tokens, paths with a tilde belong to the site.
			"/~carol/": "200 carol's", "/%7Ecarol/": "200 carol's", "/~carol/favicon.ico": "200 carol's icon", "/~carol/none": "404 ", "/~carol/feed.xml": "200 <?xml",
			"/~carol/https://one.example/feed": "403 the token in this URL is not known",
		}},
		{"alone", "", map[string]string{
			"/": "403 <!doctype html>", "/robots.txt": "404 no such path", "/v1.x/users": "404 no such path: no feed is configured here, and it is not of the form /https://host/path: for the feed of a site, write /https://v1.x/users",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onSite(t, "", "feed_gateway {\nfeed /one.xml https://one.example/feed\nfeed /~carol/feed.xml https://one.example/feed\n}\n"+tt.after, func(t *testing.T) {
				tt.want["/one.xml"] = "200 <?xml"
				tt.want["/https://two.example/feed"] = "403 the gateway's `clients`"
				for target, want := range tt.want {
					w := stage.Get(t, "http://feeds.test"+target, stage.Outside)
					if got := fmt.Sprint(w.Code, " ", w.Body); !strings.HasPrefix(got, want) {
						t.Errorf("%s: got %q, want %q", target, got, want)
					}
					own := strings.Contains(target, "xml") || strings.Contains(target, "https:") || strings.HasPrefix(want, "403 <!doctype")
					policy := ""
					if own {
						policy = "no-referrer"
					}
					if strings.HasPrefix(want, "403 <!doctype") {
						policy = "strict-origin" // a page, which may have forms
					}
					if got := w.Header().Get("Referrer-Policy"); got != policy {
						t.Errorf("%s: Referrer-Policy %q, want %q", target, got, policy)
					}
				}
			})
		})
	}
}

// Errors go through handle_errors if the site has it, with the reason as message. Otherwise they are the
// reason.
func TestGatewayErrors(t *testing.T) {
	site := func(host, more string) string {
		return "http://" + host + " {\nbind void/feeds\nfeed_gateway {\nfeed /one.xml https://one.example/feed\n}\n" + more + "\n}\n"
	}
	sites := site("feeds.test", "handle_errors {\nheader X-Handled yes\nrespond \"{err.status_code}: {err.message}\"\n}") + site("plain.test", "")
	onSites(t, "", sites, func(t *testing.T) {
		for _, tt := range []struct {
			host, target string
			status       int
			body         string
		}{
			{"feeds.test", "/https://two.example/feed", 403, "403: the gateway's `clients` line does not cover 203.0.113.5"},
			{"feeds.test", "/nothing", 404, "404: no such path"},
			{"plain.test", "/https://two.example/feed", 403, "the gateway's `clients` line does not cover 203.0.113.5"},
			{"plain.test", "/nothing", 404, "no such path"},
		} {
			w := stage.Get(t, "http://"+tt.host+tt.target, stage.Outside)
			handled := w.Header().Get("X-Handled") != ""
			if w.Code != tt.status || !strings.HasPrefix(w.Body.String(), tt.body) || handled != (tt.host == "feeds.test") || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s%s: %d %q %v", tt.host, tt.target, w.Code, w.Body, w.Header())
			}
		}
	})
}

// Placeholders are replaced when the configuration is loaded.
func TestGatewayPlaceholders(t *testing.T) {
	list := filepath.Join(t.TempDir(), "subs.opml")
	stage.WriteFile(t, list, `<opml><body><outline xmlUrl="https://listed.example/feed"/></body></opml>`)
	t.Setenv("POLLARD_TEST_OPML", list)
	t.Setenv("POLLARD_TEST_ALLOWED", "one.example *.two.example")
	t.Setenv("POLLARD_TEST_DENIED", "bad.two.example")
	t.Setenv("POLLARD_TEST_CLIENTS", "203.0.113.0/24 private")
	t.Setenv("POLLARD_TEST_INTERVAL", "3h")
	site := "feed_gateway {\nopml {env.POLLARD_TEST_OPML}\nallow {env.POLLARD_TEST_ALLOWED}\ndeny {env.POLLARD_TEST_DENIED}\nclients {env.POLLARD_TEST_CLIENTS}\n" +
		"feed /one.xml https://three.example/feed {\nmin_interval {env.POLLARD_TEST_INTERVAL}\nunvalidated_interval {env.POLLARD_TEST_INTERVAL}\n}\n}"
	onSite(t, "", site, func(t *testing.T) {
		for target, want := range map[string]int{
			"/https://one.example/": 200, "/https://a.two.example/": 200, "/https://bad.two.example/": 403, "/https://three.example/": 403,
			"/https://listed.example/feed": 200, "/https://listed.example/other": 403, "/one.xml": 200,
		} {
			w := stage.Get(t, "http://feeds.test"+target, stage.Outside)
			if w.Code != want {
				t.Errorf("%s: %d, want %d", target, w.Code, want)
			}
			if target == "/one.xml" && w.Header().Get("Cache-Control") != "max-age=10800"+stage.MayServeStale {
				t.Errorf("the interval of an environment: %v", w.Header())
			}
		}
	})
}

// A subscription list is read again when it has changed. A list that cannot be read changes nothing.
func TestSubscriptionsAreReadAgain(t *testing.T) {
	list := filepath.Join(t.TempDir(), "subs.opml")
	write := func(text string) {
		stage.WriteFile(t, list, text)
	}
	outline := func(url string) string { return `<opml><body><outline xmlUrl="` + url + `"/></body></opml>` }
	write(outline("https://one.example/feed"))
	onSite(t, "", "feed_gateway {\nopml "+list+"\n}", func(t *testing.T) {
		status := func(host string) int {
			return stage.Get(t, "http://feeds.test/https://"+host+".example/feed", stage.Home).Code
		}
		expect := func(what string, one, longer int) {
			t.Helper()
			time.Sleep(2 * checkInterval)
			status("one") // has the list looked at
			time.Sleep(time.Second)
			if a, b := status("one"), status("longer"); a != one || b != longer {
				t.Errorf("%s: %d and %d, want %d and %d", what, a, b, one, longer)
			}
		}
		expect("at first", 200, 403)
		write(outline("https://longer.example/feed"))
		time.Sleep(checkInterval)
		if got := status("longer"); got != 200 {
			t.Errorf("the first request for an added feed got %d", got)
		}
		expect("changed", 403, 200)
		write("no list")
		expect("damaged", 403, 200)
		if err := os.Remove(list); err != nil {
			t.Fatal(err)
		}
		expect("removed", 403, 200)
		write(outline("https://one.example/feed") + "<!-- again -->")
		expect("there again", 200, 403)
	})
}

// Outlines of a subscription list that cannot be polled are logged by their number, and folders are not.
func TestSkippedOutlinesAreLogged(t *testing.T) {
	list, log := filepath.Join(t.TempDir(), "subs.opml"), filepath.Join(t.TempDir(), "warnings.log")
	options := "log warnings {\noutput file " + log + " {\nroll_disabled\n}\nlevel WARN\n}"
	outlines := func(urls ...string) string {
		return `<opml><body><outline text="Folder"><outline xmlUrl="` + strings.Join(urls, `"/><outline xmlUrl="`) + `"/></outline></body></opml>`
	}
	warned := func(t *testing.T, want string) {
		t.Helper()
		text, err := os.ReadFile(log)
		const warning = "skipped outlines without a URL that can be polled"
		if got := strings.Count(string(text), warning); err != nil || got != strings.Count(want, warning) || !strings.Contains(string(text), want) {
			t.Errorf("%v: got\n%s\nwant %q", err, text, want)
		}
	}
	stage.WriteFile(t, list, outlines("https://one.example/feed"))
	onSite(t, options, "feed_gateway {\nopml "+list+"\n}", func(t *testing.T) {
		warned(t, "")
		stage.WriteFile(t, list, outlines("https://one.example/feed", "exec:fetch", "ftp://two.example/feed"))
		time.Sleep(2 * checkInterval)
		stage.Get(t, "http://feeds.test/https://one.example/feed", stage.Home) // has the list looked at
		time.Sleep(time.Second)
		warned(t, `"msg":"skipped outlines without a URL that can be polled","opml":"`+list+`","outlines":2`)
	})
}

// A list without a feed is most likely another file than the one that was meant.
func TestEmptyListIsWarnedOf(t *testing.T) {
	list, log := filepath.Join(t.TempDir(), "subs.opml"), filepath.Join(t.TempDir(), "warnings.log")
	stage.WriteFile(t, list, `<opml><body><outline text="Folder"/></body></opml>`)
	onSite(t, "log warnings {\noutput file "+log+" {\nroll_disabled\n}\nlevel WARN\n}", "feed_gateway {\nopml "+list+"\n}", func(t *testing.T) {
		if text, err := os.ReadFile(log); err != nil || strings.Count(string(text), `"msg":"the subscription list has no feeds`) != 1 {
			t.Errorf("%v: %s", err, text)
		}
	})
}

// A refusal names the line that forbids the request, not its contents.
func TestRefusalsTellNoSecrets(t *testing.T) {
	list := filepath.Join(t.TempDir(), "alice.opml")
	stage.WriteFile(t, list, `<opml><body></body></opml>`)
	onSite(t, "", "feed_gateway {\nclients any\nopml "+list+"\nallow *.intra.example\ndeny *.ads.example\n}", func(t *testing.T) {
		for _, target := range []string{"/https://x.example/feed", "/https://a.ads.example/feed"} {
			w := stage.Get(t, "http://feeds.test"+target, stage.Outside)
			if text := w.Body.String(); w.Code != 403 || strings.Contains(text, "alice") || strings.Contains(text, "*") || strings.Contains(text, "intra") {
				t.Errorf("%s: %d %s", target, w.Code, text)
			}
		}
	})
}

// A gateway through which everyone can fetch everything is warned of at its start.
func TestOpenGatewayIsWarnedOf(t *testing.T) {
	log := filepath.Join(t.TempDir(), "warnings.log")
	site := "handle /a/* {\nfeed_gateway {\nclients any\n}\n}\nhandle /b/* {\nfeed_gateway {\nclients any\nallow one.example\n}\n}\nfeed_gateway\n"
	onSite(t, "log warnings {\noutput file "+log+" {\nroll_disabled\n}\nlevel WARN\n}", site, func(t *testing.T) {
		text, err := os.ReadFile(log)
		if n := strings.Count(string(text), "name the hosts that it may fetch from in `allow`"); err != nil || n != 1 {
			t.Errorf("%d warnings, want 1: %v %s", n, err, text)
		}
	})
}

// The access log has the result of each request, without tokens and credentials.
func TestAccessLog(t *testing.T) {
	const token = "s3cret-of-alice-0001"
	log := filepath.Join(t.TempDir(), "access.log")
	site := "log {\noutput file " + log + " {\nroll_disabled\n}\nformat json\n}\nlog_append told {http.pollard.status}\nfeed_gateway {\ntoken alice " + token + "\nfeed /one.xml https://one.example/feed?key=verysecretkey123456\n}"
	onSite(t, "", site, func(t *testing.T) {
		for _, target := range []string{"/one.xml", "/one.xml", "/~" + token + "/https://two.example/feed", "/~" + token + "/https:///x", "/%7e" + token + "/https://two.example/feed", "/%7E" + token + "/-/about", "/https://three.example/", "/~" + token + "/https://broken.example/feed"} {
			stage.Get(t, "http://feeds.test"+target, stage.Outside)
		}
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), token) || strings.Contains(string(text), "verysecret") {
			t.Errorf("the log tells secrets:\n%s", text)
		}
		want := []struct{ uri, status, feed, reason string }{
			{"/one.xml", "miss", "https://one.example/feed?key=***", ""},
			{"/one.xml", "hit", "https://one.example/feed?key=***", ""},
			{"/~***/https://two.example/feed", "miss", "https://two.example/feed", ""},
			{"/~***/https:///x", "refused", "https:///x", "not a feed URL: it names no host"},
			{"/~***/https://two.example/feed", "hit", "https://two.example/feed", ""},
			{"/~***/-/about", "", "", ""},
			{"/https://three.example/", "refused", "https://three.example/", "the gateway's `clients` line does not cover 203.0.113.5: it needs that address there, or a `token` for you"},
			{"/~***/https://broken.example/feed", "unavailable", "https://broken.example/feed", "broken.example: status 503 Service Unavailable"},
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		if len(lines) != len(want) {
			t.Fatalf("%d entries, want %d:\n%s", len(lines), len(want), text)
		}
		for i, line := range lines {
			var entry struct {
				Level   string `json:"level"`
				Logger  string `json:"logger"`
				Request struct {
					URI string `json:"uri"`
				} `json:"request"`
				Status int    `json:"status"`
				Told   string `json:"told"`
				Result string `json:"pollard_status"`
				Feed   string `json:"pollard_feed"`
				Reason string `json:"pollard_reason"`
			}
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Fatal(err)
			}
			w := want[i]
			entry.Request.URI = strings.TrimPrefix(entry.Request.URI, "http://feeds.test") // a request that came over no network
			if entry.Request.URI != w.uri || entry.Result != w.status || entry.Feed != w.feed || entry.Reason != w.reason || entry.Status == 0 || !strings.HasPrefix(entry.Logger, "http.log.access") {
				t.Errorf("entry %d: %s", i, line)
			}
			if entry.Level == "error" != (entry.Status >= 500) {
				t.Errorf("entry %d has the level %s: %s", i, entry.Level, line)
			}
			if told := entry.Told; told != w.status && !strings.Contains(w.uri, "***") {
				t.Errorf("entry %d: the placeholder says %q", i, told)
			}
		}
	})
}

// A request with a token, valid or not, reaches no other handler, and no header in the access log contains
// the token.
func TestTokensAreNotPassedOn(t *testing.T) {
	const route = "route {\nfeed_gateway {\ntoken alice " + secret + "\n}\nrespond \"the site's own\"\n}\n"
	const site = "handle_path /below/* {\n" + route + "}\n" + route
	log := filepath.Join(t.TempDir(), "access.log")
	web := func(r *http.Request) (int, string, http.Header) {
		if r.URL.Path == "/moved" {
			return 302, "", http.Header{"Location": {"/held"}}
		}
		if r.URL.Path == "/held" {
			return 200, stage.Sample, http.Header{"Retry-After": {"3600"}} // so that no redirect to it is followed
		}
		return feeds(r)
	}
	stage.RunGateways(t, web, func(t *testing.T, o *stage.Stage) {
		sites := "http://feeds.test {\nbind void/feeds\nlog {\noutput file " + log + " {\nroll_disabled\n}\n}\n" + site + "}\n"
		if err := o.LoadSites("", "spacing 0", sites); err != nil {
			t.Fatal(err)
		}
		const unknown = "wrong-s3cret-0001"
		for target, want := range map[string]string{
			"/~" + secret + "/junk":                                                                "404 no such path: no feed is configured here, and it is not of the form /https://host/path\n",
			"/~" + secret + "/junk/https://one.example/feed":                                       "404 no such path: no feed is configured here, and it is not of the form /https://host/path\n",
			"/%7E" + secret + "/-/none":                                                            "404 no such path",
			"/~" + unknown + "/junk":                                                               "404 no such path",
			"/~" + unknown + "/https://one.example/feed":                                           "403 the token in this URL is not known",
			"/below/~" + secret + "/junk":                                                          "404 no such path",
			"/below/~" + unknown:                                                                   "403 <!doctype html>",
			"/~" + secret + "/https://one.example/feed":                                            "200 <?xml",
			"/below/junk":                                                                          "200 the site's own",
			"//~" + secret + "/https://one.example/feed":                                           "200 <?xml",
			"/./~" + secret + "/https://one.example/feed":                                          "404 no such path",
			"/x/../~" + secret + "/":                                                               "404 no such path",
			"/%2e/%7e" + secret + "/":                                                              "404 no such path",
			"/~%73" + secret[1:] + "/https://one.example/feed":                                     "200 <?xml",
			"/http://feeds.test/~" + secret + "/https://one.example/feed":                          "403 the gateway's `clients`",
			"/?url=http%3A%2F%2Ffeeds.test%2F~" + secret + "%2Fhttps%3A%2F%2Fone.example":          "403 the gateway's `clients`",
			"/~" + secret + "/http://feeds.test/~" + secret + "/https://one.example/feed":          "400 not a feed URL",
			"/-/feeds?url=http%3A%2F%2Ffeeds.test%2F%7E" + secret + "%2Fhttps%3A%2F%2Fone.example": "403 <!doctype html>",
		} {
			w := stage.Get(t, "http://feeds.test"+target, stage.Outside, "Referer", "http://feeds.test/~"+secret+"/", "X-Original-Uri", "/~"+secret+"/") // as some proxies send it
			if got := fmt.Sprint(w.Code, " ", w.Body); !strings.HasPrefix(got, want) {
				t.Errorf("%s: got %q, want %q", target, got, want)
			}
		}
		stage.Get(t, "http://feeds.test/~"+secret+"/https://one.example/held", stage.Outside)
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		passed := strings.Count(string(text), "/below/junk")
		if entries := strings.Count(string(text), "\n"); entries != 19 || passed != 1 {
			t.Errorf("%d entries:\n%s", entries, text)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, unknown) || strings.Contains(line, secret[1:]) && !strings.Contains(line, "/below/junk") {
				t.Errorf("the log tells a token: %s", line)
			}
		}
	})
}

// A site without a log gets none because of tokens, though another site of its server has one.
func TestTokensMakeNoLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "all.log")
	gateway := "bind void/feeds\nfeed_gateway {\ntoken alice " + secret + "\n}\n}\n"
	sites := "http://*.feeds.test {\n" + gateway + "http://logged.test {\nlog\n" + gateway
	onSites(t, "log all {\noutput file "+log+" {\nroll_disabled\n}\n}", sites, func(t *testing.T) {
		for _, host := range []string{"one.feeds.test", "One.Feeds.Test", "logged.test"} {
			stage.WantBody(t, host, stage.Get(t, "http://"+host+"/~"+secret+"/https://one.example/feed", stage.Outside), 200, "<title>One</title>")
		}
		text, err := os.ReadFile(log)
		if n := strings.Count(string(text), "handled request"); err != nil || n != 1 {
			t.Errorf("%v, %d requests, want that of logged.test:\n%s", err, n, text)
		}
	})
}

// No log has the token of a request, at whatever level: not of one whose client leaves before the
// answer, not in an odd spelling, not in a log that the site has chosen by name. A client that leaves causes no error.
func TestTokensAreInNoLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "all.log")
	file := "output file " + log + " {\nroll_disabled\n}\n"
	site := "log own {\nno_hostname\n" + file + "}\nlog_name own\nroute {\nfeed_gateway {\nclients any\nallow new.example none.example\nfeed /one.xml https://one.example/feed\ntoken alice " + secret + "\n}\nrespond /of-the-site yes\n}"
	onSite(t, "log all {\n"+file+"level DEBUG\n}", site, func(t *testing.T) {
		left, leave := context.WithCancel(t.Context())
		leave()
		for _, tt := range []struct {
			ctx    context.Context
			target string
			want   int
			field  string
		}{
			{left, "/~" + secret + "/https://new.example/feed", 499, ""},
			{left, "/~" + secret + "/-/feeds", 499, ""},
			{left, "/https://none.example/feed", 499, ""},
			{t.Context(), "/%257e" + secret + "/https://new.example/feed", 404, ""},
			{t.Context(), "/%25257E" + secret + "/x", 404, ""},
			{t.Context(), "/x/%257E" + secret + "/x", 404, ""},
			{t.Context(), "/~" + secret + "/https:///", 400, ""},
			{t.Context(), "/~" + secret + "/https://new.example/feed", 200, ""},
			{t.Context(), "/one.xml", 200, "Referer"},
			{t.Context(), "/https://new.example/feed", 200, "X-Original-Uri"},
			{t.Context(), "/https://denied.example/feed", 403, "Referer"},
			{t.Context(), "/-/about", 200, "Referer"},
			{t.Context(), "/of-the-site", 200, "Referer"},
		} {
			r, w := httptest.NewRequest("GET", "http://feeds.test"+tt.target, nil), httptest.NewRecorder()
			r.RemoteAddr = stage.Outside + ":1234"
			r.RequestURI = tt.target
			if tt.field != "" {
				r.Header.Set(tt.field, "http://feeds.test/%7E"+secret+"/https://new.example/feed")
			}
			stage.Serve(t, 0, w, r.WithContext(tt.ctx))
			if w.Code != tt.want || w.Code == 404 && strings.Contains(w.Body.String(), secret) {
				t.Errorf("%s: %d %s, want %d", tt.target, w.Code, w.Body, tt.want)
			}
		}
		text, err := os.ReadFile(log)
		if err != nil || strings.Contains(string(text), secret) {
			t.Errorf("%v, the log has the token:\n%s", err, text)
		}
		if got := strings.Count(string(text), `"logger":"http.log.access.own"`); got < 13 {
			t.Errorf("%d requests are in the log that log_name names:\n%s", got, text)
		}
		if strings.Contains(string(text), `"level":"error"`) {
			t.Errorf("an error is logged:\n%s", text)
		}
	})
}

// A gateway does not poll itself.
func TestGatewayIsNoOriginOfItsOwn(t *testing.T) {
	onSite(t, "", "handle_path /by/* {\nfeed_gateway {\nclients any\n}\n}\nfeed_gateway {\nfeed /one.xml https://one.example/feed\nfeed /loop.xml http://feeds.test/loop.xml\nfeed /two.xml http://feeds.test/three.xml\nfeed /three.xml http://feeds.test/two.xml\nfeed /other.xml http://feeds.test/one.xml\nfeed /blog.xml http://feeds.test/blog\nclients any\n}", func(t *testing.T) {
		for target, want := range map[string]int{
			"/loop.xml": 508, "/two.xml": 508, "/three.xml": 508, "/other.xml": 200, "/blog.xml": 200,
			"/http://feeds.test/one.xml": 400, "/http://feeds.test/https://one.example/feed": 400, "/http://FEEDS.test:80/one.xml": 400,
			"/http://feeds.test/feed-of-the-site.xml": 200,
		} {
			if w := stage.Get(t, "http://feeds.test"+target, stage.Home); w.Code != want {
				t.Errorf("%s: %d %s, want %d", target, w.Code, w.Body, want)
			}
		}
	})
}

// Below a path that handle_path removes, all addresses that the gateway gives are below it too.
func TestGatewayBelowAPath(t *testing.T) {
	web := func(r *http.Request) (int, string, http.Header) {
		if r.URL.Path == "/" {
			return 200, homePage, http.Header{"Content-Type": {"text/html"}}
		}
		return 200, stage.Sample, http.Header{"Content-Type": {"application/rss+xml"}}
	}
	stage.RunGateways(t, web, func(t *testing.T, o *stage.Stage) {
		gateway := "feed_gateway {\ntoken alice " + secret + "\n}\n"
		if err := o.LoadSites("", "spacing 0", "http://feeds.test {\nbind void/feeds\nhandle_path /my/feeds* {\n"+gateway+"}\nrewrite /blog /?url=https://site.example/\n"+gateway+"}\n"); err != nil {
			t.Fatal(err)
		}
		// The feeds to find are of another site.
		for target, want := range map[string]string{
			"/my/feeds/":                                      `href="/my/feeds/-/feeds"`,
			"/my/feeds/https://site.example/":                 `href="http://feeds.test/my/feeds/https://site.example/atom.xml"`,
			"/my/feeds/~" + secret + "/https://site.example/": `href="http://feeds.test/my/feeds/~` + secret + `/https://site.example/atom.xml"`,
			"/my/feeds/~" + secret + "/-/feeds":               `href="/my/feeds/~` + secret + `/-/savings"`,
			"/my/feeds/?url=https%3A%2F%2Fsite.example%2F":    `href="http://feeds.test/my/feeds/https://site.example/atom.xml"`,
			"/my/feeds/https%3A%2F%2Fsite.example%2F":         `href="http://feeds.test/my/feeds/https://site.example/atom.xml"`,
			"/my/feeds": `href="/my/feeds/-/feeds"`,
			"//my/feeds?find=https%3A%2F%2Fblog.example%2Frss": `http://feeds.test/my/feeds/https://blog.example/rss`,
			"/my/feeds?url=https%3A%2F%2Fsite.example%2F":      `href="http://feeds.test/my/feeds/https://site.example/atom.xml"`,
			"/blog":                             `href="http://feeds.test/https://site.example/atom.xml"`,
			"//my/feeds/":                       `href="/my/feeds/-/feeds"`,
			"//other.example/../my/feeds/":      `href="/my/feeds/-/feeds"`,
			"/my//feeds//https://site.example/": `href="http://feeds.test/my/feeds/https://site.example/atom.xml"`,
			"/my/feeds/?find=https%3A%2F%2Fblog.example%2Frss": `http://feeds.test/my/feeds/https://blog.example/rss`,
		} {
			if w := stage.Get(t, "http://feeds.test"+target, stage.Home); w.Code != 200 || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d %s, want %s", target, w.Code, w.Body, want)
			}
		}
	})
}

// If a gateway is below a path by its matcher, the error says what to write instead.
func TestGatewayTellsHowToBeBelowAPath(t *testing.T) {
	onSite(t, "", "feed_gateway /feeds/* {\nfeed /feeds/one.xml https://one.example/feed\n}", func(t *testing.T) {
		for target, want := range map[string]string{
			"/feeds/https://two.example/feed":            "below /feeds/, the gateway has to be in handle_path /feeds/*\n",
			"/feeds/http:/two.example/feed":              "below /feeds/, the gateway has to be in handle_path /feeds/*\n",
			"/feeds/%3Cb%3E%0A/https://two.example/feed": "below /feeds/%3Cb%3E%0A/, the gateway has to be in handle_path /feeds/%3Cb%3E%0A/*\n",
			"/feeds/http/2":                              "not of the form /https://host/path\n",
		} {
			if w := stage.Get(t, "http://feeds.test"+target, stage.Home); w.Code != 404 || !strings.HasSuffix(w.Body.String(), want) {
				t.Errorf("%s: %d %s, want %s", target, w.Code, w.Body, want)
			}
		}
	})
}

// Redirects obey allow, deny and opml of the gateway that serves the feed, and of no other: one poll
// serves those that allow its last URL.
func TestRedirectsObeyDenyAndAllow(t *testing.T) {
	moved, polls := true, 0
	web := func(r *http.Request) (int, string, http.Header) {
		if r.URL.Path == "/moved" {
			if polls++; moved {
				return 302, "", http.Header{"Location": {"https://other.example/feed"}}
			}
		}
		return 200, stage.Sample, http.Header{"Content-Type": {"application/rss+xml"}}
	}
	var sites strings.Builder
	gateway := func(name, lines string) {
		fmt.Fprintf(&sites, "handle_path /%s/* {\nfeed_gateway {\n%s\n}\n}\n", name, lines)
	}
	list := filepath.Join(t.TempDir(), "subs.opml")
	stage.WriteFile(t, list, `<opml><body><outline xmlUrl="https://one.example/moved"/></body></opml>`)
	gateway("any", "clients any")
	gateway("deny", "deny other.example")
	gateway("allow", "allow one.example")
	gateway("both", "allow one.example other.example")
	gateway("opml", "opml "+list)
	gateway("listed", "opml "+list+"\ndeny other.example")
	gateway("path", "feed /moved.xml https://one.example/moved\ndeny other.example")
	stage.RunGateways(t, web, func(t *testing.T, o *stage.Stage) {
		if err := o.LoadSites("", "spacing 0", "http://feeds.home.arpa {\nbind void/feeds\n"+sites.String()+"}\n"); err != nil {
			t.Fatal(err)
		}
		check := func(refused int) {
			t.Helper()
			for _, tt := range []struct {
				target string
				want   int
			}{
				{"deny/https://one.example/moved", refused}, {"any/https://one.example/moved", 200}, {"allow/https://one.example/moved", refused},
				{"both/https://one.example/moved", 200}, {"opml/https://one.example/moved", 200}, {"listed/https://one.example/moved", refused},
				{"path/https://one.example/moved", refused}, {"path/moved.xml", 200},
			} {
				w := stage.Get(t, "http://feeds.home.arpa/"+tt.target, stage.Home)
				if w.Code != tt.want || w.Code == 403 && !strings.Contains(w.Body.String(), "redirects") {
					t.Errorf("%s: %d %s, want %d", tt.target, w.Code, w.Body, tt.want)
				}
				page, _, _ := strings.Cut(tt.target, "/")
				if page == "allow" && w.Code == 403 && !strings.HasSuffix(w.Body.String(), "do not cover other.example: add that host to them\n") {
					t.Errorf("%s: no remedy: %s", tt.target, w.Body)
				}
				if w := stage.Get(t, "http://feeds.home.arpa/"+page+"/-/feeds?q=example", stage.Home); page != "any" && page != "path" && strings.Contains(w.Body.String(), "one.example/moved") != (tt.want == 200) {
					t.Errorf("%s: the list does not agree with %d", page, tt.want)
				}
			}
		}
		check(403)
		if polls != 1 {
			t.Errorf("%d polls", polls)
		}
		moved = false
		time.Sleep(25 * time.Hour) // it is due; the bytes are the same
		check(200)
	})
}

// Where a listed feed redirects is the operator's choice, however it redirects, on each day. Its page, the list of feeds and the subscription list agree. Private addresses stay forbidden.
func TestListedFeedsRedirect(t *testing.T) {
	const private = "http://10.9.9.9/payroll.xml"
	to := map[string]string{
		"http://tls.example/feed": "https://tls.example/feed", "https://slash.example/feed": "/feed/", "https://bare.example/feed": "https://www.bare.example/feed",
		"https://one.example/feed": "https://host.example/feed", "https://www.one.example/feed": "https://host.example/feed", "https://inside.example/feed": private,
	}
	web := func(r *http.Request) (int, string, http.Header) {
		target := to[r.URL.String()]
		status := map[bool]int{true: 302, false: 301}[strings.HasSuffix(r.URL.Host, "one.example")]
		if target == "" {
			return 200, stage.Sample, http.Header{"Content-Type": {"application/rss+xml"}, "Etag": {`"one"`}}
		}
		return status, "", http.Header{"Location": {target}}
	}
	list := filepath.Join(t.TempDir(), "subs.opml")
	var outlines strings.Builder
	for url := range to {
		fmt.Fprintf(&outlines, `<outline xmlUrl="%s"/>`, url)
	}
	stage.WriteFile(t, list, "<opml><body>"+outlines.String()+"</body></opml>")
	stage.RunGateways(t, web, func(t *testing.T, o *stage.Stage) {
		if err := o.LoadSites("", "spacing 0", "http://feeds.home.arpa {\nbind void/feeds\nhandle_path /open/* {\nfeed_gateway\n}\nfeed_gateway {\nopml "+list+"\nfeed /payroll.xml "+private+"\n}\n}\n"); err != nil {
			t.Fatal(err)
		}
		get := func(path string) *httptest.ResponseRecorder {
			return stage.Get(t, "http://feeds.home.arpa"+path, stage.Home)
		}
		stage.WantBody(t, "the private feed at its path", get("/payroll.xml"), 200, "<rss")
		for day := range 10 {
			stage.WantBody(t, "a target with polls of its own", get("/open/https://host.example/feed"), 200, "<rss")
			for url, target := range to {
				w := get("/" + url)
				if target == private {
					if w.Code < 400 || strings.Contains(w.Body.String(), "<rss") {
						t.Errorf("day %d: %s: %d %s", day, url, w.Code, w.Body)
					}
					continue
				}
				stage.WantBody(t, fmt.Sprintf("day %d: %s", day, url), w, 200, "<rss")
				stage.WantBody(t, "the list of feeds", get("/-/feeds"), 200, "?url="+neturl.QueryEscape(url)+`"`)
				page := get("/-/feeds?url=" + neturl.QueryEscape(url))
				if day == 0 && target != "https://host.example/feed" {
					stage.WantBody(t, "the feed's page", page, 200, ", which has moved to "+strings.Replace(target, "/feed/", "https://slash.example/feed/", 1))
				} else {
					stage.WantBody(t, "the feed's page", page, 200, url)
				}
				stage.WantBody(t, "the subscription list", get("/-/opml"), 200, "http://feeds.home.arpa/"+url)
				if w := get("/" + "https://host.example/feed"); w.Code != 403 {
					t.Errorf("the target by its own URL: %d", w.Code)
				}
			}
			time.Sleep(25 * time.Hour)
		}
	})
}

// A feed's page names of a target that the gateway does not serve the host alone.
func TestPageOfARedirectToARefusedURL(t *testing.T) {
	web := func(r *http.Request) (int, string, http.Header) {
		if r.URL.Path == "/moved" {
			return 301, "", http.Header{"Location": {"https://other.example/feed"}}
		}
		return 200, stage.Sample, http.Header{"Content-Type": {"application/rss+xml"}, "Etag": {`"one"`}}
	}
	const feed = "feed_gateway {\nfeed /moved.xml https://one.example/moved\n"
	stage.RunGateways(t, web, func(t *testing.T, o *stage.Stage) {
		if err := o.LoadSites("", "spacing 0", "http://feeds.home.arpa {\nbind void/feeds\nhandle_path /deny/* {\n"+feed+"deny other.example\n}\n}\n"+feed+"}\n}\n"); err != nil {
			t.Fatal(err)
		}
		stage.WantBody(t, "the feed", stage.Get(t, "http://feeds.home.arpa/moved.xml", stage.Home), 200, "<rss")
		const page = "/-/feeds?url=https://one.example/moved"
		stage.WantBody(t, "its page", stage.Get(t, "http://feeds.home.arpa"+page, stage.Home), 200, "has moved to https://other.example/feed ")
		w := stage.Get(t, "http://feeds.home.arpa/deny"+page, stage.Home)
		stage.WantBody(t, "its page, denied", w, 200, "has moved to other.example ")
		if strings.Contains(w.Body.String(), "other.example/feed") {
			t.Errorf("the page has the URL:\n%s", w.Body)
		}
	})
}

// A configured feed at a private address is polled, but cannot be requested by URL, nor by a URL that
// redirects there, nor by a gateway beside it.
func TestConfiguredPrivateFeed(t *testing.T) {
	const url = "http://10.9.9.9/payroll.xml"
	web := func(r *http.Request) (int, string, http.Header) {
		if status, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/")); err == nil {
			return status, "", http.Header{"Location": {url}}
		}
		return feeds(r)
	}
	for _, tt := range []struct {
		lines string
		want  int
	}{
		{"clients any", 403},
		{"clients any\nallow 10.9.9.9 public.example", 200},
	} {
		stage.RunGateways(t, web, func(t *testing.T, o *stage.Stage) {
			site := "handle_path /beside/* {\nfeed_gateway {\n" + tt.lines + "\n}\n}\nfeed_gateway {\nfeed /payroll.xml " + url + "\n" + tt.lines + "\n}\n"
			if err := o.LoadSites("", "spacing 0", "http://feeds.test {\nbind void/feeds\n"+site+"}\n"); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				stage.WantBody(t, "at its path", stage.Get(t, "http://feeds.test/payroll.xml", stage.Outside), 200, "<rss")
				for _, below := range []string{"", "/beside"} {
					if w := stage.Get(t, "http://feeds.test"+below+"/"+url, stage.Outside); w.Code != tt.want {
						t.Errorf("%s: by URL: %d %s", tt.lines, w.Code, w.Body)
					}
					for _, status := range []string{"301", "302", "308"} {
						w := stage.Get(t, "http://feeds.test"+below+"/http://public.example/"+status, stage.Outside)
						for range 5 {
							if w.Header().Get("Location") == "" {
								break
							}
							w = stage.Get(t, "http://feeds.test"+w.Header().Get("Location"), stage.Outside)
						}
						if tt.want != 200 && (w.Code < 400 || strings.Contains(w.Body.String(), "<rss")) {
							t.Errorf("%s: by a %s: %d %s", tt.lines, status, w.Code, w.Body)
						}
					}
				}
				time.Sleep(25 * time.Hour) // until all are due
			}
		})
	}
}

// Caddy's directive header edits the values of a response in place: those of other responses, and of other
// sites, stay.
func TestHeaderDirectiveEditsOneResponse(t *testing.T) {
	const edits = `header {
		Vary Accept-Encoding "Accept-Encoding, Cookie"
		Cache-Control "(max-age)" "public, $1"
		Content-Security-Policy sandbox "sandbox allow-scripts"
		Access-Control-Allow-Origin \* https://reader.example
		defer
	}
	`
	gateway := "feed_gateway {\nfeed /one.xml https://one.example/feed\nfeed /broken.xml https://broken.example/feed\ncors\nclients any\n}\n"
	onSites(t, "", "http://feeds.test {\nbind void/feeds\n"+edits+gateway+"}\nhttp://plain.test {\nbind void/feeds\n"+gateway+"}\n", func(t *testing.T) {
		get := func(host, target, condition string) http.Header {
			return stage.Get(t, "http://"+host+target, stage.Home, "If-None-Match", condition).Result().Header
		}
		for _, target := range []string{"/one.xml", "/https://one.example/feed", "/broken.xml"} {
			tag := get("plain.test", target, "").Get("Etag")
			for _, condition := range []string{"", tag} {
				want, edited := get("plain.test", target, condition), get("feeds.test", target, condition)
				for range 2 {
					if again := get("feeds.test", target, condition); fmt.Sprint(again) != fmt.Sprint(edited) {
						t.Errorf("%s: first %v, then %v", target, edited, again)
					}
				}
				if got := get("plain.test", target, condition); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s of another site: first %v, then %v", target, want, got)
				}
				if edited.Get("Access-Control-Allow-Origin") != "https://reader.example" {
					t.Errorf("%s is not edited: %v", target, edited)
				}
			}
		}
	})
}

// The page of a site that a gateway does not serve is not shown by the URL of another one that redirects there.
func TestRedirectsToPagesObeyDenyAndAllow(t *testing.T) {
	web := func(r *http.Request) (int, string, http.Header) {
		if r.URL.Host == "one.example" {
			return 302, "", http.Header{"Location": {"https://other.example/"}}
		}
		return 200, homePage, http.Header{"Content-Type": {"text/html"}}
	}
	stage.RunGateways(t, web, func(t *testing.T, o *stage.Stage) {
		sites := "http://feeds.home.arpa {\nbind void/feeds\nhandle_path /one/* {\nfeed_gateway {\nallow one.example\n}\n}\nhandle_path /both/* {\nfeed_gateway {\nallow one.example other.example\n}\n}\n}\n"
		if err := o.LoadSites("", "spacing 0", sites); err != nil {
			t.Fatal(err)
		}
		for gateway, want := range map[string]bool{"both": true, "one": false} {
			for _, target := range []string{"/https://one.example/", "/?find=https://one.example/"} {
				w := stage.Get(t, "http://feeds.home.arpa/"+gateway+target, stage.Home, "Accept", "text/html")
				if strings.Contains(w.Body.String(), "other.example/atom.xml") != want {
					t.Errorf("%s%s: %d %s, want the page: %v", gateway, target, w.Code, w.Body, want)
				}
			}
		}
	})
}
