// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// personOf is all of a request that tells its reader from others.
func personOf(r *http.Request) []string {
	body, _ := io.ReadAll(r.Body)
	h := r.Header
	return []string{r.Host, r.RemoteAddr, h.Get("Cookie"), h.Get("Authorization"), h.Get("User-Agent"), h.Get("X-Forwarded-For"), h.Get("X-Original-Url"), string(body)}
}

// An origin tells each reader who he is, under whatever lifetime and Vary it pleases.
// No reader is ever told of another, except of a login whose answer is public.
func TestNobodyIsToldOfAnother(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			cache, err := New(1 << 20)
			if err != nil {
				rt.Fatal(err)
			}
			defer cache.Close()
			b := &bench{t: t, cache: cache}
			pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(rt, label) }
			for range rapid.IntRange(1, 30).Draw(rt, "requests") {
				time.Sleep(time.Duration(rapid.SampledFrom([]int{0, 30, 4000}).Draw(rt, "seconds")) * time.Second)
				lines := []string{
					pick("control", "Cache-Control: max-age=60", "Cache-Control: no-store", "Cache-Control: private, max-age=60", "Cache-Control: max-age=60, stale-while-revalidate=9000", "Cache-Control: no-cache", "Pragma: x", "Expires: @1h"),
					pick("validator", "ETag: \"e\"", "Last-Modified: @-90h", "X: x"),
					pick("vary", "Vary: Cookie", "Vary: User-Agent, Cookie", "Vary: *", "Vary: Host", "X: x", "X: x"),
				}
				status := rapid.SampledFrom([]int{200, 200, 200, 206, 301, 304, 404, 503}).Draw(rt, "status")
				b.origin(func(r *http.Request) (*http.Response, error) {
					body := strings.Join(personOf(r), "|")
					more := lines
					if status == http.StatusPartialContent {
						more = append(more, fmt.Sprintf("Content-Range: bytes 0-%d/500", len(body)-1))
					}
					return says(status, body, more...)(r)
				})
				who := pick("who", "alice", "bob", "eve")
				r := httptest.NewRequest(pick("method", "GET", "GET", "GET", "GET", "HEAD", "POST"), home+pick("path", "/", "/", "/x"), nil)
				r.Host, r.RemoteAddr = pick("host", "example.com", who+".test"), who
				if pick("body", "", "", "", "fat") != "" {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(who)), int64(len(who))
				}
				for _, name := range []string{"Cookie", "Authorization", "User-Agent", "X-Forwarded-For", "X-Original-Url"} {
					if rapid.Bool().Draw(rt, name) {
						r.Header.Set(name, who)
					}
				}
				for _, line := range []string{"Range: bytes=0-", "If-None-Match: \"e\"", "If-Modified-Since: @1h"} {
					if rapid.IntRange(0, 3).Draw(rt, line) == 0 {
						maps.Copy(r.Header, headerOf(line))
					}
				}
				w := httptest.NewRecorder()
				if err := b.send(w, r); err != nil {
					rt.Fatal(err)
				}
				synctest.Wait()
				for _, told := range strings.Split(w.Body.String(), "|") {
					if told != "" && told != "example.com" && !strings.HasPrefix(told, who) {
						rt.Fatalf("%s is told of %q: %q, %v", who, told, w.Body, w.Header()["Cache-Status"])
					}
				}
			}
		})
	})
}
