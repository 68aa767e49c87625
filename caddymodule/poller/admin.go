// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
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
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/internal/status"
)

func init() {
	caddy.RegisterModule(Admin{})
}

// Admin shows and controls the running feed poller through Caddy's admin endpoint:
//
//	GET    /pollard/feeds         all feeds
//	GET    /pollard/feeds?url=    one feed, and why its next poll is not earlier
//	POST   /pollard/refresh?url=  polls a feed, as soon as its origin allows
//	DELETE /pollard/feeds?url=    forgets a feed
//	GET    /pollard/readers       the readers of all feeds of shields
//	GET    /pollard/readers?url=  the readers of one of them
//	GET    /pollard/stats         totals
//	GET    /pollard/health/ready  503 while the store is being opened, or away
//	GET    /pollard/health/live   200 as long as the process answers
//
// A feed is named by its own URL, by a path that a gateway has for it, or by its address at a
// gateway whose site names that host.
//
// Caddy logs the URLs of these requests. A URL with credentials is better sent as the
// field url of a form: by POST to /pollard/feeds, /pollard/refresh, /pollard/readers, or
// /pollard/forget in place of DELETE.
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
			http.MethodPost:   showFeed,
			http.MethodDelete: forgetFeed,
		}},
		{Pattern: "/pollard/forget", Handler: methods{http.MethodPost: forgetFeed}},
		{Pattern: "/pollard/refresh", Handler: methods{http.MethodPost: refreshFeed}},
		{Pattern: "/pollard/readers", Handler: methods{http.MethodGet: showReaders, http.MethodPost: showReaders}},
		{Pattern: "/pollard/stats", Handler: methods{http.MethodGet: showStats}},
		{Pattern: "/pollard/health/ready", Handler: health(ready)},
		{Pattern: "/pollard/health/live", Handler: health(live)},
	}
}

// methods serves a route by the request's method. It finds the running engine for each
// request, because the admin endpoint starts before the apps.
type methods map[string]func(w http.ResponseWriter, r *http.Request, e *Engine, c *cache.Cache) error

func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) error {
	serve, ok := m[r.Method]
	if !ok {
		w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(m)), ", "))
		return apiError(http.StatusMethodNotAllowed, fmt.Errorf("method %s is not allowed here", r.Method))
	}
	e, c := Running()
	if c == nil {
		return apiError(http.StatusServiceUnavailable, errNotRunning())
	}
	return serve(w, r, e, c)
}

// errNotRunning says why no engine runs.
func errNotRunning() error {
	starting := false
	engines.Range(func(any, any) bool {
		starting = true
		return false
	})
	if starting {
		return errors.New("the feed poller is not yet running: its store is being opened")
	}
	return errors.New("no feed poller is running: the configuration has neither a pollard app nor a feed_gateway nor a feed_shield")
}

func showFeeds(w http.ResponseWriter, r *http.Request, e *Engine, c *cache.Cache) error {
	if !r.URL.Query().Has("url") {
		return listFeeds(w, r, e, c)
	}
	return showFeed(w, r, e, c)
}

// listPage is how many feeds are read from the store at a time.
const listPage = 500

// listFeeds writes feeds page by page, so that memory does not depend on their number.
func listFeeds(w http.ResponseWriter, r *http.Request, e *Engine, c *cache.Cache) error {
	list, after, more, err := c.Statuses(r.Context(), store.ID{}, listPage)
	if err != nil {
		return apiErrorOf(err)
	}
	w.Header().Set("Content-Type", "application/json")
	separator := "[\n\t"
	for {
		for _, feed := range list {
			body, err := json.MarshalIndent(e.complete(feed), "\t", "\t")
			if err != nil {
				return apiErrorOf(err)
			}
			if _, err := w.Write(append([]byte(separator), body...)); err != nil {
				return nil // the client is gone
			}
			separator = ",\n\t"
		}
		if !more {
			break
		}
		if list, after, more, err = c.Statuses(r.Context(), after, listPage); err != nil {
			panic(http.ErrAbortHandler) // so that the client sees that the list is incomplete
		}
	}
	end := "\n]\n"
	if separator[0] == '[' {
		end = "[]\n"
	}
	_, _ = w.Write([]byte(end))
	return nil
}

func showFeed(w http.ResponseWriter, r *http.Request, e *Engine, c *cache.Cache) error {
	keys, err := feedParameter(r, e, c)
	if err != nil {
		return err
	}
	return writeFeed(w, r, e, c, keys[0])
}

func writeFeed(w http.ResponseWriter, r *http.Request, e *Engine, c *cache.Cache, key string) error {
	feed, _, err := e.Status(r.Context(), c, key, 0)
	if err != nil {
		return apiErrorOf(err)
	}
	return writeJSON(w, feed)
}

func refreshFeed(w http.ResponseWriter, r *http.Request, e *Engine, c *cache.Cache) error {
	keys, err := feedParameter(r, e, c)
	if err != nil {
		return err
	}
	for _, key := range keys {
		_, err := c.RefreshAtOnce(r.Context(), key)
		if early, ok := errors.AsType[*cache.TooEarly](err); ok { // it is polled as soon as it may be
			wait := int64(time.Until(early.Until)/time.Second) + 1
			w.Header().Set("Retry-After", strconv.FormatInt(max(wait, 1), 10))
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusAccepted)
		} else if err != nil {
			return apiErrorOf(err)
		}
	}
	return writeFeed(w, r, e, c, keys[0])
}

// shieldedKeys returns the keys of a shielded feed, given the URL that readers use, with either
// scheme. The feed with the requested scheme comes first. The search reads all records, possibly a million, so it is skipped
// if the configuration has no shields.
func shieldedKeys(ctx context.Context, e *Engine, c *cache.Cache, feed string) []string {
	if len(e.app.Load().shields) == 0 {
		return nil
	}
	keys := c.Keys(ctx, ShieldCommon)
	slices.Sort(keys)
	var exact, others []string
	for _, text := range keys {
		k, ok := ParseShieldKey(text)
		if !ok {
			continue
		}
		known, err := feedurl.Parse(k.URL())
		switch {
		case err != nil || withoutScheme(known.String()) != withoutScheme(feed):
		case known.String() == feed:
			exact = append(exact, text)
		default:
			others = append(others, text)
		}
	}
	return append(exact, others...)
}

func withoutScheme(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	return rest
}

func showReaders(w http.ResponseWriter, r *http.Request, e *Engine, c *cache.Cache) error {
	o := readers.ReportOptions{Changes: e.Changes}
	if r.Method == http.MethodPost || r.URL.Query().Has("url") {
		keys, err := feedParameter(r, e, c)
		if err != nil {
			return err
		}
		o.Feed = keys[0]
	}
	report := e.Readers(r.Context(), o)
	for i := range report.Feeds {
		report.Feeds[i].Feed = shownURL(report.Feeds[i].Feed).String()
	}
	return writeJSON(w, report)
}

func forgetFeed(w http.ResponseWriter, r *http.Request, e *Engine, c *cache.Cache) error {
	keys, err := feedParameter(r, e, c)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := e.Forget(r.Context(), c, key); err != nil {
			return apiErrorOf(err)
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

type stats struct {
	Version string `json:"version"`
	Store   string `json:"store"`
	status.Summary
}

func showStats(w http.ResponseWriter, r *http.Request, e *Engine, c *cache.Cache) error {
	s := stats{Version: Version(), Store: e.Store(), Summary: c.Summary(r.Context())}
	s.StoreDamaged = e.StoreDamaged()
	return writeJSON(w, s)
}

// maxForm is the largest form accepted, in bytes.
const maxForm = 64 << 10

// feedParameter returns the keys of the feed that the parameter or form field url names.
func feedParameter(r *http.Request, e *Engine, c *cache.Cache) ([]string, error) {
	r.Body = http.MaxBytesReader(nil, r.Body, maxForm)
	name := r.FormValue("url")
	if name == "" {
		return nil, apiError(http.StatusBadRequest, errors.New("the parameter url is missing: expected ?url=<escaped URL of a feed>"))
	}
	return e.keysOf(r.Context(), c, name)
}

// shownURL returns the URL that readers know for a key.
func shownURL(key string) feedurl.Redacted { return feedurl.Redacted(ReadersURL(key)) }

// maxReaders bounds the readers of a feed that are shown.
const maxReaders = 20

// Status returns the status of the feed with a key, and the body of its version if it
// has at most most bytes. It returns [cache.ErrUnknownFeed] if the feed is not known.
func (e *Engine) Status(ctx context.Context, c *cache.Cache, key string, most int) (status.Feed, []byte, error) {
	f, body, err := c.Details(ctx, key, most)
	if err != nil {
		return status.Feed{}, nil, err
	}
	f.Subscribers = int64(e.Subscribers(key))
	if f.Configured && f.Subscribers == 0 {
		f.LastAsked = time.Time{} // the record began as though a reader had asked, and none has for a week at least
	}
	if IsShielded(key) { // of gateways, no reader is remembered
		report := e.Readers(ctx, readers.ReportOptions{Feed: key, Changes: e.Changes})
		f.Readers = report.Readers[:min(len(report.Readers), maxReaders)]
	}
	return e.complete(f), body, nil
}

// complete completes the status of a feed for the operator.
func (e *Engine) complete(f status.Feed) status.Feed {
	f.Address = e.addressOf(string(f.URL))
	return Complete(f)
}

// Complete completes the status of a feed from the cache with the URL that readers request
// and with the reason for its next poll. Completing it again changes nothing.
func Complete(f status.Feed) status.Feed {
	f.Shield = f.Shield || IsShielded(string(f.URL))
	f.URL, f.Validators.URL = shownURL(string(f.URL)), ReadersURL(f.Validators.URL)
	f.Reason = f.Explain(time.Now(), time.UTC)
	return f
}

func apiError(status int, err error) error { return caddy.APIError{HTTPStatus: status, Err: err} }

func apiErrorOf(err error) error {
	if errors.Is(err, cache.ErrUnknownFeed) {
		return apiError(http.StatusNotFound, err)
	}
	return apiError(http.StatusInternalServerError, err)
}

func writeJSON(w http.ResponseWriter, v any) error {
	body, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return apiError(http.StatusInternalServerError, fmt.Errorf("encoding the answer: %w", err))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // the client may be gone
	return nil
}

// Interface guards.
var (
	_ caddy.AdminRouter  = (*Admin)(nil)
	_ caddy.AdminHandler = (methods)(nil)
)
