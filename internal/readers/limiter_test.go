// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/feedpollard/pollard/cache/version"
)

// serve asks a limiter, and answers what it lets pass as a server would. A request that a
// 304 answers must always pass.
func serve(t interface{ Fatalf(string, ...any) }, g *Limiter, d Limits, r Request) Verdict {
	v := g.Check(d, r)
	if v.Status != 0 && r.Validators == version.Current {
		t.Fatalf("a request with current validators is refused: %+v", v)
	}
	if v.Status == 0 {
		if r.Validators == version.Current {
			r.Status = 304
		} else {
			r.Status = 200
		}
		g.Answered(d, r)
	}
	return v
}

func anyDefence(t *rapid.T) Limits {
	return Limits{
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
	r.Validators = version.Standing(rapid.IntRange(0, 3).Draw(t, "validators"))
	r.Compression = rapid.Bool().Draw(t, "compressible")
	r.SkipHours = rapid.SliceOfN(rapid.IntRange(0, 23), 0, 6).Draw(t, "hours")
	return r
}

// Each refusal names a line of defend, and each line is named.
func TestRefusalsNameTheirRule(t *testing.T) {
	all := map[string]Limits{
		RuleMaxRate:       {MaxRate: Rate{1, time.Hour}},
		RuleUnconditional: {Unconditional: time.Hour},
		RuleFleet:         {Fleet: "Crawler"},
		RuleSkipHours:     {SkipHours: true},
		RuleCompression:   {RequireCompression: true},
		RuleUserAgent:     {RequireUserAgent: true},
	}
	for _, rule := range Rules {
		g, v := NewLimiter(), Verdict{}
		for range wholeFeedsOfFleet + 1 {
			r := poll(start(), "Crawler/1.0", "192.0.2.1")
			r.Compression, r.SkipHours = rule != RuleCompression, []int{start().Hour()}
			if rule == RuleUserAgent {
				r.UserAgent = ""
			}
			v = serve(t, g, all[rule], r)
		}
		if v.Rule != rule || v.Status == 0 {
			t.Errorf("%s: %+v", rule, v)
		}
	}
	if len(all) != len(Rules) {
		t.Errorf("%d rules, want %d", len(all), len(Rules))
	}
}

// Whatever happened before, between and through others: while a wait runs, asking
// again does not lengthen it, and at its end the reader is served.
func TestWaitIsAPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, d, at := NewLimiter(), anyDefence(t), start()
		d.RequireCompression, d.RequireUserAgent = false, false // these refuse for ever
		for range rapid.IntRange(0, 60).Draw(t, "requests before") {
			at = at.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "gap")) * time.Second)
			serve(t, g, d, anyRequest(t, at))
		}
		r := anyRequest(t, at)
		first := serve(t, g, d, r)
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
				serve(t, g, d, other)
			}
			r.Time = at
			v := serve(t, g, d, r)
			if v.Status == 0 {
				return // sooner than told: no harm
			}
			if v.Until.After(until) || !v.Early {
				t.Fatalf("told to wait until %v, at %v until %v; early %v", until, at, v.Until, v.Early)
			}
			until = v.Until
		}
		r.Time = until
		if v := serve(t, g, d, r); v.Status != 0 {
			t.Fatalf("came at %v as told: %+v", until, v)
		}
	})
}

// How many of the requests for a day, one a minute, get the whole feed.
func TestWholeFeeds(t *testing.T) {
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:124.0) Gecko/20100101 Firefox/124.0"
	unconditional := Limits{Unconditional: 4 * time.Hour}
	for _, tc := range []struct {
		name    string
		defence Limits
		change  func(minute int, r *Request)
		want    int
	}{
		{"no rules", Limits{}, func(int, *Request) {}, 1440},
		{"one reader: two in 4 hours", unconditional, func(int, *Request) {}, 12},
		{"two people with one reader behind one address", unconditional, func(i int, r *Request) { r.IfNoneMatch = "" }, 12},
		{"two readers", unconditional, func(i int, r *Request) { r.UserAgent = fmt.Sprint("Reader/", i%2) }, 24},
		{"two feeds", unconditional, func(i int, r *Request) { r.Feed = fmt.Sprint(i % 2) }, 24},
		{"two addresses", unconditional, func(i int, r *Request) { r.Client = netip.AddrFrom4([4]byte{192, 0, 2, byte(i % 2)}) }, 24},
		{"one /64", unconditional, func(i int, r *Request) { r.Client = netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", i)) }, 12},
		{"two /64", unconditional, func(i int, r *Request) { r.Client = netip.MustParseAddr(fmt.Sprintf("2001:db8:0:%x::%x", i%2, i)) }, 24},
		{"six behind a proxy that is not trusted", unconditional, func(i int, r *Request) { r.Forwarded = fmt.Sprint("198.51.100.", i%6) }, 72},
		{"a constant X-Forwarded-For", unconditional, func(i int, r *Request) { r.Forwarded = "198.51.100.1" }, 12},
		{"validators that it invents", unconditional, func(i int, r *Request) { r.Validators = version.Unknown }, 12},
		{"a tag and a date that it invents", unconditional, func(i int, r *Request) {
			r.Validators, r.IfNoneMatch, r.IfModifiedSince = version.Unknown, "x", "Thu, 01 Jan 1970 00:00:00 GMT"
		}, 12},
		{"a date that it invents", unconditional, func(i int, r *Request) {
			r.Validators, r.IfModifiedSince = version.Unknown, "Mon, 04 Mar 2024 12:00:00 +0000"
		}, 1440},
		{"what is no date", unconditional, func(i int, r *Request) { r.Validators, r.IfModifiedSince = version.Unknown, "now" }, 12},
		{"validators of an earlier version", unconditional, func(i int, r *Request) { r.Validators = version.Earlier }, 1440},
		{"validators that are not compared", unconditional, func(i int, r *Request) { r.IfModifiedSince = "x" }, 1440},
		{"a browser's name is not a person", unconditional, func(i int, r *Request) { r.UserAgent = firefox }, 12},
		{"persons: twelve in 4 hours", unconditional, func(i int, r *Request) { r.Person, r.UserAgent = true, firefox }, 72},
		{"persons of many names", unconditional, func(i int, r *Request) { r.Person, r.UserAgent = true, fmt.Sprint("Reader/", i%3) }, 72},
		{"persons without a rule for whole feeds", Limits{RequireCompression: true}, func(i int, r *Request) { r.Person, r.Compression = true, false }, 72},
		{"no compression", Limits{RequireCompression: true}, func(i int, r *Request) { r.Compression = false }, 0},
		{"no name", Limits{RequireUserAgent: true}, func(i int, r *Request) { r.UserAgent = "" }, 0},
		{"max_rate", Limits{MaxRate: Rate{3, time.Hour}}, func(int, *Request) {}, 3 + 23*3 + 2},
		{"skip hours from the second on", Limits{SkipHours: true}, func(i int, r *Request) { r.SkipHours = Hours{start().Hour()} }, 1 + 23*60},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, served := NewLimiter(), 0
			for minute := range 24 * 60 {
				r := poll(start().Add(time.Duration(minute)*time.Minute), "Hammer/1", "192.0.2.1")
				tc.change(minute, &r)
				if serve(t, l, tc.defence, r).Status == 0 {
					served++
				}
			}
			if served != tc.want {
				t.Errorf("%d were served, want %d", served, tc.want)
			}
		})
	}
}

// A 429 comes before a 406, which counts like the feed.
func TestRefusalsThatRepeat(t *testing.T) {
	l, d := NewLimiter(), Limits{Unconditional: 4 * time.Hour, RequireCompression: true}
	at := start()
	for i, want := range []int{406, 406, 429, 429} {
		r := poll(at.Add(time.Duration(i)*time.Minute), "Reader/1", "192.0.2.1")
		r.Compression = false
		v := serve(t, l, d, r)
		if v.Status != want || v.Early != (i == 3) || want == 429 && !v.Until.Equal(at.Add(4*time.Hour)) {
			t.Errorf("request %d: %+v, want %d", i, v, want)
		}
	}
}

// Answers that cost nothing do not count against the rate.
func TestNotModifiedIsFree(t *testing.T) {
	g, d, at := NewLimiter(), Limits{MaxRate: Rate{1, time.Hour}}, start()
	for range 10 {
		serve(t, g, d, conditional(poll(at, "Reader/1", "192.0.2.1")))
	}
	if v := serve(t, g, d, poll(at, "Reader/1", "192.0.2.1")); v.Status != 0 {
		t.Errorf("the first full answer after 304s: %+v", v)
	}
	if v := serve(t, g, d, poll(at, "Reader/1", "192.0.2.1")); v.Status != 429 || v.Until.Sub(at) != time.Hour {
		t.Errorf("the second one: %+v", v)
	}
}

// A clock that is set back does not make a wait longer than the interval.
func TestClockSetBack(t *testing.T) {
	for _, d := range []Limits{{Unconditional: time.Hour}, {MaxRate: Rate{2, time.Hour}}, {Unconditional: time.Hour, Fleet: "Reader"}} {
		l := NewLimiter()
		for range 2 {
			serve(t, l, d, poll(start().Add(1000*time.Hour), "Reader/1", "192.0.2.1"))
		}
		if v := serve(t, l, d, poll(start(), "Reader/1", "192.0.2.1")); v.Status != 429 || v.Until.Sub(start()) > time.Hour {
			t.Errorf("%+v: %+v", d, v)
		}
	}
}

// An address that forwards many clients is a proxy that should be trusted.
func TestProxies(t *testing.T) {
	l := NewLimiter()
	for i := range 10 {
		for address, clients := range map[string]int{"192.0.2.1": 10, "192.0.2.2": 1, "192.0.2.3": 0} {
			r := poll(start(), "Reader/1", address)
			if clients > 0 {
				r.Forwarded = fmt.Sprint("198.51.100.", i%clients)
			}
			serve(t, l, Limits{Unconditional: time.Hour}, r)
		}
	}
	if got := l.Proxies(func(string) bool { return true }); len(got) != 1 || got[0] != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("got %v", got)
	}
	if got := l.Proxies(func(string) bool { return false }); len(got) != 0 {
		t.Errorf("of other sites: %v", got)
	}
}

// A request that a 304 answers does not wait.
func TestLimiterLetsHitsPassAtOnce(t *testing.T) {
	l, d := NewLimiter(), Limits{Unconditional: time.Hour, MaxRate: Rate{1, time.Hour}}
	l.mu.Lock()
	defer l.mu.Unlock()
	for range 10 {
		if v := serve(t, l, d, conditional(poll(start(), "A/1", "192.0.2.1"))); v.Status != 0 {
			t.Errorf("refused with %d", v.Status)
		}
	}
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	now := start()
	for wait, want := range map[time.Duration]int64{time.Nanosecond: 1, time.Second: 1, 1500 * time.Millisecond: 2, time.Hour: 3600} {
		if got := (Verdict{Until: now.Add(wait)}).RetryAfter(now); got != want {
			t.Errorf("%v: %d s", wait, got)
		}
	}
}

// A refusal says how many whole feeds there are in which time: its Retry-After alone surprises people.
func TestRefusalSaysTheLimit(t *testing.T) {
	for limits, want := range map[Limits]string{
		{Unconditional: 4 * time.Hour}:                     "too many unconditional requests (2 whole feeds in 4 hours): send If-None-Match or If-Modified-Since",
		{Unconditional: 90 * time.Minute, Fleet: "Hammer"}: "too many unconditional requests (4 whole feeds in 90 minutes for all machines of this program, one for each network): send If-None-Match or If-Modified-Since",
	} {
		l := NewLimiter()
		var v Verdict
		for range 3 {
			v = serve(t, l, limits, poll(start(), "Hammer/1", "192.0.2.1"))
		}
		if v.Status != 429 || v.Reason != want {
			t.Errorf("%+v: %d %s", limits, v.Status, v.Reason)
		}
	}
}
