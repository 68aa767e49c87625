// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache/version"
)

// A version answers a request with its representation in gzip, and the next one, which has
// the ETag of the first response, with a 304.
func Example() {
	content := []byte(`<rss version="2.0"><channel><title>News</title>` + strings.Repeat("<item/>", 20) + `</channel></rss>`)
	v := version.Version{ContentType: "application/rss+xml", LastModified: time.Date(2026, time.March, 2, 10, 0, 0, 0, time.UTC)}
	v.Identify(content)
	coding, gz, err := version.Pack(content)
	if err != nil {
		fmt.Println(err)
		return
	}
	response := version.NewResponse(&v, true)

	serve := func(etag string) string {
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		r.Header.Set("Accept-Encoding", "gzip")
		r.Header.Set("If-None-Match", etag)
		if response.NotModified(r.Header, time.Now()) {
			response.WriteNotModified(w, r.Header, time.Now())
		} else {
			response.Write(w, r, v.Represent(coding, gz), time.Now())
		}
		fmt.Println(w.Code, w.Header().Get("Content-Encoding"), w.Header().Get("Content-Type"))
		return w.Header().Get("Etag")
	}
	etag := serve(`"of another version"`)
	serve(etag)
	// Output:
	// 200 gzip application/rss+xml
	// 304
}
