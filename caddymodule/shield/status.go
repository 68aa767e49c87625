// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/caddymodule/pages"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

// makePages makes the pages for people, if the configuration has a path for them.
func (s *Shield) makePages(ctx caddy.Context, app *poller.App) {
	if s.Status == "" {
		return
	}
	s.pages = &pages.Pages{
		Source:  pages.NewSource(s.engine, s.identity, true, app.Upstream(), s.rules),
		Version: poller.Version(),
		Log:     slog.New(ctx.Slogger().Handler()),
	}
}

// checkPath returns an error if the path of a line is set and cannot be one.
func checkPath(line, path string) error {
	if path == "" || strings.HasPrefix(path, "/") && strings.Trim(path, "/") != "" && !strings.ContainsAny(path, "?#*%{ ") {
		return nil
	}
	return fmt.Errorf("%s: expected a path such as /feed/%s, without query, star and escapes", line, line)
}

// serveStatus serves a page. It reports false if the request is for something else.
func (s *Shield) serveStatus(w http.ResponseWriter, r *http.Request) bool {
	if s.pages == nil {
		return false
	}
	home := strings.TrimRight(s.Status, "/")
	rest, ok := strings.CutPrefix(r.URL.Path, home)
	name, below := strings.CutPrefix(rest, "/")
	if !ok || rest != "" && !below || !pages.Has(name) {
		return false
	}
	base := home
	if original := poller.OriginalURL(r); original != nil { // before handle_path
		if before, found := strings.CutSuffix(original.Path, r.URL.Path); found {
			base = before + home
		}
	}
	s.pages.ServeHTTP(w, r, pages.Place{Home: base + "/", Below: base + "/", Member: member(r), Readers: true}, name)
	return true
}

// member reports whether a client may see the pages: it has a private address, or a handler
// before the shield has authenticated it. A request that a proxy has forwarded may come from
// anywhere, unless Caddy trusts the proxy.
func member(r *http.Request) bool {
	if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		if user, _ := repl.GetString("http.auth.user.id"); user != "" {
			return true
		}
	}
	return !poller.Forwarded(r) && poller.Private(poller.Client(r))
}
