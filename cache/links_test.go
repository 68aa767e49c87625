// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/policy"
)

const relative = `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>T</title><link>/</link>
<atom:link rel="self" href="https://origin.test/feed.xml"/><atom:link rel="hub" href="https://hub.test/"/>
<item><title>One</title><link>posts/1</link><enclosure url="/audio/1.mp3" length="1" type="audio/mpeg"/><description>&lt;img src="/i.png"&gt;` + "some words some words some words some words" + `</description></item></channel></rss>`

func TestRelativeLinksLeadToTheOrigin(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(relative, "ETag", `"v"`) }).open()
		defer g.close()
		body := g.get(feedURL).Body.String()
		for _, want := range []string{
			"<link>https://origin.test/</link>", "<link>https://origin.test/posts/1</link>",
			`url="https://origin.test/audio/1.mp3"`, `src="https://origin.test/i.png"`,
			`rel="hub" href="https://hub.test/"`, // to whoever does not ask for another address
		} {
			if !strings.Contains(body, want) {
				t.Errorf("%s is not in %s", want, body)
			}
		}
	})
}

func TestDocumentsAreLeftAloneWhereTheOperatorSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(relative, "ETag", `"v"`) })
		g.settings.AsGiven = true
		g.open()
		defer g.close()
		if body := g.get(feedURL).Body.String(); body != relative {
			t.Errorf("got %s", body)
		}
	})
}

// A document under an address of its own, in each coding, before and after a restart.
func TestDocumentGivesTheAddressThatItIsServedAt(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(relative, "ETag", `"v"`) }).open()
		defer func() { g.close() }()
		at := func(address, coding string) (string, http.Header) {
			t.Helper()
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Accept-Encoding", coding)
			w := httptest.NewRecorder()
			f, err := g.Feed(t.Context(), feedURL)
			if err == nil {
				_, err = f.ServeAt(func() string { return address }, w, r)
			}
			if err != nil {
				t.Fatal(err)
			}
			body := w.Body.Bytes()
			if w.Header().Get("Content-Encoding") == "gzip" {
				unpacked, err := gzip.NewReader(bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if body, err = io.ReadAll(unpacked); err != nil {
					t.Fatal(err)
				}
			}
			return string(body), w.Header()
		}
		for range 2 {
			for _, address := range []string{"http://gate.test/https://origin.test/feed.xml", "https://other.test/x?a=1&b=2"} {
				for _, coding := range []string{"identity", "gzip", "gzip"} {
					body, h := at(address, coding)
					if strings.Contains(body, "hub.test") || strings.Contains(body, `href="https://origin.test/feed.xml"`) {
						t.Errorf("%s as %s still leads away: %s", address, coding, body)
					}
					if want := `href="` + strings.ReplaceAll(address, "&", "&amp;") + `"`; !strings.Contains(body, want) {
						t.Errorf("%s is not in %s", want, body)
					}
					if coding == "identity" && h.Get("Content-Length") == "" {
						t.Errorf("no Content-Length")
					}
				}
			}
			g.restart()
		}
		if n := g.origin.polls(); n != 1 {
			t.Errorf("%d polls", n)
		}
	})
}
