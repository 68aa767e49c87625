// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"io"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// held is how long a URL is held, and by what.
func held(c *Client, url string) (time.Duration, string) {
	u, err := feedurl.Parse(url)
	if err != nil {
		panic(err)
	}
	return c.pacer.pausedURL(u)
}

// calm has no gaps, so that only cool-downs show.
var calm = Settings{Hosts: unpaced}

func TestCooldown(t *testing.T) {
	synctestStart := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of every bubble
	date := func(d time.Duration, format string) string {
		return synctestStart.Add(d).Format(format)
	}
	const imf, rfc850, asctime = "Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC
	const week = 7 * 24 * time.Hour
	for _, tt := range []struct {
		name   string
		status int
		fields []string
		want   time.Duration
	}{
		{"429 with 1", 429, []string{"Retry-After: 1"}, time.Second},
		{"429 with 60", 429, []string{"Retry-After: 60"}, time.Minute},
		{"429 with 3600", 429, []string{"Retry-After: 3600"}, time.Hour},
		{"429 with 86400", 429, []string{"Retry-After: 86400"}, 24 * time.Hour},
		{"429 with far too much", 429, []string{"Retry-After: 99999999999999999999"}, week},
		{"429 with two lines", 429, []string{"Retry-After: 60", "Retry-After: 120"}, 2 * time.Minute},
		{"429 with a date", 429, []string{"Retry-After: " + date(time.Hour, imf)}, time.Hour},
		{"429 with an RFC 850 date", 429, []string{"Retry-After: " + date(time.Hour, rfc850)}, time.Hour},
		{"429 with an asctime date", 429, []string{"Retry-After: " + date(time.Hour, asctime)}, time.Hour},
		{"429 by a clock 3 h ahead", 429, []string{"Date: " + date(3*time.Hour, imf), "Retry-After: " + date(4*time.Hour, imf)}, time.Hour},
		{"bare 429", 429, nil, time.Hour},
		{"429 with 0", 429, []string{"Retry-After: 0"}, time.Hour},
		{"429 with -5", 429, []string{"Retry-After: -5"}, time.Hour},
		{"429 with words", 429, []string{"Retry-After: abc"}, time.Hour},
		{"429 with nothing", 429, []string{"Retry-After:"}, time.Hour},
		{"429 with a past date", 429, []string{"Retry-After: " + date(-time.Hour, imf)}, time.Hour},
		{"429 with a reset", 429, []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 120"}, 2 * time.Minute},
		{"429 with both", 429, []string{"Retry-After: 60", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 120"}, time.Minute},
		{"503", 503, []string{"Retry-After: 600"}, 10 * time.Minute},
		{"bare 503", 503, nil, 0},
		{"502", 502, []string{"Retry-After: 600"}, 10 * time.Minute},
		{"500", 500, []string{"Retry-After: 600"}, 10 * time.Minute},
		{"403", 403, []string{"Retry-After: 600"}, 10 * time.Minute},
		{"bare 403", 403, nil, 0},
		{"404", 404, []string{"Retry-After: 600"}, 10 * time.Minute},
		{"200", 200, []string{"Retry-After: 600"}, 0},
		{"304", 304, []string{"Retry-After: 600"}, 0},
		{"limit exhausted with 200", 200, []string{`RateLimit: "default";r=0;t=90`}, 90 * time.Second},
		{"limit exhausted with 304", 304, []string{"X-RateLimit-Remaining: 0.0", "X-RateLimit-Reset: 90"}, 90 * time.Second},
		{"limit exhausted with 403", 403, []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 90"}, 90 * time.Second},
		{"limit not exhausted", 200, []string{`RateLimit: "default";r=1;t=90`}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n memnet
				n.say("example.com:80", answerText(tt.status, "", tt.fields...))
				c := n.client(t, calm)
				a := c.Poll(t.Context(), ask("http://example.com/a"))
				wantWhy := ""
				if tt.want > 0 {
					wantWhy = policy.HintHostCooldown
				}
				if got := a.NotBefore.Sub(a.At); a.Holder != wantWhy || got != tt.want && tt.want > 0 || tt.want == 0 && !a.NotBefore.IsZero() {
					t.Errorf("answer: not before %v (%q), want %v", got, a.Holder, tt.want)
				}
				if got, why := held(c, "http://example.com/b"); got != tt.want || why != wantWhy {
					t.Errorf("the host's other URLs are held for %v (%q), want %v", got, why, tt.want)
				}
				if got, why := held(c, "http://example.net/"); got != 0 {
					t.Errorf("another host is held for %v (%q)", got, why)
				}
				// Until then nothing is sent.
				if tt.want == 0 {
					if len(a.Pauses) != 0 {
						t.Errorf("pauses: %+v", a.Pauses)
					}
					return
				}
				want := []policy.Pause{{Scope: "host example.com", For: tt.want, Why: policy.HintHostCooldown, Step: a.Pauses[0].Step}}
				if !slices.Equal(a.Pauses, want) {
					t.Errorf("pauses: %+v, want %+v", a.Pauses, want)
				}
				time.Sleep(max(0, tt.want-maxWait-time.Nanosecond))
				if got := c.Poll(t.Context(), ask("http://example.com/c")); tt.want > maxWait && (got.Failure != policy.FailureNotStarted || got.Holder != policy.HintHostCooldown || len(n.requests()) != 1) {
					t.Errorf("within the pause: %+v", got)
				}
				time.Sleep(time.Nanosecond)
				if c.Poll(t.Context(), ask("http://example.com/c")); len(n.requests()) < 2 || n.requests()[1].at.Sub(a.At) != tt.want {
					t.Error("at the end of the pause nothing was sent")
				}
			})
		})
	}
}

func TestBare429sDouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		status := 429
		n.serve("example.com:80", func(_ request, w io.Writer) { io.WriteString(w, answerText(status, "")) })
		c := n.client(t, calm)
		for i, hours := range []int{1, 2, 4, 8, 16, 24, 24} {
			pause, _ := held(c, "http://example.com/")
			time.Sleep(pause)
			a := c.Poll(t.Context(), ask("http://example.com/"))
			if len(a.Pauses) != 1 || a.Pauses[0].Step != i+1 {
				t.Errorf("pauses: %+v, want step %d", a.Pauses, i+1)
			}
			if got, _ := held(c, "http://example.com/"); got != time.Duration(hours)*time.Hour {
				t.Errorf("pause %d lasts %v, want %d h", i+1, got, hours)
			}
		}
		// A node that has been told goes on from there.
		other := n.client(t, calm)
		other.Hold([]policy.Pause{{Scope: "host example.com", For: time.Second, Why: policy.HintHostCooldown, Step: 3}})
		other.Poll(t.Context(), ask("http://example.com/"))
		if got, _ := held(other, "http://example.com/"); got != 8*time.Hour {
			t.Errorf("after a pause that it was told of, it lasts %v", got)
		}
		status = 404 // any other answer ends the row
		time.Sleep(24 * time.Hour)
		c.Poll(t.Context(), ask("http://example.com/"))
		status = 429
		c.Poll(t.Context(), ask("http://example.com/"))
		if got, _ := held(c, "http://example.com/"); got != time.Hour {
			t.Errorf("after another answer it lasts %v", got)
		}
	})
}

// Requests that were under way when a host said 429 do not make it worse.
func TestParallel429sCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.serve("example.com:80", func(_ request, w io.Writer) {
			time.Sleep(time.Minute)
			io.WriteString(w, answerText(429, ""))
		})
		c := n.client(t, Settings{Hosts: []HostRule{{Pattern: "*", Spacing: time.Second, Concurrency: 3}}})
		var polls sync.WaitGroup
		for range 3 {
			polls.Go(func() { c.Poll(t.Context(), policy.Ask{URL: feedurl.MustParse("http://example.com/")}) })
		}
		polls.Wait()
		if got, _ := held(c, "http://example.com/"); got != time.Hour-2*time.Second {
			t.Errorf("held for %v", got)
		}
	})
}

// After the pause comes one request, then the gap; more at a time only after an
// answer that is none of the kind.
func TestSlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		var o occupancy
		begin := time.Now()
		n.serve("example.com:80", func(_ request, w io.Writer) {
			o.enter("")
			time.Sleep(5 * time.Second)
			o.leave("")
			if time.Since(begin) < 22*time.Second {
				io.WriteString(w, answerText(429, "", "Retry-After: 10"))
				return
			}
			io.WriteString(w, ok(feedBody))
		})
		c := n.client(t, Settings{Hosts: []HostRule{{Pattern: "*", Concurrency: 3}}})
		c.Poll(t.Context(), policy.Ask{URL: feedurl.MustParse("http://example.com/")})
		var polls sync.WaitGroup
		for range 10 {
			polls.Go(func() { c.Poll(patient(t), policy.Ask{URL: feedurl.MustParse("http://example.com/")}) })
		}
		polls.Wait()
		got := n.requests()
		if first := got[1].at.Sub(begin); first != 15*time.Second {
			t.Errorf("the first one comes after %v", first)
		}
		// That one is answered 429 too: another 10 s in which nothing moves.
		if second := got[2].at.Sub(got[1].at); second != 15*time.Second {
			t.Errorf("the second one comes %v later", second)
		}
		if third := got[3].at.Sub(got[2].at); third != 5*time.Second {
			t.Errorf("the third one comes %v later, not after a good answer", third)
		}
		if gap := got[4].at.Sub(got[3].at); gap != defaultSpacing {
			t.Errorf("then there is a gap of %v", gap)
		}
		if o.most[""] != 3 {
			t.Errorf("in the end %d are in flight, want 3", o.most[""])
		}
	})
}

// Those who wait when a long pause begins are told at once.
func TestPauseTurnsWaitersAway(t *testing.T) {
	for _, tt := range []struct {
		answer, why string
		after       time.Duration
	}{
		{answerText(429, "", "Retry-After: 60"), policy.HintHostCooldown, 5 * time.Second},
		{ok(feedBody), policy.HintDomainCooldown, 3 * time.Second}, // of which another node tells
	} {
		synctest.Test(t, func(t *testing.T) {
			var n memnet
			n.serve("www.example.com:80", func(_ request, w io.Writer) {
				time.Sleep(5 * time.Second)
				io.WriteString(w, tt.answer)
			})
			c := n.client(t, Settings{})
			var polls sync.WaitGroup
			polls.Go(func() { c.Poll(t.Context(), ask("http://www.example.com/first")) })
			synctest.Wait()
			begin := time.Now()
			for range 3 {
				polls.Go(func() {
					a := c.Poll(patient(t), ask("http://www.example.com/"))
					if a.Failure != policy.FailureNotStarted || a.Holder != tt.why || time.Until(a.NotBefore) != time.Minute || time.Since(begin) != tt.after {
						t.Errorf("after %v: %+v", time.Since(begin), a)
					}
				})
			}
			if tt.why == policy.HintDomainCooldown {
				time.Sleep(tt.after)
				c.Hold([]policy.Pause{{Scope: "domain example.com", For: time.Minute, Why: tt.why}})
			}
			polls.Wait()
			if got := len(n.requests()); got != 1 {
				t.Errorf("%d requests", got)
			}
		})
	}
}

func TestSiblings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		for host, seconds := range map[string]int{"a.example.com": 600, "b.example.com": 3600, "c.example.com": 0} {
			n.say(host+":80", answerText(429, "", "Retry-After: "+strconv.Itoa(seconds)))
		}
		n.say("d.example.com:80", answerText(503, "", "Retry-After: 600"))
		n.say("x.example.net:80", answerText(429, "", "Retry-After: 600"))
		c := n.client(t, calm)
		c.Poll(t.Context(), ask("http://d.example.com/"))
		c.Poll(t.Context(), ask("http://x.example.net/"))
		c.Poll(t.Context(), ask("http://a.example.com/"))
		if got, why := held(c, "http://c.example.com/"); got != 0 {
			t.Errorf("after one 429 the domain is held for %v (%q)", got, why)
		}
		a := c.Poll(t.Context(), ask("http://b.example.com/"))
		if a.Holder != policy.HintDomainCooldown || time.Until(a.NotBefore) != time.Hour {
			t.Errorf("the second: %v, %q", a.NotBefore, a.Holder)
		}
		// What the answer tells is what a restart leaves: all siblings still wait.
		restarted := n.client(t, calm)
		restarted.Hold(a.Pauses)
		if got, why := held(restarted, "http://c.example.com/"); got != time.Hour || why != policy.HintDomainCooldown {
			t.Errorf("after a restart a sibling is held for %v (%q)", got, why)
		}
		for _, url := range []string{"http://c.example.com/", "https://example.com/", "http://never.heard.of.example.com/"} {
			if got, why := held(c, url); got != time.Hour || why != policy.HintDomainCooldown {
				t.Errorf("%s is held for %v (%q)", url, got, why)
			}
		}
		if got := c.Poll(t.Context(), ask("http://c.example.com/")); got.Failure != policy.FailureNotStarted || got.Holder != policy.HintDomainCooldown {
			t.Errorf("a sibling: %+v", got)
		}
		if got, _ := held(c, "http://www.example.net/"); got != 0 {
			t.Errorf("another domain is held for %v", got)
		}
		time.Sleep(time.Hour)
		if got, why := held(c, "http://c.example.com/"); got != 0 {
			t.Errorf("in the end it is held for %v (%q)", got, why)
		}
	})
}

// A domain pauses for an hour at most, whatever two of its hosts ask for themselves,
// and not because of what a host has asked for long ago.
func TestSiblingsCannotFreezeADomain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const week = 7 * 24 * time.Hour
		var n memnet
		c := n.client(t, calm)
		for _, host := range []string{"a.example.com", "b.example.com", "c.example.com"} {
			n.say(host+":80", answerText(429, "", "Retry-After: 604800"))
		}
		c.Poll(t.Context(), ask("http://a.example.com/"))
		a := c.Poll(t.Context(), ask("http://b.example.com/"))
		want := []policy.Pause{
			{Scope: "host b.example.com", For: week, Why: policy.HintHostCooldown},
			{Scope: "domain example.com", For: time.Hour, Why: policy.HintDomainCooldown},
		}
		if !slices.Equal(a.Pauses, want) || time.Until(a.NotBefore) != week {
			t.Errorf("pauses: %+v, not before %v", a.Pauses, a.NotBefore)
		}
		time.Sleep(time.Hour)
		c.Poll(t.Context(), ask("http://c.example.com/"))
		if got, why := held(c, "http://d.example.com/"); got != 0 {
			t.Errorf("after one more 429 the domain is held for %v (%q)", got, why)
		}
		if got, _ := held(c, "http://a.example.com/"); got != week-time.Hour {
			t.Errorf("the first host is held for %v", got)
		}
	})
}

// Hosts of a domain that answer 429 again as soon as they are asked do not keep another
// host from being polled: its last answer was a good one.
func TestSiblingsOfAGoodHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		c := n.client(t, calm)
		n.say("good.example.com:80", ok(feedBody))
		for _, host := range []string{"a.example.com", "b.example.com", "bad.example.com"} {
			n.say(host+":80", answerText(429, "", "Retry-After: 3600"))
		}
		const good = "http://good.example.com/"
		c.Poll(t.Context(), ask(good))
		for range 48 {
			c.Poll(t.Context(), ask("http://a.example.com/"))
			c.Poll(t.Context(), ask("http://b.example.com/"))
			if got, why := held(c, "http://other.example.com/"); got == 0 || why != policy.HintDomainCooldown {
				t.Fatalf("a host that never answered is held for %v (%q)", got, why)
			}
			if a := c.Poll(t.Context(), ask(good)); a.Failure != "" {
				t.Fatalf("a host that answers well: %v", a.Err)
			}
			time.Sleep(time.Hour)
		}
		// Once it says 429 as well, it is one of them; and a good answer does not last.
		n.say("good.example.com:80", answerText(429, "", "Retry-After: 60"))
		c.Poll(t.Context(), ask("http://a.example.com/"))
		c.Poll(t.Context(), ask("http://b.example.com/"))
		c.Poll(t.Context(), ask(good))
		if got, why := held(c, good); got != time.Hour || why != policy.HintDomainCooldown {
			t.Errorf("after a 429 it is held for %v (%q)", got, why)
		}
	})
}

// A good answer exempts a host for a day.
func TestExemptionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		c := n.client(t, calm)
		n.say("good.example.com:80", ok(feedBody))
		c.Poll(t.Context(), ask("http://good.example.com/"))
		time.Sleep(exemption)
		c.Hold([]policy.Pause{{Scope: "domain example.com", For: time.Hour, Why: policy.HintDomainCooldown}})
		if got, why := held(c, "http://good.example.com/"); got != time.Hour {
			t.Errorf("a day later it is held for %v (%q)", got, why)
		}
	})
}

// After the pause of a domain comes one request to all of its hosts.
func TestSlowStartOfDomain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		c := n.client(t, calm)
		var polls sync.WaitGroup
		for _, host := range []string{"a.example.com", "b.example.com", "c.example.com"} {
			n.serve(host+":80", func(_ request, w io.Writer) {
				time.Sleep(30 * time.Second)
				io.WriteString(w, ok(feedBody))
			})
			c.Hold([]policy.Pause{{Scope: "domain example.com", For: 10 * time.Second, Why: policy.HintDomainCooldown}})
			polls.Go(func() { c.Poll(t.Context(), policy.Ask{URL: feedurl.MustParse("http://" + host + "/")}) })
		}
		begin := time.Now()
		polls.Wait()
		for i, want := range []time.Duration{10 * time.Second, 40 * time.Second, 40 * time.Second} {
			if got := n.requests()[i].at.Sub(begin); got != want {
				t.Errorf("request %d comes after %v, want %v", i+1, got, want)
			}
		}
	})
}

// Pauses go on while the machine sleeps. Whoever sets its clock changes nothing.
func TestCooldownOfAMachineThatSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set, slept time.Duration
		c := New(WithClock(func() time.Time { return time.Now().Add(slept + set) }, func() time.Duration { return slept }))
		defer c.Close()
		// In place of a monotonic reading, which times in a bubble do not have.
		c.pacer.clock = newClock(time.Now, func() time.Duration { return slept })
		c.Hold([]policy.Pause{{Scope: "host example.com", For: 8 * time.Hour, Why: policy.HintHostCooldown}})
		for _, step := range []struct {
			passes, sleeps, set, want time.Duration
		}{
			{passes: time.Hour, want: 7 * time.Hour},
			{sleeps: 2 * time.Hour, want: 5 * time.Hour},
			{set: 365 * 24 * time.Hour, want: 5 * time.Hour},
			{set: -2 * 365 * 24 * time.Hour, want: 5 * time.Hour},
			{sleeps: time.Hour, passes: time.Hour, want: 3 * time.Hour},
		} {
			time.Sleep(step.passes)
			slept += step.sleeps
			set += step.set
			if got, _ := held(c, "http://example.com/"); got != step.want {
				t.Errorf("after %+v: held for %v", step, got)
			}
			if h := c.Held(feedurl.MustParse("http://example.com/")); h == nil || h.Until.Sub(time.Now().Add(slept+set)) != step.want {
				t.Errorf("after %+v: %v", step, h)
			}
		}
	})
}

// Siblings whose cool-downs do not overlap are limited on their own.
func TestSiblingsOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		for _, host := range []string{"a.example.com", "b.example.com"} {
			n.say(host+":80", answerText(429, "", "Retry-After: 60"))
		}
		c := n.client(t, calm)
		c.Poll(t.Context(), ask("http://a.example.com/"))
		time.Sleep(time.Minute)
		c.Poll(t.Context(), ask("http://b.example.com/"))
		if got, why := held(c, "http://c.example.com/"); got != 0 {
			t.Errorf("held for %v (%q)", got, why)
		}
	})
}

// On IP literals and private names a pause is the URL's own.
func TestCooldownOfPrivateHosts(t *testing.T) {
	for _, host := range []string{"192.0.2.1", "[2001:db8::1]", "localhost", "bridge", "rss.local", "rss.home.arpa", "nas.lan"} {
		t.Run(host, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n memnet
				n.say(host+":80", answerText(429, "", "Retry-After: 600"))
				c := n.client(t, calm)
				a := c.Poll(t.Context(), ask("http://"+host+"/a"))
				if a.Holder != policy.HintURLCooldown || time.Until(a.NotBefore) != 10*time.Minute {
					t.Errorf("held until %v (%q)", a.NotBefore, a.Holder)
				}
				if got, why := held(c, "http://"+host+"/b"); got != 0 {
					t.Errorf("another URL is held for %v (%q)", got, why)
				}
				if len(a.Pauses) != 0 {
					t.Errorf("pauses: %+v", a.Pauses)
				}
			})
		})
	}
}

// A public name at a private address counts as a private host.
func TestCooldownOfPrivateAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.say("rss.example.com:80", answerText(429, "", "Retry-After: 3600"))
		settings := Settings{Hosts: unpaced, Private: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
		c := n.guardedClient(t, settings, map[string]string{"rss.example.com": "10.0.0.5"})
		a := c.Poll(t.Context(), ask("http://rss.example.com/a"))
		if a.Holder != policy.HintURLCooldown || time.Until(a.NotBefore) != time.Hour {
			t.Errorf("held until %v (%q)", a.NotBefore, a.Holder)
		}
		if got, why := held(c, "http://rss.example.com/b"); got != 0 {
			t.Errorf("another URL is held for %v (%q)", got, why)
		}
	})
}

func TestHold(t *testing.T) {
	for _, tt := range []struct {
		scope        string
		length       time.Duration
		host, domain time.Duration // held afterwards
		why          string
	}{
		{"host www.example.com", time.Hour, time.Hour, 0, policy.HintHostCooldown},
		{"domain example.com", time.Hour, time.Hour, time.Hour, policy.HintDomainCooldown},
		{"host www.example.com", -time.Hour, 0, 0, ""},
		{"host www.example.com", 1000 * 24 * time.Hour, maxPause, 0, policy.HintHostCooldown},
		{"host other.example", time.Hour, 0, 0, ""},
		{"", time.Hour, 0, 0, ""},
	} {
		t.Run(tt.scope+" "+tt.length.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n memnet
				n.say("www.example.com:80", ok(feedBody))
				c := n.client(t, calm)
				c.Hold([]policy.Pause{{Scope: tt.scope, For: tt.length, Why: tt.why}})
				if got, why := held(c, "http://www.example.com/"); got != tt.host || why != tt.why {
					t.Errorf("the host is held for %v (%q), want %v (%q)", got, why, tt.host, tt.why)
				}
				if got, _ := held(c, "http://other.example.com/"); got != tt.domain {
					t.Errorf("the domain is held for %v, want %v", got, tt.domain)
				}
				time.Sleep(tt.host)
				if a := c.Poll(t.Context(), ask("http://www.example.com/a")); a.Failure != "" {
					t.Errorf("polled afterwards: %v", a.Err)
				}
			})
		})
	}
}

// Answer, restart, Hold: the pause goes on as it was.
func TestHoldTakesWhatAnAnswerSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.say("a.example:80", answerText(302, "", "Location: http://b.example/"))
		n.say("b.example:80", answerText(429, "", "Retry-After: 600"))
		n.say("c.example:80", answerText(429, ""))
		for url, asked := range map[string]string{"http://a.example/": "http://b.example/", "http://b.example/": "http://b.example/", "http://c.example/": "http://c.example/"} {
			before, after := n.client(t, calm), n.client(t, calm)
			a := before.Poll(t.Context(), ask(url))
			if a.NotBefore.IsZero() {
				t.Fatalf("%s is not held", url)
			}
			after.Hold(a.Pauses)
			if got, _ := held(after, asked); got != time.Until(a.NotBefore) {
				t.Errorf("%s is held for %v, want until %v", url, got, a.NotBefore)
			}
		}
	})
}
