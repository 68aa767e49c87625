// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/pages"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// makePages makes the pages for people, if the configuration has a path for them.
func (s *Shield) makePages(ctx caddy.Context, app *poller.App) {
	if s.Status == "" {
		return
	}
	s.viewer.Shown = func(key, _ string, _ []store.Owner) bool { return s.serves(key) }
	s.pages = &pages.Pages{
		Source:    pages.NewSource(s.engine, s.identity),
		Publisher: s.publisher,
		Poller:    pages.NewPoller(app.Upstream(), s.rules),
		Version:   poller.Version(),
		Log:       slog.New(ctx.Slogger().Handler()),
	}
}

// maxExamined is how many feeds the notices are made of, and lateFor from which lifetime on a notice
// says that new posts show late.
const (
	maxExamined = 1000
	lateFor     = 24 * time.Hour
)

// publisher returns what of the site keeps the shield from its work.
func (s *Shield) publisher(ctx context.Context) pages.Publisher {
	p := pages.Publisher{Passed: s.entries.passed(s.serves), Proxies: s.pages.Source.Trouble(&s.viewer).Proxies}
	if notice := s.loopNotice(); notice != "" {
		p.Notices = append(p.Notices, notice)
	}
	list, err := s.pages.Source.Feeds(ctx, &s.viewer, status.Query{Limit: maxExamined})
	if err != nil {
		return p // the page itself says so
	}
	late, lifetime, varies, unshared := int64(0), time.Duration(0), make(map[string]int64), make(map[string]int64)
	for _, f := range list.Feeds {
		if why, ok := strings.CutPrefix(f.LastError, unsharedText); ok && f.LastStatus == http.StatusOK {
			unshared[why]++
		}
		for _, t := range f.Considered {
			fresh := time.Duration(t.Seconds) * time.Second
			if (t.Hint == policy.HintSMaxAge || t.Hint == policy.HintMaxAge || t.Hint == policy.HintExpires) && fresh >= lateFor {
				late, lifetime = late+1, max(lifetime, fresh)
			}
		}
		for _, name := range f.Vary {
			switch name {
			case "user-agent", "accept", "accept-language":
				varies[http.CanonicalHeaderKey(name)]++
			}
		}
	}
	if shows := min(lifetime, s.rules.MaxInterval); late > 0 && shows > time.Hour {
		p.Notices = append(p.Notices, fmt.Sprintf("Your server allows %s to be kept for %s, so new posts show after %s. Take feeds out of that rule of your server (expires, Cache-Control), or write max_interval 10m into feed_shield, or send a ping when you publish.",
			status.Count(late, "feed"), status.Length(lifetime), status.Length(shows)))
	}
	for _, why := range slices.Sorted(maps.Keys(unshared)) {
		field, _, _ := strings.Cut(why, ":")
		session := ""
		if why == "Cache-Control: no-store" {
			session = ", as a session of PHP does"
		}
		p.Notices = append(p.Notices, fmt.Sprintf("Your site forbids to share %s (%s%s), so all readers are passed on to it. If all get the same feed, take that out at your site, or write header -%s into the origin block of feed_shield.",
			status.Count(unshared[why], "feed"), why, session, field))
	}
	for _, name := range slices.Sorted(maps.Keys(varies)) {
		p.Notices = append(p.Notices, fmt.Sprintf("Your site varies %s by %s (Vary), so nearly all readers are passed on to it. Take that out of Vary, or write vary ignore %s into feed_shield.",
			status.Count(varies[name], "feed"), name, name))
	}
	return p
}

// checkPath returns an error if the path of a line is set and cannot be one.
func checkPath(line, path string) error {
	if path == "" || strings.HasPrefix(path, "/") && strings.Trim(path, "/") != "" && !strings.ContainsAny(path, "?#*%{ ") {
		return nil
	}
	return fmt.Errorf("%s: expected a path such as /feed/%s, without query, star and escapes", line, line)
}

// serveStatus serves a page. It reports false if the request is for something else.
func (s *Shield) serveStatus(w http.ResponseWriter, r *door.Request) bool {
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
	if before, found := strings.CutSuffix(r.Sent.Path, r.URL.Path); found { // before handle_path
		base = before + home
	}
	at := pages.Place{Home: base + "/", Below: base + "/", Viewer: s.viewer}
	at.Member, at.Sender = s.member(r)
	s.pages.ServeHTTP(w, *r, at, name)
	return true
}

// member reports whether a client may see the pages, and tells it why: it has a private address and
// sends names that no stranger can own, or a handler before the shield has authenticated it.
func (s *Shield) member(r *door.Request) (may bool, why string) {
	if user := r.User(); user != "" {
		return true, fmt.Sprintf("You are logged in as %s.", user)
	}
	why = r.Client.Sentence()
	if !r.Client.Private() {
		if doubt := r.Client.Doubt(); doubt != "" {
			why += " " + status.Capitalize(strings.ReplaceAll(doubt, "`", "")) + "."
		}
		return false, why + " If you are at home, open it in your own network."
	}
	if site := r.SiteToWrite(); site != "" {
		return false, fmt.Sprintf("%s A stranger may own the name that this request was sent to, and send it from your browser: the Caddyfile needs %s as an address of the site. Or open it at localhost, or at an address of the machine.", why, site)
	}
	return true, why + " Private addresses may see the pages."
}
