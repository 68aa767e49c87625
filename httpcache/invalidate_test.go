// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

func TestInvalidation(t *testing.T) {
	get := func(path, body string) step {
		return step{path: path, origin: says(200, body, "Cache-Control: max-age=60"), asked: true, body: body}
	}
	hit := func(path, body string) step { return step{path: path, body: body} }
	after := func(method string, status int, forgotten bool) []step {
		last := hit("/", "a")
		if forgotten {
			last = get("/", "b")
		}
		return []step{get("/", "a"), {method: method, origin: says(status, "x"), asked: true, status: status, body: "x"}, last}
	}
	scenes(t, map[string][]step{
		// RFC 9111 section 4.4.
		"POST":                   after("POST", 200, true),
		"PUT":                    after("PUT", 201, true),
		"DELETE":                 after("DELETE", 202, true),
		"PATCH and a redirect":   after("PATCH", 303, true),
		"a method nobody knows":  after("M-SEARCH", 200, true),
		"a failed POST":          after("POST", 500, false),
		"a refused POST":         after("POST", 403, false),
		"OPTIONS":                after("OPTIONS", 200, false),
		"PROPFIND":               after("PROPFIND", 207, false),
		"other URLs are left":    {get("/a", "a"), get("/b", "b"), {path: "/a", method: "POST", origin: says(200, ""), asked: true}, hit("/b", "b"), get("/a", "c")},
		"Location":               {get("/a", "a"), {path: "/b", method: "POST", origin: says(201, "", "Location: /a"), asked: true, status: 201}, get("/a", "b")},
		"Location, in full":      {get("/a?x", "a"), {path: "/b", method: "POST", origin: says(201, "", "Location: "+home+"/a?x#y"), asked: true, status: 201}, get("/a?x", "b")},
		"Content-Location":       {get("/c/a", "a"), {path: "/c/b", method: "PUT", origin: says(200, "", "Content-Location: a"), asked: true}, get("/c/a", "b")},
		"not of another origin":  {get("/a", "a"), {path: "/b", method: "POST", origin: says(200, "", "Location: https://example.com/a"), asked: true}, hit("/a", "a")},
		"not of another host":    {get("/a", "a"), {path: "/b", method: "POST", origin: says(200, "", "Location: http://example.org/a"), asked: true}, hit("/a", "a")},
		"a Location of nonsense": {get("/a", "a"), {path: "/b", method: "POST", origin: says(200, "", "Location: http://[::1"), asked: true}, hit("/a", "a")},
	})
}

func TestSameOrigin(t *testing.T) {
	for _, c := range []struct {
		key, reference, target string
		want                   bool
	}{
		{"https://a.test/x/y?q", "z", "https://a.test/x/z", true},
		{"https://a.test/x/y", "/z#f", "https://a.test/z", true},
		{"https://a.test/x", "https://A.test/y", "https://a.test/y", true},
		{"https://a.test/x", "https://u:p@a.test/y", "https://a.test/y", true},
		{"https://a.test/x", "//a.test/y?q", "https://a.test/y?q", true},
		{"https://a.test/x", "http://a.test/y", "http://a.test/y", false},
		{"https://a.test/x", "https://a.test:8443/y", "https://a.test:8443/y", false},
		{"https://a.test/x", "https://b.test/y", "https://b.test/y", false},
		{"https://a.test/x", "mailto:a@a.test", "mailto:a@a.test", false},
		{"https://a.test/x", "", "", false},
	} {
		base, err := url.Parse(c.key)
		if err != nil {
			t.Fatal(err)
		}
		target := sameOrigin(base, c.reference)
		if (target != nil) != c.want || c.want && target.String() != c.target {
			t.Errorf("%s from %s: got %s", c.reference, c.key, target)
		}
	}
}

// TestInvalidationDuringAFetch changes a resource while its old state is on its way.
func TestInvalidationDuringAFetch(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.origin(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet {
				time.Sleep(time.Second)
			}
			return says(200, "old", "Cache-Control: max-age=60")(r)
		})
		go b.serve(request("GET", "/"))
		synctest.Wait()
		b.serve(request("POST", "/"))
		b.requests()
		go b.serve(request("GET", "/"))
		synctest.Wait()
		if len(b.requests()) != 1 {
			t.Error("who asks after the change waits for what was asked before")
		}
		b.serve(request("POST", "/"))
		time.Sleep(2 * time.Second)
		b.requests()
		b.run([]step{{origin: says(200, "new"), asked: true, body: "new"}})
	})
}
