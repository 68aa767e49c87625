// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/feedpollard/pollard/cache/version"
)

// A version answers a reader who has nothing with the whole content, and one who has it with a 304.
func Example() {
	now := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	content := []byte("<rss/>")
	v := version.Version{ContentType: "application/rss+xml", LastModified: version.LastModified(time.Time{}, now), Since: now}
	v.Identify(content)
	response := version.NewResponse(&v, false)
	whole := &version.Representation{Tag: v.Tag, Coding: version.Identity, Size: int64(len(content)), Parts: [][]byte{content}}

	get := func(etag string) string {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		if etag != "" {
			r.Header.Set("If-None-Match", etag)
		}
		if response.NotModified(r.Header, now) {
			response.WriteNotModified(w, r.Header, now)
		} else {
			response.Write(w, r, whole, now)
		}
		fmt.Println(w.Code, w.Body.Len(), w.Header().Get("Last-Modified"))
		return w.Header().Get("ETag")
	}
	etag := get("")
	get(etag)
	// Output:
	// 200 6 Wed, 04 Mar 2026 12:00:01 GMT
	// 304 0 Wed, 04 Mar 2026 12:00:01 GMT
}
