// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/caddymodule/poller"
)

// RunInstance runs a test on a Caddy that reaches real servers, without a bubble. Its
// admin routes are served at the address, as Caddy serves them.
func RunInstance(t *testing.T, app, sites string, run func(s *Stage, address string)) {
	t.Helper()
	mux := http.NewServeMux()
	for _, route := range (poller.Admin{}).Routes() {
		mux.HandleFunc(route.Pattern, func(w http.ResponseWriter, r *http.Request) {
			serveAdmin(w, r, route.Handler)
		})
	}
	server := httptest.NewServer(mux)
	defer server.Close()
	s := &Stage{T: t, Dir: t.TempDir(), app: app, settle: func() {}}
	staged.Store(s)
	s.Load(sites)
	defer func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	}()
	run(s, strings.TrimPrefix(server.URL, "http://"))
}

// serveAdmin serves a route as Caddy's admin endpoint does.
func serveAdmin(w http.ResponseWriter, r *http.Request, h caddy.AdminHandler) {
	if r.Header.Get("Origin") != "http://"+r.Host {
		http.Error(w, "no such origin", http.StatusForbidden)
		return
	}
	err := h.ServeHTTP(w, r)
	if err == nil {
		return
	}
	status := http.StatusInternalServerError
	if e, ok := errors.AsType[caddy.APIError](err); ok {
		status, err = e.HTTPStatus, e.Err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}
