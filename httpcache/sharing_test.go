// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What is shared is asked for without a person: nothing of a reader's Host, address,
// context, cookies and the like reaches the origin with it.
func TestSharedFetchesAreAnonymous(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.origin(func(r *http.Request) (*http.Response, error) {
			return says(200, fmt.Sprint(r.Host, r.URL, r.RemoteAddr, r.Context().Value(ownKey{})), "Cache-Control: max-age=60")(r)
		})
		r := request("GET", "/a?b", "Cookie: a=b", "User-Agent: Alice/1", "Referer: x", "X-Forwarded-For: 192.0.2.1",
			"X-Forwarded-Host: evil.test", "Forwarded: for=x", "X-Original-Url: /admin", "X-Http-Method-Override: DELETE", "Sec-Fetch-Mode: cors",
			"Cache-Control: no-cache", "Pragma: no-cache", "Connection: x-b", "X-B: 1", "Accept-Language: de", "X-A: 1")
		r.Host, r.RemoteAddr = "evil.test", "192.0.2.1:5"
		r = r.WithContext(context.WithValue(r.Context(), ownKey{}, "Alice"))
		if got, want := text(b.serve(r)), "example.comhttp://example.com/a?b<nil>"; got != want {
			t.Errorf("the origin was asked %q, want %q", got, want)
		}
		out := b.requests()[0]
		if names := slices.Sorted(maps.Keys(out.Header)); !slices.Equal(names, []string{"Accept-Language", "X-A"}) {
			t.Errorf("it was told %v", out.Header)
		}
	})
}

// A caller's request is made safe by the cache, too.
func TestNoCookieWhateverTheCallerDoes(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.origin(says(200, "a", "Cache-Control: max-age=60"))
		r := request("GET", "/", "Cookie: a=b", "If-None-Match: \"x\"")
		target := b.target(r)
		target.Request = func() *http.Request { return r.Clone(context.Background()) }
		if err := b.cache.Serve(httptest.NewRecorder(), r, target); err != nil {
			t.Fatal(err)
		}
		if h := b.requests()[0].Header; h["Cookie"] != nil || h["If-None-Match"] != nil {
			t.Errorf("the origin was told %v", h)
		}
		if r.Header["Cookie"] == nil {
			t.Error("the reader's request was changed")
		}
	})
}

// The key is opaque: it is never cut, and what differs in it is kept apart.
func TestKeysAreOpaque(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		for _, round := range []string{"first", "second"} {
			for _, key := range []string{"shield1:http://example.com/", "shield2:http://example.com/", "http://example.com/", ""} {
				b.origin(says(200, key, "Cache-Control: max-age=60"))
				r := request("GET", "/")
				target := b.target(r)
				target.Key = key
				w := httptest.NewRecorder()
				if err := b.cache.Serve(w, r, target); err != nil || w.Body.String() != key {
					t.Errorf("%q has %q, %v", key, w.Body, err)
				}
				if n := len(b.requests()); (n == 1) != (round == "first") {
					t.Errorf("%s request of %q: the origin was asked %d times", round, key, n)
				}
			}
		}
	})
}

func TestCredentials(t *testing.T) {
	alice := []string{"Cookie: session=alice"}
	const fresh = "Cache-Control: max-age=60"
	guess := []string{"Last-Modified: @-240h"}
	scenes(t, map[string][]step{
		"a cookie is not sent for what is shared": {
			{send: alice, origin: says(200, "a", fresh), shared: true, sees: []string{"-Cookie"}, body: "a"},
			{send: []string{"Cookie: session=bob"}, body: "a"},
		},
		"what depends on it is the reader's own": {
			{origin: says(200, "public", fresh, "Vary: Cookie"), shared: true, body: "public"},
			{send: alice, origin: says(200, "Alice's", fresh, "Vary: Cookie"), own: true, sees: alice, body: "Alice's"},
			{send: []string{"Cookie: session=bob"}, origin: says(200, "Bob's", fresh, "Vary: Cookie"), own: true, body: "Bob's"},
			{body: "public"},
		},
		"guessed lifetimes are not for a reader with a cookie": {
			{origin: says(200, "public", guess...), shared: true, body: "public"},
			{send: alice, origin: says(200, "Alice's", guess...), own: true, sees: alice, body: "Alice's"},
			{send: []string{"Authorization: x"}, origin: says(200, "x"), own: true, body: "x"},
			{body: "public"},
		},
		"a login and a cookie": {
			{send: append(alice, "Authorization: x"), origin: says(200, "Alice's", fresh, "Cache-Control: public"), own: true, body: "Alice's"},
			{origin: says(200, "public", fresh), shared: true, body: "public"},
		},
		"a login that is refused to others": {
			{send: []string{"Authorization: x"}, origin: says(200, "x's", fresh), shared: true, sees: []string{"Authorization: x"}, body: "x's"},
			{send: []string{"Authorization: x"}, origin: says(200, "x's", fresh), own: true, body: "x's"},
			{origin: says(200, "public", fresh), shared: true, body: "public"}, // says nothing of others
		},
		"a login that takes nothing from others": {
			{origin: says(200, "public", fresh, "ETag: \"e\""), shared: true, body: "public"},
			{after: time.Minute, send: []string{"Authorization: x"}, origin: says(200, "x's", "Cache-Control: private"), shared: true, body: "x's"},
			{send: []string{"Authorization: x"}, origin: says(200, "x's", "Cache-Control: private"), own: true, body: "x's"},
			{origin: says(304, ""), shared: true, sees: []string{"If-None-Match: \"e\""}, body: "public"},
		},
		"what could not be shared is fetched for all once it can": {
			{origin: says(200, "a", "Cache-Control: no-store"), shared: true, body: "a"},
			{origin: says(200, "b", "Cache-Control: private"), own: true, body: "b"},
			{origin: says(200, "b", fresh, "Vary: *"), own: true, body: "b"},
			{send: alice, origin: says(200, "c", guess...), own: true, body: "c"},
			{origin: says(200, "d", fresh), own: true, body: "d"},
			{origin: says(200, "e", fresh), shared: true, body: "e"},
			{body: "e"},
		},
	})
	// A reader whom the origin knows by his address is not refused with the others.
	for name, refusal := range map[string]func(*http.Request) (*http.Response, error){
		"403": says(403, "no"), "401": says(401, "no"), "an error": fails(&OriginError{403, errors.New("no")}),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bench) {
				b.origin(func(r *http.Request) (*http.Response, error) {
					if r.RemoteAddr == "192.0.2.1:1" {
						return says(200, "for insiders")(r)
					}
					return refusal(r)
				})
				r := request("GET", "/")
				r.RemoteAddr = "192.0.2.1:1"
				if got := text(b.serve(r)); got != "for insiders" {
					t.Errorf("an insider got %q", got)
				}
				answer, err := b.try(request("GET", "/"))
				if got := text(answer); err == nil && got != "no" {
					t.Errorf("an outsider got %q", got)
				}
			})
		})
	}
	bubble(t, func(t *testing.T, b *bench) {
		b.origin(func(r *http.Request) (*http.Response, error) {
			if r.Header["Cookie"] != nil {
				return says(200, "Alice's")(r)
			}
			return nil, &OriginError{404, errors.New("no")}
		})
		if got := text(b.serve(request("GET", "/", alice...))); got != "Alice's" {
			t.Errorf("Alice got %q", got)
		}
	})
	// Where a shared fetch turns out to be no good, a reader with a cookie asks himself.
	for name, lines := range map[string][]string{
		"private": {"Cache-Control: private"}, "no-store": {"Cache-Control: no-store"},
		"Vary": {fresh, "Vary: Cookie"}, "a guess": guess,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bench) {
				b.origin(func(r *http.Request) (*http.Response, error) {
					return says(200, "for "+r.Header.Get("Cookie"), lines...)(r)
				})
				for _, want := range []int{2, 1} {
					if got := text(b.serve(request("GET", "/", alice...))); got != "for session=alice" {
						t.Errorf("Alice got %q", got)
					}
					if n := len(b.requests()); n != want {
						t.Errorf("the origin was asked %d times, want %d", n, want)
					}
				}
				if got := text(b.serve(request("GET", "/"))); got != "for " {
					t.Errorf("a stranger got %q", got)
				}
			})
		})
	}
}

// A crowd of which some have a cookie.
func TestCollapsingWithCookies(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.origin(slow(time.Second, func(r *http.Request) (*http.Response, error) {
			return says(200, r.Header.Get("Cookie"), "Cache-Control: max-age=60", "Vary: Cookie")(r)
		}))
		got := b.crowd(append(repeat(5), append(repeat(3, "Cookie: a"), repeat(2, "Cookie: b")...)...)...)
		if got[""] != 5 || got["a"] != 3 || got["b"] != 2 {
			t.Errorf("got %v", got)
		}
	})
}

// Nothing comes between reader and origin where nothing can be shared.
func TestOwnRequestsAreVerbatim(t *testing.T) {
	for name, r := range map[string]*http.Request{
		"POST":       request("POST", "/", "Te: trailers", "Connection: x", "X: 1"),
		"PURGE":      request("PURGE", "/"),
		"upgrade":    request("GET", "/", "Connection: Upgrade", "Upgrade: websocket"),
		"a fat GET":  httptest.NewRequest("GET", home, strings.NewReader("evil")),
		"a fat HEAD": httptest.NewRequest("HEAD", home, struct{ io.Reader }{strings.NewReader("evil")}),
		"If-Match":   request("GET", "/", "If-Match: \"e\""),
	} {
		bubble(t, func(t *testing.T, b *bench) {
			target := b.target(r)
			var got *http.Request
			target.Own = func(w http.ResponseWriter, r *http.Request) error {
				got = r
				w.Header().Set("Cache-Control", "max-age=60")
				w.Header().Set("Grpc-Status", "")
				_, _ = io.WriteString(w, "a")
				w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
				return nil
			}
			w := httptest.NewRecorder()
			if err := b.cache.Serve(w, r, target); err != nil || got != r {
				t.Errorf("%s: %v; the handler got another request: %t", name, err, got != r)
			}
			if w.Result().Trailer.Get("Grpc-Status") != "0" {
				t.Errorf("%s: no trailer", name)
			}
			if b.cache.store.get(target.Key) != nil {
				t.Errorf("%s: something was stored", name)
			}
		})
	}
	bubble(t, func(t *testing.T, b *bench) {
		failed := errors.New("failed")
		r := request("POST", "/")
		target := b.target(r)
		target.Own = func(http.ResponseWriter, *http.Request) error { return failed }
		if err := b.cache.Serve(httptest.NewRecorder(), r, target); err != failed { //nolint:errorlint // it must be unchanged
			t.Errorf("got %v, want the handler's own error", err)
		}
	})
}

// hijacked is a writer that gives its connection away.
type hijacked struct{ *httptest.ResponseRecorder }

func (hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, errors.New("hijacked")
}

// The writer of an own answer can do what the one below can.
func TestOwnWriter(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		serve := func(own func(http.ResponseWriter)) *statuses {
			w := &statuses{ResponseRecorder: httptest.NewRecorder()}
			r := request("POST", "/")
			target := b.target(r)
			target.Own = func(w http.ResponseWriter, _ *http.Request) error { own(w); return nil }
			if err := b.cache.Serve(w, r, target); err != nil {
				t.Error(err)
			}
			return w
		}
		for name, own := range map[string]func(http.ResponseWriter){
			"write":      func(w http.ResponseWriter) { _, _ = io.WriteString(w, "") },
			"read from":  func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader("a")) },
			"flush":      func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
			"controller": func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
			"status":     func(w http.ResponseWriter) { w.WriteHeader(200); w.WriteHeader(500) },
		} {
			if w := serve(own); w.seen[0] != "200 " || fmt.Sprint(w.Header()["Cache-Status"]) != "[Pollard; fwd=method; fwd-status=200]" {
				t.Errorf("%s: %q, %v", name, w.seen, w.Header())
			}
		}
		w := serve(func(w http.ResponseWriter) {
			w.Header().Set("Link", "<a>")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(204)
		})
		if got := strings.Join(w.seen, ", "); got != "103 <a>, 204 <a>" {
			t.Errorf("got %q", got)
		}
		r := request("GET", "/", "Upgrade: x")
		target := b.target(r)
		target.Own = func(w http.ResponseWriter, _ *http.Request) error {
			_, _, err := http.NewResponseController(w).Hijack()
			return err
		}
		if err := b.cache.Serve(hijacked{httptest.NewRecorder()}, r, target); err == nil || err.Error() != "hijacked" {
			t.Errorf("hijacking: %v", err)
		}
	})
}

// A condition that was taken out of a request is evaluated for what is stored only.
func TestConditionsOfWhatIsNotStored(t *testing.T) {
	scenes(t, map[string][]step{
		"a page that nobody may store": {
			{send: []string{"If-Modified-Since: @1h", "If-None-Match: \"e\""}, origin: says(200, "a", "Cache-Control: no-store", "ETag: \"e\""), shared: true, body: "a"},
			{send: []string{"If-Modified-Since: @1h"}, origin: says(200, "a", "Cache-Control: no-store"), own: true, body: "a"},
		},
		"a date in the future": {
			{origin: says(200, "a", "Cache-Control: max-age=60"), shared: true, body: "a"},
			{send: []string{"If-Modified-Since: @1h"}, body: "a"},
			{send: []string{"If-Modified-Since: @0s"}, status: 304},
		},
		"a date in the future, of an origin whose clock is fast": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "Last-Modified: @1h"), shared: true, body: "a"},
			{send: []string{"If-Modified-Since: @1h"}, status: 304},
			{send: []string{"If-Modified-Since: @2h"}, body: "a"},
		},
	})
}

func TestPurge(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		fill := func() {
			b.origin(says(200, "a", "Cache-Control: max-age=6000"))
			for _, path := range []string{"/a/1", "/a/2", "/b"} {
				b.serve(request("GET", path))
			}
			b.requests()
		}
		for name, c := range map[string]struct {
			purge func() int
			gone  string
		}{
			"a URL":            {func() int { return b.cache.PurgeURL(home + "/a/1") }, "/a/1"},
			"an unknown URL":   {func() int { return b.cache.PurgeURL(home + "/a/") }, ""},
			"a prefix":         {func() int { return b.cache.PurgePrefix("site " + home + "/a/") }, "/a/1 /a/2"},
			"everything":       {func() int { return b.cache.PurgePrefix("") }, "/a/1 /a/2 /b"},
			"nothing has that": {func() int { return b.cache.PurgePrefix("x") }, ""},
		} {
			fill()
			gone := strings.Fields(c.gone)
			if n := c.purge(); n != len(gone) {
				t.Errorf("%s: %d were purged, want %d", name, n, len(gone))
			}
			for _, path := range []string{"/a/1", "/a/2", "/b"} {
				b.serve(request("GET", path))
				if asked := len(b.requests()) > 0; asked != slices.Contains(gone, path) {
					t.Errorf("%s: %s is gone: %t", name, path, asked)
				}
			}
		}
		// What was asked for before must not be stored after.
		b.cache.PurgePrefix("")
		b.origin(slow(time.Second, says(200, "old", "Cache-Control: max-age=60")))
		go b.serve(request("GET", "/b"))
		synctest.Wait()
		b.cache.PurgePrefix("site")
		time.Sleep(2 * time.Second)
		b.requests()
		b.run([]step{{path: "/b", origin: says(200, "new"), shared: true, body: "new"}})
	})
}

// The keys of other URLs that a request changes are the caller's to tell.
func TestInvalidationByKeyOf(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.run([]step{{path: "/x", origin: says(200, "a", "Cache-Control: max-age=60"), shared: true, body: "a"}})
		b.origin(says(201, "", "Location: /y"))
		r := request("POST", "/post")
		target := b.target(r)
		target.KeyOf = func(u *url.URL) string { return "site " + strings.Replace(u.String(), "/y", "/x", 1) }
		if err := b.cache.Serve(httptest.NewRecorder(), r, target); err != nil {
			t.Fatal(err)
		}
		b.requests()
		b.run([]step{{path: "/x", origin: says(200, "b", "Cache-Control: max-age=60"), shared: true, body: "b"}})
		target.KeyOf = nil
		if err := b.cache.Serve(httptest.NewRecorder(), r, target); err != nil {
			t.Fatal(err)
		}
		b.requests()
		b.run([]step{{path: "/x", body: "b"}})
	})
}

// What is too large goes its own way for as long as its validators hold.
func TestTooLargeIsRemembered(t *testing.T) {
	large, small := strings.Repeat("x", 3000), "small"
	unsized := func(body string, lines ...string) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) {
			answer, err := says(200, body, lines...)(r)
			answer.ContentLength = -1
			return answer, err
		}
	}
	const fresh = "Cache-Control: max-age=60"
	ranged := []string{"Range: bytes=2990-2999"}
	for name, steps := range map[string][]step{
		"of a known size": {
			{origin: says(200, large, fresh, "Content-Length: 3000"), shared: true, body: large},
			{after: time.Hour, origin: says(200, large, fresh, "Content-Length: 3000"), own: true, body: large},
			{send: ranged, origin: says(206, "y", "Content-Range: bytes 2990-2999/3000", fresh), own: true, sees: ranged, status: 206, body: "y"},
			{origin: says(200, small, fresh, "Content-Length: 5"), own: true, body: small},
			{origin: says(200, small, fresh), shared: true, body: small},
			{body: small},
		},
		"of an unknown size": {
			{origin: unsized(large, fresh, "ETag: \"1\""), shared: true, body: large},
			{origin: unsized(large, fresh, "ETag: \"1\""), own: true, body: large},
			{origin: unsized(large, fresh, "ETag: \"2\""), own: true, body: large},
			{origin: unsized(large, fresh, "ETag: \"2\""), shared: true, body: large},
			{origin: unsized(large, fresh, "ETag: \"2\""), own: true, body: large},
		},
		"of an unknown size, without validators": {
			{origin: unsized(large, fresh), shared: true, body: large},
			{origin: unsized(small, fresh), own: true, body: small}, // it may be another one
			{origin: unsized(small, fresh), shared: true, body: small},
			{body: small},
		},
		"a range that is too large": {
			{send: []string{"Range: bytes=0-"}, origin: says(206, large, "Content-Range: bytes 0-2999/3000", fresh), shared: true, sees: []string{"Range: bytes=0-"}, status: 206, body: large},
			{send: ranged, origin: says(206, "y", "Content-Range: bytes 2990-2999/3000", fresh), own: true, status: 206, body: "y"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubbleOf(t, 20_000, func(t *testing.T, b *bench) { b.run(steps) })
		})
	}
}
