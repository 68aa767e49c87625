// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"net/http"
	"strings"
	"testing"
)

// A form is taken from the pages themselves and from programs, and from no other site. The fields are those of
// Chromium 156 and Firefox 153, which send Sec-Fetch-Site over TLS and to localhost only.
func TestFormsOfOtherSites(t *testing.T) {
	const refused, explained = "Go to the page itself", "the proxy in front of it has to pass on Host"
	for _, tt := range []struct {
		host, site, origin string
		want               string // in the answer, or ""
	}{
		{"feeds.home.arpa", "", "http://feeds.home.arpa", ""},
		{"feeds.home.arpa:8080", "", "http://feeds.home.arpa:8080", ""},
		{"192.168.1.5:8080", "", "http://192.168.1.5:8080", ""},
		{"[fd00::5]:8080", "", "http://[fd00::5]:8080", ""},
		{"localhost:8080", "same-origin", "http://localhost:8080", ""},
		{"feeds.home.arpa", "same-origin", "https://feeds.home.arpa", ""},
		{"pollard:8080", "same-origin", "https://feeds.home.arpa", ""}, // a proxy
		{"feeds.home.arpa", "none", "", ""},                            // sent again by the person
		{"feeds.home.arpa", "", "", ""},                                // a program

		{"feeds.home.arpa", "", "null", refused}, // a sandbox, or no-referrer
		{"feeds.home.arpa", "", "http://evil.example", explained},
		{"feeds.home.arpa:8080", "", "http://feeds.home.arpa:8081", explained},
		{"feeds.home.arpa:8080", "", "http://feeds.home.arpa", explained},
		{"feeds.home.arpa", "", "http://feeds.home.arpa.evil.example", explained},
		{"feeds.home.arpa", "", "http://feeds.home.arpa@evil.example", explained},
		{"pollard:8080", "", "http://feeds.home.arpa", explained}, // a proxy that passes on neither name
		{"localhost:8080", "cross-site", "http://evil.example", refused},
		{"localhost:8080", "same-site", "http://localhost:8081", refused},
		{"localhost:8080", "cross-site", "http://localhost:8080", refused},
		{"localhost:8080", "cross-site", "", refused},
		{"localhost:8080", "cross-site", "null", refused},
		{"feeds.home.arpa", "something new", "http://feeds.home.arpa", refused},
	} {
		for _, page := range []string{"opml", "refresh"} {
			p, source, at := newPages(t, 3)
			send := map[string]func(*http.Request){"opml": upload(`<opml><body><outline xmlUrl="https://a.example/f"/></body></opml>`), "refresh": form("url=https://blog.example/posts/feed-0.xml")}
			w := ask(p, at, "POST", page, send[page], func(r *http.Request) {
				r.Host = tt.host
				r.Header.Del("Sec-Fetch-Site")
				for name, value := range map[string]string{"Sec-Fetch-Site": tt.site, "Origin": tt.origin} {
					if value != "" {
						r.Header.Set(name, value)
					}
				}
			})
			good := map[string]int{"opml": 200, "refresh": 303}[page]
			if tt.want == "" && w.Code != good || tt.want != "" && (w.Code != 403 || !strings.Contains(w.Body.String(), tt.want) || len(source.polledByHand()) > 0) {
				t.Errorf("%s to %s, Sec-Fetch-Site %q, Origin %q: %d, want %q in %s", page, tt.host, tt.site, tt.origin, w.Code, tt.want, w.Body)
			}
		}
	}
}
