// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/policy"
)

const relative = `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>T</title><link>/</link>
<atom:link rel="self" href="https://origin.test/feed.xml"/><atom:link rel="hub" href="https://hub.test/"/>
<item><title>One</title><link>posts/1</link><enclosure url="/audio/1.mp3" length="1" type="audio/mpeg"/><description>&lt;img src="/i.png"&gt;` + "some words some words some words some words" + `</description></item></channel></rss>`

// Relative links lead to the origin, and another address of the feed or a push service is in none of the
// codings, before and after a restart.
func TestLinksThatReadersGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(relative, "ETag", `"v"`) }).open()
		seen := map[string]bool{}
		for range 2 {
			for _, accept := range []string{"identity", "br, gzip;q=0.5"} {
				w := g.get(feedURL, "Accept-Encoding", accept)
				synctest.Wait()
				coding := w.Header().Get("Content-Encoding")
				seen[coding] = true
				body, err := decoded(coding, w.Body)
				if err != nil {
					t.Fatal(err)
				}
				for _, address := range []string{"hub.test", "origin.test/feed.xml"} {
					if strings.Contains(body, address) {
						t.Errorf("as %q it names %s: %s", coding, address, body)
					}
				}
				for _, want := range []string{
					"<link>https://origin.test/</link>", "<link>https://origin.test/posts/1</link>",
					`url="https://origin.test/audio/1.mp3"`, `src="https://origin.test/i.png"`,
				} {
					if !strings.Contains(body, want) {
						t.Errorf("as %q: %s is not in %s", coding, want, body)
					}
				}
				if !strings.HasSuffix(body, "</rss>") {
					t.Errorf("as %q it is not whole: %s", coding, body)
				}
			}
			g.restart()
		}
		if !seen["gzip"] || !seen[""] {
			t.Errorf("the codings were %v, want both", seen)
		}
		if a := g.accounts()[0]; len(a.Hints.Hubs) != 1 || a.Hints.Self != feedURL {
			t.Errorf("the hints are %+v, want the hub and the address of the feed", a.Hints)
		}
		if n := g.origin.polls(); n != 1 {
			t.Errorf("%d polls", n)
		}
	})
}

// Readers of a configured feed know the address that the operator chose, not the origin's.
func TestPathOfAConfiguredFeedIsInNoDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "https://origin.test/hunter2/feed.xml"
		g := newGateway(t, func(policy.Ask) policy.Answer {
			return ok(`<rss><channel><link>`+secret+`</link><item><enclosure url="1.mp3"/><description>&lt;img src="/a.png"&gt;&lt;a href="?x"&gt;</description></item></channel></rss>`, "ETag", `"v"`)
		})
		g.settings.Feeds = []string{secret}
		body := g.open().get(secret).Body.String()
		if strings.Contains(body, "hunter2") || !strings.Contains(body, "https://origin.test/1.mp3") || !strings.Contains(body, "https://origin.test/a.png") {
			t.Errorf("readers get %s", body)
		}
	})
}

func decoded(coding string, body io.Reader) (string, error) {
	if coding == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			return "", err
		}
	}
	text, err := io.ReadAll(body)
	return string(text), err
}

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

// A check for browsers is named to readers while the feed has no version. One that comes later
// is shown in its status, and readers keep the version.
func TestChallengeIsNamed(t *testing.T) {
	anubis := ok(`<html><script src="/.within.website/x/cmd/anubis/static/js/main.mjs"></script></html>`, "Content-Type", "text/html")
	cloudflare := policy.Answer{Failure: policy.FailureForbidden, Status: http.StatusForbidden, Header: http.Header{"Cf-Mitigated": {"challenge"}}}
	for name, answer := range map[string]policy.Answer{"Anubis": anubis, "Cloudflare": cloudflare} {
		bubble(t, name, func(t *testing.T) {
			g := newGateway(t, func(policy.Ask) policy.Answer { return answer }).open()
			if w := g.get("https://example.com/feed"); w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "check for browsers ("+name+")") {
				t.Errorf("the first reader got %d: %s", w.Code, w.Body)
			}
			g.origin.answers(func(policy.Ask) policy.Answer { return ok(rss(2, "")) })
			time.Sleep(25 * time.Hour)
			g.get("https://example.com/feed")
			g.origin.answers(func(policy.Ask) policy.Answer { return answer })
			time.Sleep(25 * time.Hour)
			g.get("https://example.com/feed")
			time.Sleep(time.Minute)
			if w := g.get("https://example.com/feed"); w.Code != http.StatusOK {
				t.Errorf("a reader got %d: %s", w.Code, w.Body)
			}
			if f := g.accounts()[0]; f.LastFailure != policy.FailureChallenge || !strings.Contains(f.LastError, name) {
				t.Errorf("the status has failure %q: %s", f.LastFailure, f.LastError)
			}
		})
	}
}
