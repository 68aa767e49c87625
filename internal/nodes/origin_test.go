// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	floor      = 4 * time.Second // between two polls of a feed
	fastFloor  = time.Second     // of feeds by which delays between nodes are measured
	spacing    = 200 * time.Millisecond
	retryLater = 12 * time.Second // as the origin says with a 429
)

// host is an origin: a port of its own, as nodes pace ports of an address apart.
type host struct {
	web   *web
	url   string
	polls []time.Time // guarded by web.mu
}

// feed is a feed of an origin. Its versions are numbered from 1.
type feed struct {
	host  *host
	path  string // at the nodes and at the origin
	every int    // of its polls, so many find the same version
	floor time.Duration

	polled  time.Time // last; guarded by web.mu
	polls   int       // guarded by web.mu
	version int       // guarded by web.mu
	limit   bool      // the next answer is a 429; guarded by web.mu
	limited bool      // the last one was; guarded by web.mu
}

// web is all origins, with a log of what they are asked.
type web struct {
	mu    sync.Mutex // guards logs
	early []string   // polls before the feed's floor has passed
	last  time.Time  // poll
	count int

	hosts []*host
	feeds []*feed
	paths map[string]*feed
}

func (w *web) addHost(t *testing.T) *host {
	h := &host{web: w}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.url = server.URL
	w.hosts = append(w.hosts, h)
	return h
}

func (w *web) addFeed(h *host, every int, floor time.Duration) *feed {
	f := &feed{host: h, path: fmt.Sprintf("/%d.xml", len(w.feeds)), every: every, floor: floor}
	w.feeds = append(w.feeds, f)
	w.paths[f.path] = f
	return f
}

func (h *host) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	now := time.Now()
	w := h.web
	f := w.paths[r.URL.Path]
	if f == nil || f.host != h {
		http.NotFound(rw, r)
		return
	}
	w.mu.Lock()
	if gap := now.Sub(f.polled); f.polls > 0 && gap < f.floor || f.limited && gap < retryLater {
		w.early = append(w.early, fmt.Sprintf("%s was polled again after %v", f.path, gap))
	}
	f.polled, w.last = now, now
	f.polls++
	w.count++
	h.polls = append(h.polls, now)
	f.version = 1 + (f.polls-1)/f.every
	version, limit := f.version, f.limit
	f.limit, f.limited = false, limit
	w.mu.Unlock()

	time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond) // an origin takes its time
	tag := strconv.Quote(strconv.Itoa(version))
	switch {
	case limit:
		rw.Header().Set("Retry-After", strconv.Itoa(int(retryLater/time.Second)))
		rw.WriteHeader(http.StatusTooManyRequests)
	case r.Header.Get("If-None-Match") == tag:
		rw.WriteHeader(http.StatusNotModified)
	default:
		rw.Header().Set("Content-Type", "application/rss+xml")
		rw.Header().Set("ETag", tag)
		fmt.Fprintf(rw, `<rss version="2.0"><channel><title>%s</title><item><title>Version %d</title><guid isPermaLink="false">%d</guid><description>%s</description></item></channel></rss>`,
			f.path, version, version, strings.Repeat("some words of it ", 200))
	}
}

// polled is how many polls there have been.
func (w *web) polled() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// crowds lists where a host was asked more often, by all nodes together, than its spacing
// allows. A node may be held up between a grant and its request, with one poll of a host.
func (w *web) crowds(nodes int) (problems []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	const window = 5 * time.Second
	bound := int(window/spacing) + 1 + nodes
	for _, h := range w.hosts {
		first := 0
		for i, at := range h.polls {
			for at.Sub(h.polls[first]) > window {
				first++
			}
			if n := i - first + 1; n > bound {
				problems = append(problems, fmt.Sprintf("%s was asked %d times in %v, want %d at most", h.url, n, window, bound))
				break
			}
		}
	}
	return problems
}
