// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/feedpollard/pollard/caddymodule/internal/browser"
)

// script must never run. If it does, the browser logs it.
const script = `console.log('executed')`

// active is a document that is a feed and has script, which a browser runs if the document comes from
// its origin.
type active struct{ name, media, body string }

const (
	inHTML = `xmlns:h="http://www.w3.org/1999/xhtml"`
	inSVG  = `xmlns:s="http://www.w3.org/2000/svg"`
)

// actives are feeds with script in all the ways in which a browser runs some.
func actives() (list []active) {
	add := func(media, name, body string) {
		list = append(list, active{name + " as " + media, media, body})
	}
	within := func(open, inside string) string {
		return strings.Replace(rssOpen, "<rss", "<rss "+open, 1) + inside + rssClose
	}
	for _, media := range []string{"text/xml", "application/xhtml+xml", "image/svg+xml", ""} {
		add(media, "script in XHTML", within(inHTML, `<h:script>`+script+`</h:script>`))
		add(media, "script in SVG", within(inSVG, `<s:svg><s:script>`+script+`</s:script></s:svg>`))
		add(media, "an event in XHTML", within(inHTML, `<h:img src="data:," onerror="`+script+`"/>`))
		add(media, "an event in SVG", within(inSVG, `<s:svg onload="`+script+`"/>`))
		add(media, "a frame of script", within(inHTML, `<h:iframe src="javascript:`+script+`"/>`))
		add(media, "a frame of its own document", within(inHTML, `<h:iframe srcdoc="&lt;script&gt;`+script+`&lt;/script&gt;"/>`))
		add(media, "MathML", within(`xmlns:m="http://www.w3.org/1998/Math/MathML" `+inHTML, `<m:math><m:semantics><m:annotation-xml encoding="text/html"><h:script>`+script+`</h:script></m:annotation-xml></m:semantics></m:math>`))
		add(media, "an object of data", within(inHTML, `<h:object data="data:text/html,&lt;script&gt;`+script+`&lt;/script&gt;"/>`))
		add(media, "an animation", within(inSVG, `<s:svg><s:animate onbegin="`+script+`" attributeName="x" dur="1s"/></s:svg>`))
	}
	add("", "a page", "<!DOCTYPE html><script>"+script+"</script>")
	add("text/html", "script", within("", `<script>`+script+`</script>`))
	add("text/html", "an event", within("", `<img src="data:," onerror="`+script+`"/>`))
	add("text/html", "JSON", jsonOpen+`"x":"<script>`+script+`</script>",`+jsonClose)
	add("text/html", "a page", "<!DOCTYPE html><script>"+script+"</script>")
	return list
}

// No script of a feed runs in the gateway's origin, neither as a page of its own nor in a
// frame of another site.
func TestNothingIsExecuted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	ctx := browser.Open(t)
	list := actives()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var i int
		inside := map[string]string{"/frames": `<iframe src="%[1]s/%[2]d.xml"></iframe>`, "/objects": `<object data="%[1]s/%[2]d.xml"></object><embed src="%[1]s/%[2]d.xml">`}[r.URL.Path]
		if inside != "" { // all documents at an address
			w.Header().Set("Content-Type", "text/html")
			for i := range list {
				fmt.Fprintf(w, inside, r.URL.RawQuery, i)
			}
			return
		}
		if _, err := fmt.Sscanf(r.URL.Path, "/%d.xml", &i); err != nil || i >= len(list) {
			http.NotFound(w, r)
			return
		}
		w.Header()["Content-Type"] = []string{list[i].media}
		if list[i].media == "" {
			w.Header()["Content-Type"] = nil // not even one that is guessed
		}
		fmt.Fprint(w, strings.ReplaceAll(list[i].body, script, fmt.Sprintf("console.log(%d)", i)))
	}))
	defer origin.Close()
	c := start(t, setup{app: impatient, site: gatewayByURL})
	gateway := "http://" + c.address + "/" + origin.URL

	var mu sync.Mutex // guards logged
	var logged map[string]bool
	err := chromedp.Listen(ctx, func(event any) {
		if e, ok := event.(*runtime.EventConsoleAPICalled); ok {
			mu.Lock()
			defer mu.Unlock()
			for _, argument := range e.Args {
				logged[string(argument.Value)] = true
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	// open goes to an address, and returns the scripts that run there.
	open := func(address string) map[string]bool {
		t.Helper()
		mu.Lock()
		logged = make(map[string]bool)
		mu.Unlock()
		// Downloads are not pages, and embedded documents may never be complete.
		loading, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		_ = chromedp.Do(loading, chromedp.Navigate(address))
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.readyState")); err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		mu.Lock()
		defer mu.Unlock()
		return logged
	}
	would, served := open(origin.URL+"/frames?"+origin.URL), 0
	for i := range list {
		if c.get(fmt.Sprintf("/%s/%d.xml", origin.URL, i)).Status == http.StatusOK {
			served++
		}
	}
	if len(would) < len(list)*2/3 || served < len(list)*2/3 {
		t.Errorf("of %d documents %d run from their origin, and %d are served: this proves nothing", len(list), len(would), served)
	}
	for _, page := range []string{"/frames?", "/objects?"} {
		for i := range open(origin.URL + page + gateway) {
			t.Errorf("something runs in the gateway's origin, on %s: %s", page, i)
		}
	}
	pages := 0
	for i, a := range list {
		if a.media != "text/xml" {
			continue
		}
		pages++
		if page := fmt.Sprintf("%s/%d.xml", gateway, i); len(open(page)) > 0 {
			t.Errorf("%s is executed in the gateway's origin", page)
		}
	}
	t.Logf("%d documents, of which this browser runs %d from their origin; %d are served; none runs in frames, as an object, or as one of %d pages", len(list), len(would), served, pages)
}

// A feed with a style sheet, opened at the gateway, shows its text. With the style sheet, which a browser
// may not load there, it would be a white page.
func TestFeedWithStylesheet(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	ctx := browser.Open(t)
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		fmt.Fprint(w, strings.Replace(feed, "<rss", `<?xml-stylesheet type="text/xsl" href="/rss.xsl"?><rss`, 1))
	}))
	defer origin.Close()
	c := start(t, setup{app: impatient, site: gatewayByURL})
	if err := chromedp.Do(ctx, chromedp.Navigate("http://"+c.address+"/"+origin.URL+"/feed.xml")); err != nil {
		t.Fatal(err)
	}
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.documentElement.textContent"))
	if err != nil || !strings.Contains(text, "Good") {
		t.Errorf("it shows %q, %v", text, err)
	}
}
