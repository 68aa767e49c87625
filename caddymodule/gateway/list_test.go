// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/opml"
	"github.com/feedpollard/pollard/internal/origintest"
)

const operatorsList = `<?xml version="1.0" encoding="ISO-8859-1"?><opml version="1.0"><head><ownerEmail>operator@example.org</ownerEmail></head><body>
<outline text="B` + "\xfc" + `cher"><outline title="Two" xmlUrl="https://two.example/feed" secret="x"/><outline text="Deep"><outline text="One &amp; only" xmlUrl="https://one.example/feed"/></outline></outline>
<outline text="Denied"><outline xmlUrl="https://denied.example/feed"/></outline>
<outline text="Private" xmlUrl="https://user:password@private.example/feed"/><outline text="A page" type="HTML+XPath" xmlUrl="https://page.example/"/>
</body></opml>`

// GET /-/opml lists the feeds that the configuration names, in their folders, and nothing else that is in
// the operator's file or has a secret. Each address in it is served. The list itself polls nothing.
func TestListOfFeeds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "list.opml")
	stage.WriteFile(t, file, operatorsList)
	lines := "feed /my%20one.xml https://one.example/feed\nfeed /secret.xml https://three.example/feed?key=verysecretkey123456\nallow *.example\ndeny denied.example\nopml " + file + "\ntoken alice " + secret + "\n"
	onGateway(t, lines, func(t *testing.T, g *Gateway, o *origintest.Origin) {
		ask(t, g, "GET", "/secret.xml", stage.Home)
		ask(t, g, "GET", "/https://asked.example/feed", stage.Home)
		ask(t, g, "GET", "/https://none.example/feed", stage.Home)
		ask(t, g, "GET", "/~"+secret+"/https://alices.example/feed", stage.Outside)
		polls := len(o.Requests())
		const site, alice = "http://feeds.home.arpa/", "http://feeds.home.arpa/~" + secret + "/"
		for _, tt := range []struct {
			target, client string
			want           []string // folders and text, URL
		}{
			{"/-/opml", stage.Home, []string{
				"Bücher/Two " + site + "https://two.example/feed", "Bücher/Deep/One & only " + site + "my%20one.xml", "My weblog " + site + "secret.xml",
			}},
			{"/~" + secret + "/-/opml", stage.Outside, []string{
				"Bücher/Two " + alice + "https://two.example/feed", "Bücher/Deep/One & only " + site + "my%20one.xml", "My weblog " + site + "secret.xml",
			}},
			{"/-/opml?asked", stage.Home, []string{
				"Bücher/Two " + site + "https://two.example/feed", "Bücher/Deep/One & only " + site + "my%20one.xml", "My weblog " + site + "secret.xml",
				"My weblog " + site + "https://asked.example/feed",
			}},
			{"/~" + secret + "/-/opml?asked", stage.Outside, []string{
				"Bücher/Two " + alice + "https://two.example/feed", "Bücher/Deep/One & only " + site + "my%20one.xml", "My weblog " + site + "secret.xml",
				"My weblog " + alice + "https://alices.example/feed",
			}},
			{"/-/opml?direct", stage.Home, []string{"Bücher/Two https://two.example/feed"}},
			{"/-/opml?direct&asked", stage.Home, []string{"Bücher/Two https://two.example/feed", "My weblog https://asked.example/feed"}},
		} {
			w := ask(t, g, "GET", tt.target, tt.client)
			list, err := opml.Outlines(w.Body.Bytes())
			if got := flat("", list); err != nil || w.Code != 200 || !slices.Equal(got, tt.want) {
				t.Errorf("%s: %d %v\n%q, want\n%q", tt.target, w.Code, err, got, tt.want)
			}
			for _, word := range []string{"password", "verysecret", "operator@", "denied", "page.example"} {
				if strings.Contains(w.Body.String(), word) {
					t.Errorf("%s: the list has %s: %s", tt.target, word, w.Body)
				}
			}
			h := w.Header()
			if saved := h.Get("Content-Disposition") != ""; h.Get("Cache-Control") != "private, max-age=3600" || saved != strings.Contains(tt.target, "asked") || h.Get("Content-Type") != "text/x-opml; charset=utf-8" {
				t.Errorf("%s: %v", tt.target, h)
			}
			if w := ask(t, g, "GET", tt.target, tt.client, "If-None-Match", h.Get("ETag")); w.Code != 304 || w.Body.Len() > 0 {
				t.Errorf("%s: %d with its ETag", tt.target, w.Code)
			}
			if w := ask(t, g, "HEAD", tt.target, tt.client); w.Code != 200 || w.Body.Len() > 0 || w.Header().Get("ETag") != h.Get("ETag") {
				t.Errorf("HEAD %s: %d %v", tt.target, w.Code, w.Header())
			}
		}
		if n := len(o.Requests()) - polls; n != 0 {
			t.Errorf("lists caused %d polls", n)
		}
		if w := ask(t, g, "GET", "/-/opml", stage.Outside); w.Code != 403 {
			t.Errorf("a stranger: %d %s", w.Code, w.Body)
		}
		body := ask(t, g, "GET", "/-/opml", stage.Home).Body.Bytes()
		list, err := opml.Outlines(body)
		if err != nil {
			t.Fatal(err)
		}
		opml.Pruned(list, func(feed *opml.Outline) bool {
			if w := ask(t, g, "GET", strings.TrimPrefix(feed.URL, "http://feeds.home.arpa"), stage.Home); w.Code != 200 {
				t.Errorf("%s: %d %s", feed.URL, w.Code, w.Body)
			}
			return true
		})
		stage.WriteFile(t, file, `<opml><body><outline text="New" xmlUrl="https://new.example/feed"/></body></opml>`)
		time.Sleep(checkInterval)
		ask(t, g, "GET", "/-/opml", stage.Home)
		if got := ask(t, g, "GET", "/-/opml", stage.Home).Body.String(); !strings.Contains(got, "https://new.example/feed") || strings.Contains(got, "two.example") {
			t.Errorf("after a change of the file: %s", got)
		}
	})
}

// flat returns the feeds of a list with their folders.
func flat(folder string, list []opml.Outline) (lines []string) {
	for _, o := range list {
		if o.URL != "" {
			lines = append(lines, folder+o.Text+" "+o.URL)
		}
		lines = append(lines, flat(folder+o.Text+"/", o.Outlines)...)
	}
	return lines
}

// A gateway for any client lists nothing, and one that does not run has no list, rather than an empty one.
func TestNoListOfFeeds(t *testing.T) {
	onGateway(t, "clients any\nfeed /one.xml https://one.example/feed\ntoken alice "+secret, func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		if w := ask(t, g, "GET", "/-/opml", stage.Home); w.Code != 404 {
			t.Errorf("clients any: %d %s", w.Code, w.Body)
		}
		if w := ask(t, g, "GET", "/~"+secret+"/-/opml", stage.Home); w.Code != 200 || !strings.Contains(w.Body.String(), "/one.xml") {
			t.Errorf("with a token: %d %s", w.Code, w.Body)
		}
	})
	g, _, _ := gatewayOf(t, "pages off")
	if w := ask(t, g, "GET", "/-/opml", stage.Home); w.Code != 404 {
		t.Errorf("without pages: %d %s", w.Code, w.Body)
	}
}
