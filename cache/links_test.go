// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/andybalholm/brotli"

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
			body, err := decoded(w.Header().Get("Content-Encoding"), w.Body)
			if err != nil {
				t.Fatal(err)
			}
			return body, w.Header()
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

// An address is longer in a document than by itself where it has to be escaped there.
func TestDocumentWithALongAddressIsWholeInEachCoding(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		document := strings.ReplaceAll(relative, `<atom:link rel="hub" href="https://hub.test/"/>`, "")
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(document, "ETag", `"v"`) }).open()
		defer g.close()
		address := "https://gate.test/https://origin.test/feed.xml?" + strings.Repeat("a=1&", 20)
		seen := map[string]bool{}
		for range 3 {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Accept-Encoding", "br, gzip;q=0.5")
			w := httptest.NewRecorder()
			f, err := g.Feed(t.Context(), feedURL)
			if err == nil {
				_, err = f.ServeAt(func() string { return address }, w, r)
			}
			if err != nil {
				t.Fatal(err)
			}
			coding := w.Header().Get("Content-Encoding")
			seen[coding] = true
			body, err := decoded(coding, w.Body)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(body, "</rss>") || !strings.Contains(body, strings.ReplaceAll(address, "&", "&amp;")) {
				t.Errorf("as %s: %s", coding, body)
			}
			synctest.Wait()
		}
		if !seen["gzip"] || !seen["br"] {
			t.Errorf("the codings were %v, want gzip and br", seen)
		}
	})
}

func decoded(coding string, body io.Reader) (string, error) {
	switch coding {
	case "br":
		body = brotli.NewReader(body)
	case "gzip":
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			return "", err
		}
	}
	text, err := io.ReadAll(body)
	return string(text), err
}

// Readers who invent addresses get the document as it was written, and keep nobody from
// the addresses that are known.
func TestInventedAddressesCostLittle(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(relative, "ETag", `"v"`) }).open()
		defer g.close()
		at := func(address string) (made bool) {
			t.Helper()
			w := httptest.NewRecorder()
			f, err := g.Feed(t.Context(), feedURL)
			if err == nil {
				_, err = f.ServeAt(func() string { return address }, w, httptest.NewRequest(http.MethodGet, "/", nil))
			}
			if err != nil || w.Code != http.StatusOK {
				t.Fatal(w.Code, err)
			}
			return strings.Contains(w.Body.String(), address)
		}
		const home = "http://gate.test/feed.xml"
		if !at(home) {
			t.Fatal("the document does not give its address")
		}
		made := 0
		for i := range 1000 {
			if at(fmt.Sprintf("http://invented%d.test/feed.xml", i)) {
				made++
			}
		}
		if made > 20 {
			t.Errorf("the document was made for %d invented addresses", made)
		}
		if !at(home) {
			t.Error("the document does not give its address any more")
		}
		if at("http://" + strings.Repeat("a", 10_000) + ".test/") {
			t.Error("the document was made for an address of 10 kB")
		}
		time.Sleep(2 * time.Minute)
		if !at("http://new.test/feed.xml") {
			t.Error("a site that came later stays unknown")
		}
	})
}
