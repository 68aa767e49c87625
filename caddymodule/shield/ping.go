// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
)

const (
	// maxPing is the size of the largest publish ping, in bytes, and maxPingURLs how many URLs it may
	// name. WordPress sends some dozens.
	maxPing     = 64 << 10
	maxPingURLs = 256
	// pingKeys is how often the store is searched for the keys of feeds, which reads all records. The
	// search takes a small part of the time, however many feeds there are.
	pingKeys      = time.Minute
	pingKeysShare = 20
)

// servePing answers a publish ping, as publishers send them to WebSub hubs: a form with
// hub.mode=publish and URLs as hub.url or hub.topic. It reports false if the request is for something
// else.
func (s *Shield) servePing(w http.ResponseWriter, r *door.Request) bool {
	if s.Ping == "" || r.URL.Path != s.Ping {
		return false
	}
	if refusal := s.ping(w, r.Request); refusal != nil {
		refusal.Write(w, r.Request)
	} else {
		w.WriteHeader(http.StatusNoContent)
	}
	return true
}

func (s *Shield) ping(w http.ResponseWriter, r *http.Request) *door.Refusal {
	refuse := func(status int, reason string) *door.Refusal {
		return &door.Refusal{Status: status, Reason: reason}
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return refuse(http.StatusMethodNotAllowed, "a publish ping is a POST with hub.mode=publish and hub.url=<address of the feed>")
	case r.Header["Origin"] != nil:
		return refuse(http.StatusForbidden, "publish pings come from servers, not from web pages")
	case media != "application/x-www-form-urlencoded":
		return refuse(http.StatusUnsupportedMediaType, "a publish ping is a form: expected Content-Type application/x-www-form-urlencoded")
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxPing)
	if err := r.ParseForm(); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("a publish ping has at most %d bytes", maxPing))
		}
		return refuse(http.StatusBadRequest, "the form cannot be read")
	}
	urls := append(r.PostForm["hub.url"], r.PostForm["hub.topic"]...)
	switch mode := r.PostForm.Get("hub.mode"); {
	case mode == "subscribe", mode == "unsubscribe":
		return refuse(http.StatusNotImplemented, "this is not a hub: it takes publish pings, not subscriptions")
	case mode != "publish":
		return refuse(http.StatusBadRequest, "expected hub.mode=publish")
	case len(urls) == 0:
		return refuse(http.StatusBadRequest, "expected hub.url or hub.topic, the address of a feed")
	case len(urls) > maxPingURLs:
		return refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("a publish ping names at most %d feeds", maxPingURLs))
	}
	c, err := s.engine.Opened(r.Context())
	if err != nil {
		return door.RefusalOf(err)
	}
	switch known, err := c.Ping(r.Context(), s.feedsNamed(r.Context(), c, urls)); {
	case err != nil:
		return &door.Refusal{Status: http.StatusServiceUnavailable, Reason: "the store cannot be written", RetryAfter: time.Minute}
	case !known:
		return refuse(http.StatusNotFound, "no reader has asked for a feed at this address")
	}
	return nil
}

// storedFeeds are the feeds of a shield's block that the store had a moment ago, and those that readers have
// requested since. Their number is bounded, as the store forgets feeds without readers.
type storedFeeds struct {
	mu    sync.Mutex
	feeds map[string]pingable // by key
	next  time.Time           // when they are read again
}

// pingable is a feed of the block: whether this shield serves it, and the host and path by which pings name
// it, unescaped.
type pingable struct {
	served bool
	page   string
}

func (s *Shield) pingableOf(key string) pingable {
	k, _ := poller.ParseShieldKey(key)
	_, rest, _ := strings.Cut(k.URL(), "://")
	page, _, _ := strings.Cut(rest, "?")
	return pingable{s.app.Serves(s, k), unescaped(page)}
}

// unescaped returns a page without escapes, of which WordPress writes other forms than readers send.
func unescaped(page string) string {
	if plain, err := url.PathUnescape(page); err == nil {
		return plain
	}
	return page
}

// feedsNamed returns the keys of the shield's feeds that URLs name. The scheme and the query do not count.
// An address that ends in a slash and is not a feed's stands for all feeds below it, as a site's home page does.
func (s *Shield) feedsNamed(ctx context.Context, c *cache.Cache, urls []string) (found []string) {
	named := make(map[string]bool) // whether the page is a feed's
	for _, raw := range urls {
		if u, err := feedurl.Parse(raw); err == nil {
			named[unescaped(u.HostPort()+u.Path())] = false
		}
	}
	p := s.stored
	p.mu.Lock()
	defer p.mu.Unlock()
	if began := time.Now(); p.feeds == nil || began.After(p.next) {
		p.feeds = make(map[string]pingable)
		for _, key := range c.Keys(context.WithoutCancel(ctx), poller.ShieldPrefix(s.identity)) {
			p.feeds[key] = s.pingableOf(key)
		}
		p.next = time.Now().Add(max(pingKeys, pingKeysShare*time.Since(began)))
	}
	for _, key := range s.entries.byKey.Keys() {
		if _, known := p.feeds[key]; !known && s.entries.isFeed(key) {
			p.feeds[key] = s.pingableOf(key)
		}
	}
	for _, f := range p.feeds {
		if _, ok := named[f.page]; ok && f.served {
			named[f.page] = true
		}
	}
	for key, f := range p.feeds {
		if f.served && (named[f.page] || isBelow(f.page, named)) {
			found = append(found, key)
		}
	}
	return found
}

// isBelow reports whether a page is below one that is named and is not a feed's.
func isBelow(page string, named map[string]bool) bool {
	for i := strings.LastIndexByte(page, '/'); i >= 0; i = strings.LastIndexByte(page[:i], '/') {
		if isFeed, ok := named[page[:i+1]]; ok && !isFeed {
			return true
		}
	}
	return false
}
