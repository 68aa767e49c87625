// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package admin is the admin API of the running feed poller.
package poller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/readers"
)

func init() {
	caddy.RegisterModule(Admin{})
}

// Admin shows and steers the running feed poller through Caddy's admin endpoint:
//
//	GET    /pollard/feeds         all feeds, with the reason why each waits
//	GET    /pollard/feeds?url=    one of them
//	POST   /pollard/refresh?url=  polls one, as far as its origin lets; what a shield
//	                              has of the URL is fetched anew for the next reader
//	DELETE /pollard/feeds?url=    forgets one, and what shields have of the URL
//	GET    /pollard/readers       who polls, how often, how well
//	GET    /pollard/readers?url=  for one feed
//	GET    /pollard/stats         figures of the whole
type Admin struct{}

// CaddyModule returns the Caddy module information.
func (Admin) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.pollard",
		New: func() caddy.Module { return new(Admin) },
	}
}

// Routes returns the admin routes.
func (Admin) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		{Pattern: "/pollard/feeds", Handler: methods{
			http.MethodGet:    showFeeds,
			http.MethodDelete: forgetFeed,
		}},
		{Pattern: "/pollard/refresh", Handler: methods{http.MethodPost: refreshFeed}},
		{Pattern: "/pollard/readers", Handler: methods{http.MethodGet: showReaders}},
		{Pattern: "/pollard/stats", Handler: methods{http.MethodGet: showStats}},
	}
}

// methods serves a route by the request's method, on the running engine: the
// admin endpoint comes up before the apps, so it cannot hold on to one.
type methods map[string]func(w http.ResponseWriter, r *http.Request, e *Engine, c *cache.Cache) error

// ServeHTTP implements [caddy.AdminHandler].
func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) error {
	serve, ok := m[r.Method]
	if !ok {
		w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(m)), ", "))
		return apiError(http.StatusMethodNotAllowed, fmt.Errorf("method %s is not for this", r.Method))
	}
	e, c := Running()
	if c == nil {
		return apiError(http.StatusServiceUnavailable, errors.New("no feed poller is running: the configuration has neither a pollard app nor a feed_gateway"))
	}
	return serve(w, r, e, c)
}

func showFeeds(w http.ResponseWriter, r *http.Request, e *Engine, c *cache.Cache) error {
	if !r.URL.Query().Has("url") {
		return listFeeds(w, r, c)
	}
	feed, err := feedParameter(r)
	if err != nil {
		return err
	}
	account, err := c.Account(r.Context(), feed)
	if errors.Is(err, cache.ErrUnknownFeed) {
		if keys := shieldedKeys(r.Context(), e, c, feed); len(keys) > 0 {
			account, err = c.Account(r.Context(), keys[0])
		}
	}
	if err != nil {
		return apiErrorOf(w, err)
	}
	return writeJSON(w, shown(account))
}

func refreshFeed(w http.ResponseWriter, r *http.Request, e *Engine, c *cache.Cache) error {
	feed, err := feedParameter(r)
	if err != nil {
		return err
	}
	keys := shieldedKeys(r.Context(), e, c, feed)
	for _, key := range keys {
		if _, err := c.Refresh(r.Context(), key); err != nil {
			return apiErrorOf(w, err)
		}
	}
	account, err := c.Refresh(r.Context(), feed)
	if errors.Is(err, cache.ErrUnknownFeed) && len(keys) > 0 {
		account, err = c.Account(r.Context(), keys[0])
	}
	if err != nil {
		return apiErrorOf(w, err)
	}
	return writeJSON(w, shown(account))
}

// shieldedKeys are the keys of a shielded feed and its variants, by the URL under
// which readers know it, with either scheme. The plain feed with the scheme that was
// asked for comes first. To find them all records are read, which may be a million,
// so it is not done where there is no shield.
func shieldedKeys(ctx context.Context, e *Engine, c *cache.Cache, feed string) []string {
	if !e.Shielding() {
		return nil
	}
	var same []string
	rank := make(map[string]int)
	for _, text := range c.Keys(ctx, ShieldCommon) {
		k, ok := ParseShieldKey(text)
		if !ok {
			continue
		}
		known, err := feedurl.Parse(k.URL())
		if err != nil || withoutScheme(known.String()) != withoutScheme(feed) {
			continue
		}
		same = append(same, text)
		if known.String() != feed {
			rank[text] += 2
		}
		if k.Variant != "" {
			rank[text]++
		}
	}
	slices.SortFunc(same, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a, b))
	})
	return same
}

func withoutScheme(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	return rest
}

func showReaders(w http.ResponseWriter, r *http.Request, e *Engine, c *cache.Cache) error {
	o := readers.ReportOptions{About: e.About}
	if r.URL.Query().Has("url") {
		feed, err := feedParameter(r)
		if err != nil {
			return err
		}
		o.Feed = feed
		if !c.Knows(r.Context(), feed) {
			if keys := shieldedKeys(r.Context(), e, c, feed); len(keys) > 0 {
				k, _ := ParseShieldKey(keys[0])
				o.Feed = k.Plain().String()
			}
		}
	}
	report := e.Readers(r.Context(), o)
	if o.Feed != "" && len(report.Families) == 0 && !c.Knows(r.Context(), o.Feed) {
		return apiErrorOf(w, fmt.Errorf("%w: %s", cache.ErrUnknownFeed, showKey(o.Feed)))
	}
	for i := range report.Feeds {
		report.Feeds[i].Feed = showKey(report.Feeds[i].Feed)
	}
	return writeJSON(w, report)
}

func forgetFeed(w http.ResponseWriter, r *http.Request, e *Engine, c *cache.Cache) error {
	feed, err := feedParameter(r)
	if err != nil {
		return err
	}
	keys := shieldedKeys(r.Context(), e, c, feed)
	if c.Knows(r.Context(), feed) || len(keys) == 0 {
		keys = append(keys, feed)
	}
	for _, key := range keys {
		if err := e.Forget(r.Context(), c, key); err != nil {
			return apiErrorOf(w, err)
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// stats are figures of the poller as a whole.
type stats struct {
	Version string `json:"version"`
	Store   string `json:"store"`
	cache.Summary
}

func showStats(w http.ResponseWriter, r *http.Request, e *Engine, c *cache.Cache) error {
	return writeJSON(w, stats{Version: Version(), Store: e.Store(), Summary: c.Summary(r.Context())})
}

// feedParameter returns the canonical URL that the parameter url names.
func feedParameter(r *http.Request) (string, error) {
	raw := r.URL.Query().Get("url")
	if raw == "" {
		return "", apiError(http.StatusBadRequest, errors.New("the parameter url is missing: expected ?url=<escaped URL of a feed>"))
	}
	feed, err := feedurl.Canonical(raw)
	if err != nil {
		return "", apiError(http.StatusBadRequest, err)
	}
	return feed, nil
}

// shown is an account as it may leave the program: without credentials, which a
// configuration may have kept out of itself by a placeholder.
func shown(a cache.Account) cache.Account {
	a.URL = showKey(a.URL)
	a.Alias, a.Validators.URL = feedurl.Redact(a.Alias), showKey(a.Validators.URL)
	return a
}

func showKey(key string) string {
	k, ok := ParseShieldKey(key)
	if !ok {
		return feedurl.Redact(key)
	}
	k.Path, k.Query, _ = strings.Cut(strings.TrimPrefix(feedurl.Redact(k.URL()), k.Scheme+"://"+k.Host), "?")
	return k.String()
}

func apiError(status int, err error) error { return caddy.APIError{HTTPStatus: status, Err: err} }

func apiErrorOf(w http.ResponseWriter, err error) error {
	if errors.Is(err, cache.ErrUnknownFeed) {
		return apiError(http.StatusNotFound, err)
	}
	if early, ok := errors.AsType[*cache.TooEarly](err); ok {
		wait := int64(time.Until(early.Until)/time.Second) + 1
		w.Header().Set("Retry-After", strconv.FormatInt(max(wait, 1), 10))
		return apiError(http.StatusTooManyRequests, err)
	}
	return apiError(http.StatusInternalServerError, err)
}

func writeJSON(w http.ResponseWriter, v any) error {
	body, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return apiError(http.StatusInternalServerError, fmt.Errorf("encoding the answer: %w", err))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // whoever has left misses nothing
	return nil
}

// Interface guards.
var (
	_ caddy.AdminRouter  = (*Admin)(nil)
	_ caddy.AdminHandler = (methods)(nil)
)
