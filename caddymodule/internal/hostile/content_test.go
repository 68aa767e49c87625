// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
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

// active is a document that is a feed and more.
type active struct {
	name, media, body string
	// runs says that the script runs if the document comes from its origin, so that the
	// browser proves something.
	runs bool
}

const (
	inHTML = `xmlns:h="http://www.w3.org/1999/xhtml"`
	inSVG  = `xmlns:s="http://www.w3.org/2000/svg" xmlns:l="http://www.w3.org/1999/xlink"`
)

// actives are feeds with script in all the ways in which a document can have some.
func actives() (list []active) {
	medias := []string{"text/xml", "application/xhtml+xml", "image/svg+xml", "text/html", "application/rss+xml", ""}
	if *campaign {
		medias = append(medias, "application/xml", "application/atom+xml", "application/mathml+xml", "application/xslt+xml", "text/plain", "application/octet-stream", "multipart/x-mixed-replace; boundary=x")
	}
	for _, media := range medias {
		xml := strings.HasSuffix(media, "/xml") || strings.HasPrefix(media, "application/xhtml") || strings.HasPrefix(media, "image/svg")
		add := func(name, open, inside string, runs bool) {
			list = append(list, active{name + " as " + media, media, strings.Replace(rssOpen, "<rss", "<rss "+open, 1) + inside + rssClose, runs})
		}
		add("script in XHTML", inHTML, `<h:script>`+script+`</h:script>`, xml)
		add("script in SVG", inSVG, `<s:svg><s:script>`+script+`</s:script></s:svg>`, xml)
		add("script in HTML", "", `<script>`+script+`</script>`, media == "text/html")
		add("an event in XHTML", inHTML, `<h:img src="data:," onerror="`+script+`"/>`, xml)
		add("an event in SVG", inSVG, `<s:svg onload="`+script+`"/>`, xml)
		add("an event in HTML", "", `<img src="data:," onerror="`+script+`"/>`, media == "text/html")
		add("a frame of script", inHTML, `<h:iframe src="javascript:`+script+`"/>`, xml)
		add("a frame of its own document", inHTML, `<h:iframe srcdoc="&lt;script&gt;`+script+`&lt;/script&gt;"/>`, xml)
		add("an object of data", inHTML, `<h:object data="data:text/html,&lt;script&gt;`+script+`&lt;/script&gt;"/>`, false)
		add("a refresh", inHTML, `<h:meta http-equiv="refresh" content="0;url=javascript:`+script+`"/>`, false)
		add("MathML", `xmlns:m="http://www.w3.org/1998/Math/MathML" `+inHTML, `<m:math><m:semantics><m:annotation-xml encoding="text/html"><h:script>`+script+`</h:script></m:annotation-xml></m:semantics></m:math>`, xml)
		add("an animation", inSVG, `<s:svg><s:animate onbegin="`+script+`" attributeName="x" dur="1s"/></s:svg>`, false)
		add("XBL and behaviours", inHTML, `<h:style>*{behavior:url(#x);-moz-binding:url(#x)}</h:style>`, false)
		list = append(list,
			active{"a stylesheet of data as " + media, media, `<?xml-stylesheet type="text/xsl" href="data:text/xml,` + url.PathEscape(transform) + `"?>` + feed, false},
			active{"a stylesheet that is a feed as " + media, media, `<?xml-stylesheet type="text/xsl" href="simple.xsl"?>` + feed, false},
			active{"a stylesheet within as " + media, media, `<?xml-stylesheet type="text/xsl" href="#x"?>` + strings.Replace(feed, "<item>", strings.Replace(transform, "<xsl:stylesheet", `<xsl:stylesheet id="x"`, 1)+"<item>", 1), false},
			active{"attributes by a DTD as " + media, media, `<!DOCTYPE rss [<!ATTLIST title xmlns CDATA #FIXED "http://www.w3.org/1999/xhtml" onfocus CDATA #FIXED "` + script + `" autofocus CDATA #FIXED "" tabindex CDATA #FIXED "0">]>` + feed, false},
			active{"JSON as " + media, media, jsonOpen + `"x":"<script>` + script + `</script>",` + jsonClose, media == "text/html"},
			active{"a page as " + media, media, "<!DOCTYPE html><script>" + script + "</script>", media == "text/html"},
			active{"UTF-7 as " + media, strings.TrimSuffix(media+"; charset=utf-7", "; "), strings.Replace(feed, "Good", "+ADw-script+AD4-"+script+"+ADw-/script+AD4-", 1), false},
		)
	}
	return list
}

const transform = `<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/"><html xmlns="http://www.w3.org/1999/xhtml"><script>` + script + `</script></html></xsl:template></xsl:stylesheet>`

// simple is a feed, and a stylesheet (XSLT 1.0 section 2.3).
const simple = `<rss version="2.0" xsl:version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:h="http://www.w3.org/1999/xhtml"><channel><title>x</title><h:script>` + script + `</h:script><item><guid>1</guid></item></channel></rss>`

// No script of a feed runs in the gateway's origin, neither as a page of its own nor in a
// frame of another site.
func TestNothingIsExecuted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	ctx := browser.Open(t)
	list := actives()
	var gateway string
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var i int
		switch {
		case strings.HasSuffix(r.URL.Path, "simple.xsl"):
			w.Header().Set("Content-Type", "text/xml")
			fmt.Fprint(w, simple)
			return
		case r.URL.Path == "/frames": // all documents at an address, in frames
			w.Header().Set("Content-Type", "text/html")
			for i := range list {
				fmt.Fprintf(w, `<iframe src="%s/%d.xml"></iframe>`, r.URL.RawQuery, i)
			}
			return
		case r.URL.Path == "/objects":
			w.Header().Set("Content-Type", "text/html")
			for i, a := range list {
				if a.runs {
					fmt.Fprintf(w, `<object data="%[1]s/%[2]d.xml"></object><embed src="%[1]s/%[2]d.xml">`, r.URL.RawQuery, i)
				}
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
	gateway = "http://" + c.address + "/" + origin.URL

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
	for i, a := range list {
		if a.runs && !would[fmt.Sprint(i)] {
			t.Errorf("%s does not run from its origin: this browser proves nothing", a.name)
		}
		if c.get(fmt.Sprintf("/%s/%d.xml", origin.URL, i)).Status == http.StatusOK {
			served++
		}
	}
	if len(would) < 20 || served < len(list)/2 {
		t.Errorf("of %d documents %d run where they come from, and %d are served", len(list), len(would), served)
	}
	for _, page := range []string{"/frames?", "/objects?"} {
		for i := range open(origin.URL + page + gateway) {
			t.Errorf("something runs in the gateway's origin, on %s: %s", page, i)
		}
	}
	pages := []string{gateway + "/simple.xsl"}
	for i, a := range list {
		if a.media == "text/xml" || *campaign {
			pages = append(pages, fmt.Sprintf("%s/%d.xml", gateway, i))
		}
	}
	inject := "<script>" + script + "</script>"
	for _, path := range []string{"/http://127.0.0.1:1/" + inject, "/?url=" + url.QueryEscape(inject), "/http://" + inject, "/~" + inject + "/", "/-/feeds?url=" + url.QueryEscape(inject), "/-/feeds?q=" + url.QueryEscape(`"><script>`+script+"</script>"), "/?find=" + url.QueryEscape("javascript:"+script)} {
		pages = append(pages, "http://"+c.address+path)
	}
	for _, page := range pages {
		if len(open(page)) > 0 {
			t.Errorf("%s is executed in the gateway's origin", page)
		}
	}
	t.Logf("%d documents, of which this browser runs %d from their origin; %d are served; none runs, in frames, as objects, or as one of %d pages", len(list), len(would), served, len(pages))
}
