// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// Names are the names that a handler has for feeds, besides their own URLs.
type Names interface {
	// Find returns the key of the feed at a path or an address of the handler, or "".
	Find(name string) string
	// Address returns the address that the operator has chosen for the feed of a key, or "".
	Address(key string) string
	// NamesAt reports whether the handler's configuration names a feed at an origin, as
	// [feedurl.URL.Origin] writes it.
	NamesAt(origin string) bool
	// Listed returns the keys of the feeds that are in the handler's subscription list and that it serves.
	Listed() []string
}

// AddNames registers the names of a handler.
func (a *App) AddNames(n Names) { a.names = append(a.names, n) }

// listed returns the keys of feeds that are in subscription lists.
func (a *App) listed() (keys []string) {
	for _, n := range a.names {
		keys = append(keys, n.Listed()...)
	}
	return keys
}

// addressOf returns the address that an operator has chosen for the feed of a key, or "".
func (e *Engine) addressOf(key string) string {
	for _, n := range e.app.Load().names {
		if address := n.Address(key); address != "" {
			return address
		}
	}
	return ""
}

// keysOf returns the keys of the feed with a name: its own URL, a path that a gateway has for
// it, or its address at a gateway. A shielded feed may have several keys, of which the first
// stands for all. Names of several feeds are an error, and so are unknown ones.
func (e *Engine) keysOf(ctx context.Context, c *cache.Cache, name string) ([]string, error) {
	var keys []string
	for _, n := range e.app.Load().names {
		if key := n.Find(name); key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if strings.HasPrefix(name, "/") {
		if len(keys) == 0 {
			return nil, apiError(http.StatusNotFound, fmt.Errorf("no gateway has a feed at the path %s", name))
		}
		return keys, candidates(name, keys)
	}
	u, err := feedurl.ParseWritten(name)
	if err != nil {
		return nil, apiError(http.StatusBadRequest, err)
	}
	feed := u.String()
	unknown := c.Has(ctx, feed) // or the store cannot be read
	if unknown == nil && !slices.Contains(keys, feed) {
		keys = append(keys, feed)
	}
	if err := candidates(name, keys); err != nil {
		return nil, err
	}
	if keys = append(keys, shieldedKeys(ctx, e, c, feed)...); len(keys) > 0 {
		return keys, nil
	}
	if near := e.near(ctx, c, feed); near != "" && errors.Is(unknown, cache.ErrUnknownFeed) {
		unknown = fmt.Errorf("%w: did you mean %s?", unknown, near)
	}
	return nil, apiErrorOf(unknown)
}

// near returns the name of a feed that was meant by a URL that is none: by the other scheme, with or without
// the last slash, or by a path without the first one. If there is none, it returns "".
func (e *Engine) near(ctx context.Context, c *cache.Cache, feed string) string {
	scheme, rest, _ := strings.Cut(feed, "://")
	other := map[string]string{"http": "https", "https": "http"}[scheme] + "://"
	slash, cut := rest+"/", strings.HasSuffix(rest, "/")
	if cut {
		slash = strings.TrimSuffix(rest, "/")
	}
	for _, meant := range []string{scheme + "://" + slash, other + rest, other + slash} {
		if canonical, err := feedurl.Canonical(meant); err == nil && canonical != feed && c.Has(ctx, canonical) == nil {
			return feedurl.Redact(canonical)
		}
	}
	path := "/" + strings.TrimSuffix(rest, "/")
	for _, n := range e.app.Load().names {
		if n.Find(path) != "" {
			return path
		}
	}
	return ""
}

// candidates returns an error that lists the feeds if there are several.
func candidates(name string, keys []string) error {
	if len(keys) < 2 {
		return nil
	}
	shown := make([]string, 0, len(keys))
	for _, key := range keys {
		shown = append(shown, feedurl.Redact(key))
	}
	return apiError(http.StatusConflict, errors.New(feedurl.Redact(name)+" is a name of several feeds: write the URL of one of them, "+strings.Join(shown, " or ")))
}
