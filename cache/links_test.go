// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"compress/gzip"
	"io"
	"strings"
	"testing"
	"testing/synctest"

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
