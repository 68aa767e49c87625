// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// occupancy counts requests in flight by key.
type occupancy struct {
	mu        sync.Mutex
	now, most map[string]int
}

func (o *occupancy) enter(keys ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now == nil {
		o.now, o.most = make(map[string]int), make(map[string]int)
	}
	for _, k := range keys {
		o.now[k]++
		o.most[k] = max(o.most[k], o.now[k])
	}
}

func (o *occupancy) leave(keys ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range keys {
		o.now[k]--
	}
}

func TestSpacing(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rules []HostRule
		takes time.Duration // each answer
		gap   time.Duration // expected between requests
		most  int           // expected in flight
	}{
		{"default", nil, 100 * time.Millisecond, 2 * time.Second, 1},
		{"default, slow origin", nil, 5 * time.Second, 5 * time.Second, 1},
		{"rule", []HostRule{{Pattern: "example.com", Spacing: time.Minute}}, time.Second, time.Minute, 1},
		{"no gap", unpaced, time.Second, time.Second, 1},
		{"concurrency", []HostRule{{Pattern: "example.com", Concurrency: 3}}, 20 * time.Second, 2 * time.Second, 3},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var n memnet
			var o occupancy
			n.serve("example.com:80", func(_ request, w io.Writer) {
				o.enter("")
				time.Sleep(tt.takes)
				o.leave("")
				io.WriteString(w, ok(feedBody))
			})
			c := n.client(t, Settings{Hosts: tt.rules})
			var polls sync.WaitGroup
			for i := range 9 {
				polls.Go(func() {
					if a := c.Poll(patient(t), ask(fmt.Sprintf("http://example.com/%d", i))); a.Failure != "" {
						t.Errorf("poll failed: %v", a.Err)
					}
				})
				time.Sleep(time.Microsecond) // a known order of arrival
			}
			polls.Wait()
			got := n.requests()
			for i, r := range got {
				if want := fmt.Sprintf("/%d", i); r.path() != want {
					t.Errorf("request %d is for %s: not in order of arrival", i, r.path())
				}
				if i > 0 && r.at.Sub(got[i-1].at) < tt.gap {
					t.Errorf("request %d came %v after the one before, want %v", i, r.at.Sub(got[i-1].at), tt.gap)
				}
			}
			if o.most[""] != tt.most {
				t.Errorf("%d in flight, want %d", o.most[""], tt.most)
			}
		})
	}
}

// The gap counts from when a request leaves, not from when its connection began.
func TestSpacingWithSlowConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.say("example.com:80", ok(feedBody))
		first := true
		c := New(WithDial(func(ctx context.Context, network, address string) (net.Conn, error) {
			if first {
				first = false
				time.Sleep(time.Minute)
			}
			return n.dial(ctx, network, address)
		}))
		defer c.Close()
		for range 2 {
			slow := ask("http://example.com/")
			slow.Timeout = time.Hour
			c.Poll(patient(t), slow)
		}
		got := n.requests()
		if gap := got[1].at.Sub(got[0].at); gap != defaultSpacing {
			t.Errorf("gap of %v", gap)
		}
	})
}

// A host has one request in flight, or as many as a rule says, and a site twice as many. Sites do not wait for one another.
func TestConcurrencyOfASite(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hosts []string
		rules []HostRule
		most  int
	}{
		{"one domain", []string{"a.example.com", "b.example.com", "c.example.com", "example.com"}, nil, 2},
		{"one domain below a public suffix", []string{"a.example.co.uk", "b.example.co.uk", "c.example.co.uk"}, nil, 2},
		{"one host", []string{"a.example.com"}, nil, 1},
		{"domains", []string{"a.example", "b.example", "c.example", "d.example"}, nil, 4},
		{"users of a hoster", []string{"a.github.io", "b.github.io", "c.github.io"}, nil, 3},
		{"addresses", []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, nil, 3},
		{"rule", []string{"a.example.com", "b.example.com", "c.example.com", "d.example.com"}, []HostRule{{Pattern: "*.example.com", Concurrency: 3}}, 6},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var n memnet
			var o occupancy
			var polls sync.WaitGroup
			c := n.client(t, Settings{Hosts: tt.rules})
			for _, host := range tt.hosts {
				n.serve(host+":80", func(_ request, w io.Writer) {
					o.enter("all", host)
					time.Sleep(11 * time.Second) // the sixth starts after 10 s
					o.leave("all", host)
					io.WriteString(w, ok(feedBody))
				})
				for range 3 {
					polls.Go(func() { c.Poll(patient(t), ask("http://"+host+"/")) })
				}
			}
			polls.Wait()
			if o.most["all"] != tt.most {
				t.Errorf("%d in flight, want %d", o.most["all"], tt.most)
			}
			if got := len(n.requests()); got != 3*len(tt.hosts) {
				t.Errorf("%d requests, want %d", got, 3*len(tt.hosts))
			}
		})
	}
}

// A host with as many requests in flight as it may have gives no slot.
func TestAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.serve("example.com:80", func(_ request, w io.Writer) {
			time.Sleep(20 * time.Second)
			io.WriteString(w, ok(feedBody))
		})
		c := n.client(t, Settings{})
		check := func(when string, want bool) {
			t.Helper()
			synctest.Wait()
			slot := c.Acquire(feedurl.MustParse("http://example.com/"))
			if (slot != nil) != want {
				t.Errorf("%s: there is a slot: %v, want %v", when, slot != nil, want)
			}
			if slot != nil {
				slot.Release()
			}
		}
		check("at first", true)
		ctx, cancel := context.WithCancel(patient(t))
		for range 2 {
			go c.Poll(ctx, ask("http://example.com/"))
		}
		check("one in flight, one waiting", false)
		time.Sleep(30 * time.Second)
		check("the other in flight", false)
		cancel()
		check("broken off", true)
		time.Sleep(time.Hour)
	})
}

func TestHost(t *testing.T) {
	c := New()
	defer c.Close()
	settings := Settings{Hosts: []HostRule{
		{Pattern: "*", Concurrency: 3},
		{Pattern: "*.example.com", Spacing: time.Minute, Concurrency: 2},
		{Pattern: "a.b.example.com", Concurrency: 4},
		{Pattern: "*.b.example.com", Spacing: -1},
		{Pattern: "nas", Spacing: -1},
	}}
	c.Apply(settings)
	for url, want := range map[string]struct {
		policy.Host
		concurrency int
	}{
		"https://www.example.com:8443/a": {policy.Host{Site: "example.com", Spacing: time.Minute}, 2},
		"https://x.b.example.com/":       {policy.Host{Site: "example.com"}, 2},
		"https://a.b.example.com/":       {policy.Host{Site: "example.com"}, 4},
		"https://example.com/a":          {policy.Host{Site: "example.com", Spacing: defaultSpacing}, 3},
		"https://192.0.2.1/a":            {policy.Host{Site: "192.0.2.1:443", Spacing: defaultSpacing}, 3}, // its ports are paced apart
		"http://nas:81/a":                {policy.Host{Site: "nas:81"}, 3},
	} {
		u := feedurl.MustParse(url)
		if _, concurrency := settings.Pace(u.Name()); c.Host(u) != want.Host || concurrency != want.concurrency {
			t.Errorf("%s: %+v, %d at once, want %+v", url, c.Host(u), concurrency, want)
		}
	}
	if got := New(WithoutPacing()).Host(feedurl.MustParse("https://example.com/")); got != (policy.Host{}) {
		t.Errorf("without pacing: %+v", got)
	}
}

func TestIdleHostsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		c := n.client(t, Settings{})
		for i := range 5000 {
			url := fmt.Sprintf("http://h%d.example/", i)
			if i%2 == 0 {
				url = fmt.Sprintf("http://h%d.example.com/", i)
			}
			c.Poll(t.Context(), ask(url))
			c.Host(feedurl.MustParse(fmt.Sprintf("http://host%d.example/", i)))
			time.Sleep(time.Second)
		}
		c.hosts.mu.Lock()
		defer c.hosts.mu.Unlock()
		if hosts := len(c.hosts.byName); hosts > 300 {
			t.Errorf("%d hosts and domains are remembered", hosts)
		}
	})
}
