// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// site is a publisher's own site, which counts who asks.
func site(t *testing.T, answer http.HandlerFunc) (s *httptest.Server, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answer(w, r)
	}))
	s.Config.SetKeepAlivesEnabled(false) // idle connections would look like a leak
	t.Cleanup(s.Close)
	return s, asked
}

func feedOf(who string) string { return strings.Replace(feed, "Good", "feed of "+who, 1) }

// identities are the ways in which a site tells readers apart. The last part is what is sent
// to its origin.
var identities = []struct{ name, before, told string }{
	{"a variable of a cookie", "vars who {http.request.cookie.uid}", "{http.vars.who}"},
	{"a variable by a matcher", "@alice header Cookie *alice*\nvars @alice who alice", "{http.vars.who}"},
	{"a variable of a header", "vars who {header.X-Who}", "{http.vars.who}"},
	{"a variable of a variable", "vars one {http.request.cookie.uid}\nvars who {http.vars.one}", "{http.vars.who}"},
	{"a variable of an address", "vars who {http.request.remote.host}-{http.request.cookie.uid}", "{http.vars.who}"},
	{"what a matcher has captured", "@who header_regexp sess Cookie uid=(\\w+)\nvars @who seen yes", "{http.regexp.sess.1}"},
	{"what a matcher has captured, without a name", "@who header_regexp Cookie uid=(\\w+)\nvars @who seen yes", "{http.regexp.1}"},
	{"what a matcher has captured by a name", "@who header_regexp sess Cookie uid=(?P<id>\\w+)\nvars @who seen yes", "{http.regexp.sess.id}"},
	{"a map", "map {http.request.cookie.uid} {who} {\n\talice alice\n\tbob bob\n\tdefault nobody\n}", "{who}"},
	{"a map by patterns", "map {http.request.header.Cookie} {who} {\n\t~uid=(\\w+) ${1}\n\tdefault nobody\n}", "{who}"},
	{"a header that was made before", "request_header X-Made {http.request.cookie.uid}", "{http.request.header.X-Made}"},
	{"the cookie", "", "{http.request.cookie.uid}"},
	{"the header", "", "{http.request.header.X-Who}"},
	{"the language", "", "{http.request.header.Accept-Language}"},
	{"the referrer", "", "{http.request.header.Referer}"},
	{"the agent", "", "{http.request.header.User-Agent}"},
	{"the authorization", "", "{http.request.header.Authorization}"},
	{"a header that claims an address", "", "{http.request.header.X-Forwarded-For}"},
	{"the address", "", "{http.request.remote.port}"},
	{"the original request", "", "{http.request.orig_uri.query}"},
	{"the range", "", "{http.request.header.Range}"},
	{"the conditions", "", "{http.request.header.If-None-Match}"},
	{"the id of the request", "", "{http.request.uuid}{http.request.cookie.uid}"},
}

// A shield's shared answer depends on no reader, however the site tells its readers apart.
func TestHostileShieldIdentities(t *testing.T) {
	t.Parallel()
	backend, asked := site(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/rss+xml")
		fmt.Fprint(w, feedOf(r.Header.Get("X-User")))
	})
	var sites strings.Builder
	for i, way := range identities {
		fmt.Fprintf(&sites, "handle /%d/* {\n%s\nfeed_shield {\norigin {\nreverse_proxy %s {\nheader_up X-User %s\n}\n}\n}\n}\n", i, way.before, strings.TrimPrefix(backend.URL, "http://"), way.told)
	}
	c := start(t, setup{site: sites.String()})
	as := func(i int, who string) string {
		return c.get(fmt.Sprintf("/%d/feed.xml", i), "Cookie", "uid="+who, "X-Who", who, "Accept-Language", who, "Referer", "http://x.test/"+who, "User-Agent", who,
			"X-Forwarded-For", who, "If-None-Match", `"`+who+`"`, "Range", "bytes=0-99999, "+who).Body
	}
	c.get("/nothing")
	took := c.costs(maxReaderCPU)
	for i, way := range identities {
		took.measure(way.name, func() {
			first := as(i, "alice")
			for _, other := range []string{"bob", "carol"} {
				if got := as(i, other); strings.Contains(got, "alice") {
					t.Errorf("%s: %s gets %q (alice has got %q)", way.name, other, got, first)
				}
			}
			if got := c.get(fmt.Sprintf("/%d/feed.xml", i)).Body; strings.Contains(got, "alice") || strings.Contains(got, "bob") || strings.Contains(got, "carol") {
				t.Errorf("%s: a reader without an identity gets %q", way.name, got)
			}
		})
	}
	took.over()
	took.polls = int(asked.Load())
	took.log(fmt.Sprintf("%d ways to tell readers apart", len(identities)))
}

// Responses that are not feeds pass through a shield unchanged, and at once.
func TestHostileShieldPages(t *testing.T) {
	t.Parallel()
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	pages := []struct{ name, media, first, rest string }{
		{"a page with a feed further on", "text/html", "<!DOCTYPE html><html><body><p>page</p>", strings.Repeat("<p>text</p>", 30) + feed},
		{"a page without a type", "", "<!DOCTYPE html><html><body><p>page</p>", feed},
		{"a page of type RSS", "application/rss+xml", "<!DOCTYPE html><html><body><p>page</p>", feed},
		{"a picture with a feed in it", "image/png", png, feed},
		{"a picture of type RSS", "application/rss+xml", png, feed},
		{"text before a feed", "text/plain", strings.Repeat("text ", 500), feed},
		{"NDJSON", "application/x-ndjson", "{\"a\":1}\n", "{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[]}"},
		{"XML before a feed", "application/xml", "<?xml version=\"1.0\"?><log><line>1</line>", "</log>" + feed},
		{"bytes before a feed", "application/octet-stream", "\x00\x01\x02\x03", feed},
		{"nothing, then a feed of type HTML", "text/html", " \n", "<html>" + feed + "</html>"},
	}
	release := make(chan struct{})
	var once sync.Once
	free := func() { once.Do(func() { close(release) }) }
	backend, asked := site(t, func(w http.ResponseWriter, r *http.Request) {
		var i int
		kind := ""
		if _, err := fmt.Sscanf(r.URL.Path, "/%d/%s", &i, &kind); err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header()["Content-Type"] = []string{pages[i].media}
		if pages[i].media == "" {
			w.Header()["Content-Type"] = nil
		}
		_, _ = io.WriteString(w, pages[i].first)
		_ = http.NewResponseController(w).Flush()
		if kind == "stream" {
			select {
			case <-release:
			case <-r.Context().Done():
				return
			}
		}
		_, _ = io.WriteString(w, pages[i].rest)
	})
	t.Cleanup(free) // before the server is closed, which waits for its answers
	c := start(t, setup{site: "feed_shield {\norigin {\nreverse_proxy " + strings.TrimPrefix(backend.URL, "http://") + " {\nflush_interval -1\n}\n}\n}\n"})
	c.get("/nothing")
	took := c.costs(maxReaderCPU)
	for i, page := range pages {
		took.measure(page.name, func() {
			for range 2 { // the second time it is known what it is
				got := c.get(fmt.Sprintf("/%d/whole", i))
				if got.Status != http.StatusOK || got.Body != page.first+page.rest {
					t.Errorf("%s: %v", page.name, got)
				}
				if media := got.Header.Get("Content-Type"); page.media != "" && media != page.media {
					t.Errorf("%s is %q now", page.name, media)
				}
			}
		})
	}
	// A stream that does not end before its reader has seen its beginning.
	var all sync.WaitGroup
	for i, page := range pages {
		if page.media == "application/rss+xml" || strings.TrimSpace(page.first) == "" {
			continue // it may well become a feed
		}
		all.Go(func() {
			resp, err := client.Get(fmt.Sprintf("http://%s/%d/stream", c.address, i))
			if err != nil {
				t.Errorf("%s: %v", page.name, err)
				return
			}
			defer resp.Body.Close()
			first := make([]byte, len(page.first))
			if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != page.first {
				t.Errorf("%s, streamed: %q %v", page.name, first, err)
			}
		})
	}
	begun := time.Now()
	all.Wait()
	// Polls have 30 s. A reader that waits for the end of one waits so long.
	if waited := time.Since(begun); waited > 20*time.Second {
		t.Errorf("streams were held back for %v", waited)
	}
	free()
	took.over()
	took.polls = int(asked.Load())
	took.log(fmt.Sprintf("%d pages", len(pages)))
}

// A request with a body of its own leaves nothing for others (RFC 9110 section 9.3.1).
func TestHostileShieldFatRequests(t *testing.T) {
	t.Parallel()
	backend, asked := site(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // all bodies here are complete
		w.Header().Set("Content-Type", "application/rss+xml")
		w.Header().Set("Cache-Control", "max-age=600")
		fmt.Fprint(w, feedOf("body "+string(body)))
	})
	to := "origin {\nreverse_proxy " + strings.TrimPrefix(backend.URL, "http://") + "\n}\n"
	c := start(t, setup{site: "feed_shield {\n" + to + "}\n"})
	c.get("/good.xml")
	took := c.costs(maxReaderCPU)
	{
		for i, attack := range []func(r *http.Request){
			func(r *http.Request) { r.ContentLength = 4 },
			func(r *http.Request) { r.ContentLength = -1; r.TransferEncoding = []string{"chunked"} },
			func(r *http.Request) { r.ContentLength = 4; r.Header.Set("Expect", "100-continue") },
			func(r *http.Request) { r.ContentLength = 4; r.Method = "HEAD" },
		} {
			url := fmt.Sprintf("http://%s/feed%d.xml", c.address, i)
			r, err := http.NewRequest("GET", url, strings.NewReader("evil"))
			if err != nil {
				t.Fatal(err)
			}
			attack(r)
			took.measure(url, func() {
				if _, err := do(r); err != nil {
					t.Errorf("%s: %v", url, err)
				}
				if a := c.get(fmt.Sprintf("/feed%d.xml", i)); a.Status != http.StatusOK || strings.Contains(a.Body, "evil") {
					t.Errorf("%s: %v", url, a)
				}
			})
		}
	}
	took.over()
	took.polls = int(asked.Load())
	took.log("4 requests with bodies")
}
