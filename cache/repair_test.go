// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/origintest"
)

// Repairs of a publisher reach readers although no entry has changed.
func TestRepairsReachReaders(t *testing.T) {
	const relative = `<?xml version="1.0" encoding="ISO-8859-1"?><rss version="2.0"><channel><title>T</title><item><title>1</title><link>/1</link></item></channel></rss>`
	given := func(body, contentType string) response {
		return origintest.OK(body, "Content-Type", contentType, "Cache-Control", "max-age=3600")
	}
	for name, c := range map[string]struct {
		before, after func(url string) response
		body, field   string // what readers get then
	}{
		"content type": {
			func(string) response { return given(rss(2, ""), "application/rss+xml; charset=iso-8859-1") },
			func(string) response { return given(rss(2, ""), "application/rss+xml; charset=utf-8") },
			"Entry 2", "application/rss+xml; charset=utf-8",
		},
		"XML declaration": {
			func(string) response { return given(relative, "text/xml") },
			func(string) response {
				return given(strings.Replace(relative, "ISO-8859-1", "UTF-8", 1), "text/xml")
			},
			`encoding="UTF-8"`, "text/xml",
		},
		"address": {
			func(string) response { return given(relative, "text/xml") },
			func(url string) response {
				if url == feedURL {
					return redirect(302, "https://new.test/feed.xml")
				}
				return given(relative, "text/xml")
			},
			"<link>https://new.test/1</link>", "text/xml",
		},
	} {
		bubble(t, name, func(t *testing.T) {
			answer := c.before
			g := newWebGateway(t, func(url string) response { return answer(url) }).open()
			old := g.get(feedURL).Header().Get("ETag")
			wantCode := func(want int) *httptest.ResponseRecorder {
				t.Helper()
				time.Sleep(2 * time.Hour)
				w := g.get(feedURL, "If-None-Match", old)
				if w.Code != want {
					t.Fatalf("got %d, want %d", w.Code, want)
				}
				old = w.Header().Get("ETag")
				return w
			}
			wantCode(304)
			answer = c.after
			w := wantCode(200)
			wantBody(t, w, 200, c.body)
			if got := w.Header().Get("Content-Type"); got != c.field {
				t.Errorf("Content-Type: %s, want %s", got, c.field)
			}
			wantCode(304)
		})
	}
}
