// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// serve asks a limiter, and answers what it lets pass as a server would.
func serve(g *Limiter, d Defence, r Request) Verdict {
	v := g.Judge(d, r)
	if v.Status == 0 {
		if r.Validators == ValidatorsCurrent {
			r.Status = 304
		} else {
			r.Status = 200
		}
		g.Answered(d, r)
	}
	return v
}

func anyDefence(t *rapid.T) Defence {
	return Defence{
		MaxRate:            Rate{rapid.IntRange(0, 5).Draw(t, "requests"), time.Duration(rapid.IntRange(0, 86_400).Draw(t, "per")) * time.Second},
		Unconditional:      time.Duration(rapid.IntRange(0, 86_400).Draw(t, "unconditional")) * time.Second,
		SkipHours:          rapid.Bool().Draw(t, "skip hours"),
		RequireCompression: rapid.Bool().Draw(t, "compression"),
		RequireUserAgent:   rapid.Bool().Draw(t, "user agent"),
	}
}

// anyRequest is one from a small world, so that readers come again.
func anyRequest(t *rapid.T, at time.Time) Request {
	r := poll(at, rapid.SampledFrom([]string{"A/1", "A/2", "", "okhttp/4", "App/1 (Android)"}).Draw(t, "agent"), "192.0.2.1")
	r.Client = netip.AddrFrom4([4]byte{192, 0, 2, byte(rapid.IntRange(1, 4).Draw(t, "address"))})
	r.Method = rapid.SampledFrom([]string{"GET", "GET", "HEAD"}).Draw(t, "method")
	r.Validators = Validators(rapid.IntRange(0, 3).Draw(t, "validators"))
	r.Compressible = rapid.Bool().Draw(t, "compressible")
	r.Referer = rapid.Bool().Draw(t, "referer")
	r.SkipHours = HoursOf(rapid.SliceOfN(rapid.IntRange(0, 23), 0, 6).Draw(t, "hours"))
	return r
}

// Whatever happened before, between and through others: while a wait runs, asking
// again does not lengthen it, and at its end the reader is served.
func TestWaitIsAPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, d, at := NewLimiter(0), anyDefence(t), start()
		d.RequireCompression, d.RequireUserAgent = false, false // these refuse for ever
		for range rapid.IntRange(0, 60).Draw(t, "requests before") {
			at = at.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "gap")) * time.Second)
			serve(g, d, anyRequest(t, at))
		}
		r := anyRequest(t, at)
		first := serve(g, d, r)
		if first.Status != 429 {
			return
		}
		if !first.Until.After(at) {
			t.Fatalf("a wait until %v at %v", first.Until, at)
		}
		until := first.Until
		for range rapid.IntRange(0, 10).Draw(t, "retries") {
			at = at.Add(time.Duration(rapid.Int64Range(0, int64(until.Sub(at))-1).Draw(t, "patience")))
			other := anyRequest(t, at)
			if other.Client != r.Client || other.UserAgent != r.UserAgent {
				serve(g, d, other)
			}
			r.Time = at
			v := serve(g, d, r)
			if v.Status == 0 {
				return // sooner than told: no harm
			}
			if v.Until.After(until) || !v.Early {
				t.Fatalf("told to wait until %v, at %v until %v; early %v", until, at, v.Until, v.Early)
			}
			until = v.Until
		}
		r.Time = until
		if v := serve(g, d, r); v.Status != 0 {
			t.Fatalf("came at %v as told: %+v", until, v)
		}
	})
}

// A wait counts from the last full answer, not from requests that were refused.
func TestWaitDoesNotRoll(t *testing.T) {
	g, d := NewLimiter(0), Defence{Unconditional: 4 * time.Hour, MaxRate: Rate{2, time.Hour}}
	served := 0
	for minute := range 24 * 60 {
		if serve(g, d, poll(start().Add(time.Duration(minute)*time.Minute), "Hammer/1", "192.0.2.1")).Status == 0 {
			served++
		}
	}
	if served != 6 {
		t.Errorf("who asks every minute for a day was served %d times, want 6", served)
	}
}

func TestFirstRequestIsNeverToldToWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, d, at := NewLimiter(0), anyDefence(t), start()
		for range rapid.IntRange(0, 40).Draw(t, "requests of others") {
			at = at.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "gap")) * time.Second)
			serve(g, d, anyRequest(t, at))
		}
		r := anyRequest(t, at)
		switch rapid.IntRange(0, 3).Draw(t, "new by") {
		case 0:
			r.UserAgent = "B/1"
		case 1:
			r.Token = "family"
		case 2:
			r.Feed += "?2"
		case 3:
			r.Client = netip.MustParseAddr("198.51.100.1")
		}
		if v := g.Judge(d, r); v.Status == 429 {
			t.Fatalf("the first request: %+v", v)
		}
	})
}

func TestBrowserIsNeverRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, d, at, named := NewLimiter(0), anyDefence(t), start(), 0
		for range rapid.IntRange(1, 40).Draw(t, "requests") {
			at = at.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "gap")) * time.Second)
			r := anyRequest(t, at)
			if rapid.Bool().Draw(t, "by headers") {
				r.Browser = true
			} else {
				r.UserAgent = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36"
				if named++; named > asPerson {
					continue // by its name alone it is believed so often
				}
			}
			if v := serve(g, d, r); v != (Verdict{}) {
				t.Fatalf("%+v", v)
			}
		}
	})
}

func TestCurrentValidatorsAreNeverRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, d, at := NewLimiter(0), anyDefence(t), start()
		for range rapid.IntRange(1, 40).Draw(t, "requests") {
			at = at.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "gap")) * time.Second)
			r := anyRequest(t, at)
			if v := serve(g, d, r); v.Status != 0 && r.Validators == ValidatorsCurrent {
				t.Fatalf("%+v", v)
			}
		}
	})
}

// Who shares a wait, and who does not: 12 readers ask unconditionally for two
// days, every 6 hours each, where 4 hours are asked for.
func TestWhoIsOne(t *testing.T) {
	address := func(i int) string { return fmt.Sprintf("192.0.2.%d", 1+i) }
	for _, tc := range []struct {
		name    string
		agent   string
		client  func(i int) string
		polite  bool // conditional from the second request on
		refused bool
	}{
		{"an operator's machines in one network", "Fetcher/1", address, false, true},
		{"machines without a name", "", address, false, true},
		{"machines that learn", "Fetcher/1", address, true, false},
		{"phones of one provider", "Podcasts/1 CFNetwork/1 Darwin/20", address, false, false},
		{"programs with one library", "python-requests/2.31.0", address, false, false},
		{"versions behind one NAT", "Fetcher/%d", func(int) string { return "192.0.2.1" }, false, false},
		{"machines in many networks", "Fetcher/1", func(i int) string { return fmt.Sprintf("10.0.%d.1", i) }, false, false},
		{"machines in many IPv6 networks", "Fetcher/1", func(i int) string { return fmt.Sprintf("2001:db8:0:%d::1", i) }, false, false},
		{"an operator's machines in one IPv6 network", "Fetcher/1", func(i int) string { return fmt.Sprintf("2001:db8::%d", 1+i) }, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, d := NewLimiter(0), Defence{Unconditional: 4 * time.Hour}
			g.seed = 1 // by chance addresses may fall on one bit
			refused, lastDay := 0, 0
			for i := range 12 * 8 {
				agent := tc.agent
				if agent == "Fetcher/%d" {
					agent = fmt.Sprintf(agent, i%12)
				}
				r := poll(start().Add(time.Duration(i)*30*time.Minute), agent, tc.client(i%12))
				if tc.polite && i >= 12 {
					r = conditional(r)
				}
				if i >= 12*4 {
					lastDay++
				}
				if serve(g, d, r).Status == 429 {
					refused++
				} else if tc.refused && i >= 12*4 {
					lastDay--
				}
			}
			if (refused > 0) != tc.refused {
				t.Errorf("%d requests were refused", refused)
			}
			if tc.refused && lastDay != 12*4-6 {
				t.Errorf("on the last day %d of 48 requests were refused, want all but one in 4 hours", lastDay)
			}
		})
	}
}

// Answers that cost nothing do not count against the rate.
func TestNotModifiedIsFree(t *testing.T) {
	g, d, at := NewLimiter(0), Defence{MaxRate: Rate{1, time.Hour}}, start()
	for range 10 {
		serve(g, d, conditional(poll(at, "Reader/1", "192.0.2.1")))
	}
	if v := serve(g, d, poll(at, "Reader/1", "192.0.2.1")); v.Status != 0 {
		t.Errorf("the first full answer after 304s: %+v", v)
	}
	if v := serve(g, d, poll(at, "Reader/1", "192.0.2.1")); v.Status != 429 || v.Until.Sub(at) != time.Hour {
		t.Errorf("the second one: %+v", v)
	}
}

// A machine that waits as it was told is served, though another one of its
// operator's came first.
func TestFleetKeepsItsPromises(t *testing.T) {
	g, d, at := NewLimiter(0), Defence{Unconditional: 4 * time.Hour}, start()
	ask := func(machine byte) Verdict {
		r := poll(at, "Fetcher/1", "192.0.2.1")
		r.Client = netip.AddrFrom4([4]byte{192, 0, 2, machine})
		return serve(g, d, r)
	}
	for i := range 100 {
		at = at.Add(time.Hour)
		ask(byte(i%10 + 1))
	}
	for ask(1).Status == 0 {
		at = at.Add(time.Hour)
	}
	told := ask(1)
	if !told.Early {
		t.Error("a second request of the same machine is not early")
	}
	at = told.Until
	if v := ask(2); v.Status != 0 {
		t.Fatalf("another machine at the end of the wait: %+v", v)
	}
	at = at.Add(asTold / 2)
	if v := ask(3); v.Status != 429 || v.Early {
		t.Errorf("a third one, which was told nothing: %+v", v)
	}
	if v := ask(1); v.Status != 0 {
		t.Errorf("the one that was told: %+v", v)
	}
}

// An operator that begins to send validators is soon no longer judged by its past.
func TestFleetIsBelieved(t *testing.T) {
	g, d, at := NewLimiter(0), Defence{Unconditional: 4 * time.Hour}, start()
	ask := func(i int, r Request) Verdict {
		at = at.Add(time.Minute)
		r.Time, r.Client = at, netip.AddrFrom4([4]byte{192, 0, 2, byte(i%20 + 1)})
		return serve(g, d, r)
	}
	r := poll(at, "Fetcher/1", "192.0.2.1")
	for i := range 1000 {
		ask(i, r)
	}
	if ask(100, r).Status != 429 {
		t.Fatal("the operator is not judged as one")
	}
	for i := range 100 {
		if v := ask(i, conditional(r)); v.Status != 0 {
			t.Fatalf("a conditional request: %+v", v)
		}
	}
	at = at.Add(4 * time.Hour)
	for i := range 20 {
		if v := ask(i, r); v.Status != 0 {
			t.Fatalf("machine %d, which has waited long enough: %+v", i, v)
		}
	}
}

// A program that goes by a browser's name is found out.
func TestBrowserByNameAloneIsBelievedForAWhile(t *testing.T) {
	g, d, at := NewLimiter(0), Defence{Unconditional: 4 * time.Hour}, start()
	served := 0
	for range 100 {
		at = at.Add(time.Minute)
		r := Request{Time: at, Feed: "f", Client: netip.MustParseAddr("192.0.2.1"), Method: "GET", Compressible: true,
			UserAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:124.0) Gecko/20100101 Firefox/124.0"}
		if v := g.Judge(d, r); v.Status == 0 {
			served++
			r.Status = 200
			g.Answered(d, r)
		}
	}
	if served != asPerson {
		t.Errorf("%d of 100 requests served, want %d", served, asPerson)
	}
}

// A request that a 304 answers does not wait, and still counts for its group.
func TestLimiterLetsHitsPassAtOnce(t *testing.T) {
	l, d := NewLimiter(0), Defence{Unconditional: time.Hour, MaxRate: Rate{1, time.Hour}}
	r := poll(start(), "A/1", "192.0.2.1")
	r.Validators = ValidatorsCurrent
	l.clients.mu.Lock()
	l.groups.mu.Lock()
	for range 10 {
		if v := serve(l, d, r); v.Status != 0 {
			t.Errorf("refused with %d", v.Status)
		}
	}
	l.groups.mu.Unlock()
	serve(l, d, r)
	l.clients.mu.Unlock()
	l.groups.update(l.client(&r).group, func(g *group) {
		if g.asked != 1 || g.conditional != 1 {
			t.Errorf("its group has asked %d times, %d of them conditionally", g.asked, g.conditional)
		}
	})
}
