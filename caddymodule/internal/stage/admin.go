// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/status"
)

// Call sends a request to the admin routes and returns status and body; an error's
// text is the body.
func Call(t *testing.T, method, target string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for _, route := range (poller.Admin{}).Routes() {
		if route.Pattern != r.URL.Path {
			continue
		}
		w := httptest.NewRecorder()
		if err := route.Handler.ServeHTTP(w, r); err != nil {
			api, ok := errors.AsType[caddy.APIError](err)
			if !ok {
				t.Fatalf("%s %s: %v is not an API error", method, target, err)
			}
			return api.HTTPStatus, api.Err.Error()
		}
		return w.Code, w.Body.String()
	}
	t.Fatalf("no route for %s", target)
	return 0, ""
}

// ReportOfReaders returns what the admin API reports about readers. It is empty if the feed is not known.
func ReportOfReaders(t *testing.T, query string) (report status.ReaderReport) {
	t.Helper()
	code, text := Call(t, "GET", "/pollard/readers"+query)
	if code == 404 {
		return report
	}
	if err := json.Unmarshal([]byte(text), &report); code != 200 || err != nil {
		t.Fatalf("%d %v: %s", code, err, text)
	}
	return report
}
