// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
						if a := c.Poll(t.Context(), ask(fmt.Sprintf("http://example.com/%d", i))); a.Failure != "" {
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
			c.Poll(t.Context(), policy.Ask{URL: "http://example.com/"})
		}
		got := n.requests()
		if gap := got[1].at.Sub(got[0].at); gap != defaultSpacing {
			t.Errorf("gap of %v", gap)
		}
	})
}

// Hosts do not wait for one another; those of one registrable domain share a bound.
func TestDomainConcurrency(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hosts []string
		rules []HostRule
		most  int
	}{
		{"one domain", []string{"a.example.com", "b.example.com", "c.example.com", "example.com"}, nil, 2},
		{"one domain below a public suffix", []string{"a.example.co.uk", "b.example.co.uk", "c.example.co.uk"}, nil, 2},
		{"domains", []string{"a.example", "b.example", "c.example", "d.example"}, nil, 4},
		{"users of a hoster", []string{"a.github.io", "b.github.io", "c.github.io"}, nil, 3},
		{"addresses", []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, nil, 3},
		{"rule", []string{"a.example.com", "b.example.com", "c.example.com", "d.example.com"}, []HostRule{{Pattern: "*.example.com", Concurrency: 3}}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n memnet
				var o occupancy
				var polls sync.WaitGroup
				c := n.client(t, Settings{Hosts: tt.rules})
				for _, host := range tt.hosts {
					n.serve(host+":80", func(_ request, w io.Writer) {
						o.enter("all", host)
						time.Sleep(10 * time.Second)
						o.leave("all", host)
						io.WriteString(w, ok(feedBody))
					})
					for range 3 {
						polls.Go(func() { c.Poll(t.Context(), ask("http://"+host+"/")) })
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
		})
	}
}

func TestPortsOfAnAddressArePacedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		for _, address := range []string{"192.0.2.1:80", "192.0.2.1:81", "localhost:80", "localhost:81", "bridge:80", "bridge:81"} {
			n.say(address, ok(feedBody))
		}
		c := n.client(t, Settings{})
		started := time.Now()
		for _, url := range []string{"http://192.0.2.1/", "http://192.0.2.1:81/", "http://localhost/", "http://localhost:81/", "http://bridge/", "http://bridge:81/"} {
			c.Poll(t.Context(), ask(url))
		}
		if took := time.Since(started); took != 0 {
			t.Errorf("took %v", took)
		}
		c.Poll(t.Context(), ask("http://bridge:81/other"))
		if took := time.Since(started); took != defaultSpacing {
			t.Errorf("the same port again: after %v", took)
		}
	})
}

func TestStartBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.serve("example.com:80", func(_ request, w io.Writer) {
			time.Sleep(10 * time.Second)
			io.WriteString(w, ok(feedBody))
		})
		c := n.client(t, Settings{})
		go c.Poll(t.Context(), ask("http://example.com/slow"))
		time.Sleep(time.Second)
		at := func(d time.Duration) policy.Ask {
			a := ask("http://example.com/")
			a.StartBy = time.Now().Add(d)
			return a
		}
		// The gap alone rules it out: the answer comes at once.
		started := time.Now()
		a := c.Poll(t.Context(), at(500*time.Millisecond))
		if a.Failure != policy.FailureNotStarted || time.Since(started) != 0 || a.Holder != HeldBySlot || !a.NotBefore.Equal(started.Add(time.Second)) || !a.Asked.IsZero() {
			t.Errorf("too early: %+v after %v", a, time.Since(started))
		}
		// The slot does not come in time.
		a = c.Poll(t.Context(), at(5*time.Second))
		if a.Failure != policy.FailureNotStarted || time.Since(started) != 5*time.Second || a.Holder != HeldBySlot {
			t.Errorf("too late: %+v after %v", a, time.Since(started))
		}
		if got := len(n.requests()); got != 1 {
			t.Errorf("%d requests, want 1", got)
		}
		// In time.
		if a = c.Poll(t.Context(), at(5*time.Second)); a.Failure != "" {
			t.Errorf("in time: %v", a.Err)
		}
		// Past already.
		time.Sleep(time.Minute)
		if a = c.Poll(t.Context(), at(-time.Second)); a.Failure != policy.FailureNotStarted || len(n.requests()) != 2 {
			t.Errorf("in the past: %q after %d requests", a.Failure, len(n.requests()))
		}
	})
}

// Those who give up do not keep those behind them waiting.
func TestWaitersThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.serve("example.com:80", func(_ request, w io.Writer) {
			time.Sleep(10 * time.Second)
			io.WriteString(w, ok(feedBody))
		})
		c := n.client(t, Settings{})
		ctx, cancel := context.WithCancel(t.Context())
		var polls sync.WaitGroup
		var gaveUp [3]policy.Answer
		polls.Go(func() { c.Poll(t.Context(), ask("http://example.com/1")) })
		time.Sleep(time.Second)
		for i := range gaveUp {
			polls.Go(func() { gaveUp[i] = c.Poll(ctx, ask("http://example.com/2")) })
		}
		time.Sleep(time.Second)
		polls.Go(func() { c.Poll(t.Context(), ask("http://example.com/3")) })
		time.Sleep(time.Second)
		cancel()
		polls.Wait()
		for _, a := range gaveUp {
			if a.Failure != policy.FailureNotStarted {
				t.Errorf("failure %q", a.Failure)
			}
		}
		var paths []string
		for _, r := range n.requests() {
			paths = append(paths, r.path())
		}
		if !slices.Equal(paths, []string{"/1", "/3"}) {
			t.Errorf("requests for %v", paths)
		}
	})
}

// A poll under way goes before those that have not begun.
func TestRedirectsGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.serve("example.com:80", func(r request, w io.Writer) {
			if r.path() == "/moved" {
				time.Sleep(time.Second) // the others are waiting by then
				io.WriteString(w, answerText(301, "", "Location: /here"))
				return
			}
			io.WriteString(w, ok(feedBody))
		})
		c := n.client(t, Settings{})
		var polls sync.WaitGroup
		for _, path := range []string{"/moved", "/1", "/2"} {
			polls.Go(func() { c.Poll(t.Context(), ask("http://example.com"+path)) })
			time.Sleep(time.Millisecond)
		}
		polls.Wait()
		var paths []string
		for _, r := range n.requests() {
			paths = append(paths, r.path())
		}
		if !slices.Equal(paths, []string{"/moved", "/here", "/1", "/2"}) {
			t.Errorf("requests for %v", paths)
		}
	})
}

func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.serve("example.com:80", func(_ request, w io.Writer) {
			time.Sleep(time.Minute)
			io.WriteString(w, ok(feedBody))
		})
		c := n.client(t, Settings{})
		check := func(when, url string, want time.Duration, wantWhy string) {
			t.Helper()
			at, why := c.Ready(url)
			got := time.Until(at)
			if at.IsZero() {
				got = -1
			}
			if got != want || why != wantWhy {
				t.Errorf("%s: ready in %v (%q), want %v (%q)", when, got, why, want, wantWhy)
			}
		}
		check("at first", "http://example.com/", -1, "")
		check("no URL", "x", -1, "")
		go c.Poll(t.Context(), policy.Ask{URL: "http://example.com/"})
		time.Sleep(500 * time.Millisecond)
		check("within the gap", "http://example.com/", 1500*time.Millisecond, HeldBySlot)
		check("another host", "http://example.net/", -1, "")
		time.Sleep(10 * time.Second)
		check("in flight", "http://example.com/other", 0, HeldBySlot)
		for range 3 {
			go c.Poll(t.Context(), policy.Ask{URL: "http://example.com/"})
		}
		synctest.Wait()
		check("behind three", "http://example.com/", 3*defaultSpacing, HeldBySlot)
		time.Sleep(time.Hour)
		check("at rest", "http://example.com/", -1, "")
	})
}

// Rules that change apply to those who are waiting already.
func TestApplyWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.say("example.com:80", ok(feedBody))
		c := n.client(t, Settings{Hosts: []HostRule{{Pattern: "example.com", Spacing: time.Hour}}})
		c.Poll(t.Context(), ask("http://example.com/"))
		done := make(chan time.Time, 1)
		go func() { c.Poll(t.Context(), ask("http://example.com/")); done <- time.Now() }()
		time.Sleep(time.Minute)
		changed := time.Now()
		c.Apply(Settings{})
		if at := <-done; !at.Equal(changed) {
			t.Errorf("started %v after the change", at.Sub(changed))
		}
	})
}

func TestIdleHostsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		c := n.client(t, Settings{})
		for i := range 5000 {
			a := ask(fmt.Sprintf("http://h%d.example/", i))
			if i%2 == 0 {
				a = ask(fmt.Sprintf("http://h%d.example.com/", i))
			}
			if i == 100 {
				c.Hold(a.URL, time.Now().Add(maxPause), HeldByHost)
			}
			a.StartBy = time.Now()
			c.Poll(t.Context(), a)
			c.Ready(fmt.Sprintf("http://ready%d.example/", i))
			time.Sleep(time.Second)
		}
		hosts := 0
		c.pacer.mu.Lock()
		for _, d := range c.pacer.domains {
			hosts += len(d.hosts)
		}
		c.pacer.mu.Unlock()
		if hosts > 300 {
			t.Errorf("%d hosts are remembered", hosts)
		}
		if _, why := c.Ready("http://h100.example.com/"); why != HeldByHost {
			t.Errorf("the cool-down was forgotten: %q", why)
		}
	})
}

func TestPaceBySpecificity(t *testing.T) {
	rules := tableOf([]HostRule{
		{Pattern: "*", Spacing: 5 * time.Second},
		{Pattern: "*.example.com", Spacing: time.Minute, Concurrency: 2},
		{Pattern: "a.b.example.com", Concurrency: 4},
		{Pattern: "*.b.example.com", Spacing: -1},
	})
	for _, tt := range []struct {
		host        string
		spacing     time.Duration
		concurrency int
	}{
		{"x.example", 5 * time.Second, 1},
		{"x.example.com", time.Minute, 2},
		{"x.b.example.com", 0, 2},
		{"a.b.example.com", 0, 4},
	} {
		if spacing, concurrency := pace(&rules, tt.host); spacing != tt.spacing || concurrency != tt.concurrency {
			t.Errorf("%s: %v, %d; want %v, %d", tt.host, spacing, concurrency, tt.spacing, tt.concurrency)
		}
	}
}
