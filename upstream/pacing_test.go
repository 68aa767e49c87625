// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"reflect"
	"slices"
	"strings"
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
			c.Poll(patient(t), policy.Ask{URL: feedurl.MustParse("http://example.com/")})
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
			c.Poll(patient(t), ask(url))
		}
		if took := time.Since(started); took != 0 {
			t.Errorf("took %v", took)
		}
		c.Poll(patient(t), ask("http://bridge:81/other"))
		if took := time.Since(started); took != defaultSpacing {
			t.Errorf("the same port again: after %v", took)
		}
	})
}

// Whoever would wait in vain is told so at once.
func TestAcquireTellsHowLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.serve("example.com:80", func(_ request, w io.Writer) {
			time.Sleep(10 * time.Second)
			io.WriteString(w, ok(feedBody))
		})
		c := n.client(t, Settings{Hosts: []HostRule{{Pattern: "*", Spacing: 4 * time.Second}}})
		within := func(d time.Duration) (policy.Slot, error) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			return c.Acquire(ctx, feedurl.MustParse("http://example.com/"), false)
		}
		go c.Poll(patient(t), ask("http://example.com/slow"))
		time.Sleep(time.Second)
		// The gap alone rules it out.
		started := time.Now()
		_, err := within(2 * time.Second)
		if held, ok := errors.AsType[*policy.Held](err); !ok || held.Why != policy.HintHostSlot || !held.Until.Equal(started.Add(3*time.Second)) || time.Since(started) != 0 {
			t.Errorf("too early: %v after %v", err, time.Since(started))
		}
		// The slot does not come in time.
		if _, err = within(5 * time.Second); !errors.Is(err, context.DeadlineExceeded) || time.Since(started) != 5*time.Second {
			t.Errorf("too late: %v after %v", err, time.Since(started))
		}
		s, err := within(5 * time.Second)
		if err != nil || time.Since(started) != 9*time.Second {
			t.Fatalf("in time: %v after %v", err, time.Since(started))
		}
		// Those who wait already come first, a gap apart: without a deadline, 15 s are enough for three.
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() { c.Poll(t.Context(), ask("http://example.com/")) })
			synctest.Wait()
		}
		_, err = c.Acquire(t.Context(), feedurl.MustParse("http://example.com/"), false)
		if held, ok := errors.AsType[*policy.Held](err); !ok || !held.Until.Equal(time.Now().Add(16*time.Second)) {
			t.Errorf("behind three: %v", err)
		}
		s.Release()
		waiting.Wait()
	})
}

// A slot that was not used is as good as never granted, and is good for one poll.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.say("example.com:80", ok(feedBody))
		c := n.client(t, Settings{})
		started := time.Now()
		for range 10 {
			s, err := c.Acquire(t.Context(), feedurl.MustParse("http://example.com/"), false)
			if err != nil {
				t.Fatal(err)
			}
			s.Release()
			s.Release()
		}
		s, err := c.Acquire(t.Context(), feedurl.MustParse("http://example.com/"), false)
		if err != nil || time.Since(started) != 0 {
			t.Fatalf("after %v: %v", time.Since(started), err)
		}
		time.Sleep(5 * time.Second) // the claim takes its time
		if a := s.Poll(t.Context(), ask("http://example.com/")); a.Failure != "" {
			t.Error(a.Err)
		}
		s.Release()
		if a := s.Poll(t.Context(), ask("http://example.com/")); a.Failure != policy.FailureInternal {
			t.Errorf("used twice: %+v", a)
		}
		// The gap counts from the request, not from the slot.
		if s, err = c.Acquire(t.Context(), feedurl.MustParse("http://example.com/"), false); err != nil || time.Since(started) != 7*time.Second {
			t.Errorf("the next one: after %v, %v", time.Since(started), err)
		}
		if a := s.Poll(t.Context(), ask("http://example.net/")); a.Failure != policy.FailureInternal {
			t.Errorf("used for another URL: %+v", a)
		}
		if got := c.Busy(); len(got) != 0 || len(n.requests()) != 1 {
			t.Errorf("busy %q after %d requests", got, len(n.requests()))
		}
	})
}

// Polls that a reader waits for go before those that nobody waits for, on all hosts
// of a domain, and in order among themselves.
func TestUrgentGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		for _, host := range []string{"a.example.com", "b.example.com", "c.example.com"} {
			n.serve(host+":80", func(_ request, w io.Writer) {
				time.Sleep(10 * time.Second)
				io.WriteString(w, ok(feedBody))
			})
		}
		c := n.client(t, Settings{})
		var polls sync.WaitGroup
		for _, wait := range []struct {
			url    string
			urgent bool
		}{
			{"http://a.example.com/1", false}, {"http://b.example.com/2", false},
			{"http://a.example.com/7", false}, {"http://c.example.com/8", false},
			{"http://b.example.com/3", true}, {"http://c.example.com/4", true}, {"http://b.example.com/5", true}, {"http://a.example.com/6", true},
		} {
			polls.Go(func() {
				s, err := c.Acquire(patient(t), feedurl.MustParse(wait.url), wait.urgent)
				if err != nil {
					t.Error(err)
					return
				}
				s.Poll(t.Context(), ask(wait.url))
			})
			synctest.Wait()
		}
		polls.Wait()
		// Two are in flight at a time, which end and begin together.
		var pairs [][]string
		for pair := range slices.Chunk(n.requests(), 2) {
			paths := []string{pair[0].path(), pair[1].path()}
			slices.Sort(paths)
			pairs = append(pairs, paths)
		}
		if want := [][]string{{"/1", "/2"}, {"/3", "/4"}, {"/5", "/6"}, {"/7", "/8"}}; !reflect.DeepEqual(pairs, want) {
			t.Errorf("requests for %v, want %v", pairs, want)
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
		polls.Go(func() { c.Poll(patient(t), ask("http://example.com/1")) })
		time.Sleep(time.Second)
		for i := range gaveUp {
			polls.Go(func() { gaveUp[i] = c.Poll(ctx, ask("http://example.com/2")) })
		}
		time.Sleep(time.Second)
		polls.Go(func() { c.Poll(patient(t), ask("http://example.com/3")) })
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
			polls.Go(func() { c.Poll(patient(t), ask("http://example.com"+path)) })
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

func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.serve("example.com:80", func(_ request, w io.Writer) {
			time.Sleep(time.Minute)
			io.WriteString(w, ok(feedBody))
		})
		c := n.client(t, Settings{})
		check := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			if got := c.Busy(); !slices.Equal(got, want) {
				t.Errorf("%s: %q are busy, want %q", when, got, want)
			}
		}
		check("at first")
		ctx, cancel := context.WithCancel(patient(t))
		for range 2 {
			go c.Poll(ctx, policy.Ask{URL: feedurl.MustParse("http://example.com/")})
		}
		check("one in flight, one waiting", "example.com")
		time.Sleep(90 * time.Second)
		check("the other in flight", "example.com")
		cancel()
		check("broken off")
		time.Sleep(time.Hour)
	})
}

func TestHost(t *testing.T) {
	c := New()
	defer c.Close()
	c.Apply(Settings{Hosts: []HostRule{{Pattern: "*.example.com", Spacing: time.Minute}, {Pattern: "nas", Spacing: -1}}})
	for url, want := range map[string]policy.Host{
		"https://www.example.com:8443/a": {Name: "www.example.com", Domain: "example.com", Spacing: time.Minute},
		"https://example.com/a":          {Name: "example.com", Domain: "example.com", Spacing: defaultSpacing},
		"https://192.0.2.1/a":            {Name: "192.0.2.1:443", Spacing: defaultSpacing},
		"http://nas:81/a":                {Name: "nas:81"},
	} {
		if got := c.Host(feedurl.MustParse(url)); got != want {
			t.Errorf("%s: %+v, want %+v", url, got, want)
		}
	}
	if got := New(WithoutPacing()).Host(feedurl.MustParse("https://example.com/")); got != (policy.Host{}) {
		t.Errorf("without pacing: %+v", got)
	}
}

// Rules that change apply to those who are waiting already.
func TestApplyWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.say("example.com:80", ok(feedBody))
		c := n.client(t, Settings{Hosts: []HostRule{{Pattern: "example.com", Spacing: time.Hour}}})
		c.Poll(patient(t), ask("http://example.com/"))
		done := make(chan time.Time, 1)
		go func() { c.Poll(patient(t), ask("http://example.com/")); done <- time.Now() }()
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
			url := fmt.Sprintf("http://h%d.example/", i)
			if i%2 == 0 {
				url = fmt.Sprintf("http://h%d.example.com/", i)
			}
			if i == 100 {
				c.Hold([]policy.Pause{{Scope: "host h100.example.com", For: maxPause, Why: policy.HintHostCooldown}})
			}
			c.Poll(t.Context(), ask(url))
			c.Host(feedurl.MustParse(fmt.Sprintf("http://host%d.example/", i)))
			time.Sleep(time.Second)
		}
		c.pacer.mu.Lock()
		hosts, domains := len(c.pacer.hosts), len(c.pacer.domains)
		c.pacer.mu.Unlock()
		if hosts > 300 || domains > 300 {
			t.Errorf("%d hosts and %d domains are remembered", hosts, domains)
		}
		if _, why := held(c, "http://h100.example.com/"); why != policy.HintHostCooldown {
			t.Errorf("the cool-down was forgotten: %q", why)
		}
	})
}

// A domain may have very many hosts that wait: granting a slot looks at few of them.
func TestManyHostsOfADomain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts = 2000
		var n memnet
		c := n.client(t, Settings{})
		var polls sync.WaitGroup
		for i := range hosts {
			host := fmt.Sprintf("h%d.example.com", i)
			n.serve(host+":80", func(_ request, w io.Writer) {
				time.Sleep(time.Second)
				io.WriteString(w, ok(feedBody))
			})
			polls.Go(func() {
				if a := c.Poll(patient(t), ask("http://"+host+"/")); a.Failure != "" {
					t.Error(a.Err)
				}
			})
		}
		started := time.Now()
		polls.Wait()
		if took := time.Since(started); took != hosts/domainConcurrency*time.Second {
			t.Errorf("took %v", took)
		}
		c.pacer.mu.Lock()
		defer c.pacer.mu.Unlock()
		for _, d := range c.pacer.domains {
			if d.ready.Len()+d.later.Len()+d.inFlight != 0 {
				t.Errorf("%d ready, %d later, %d in flight at the end", d.ready.Len(), d.later.Len(), d.inFlight)
			}
		}
	})
}

// Whatever polls, gives up, gives back, pauses and changes at once: no host is asked
// too soon or too often at a time, and in the end nothing is left behind.
func TestPacingUnderStress(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			var n memnet
			var o occupancy
			var dice sync.Mutex
			random := rand.New(rand.NewPCG(seed, 0))
			roll := func(below int) int {
				dice.Lock()
				defer dice.Unlock()
				return random.IntN(below)
			}
			c := n.client(t, Settings{Hosts: []HostRule{{Pattern: "*.example.com", Concurrency: 2, Spacing: time.Second}}})
			hosts := []string{"a.example.com", "b.example.com", "c.example.com", "d.example", "192.0.2.1"}
			for _, host := range hosts {
				n.serve(host+":80", func(r request, w io.Writer) {
					o.enter(host, strings.TrimPrefix(host, host[:2]))
					time.Sleep(time.Duration(roll(5000)) * time.Millisecond)
					o.leave(host, strings.TrimPrefix(host, host[:2]))
					io.WriteString(w, []string{
						ok(feedBody), answerText(304, ""), answerText(429, "", "Retry-After: 3"), answerText(503, "", "Retry-After: 20"),
						answerText(302, "", "Location: http://"+hosts[roll(len(hosts))]+"/"), "",
					}[roll(6)])
				})
			}
			var polls sync.WaitGroup
			for range 150 {
				polls.Go(func() {
					time.Sleep(time.Duration(roll(60_000)) * time.Millisecond)
					url := "http://" + hosts[roll(len(hosts))] + "/"
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(roll(60))*time.Second)
					defer cancel()
					s, err := c.Acquire(ctx, feedurl.MustParse(url), roll(2) == 0)
					if err != nil {
						return
					}
					time.Sleep(time.Duration(roll(3000)) * time.Millisecond) // the claim
					switch roll(10) {
					case 0:
						s.Release()
					case 1:
						c.Hold([]policy.Pause{{Scope: "domain example.com", For: time.Duration(roll(20)) * time.Second}})
						s.Release()
					default:
						s.Poll(t.Context(), ask(url))
					}
				})
			}
			polls.Wait()
			last := make(map[string]time.Time)
			for _, r := range n.requests() {
				gap := 2 * time.Second
				if strings.HasSuffix(r.address, ".com:80") {
					gap = time.Second
				}
				if before, asked := last[r.address]; asked && r.at.Sub(before) < gap {
					t.Errorf("seed %d: %s was asked again after %v", seed, r.address, r.at.Sub(before))
				}
				last[r.address] = r.at
			}
			for key, most := range map[string]int{"a.example.com": 2, "b.example.com": 2, "c.example.com": 2, "example.com": 2, "d.example": 1, "192.0.2.1": 1} {
				if o.most[key] > most {
					t.Errorf("seed %d: %d requests to %s in flight", seed, o.most[key], key)
				}
			}
			if busy := c.Busy(); len(busy) != 0 || len(last) < 3 {
				t.Errorf("seed %d: busy %q, %d hosts asked", seed, busy, len(last))
			}
			for _, d := range c.pacer.domains {
				if d.ready.Len()+d.later.Len()+d.full.Len()+d.inFlight != 0 {
					t.Errorf("seed %d: %+v", seed, d)
				}
			}
			time.Sleep(time.Hour)
		})
	}
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
