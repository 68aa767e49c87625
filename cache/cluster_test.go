// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/upstream"
)

// cluster is some nodes over one store, in a bubble.
type cluster struct {
	t       *testing.T
	store   *sqlite.Store
	members []*member
	origins *origins
}

// member is one node of a cluster.
type member struct {
	*link
	gateway *gateway // nil: it has died
	client  *upstream.Client
	origins *origins
	number  int
}

// link is all that a node has to do with the world: its store and its network. A node
// whose process is stopped, as by SIGSTOP, comes no further than its next use of either.
type link struct {
	mu     sync.Mutex    // guards what follows
	dead   chan struct{} // closed when the node dies
	thaw   chan struct{} // closed when its process goes on; nil: it is not stopped
	thawed time.Time     // when it went on last
	cut    bool          // the store is out of reach
}

var (
	errDied = errors.New("the node has died")
	errCut  = errors.New("the store is out of reach")
)

func newLink() *link { return &link{dead: make(chan struct{})} }

// pass waits while the process is stopped, and fails where the node has died.
func (l *link) pass() error {
	for {
		l.mu.Lock()
		thaw := l.thaw
		l.mu.Unlock()
		select {
		case <-l.dead:
			return errDied
		default:
		}
		if thaw == nil {
			return nil
		}
		select {
		case <-thaw:
		case <-l.dead:
		}
	}
}

// reach is pass, on the way to the store and back.
func (l *link) reach() error {
	if err := l.pass(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return errCut
	}
	return nil
}

// change sets whether the process is stopped, and whether the store is out of reach.
func (l *link) change(stopped, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	switch {
	case stopped && l.thaw == nil:
		l.thaw = make(chan struct{})
	case !stopped && l.thaw != nil:
		close(l.thaw)
		l.thaw, l.thawed = nil, time.Now()
	}
}

func (l *link) condition() (stopped, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.thaw != nil, l.cut
}

// stoppedSince reports whether the process has been stopped at any time since then.
func (l *link) stoppedSince(then time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.thaw != nil || l.thawed.After(then)
}

// reached is the store as a node reaches it: the answer to a call may not arrive.
func (l *link) reached(s store.Store) store.Store {
	db := &hooked{Store: s}
	db.hook(func(context.Context, string) error { return l.reach() }, func(string, any) error { return l.reach() })
	return db
}

// RoundTrip sends a request. It counts, whatever becomes of the answer.
func (m *member) RoundTrip(r *http.Request) (*http.Response, error) {
	c := m.origins.arrive(m, r)
	if c.delay > 0 {
		select {
		case <-time.After(c.delay):
		case <-r.Context().Done():
		case <-m.dead:
		}
	}
	err := m.pass()
	if err == nil {
		err = r.Context().Err()
	}
	_, cut := m.condition()
	m.origins.depart(c, err == nil, err == nil && !cut)
	if err != nil {
		return nil, err
	}
	return c.response(r), nil
}

// newCluster opens a store and nodes over it.
func newCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	time.Sleep(time.Until(epoch))
	c := &cluster{t: t, origins: newOrigins(), store: sqlite.NewMemory(nil)}
	for n := range nodes {
		c.members = append(c.members, &member{origins: c.origins, number: n})
		c.start(c.members[n])
	}
	return c
}

// start begins a life of a node.
func (c *cluster) start(m *member) {
	c.t.Helper()
	m.link = newLink()
	m.client = upstream.New(upstream.WithTransport(m))
	m.gateway = node(c.t, m.link.reached(c.store), m.client, c.settings(true))
}

// settings are those of all nodes: some feeds are configured.
func (c *cluster) settings(prefetch bool) cache.Settings {
	return cache.Settings{Prefetch: prefetch, Feeds: feedsOf(configured), Polls: mostPolls}
}

// end ends a node's life: at once, or in peace.
func (c *cluster) end(m *member, atOnce bool) {
	c.t.Helper()
	if m.gateway == nil {
		return
	}
	if atOnce {
		close(m.dead)
	} else {
		m.change(false, false)
	}
	if err := m.gateway.Cache.Close(); err != nil {
		c.t.Error(err)
	}
	m.client.Close()
	m.gateway = nil
}

// restart ends all nodes and the store, and starts them again.
func (c *cluster) restart() {
	c.t.Helper()
	c.close()
	c.store = c.store.Reopen()
	for _, m := range c.members {
		c.start(m)
	}
}

func (c *cluster) close() {
	c.t.Helper()
	for _, m := range c.members {
		c.end(m, false)
	}
	if err := c.store.Close(); err != nil {
		c.t.Error(err)
	}
}
