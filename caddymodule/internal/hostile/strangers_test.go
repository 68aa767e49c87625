// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// The configuration of the packages is a gateway on a site for any host, for private clients. A page of
// another site in the browser of one of them has its address: by a name of its own that resolves to
// the gateway, by images, and by uploads it gets nothing, adds no feed and takes no memory.
func TestHostilePagesOfOtherSites(t *testing.T) {
	t.Parallel()
	origin, feedURL := newOrigin(t)
	c := start(t, setup{
		anyHost: true,
		app:     "private_upstreams 127.0.0.0/8\nhost * {\n\tspacing 0\n\tconcurrency 64\n}",
		site:    "feed_gateway {\n\tfeed /one.xml " + feedURL + "/one.xml\n\treaders\n}\n",
	})
	if a := c.get("/" + feedURL + "/known.xml"); a.Status != http.StatusOK {
		t.Fatal(a)
	}
	took, known := c.costs(maxReaderCPU), len(origin.Requests())
	took.maxPeak = raced * (memorySetting + memoryBeside)
	asked := func(what string, want int) {
		t.Helper()
		if n := len(origin.Requests()) - known; n != want {
			t.Errorf("%s: %d requests at the origin, want %d", what, n, want)
		}
	}
	_, port, _ := strings.Cut(c.address, ":")
	took.measure("names of strangers", func() {
		for _, name := range []string{"evil.com:" + port, "EVIL.org.", "127.0.0.1.evil.com", "localhost.evil.com", "home.arpa.evil.org:80", "a.duckdns.org", "::1.evil.net"} {
			for _, target := range []string{"/", "/-/feeds", "/-/feeds?url=" + url.QueryEscape(feedURL+"/known.xml"), "/-/readers", "/-/savings", "/" + feedURL + "/known.xml", "/" + feedURL + "/new.xml", "/?find=" + url.QueryEscape(feedURL)} {
				if a := c.get(target, "Host", name); a.Status != http.StatusForbidden && a.Status != http.StatusBadRequest || strings.Contains(a.Body, "known.xml") {
					t.Errorf("%s at %s: %v", target, name, a)
				}
			}
			a, err := c.ask("POST", "/-/refresh?url="+url.QueryEscape(feedURL+"/known.xml"), "Host", name, "Origin", "http://"+name)
			if err != nil || a.Status < 400 {
				t.Errorf("a poll by hand at %s: %v %v", name, a, err)
			}
		}
	})
	asked("names of strangers", 0)

	const images = 1040 // more new feeds than a private address may add at once
	took.measure("images", func() {
		sent := [][]string{
			{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "image"}, {"Sec-Fetch-Site", "same-site", "Sec-Fetch-Dest", "empty"}, {"Sec-Purpose", "prefetch;prerender", "Sec-Fetch-Site", "none", "Sec-Fetch-Dest", "document"},
			{"Referer", "http://evil.example/"}, {"Origin", "null"},
		}
		for i := range images {
			if a := c.get(fmt.Sprintf("/%s/%d.xml", feedURL, i), sent[i%len(sent)]...); a.Status != http.StatusForbidden {
				t.Fatalf("%v: %v", sent[i%len(sent)], a)
			}
		}
	})
	asked("images", 0)
	if a := c.get("/" + feedURL + "/own.xml"); a.Status != http.StatusOK {
		t.Errorf("a new feed of the household: %v", a)
	}
	asked("a new feed", 1)

	const uploads = 12
	took.maxCPU = raced * 15 * time.Second // of all of them, two at a time
	took.measure("uploads", func() {
		outlines := `<opml version="2.0"><body>` + strings.Repeat(`<outline xmlUrl="http://a.test/"/>`, 110_000) + `</body></opml>`
		form := "--b\r\nContent-Disposition: form-data; name=\"opml\"; filename=\"a\"\r\n\r\n" + outlines + "\r\n--b--\r\n"
		var all sync.WaitGroup
		for i := range uploads {
			all.Go(func() {
				r, err := http.NewRequest("POST", "http://"+c.address+"/-/opml", strings.NewReader(form))
				if err != nil {
					t.Error(err)
					return
				}
				r.Host = strings.Repeat("a.", 120) + "home.arpa" // which is in each address that comes out
				r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
				if i%2 == 1 {
					r.Header.Set("Origin", "http://evil.example")
				}
				if a, err := do(r); err == nil && (a.Status == http.StatusOK && len(a.Body) > 16<<20 || i%2 == 1 && a.Status != http.StatusForbidden) {
					t.Errorf("upload %d: %d, %d bytes", i, a.Status, len(a.Body))
				}
			})
		}
		all.Wait()
	})
	took.over()
	took.polls = len(origin.Requests())
	took.log(fmt.Sprintf("%d images and %d uploads", images, uploads))
}
