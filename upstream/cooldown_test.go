// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"io"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// held is how long a URL is held, and by what.
func held(c *Client, url string) (time.Duration, string) {
	at, why := c.Ready(url)
	if at.IsZero() {
		return 0, why
	}
	return time.Until(at), why
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
					wantWhy = HeldByHost
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
				q := ask("http://example.com/c")
				q.StartBy = time.Now().Add(tt.want - time.Nanosecond)
				if tt.want == 0 {
					return
				}
				if got := c.Poll(t.Context(), q); got.Failure != policy.FailureNotStarted || got.Holder != HeldByHost || len(n.requests()) != 1 {
					t.Errorf("within the pause: %+v", got)
				}
				q.StartBy = time.Now().Add(tt.want)
				if c.Poll(t.Context(), q); len(n.requests()) != 2 {
					t.Error("after the pause nothing was sent")
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
			c.Poll(t.Context(), ask("http://example.com/")) // waits out the pause before it
			if got, _ := held(c, "http://example.com/"); got != time.Duration(hours)*time.Hour {
				t.Errorf("pause %d lasts %v, want %d h", i+1, got, hours)
			}
		}
		status = 404 // any other answer ends the row
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
			polls.Go(func() { c.Poll(t.Context(), policy.Ask{URL: "http://example.com/"}) })
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
			time.Sleep(30 * time.Second)
			o.leave("")
			if time.Since(begin) < 2*time.Hour {
				io.WriteString(w, answerText(429, "", "Retry-After: 3600"))
				return
			}
			io.WriteString(w, ok(feedBody))
		})
		c := n.client(t, Settings{Hosts: []HostRule{{Pattern: "*", Concurrency: 3}}})
		c.Poll(t.Context(), policy.Ask{URL: "http://example.com/"})
		var polls sync.WaitGroup
		for range 10 {
			polls.Go(func() { c.Poll(t.Context(), policy.Ask{URL: "http://example.com/"}) })
		}
		polls.Wait()
		got := n.requests()
		if first := got[1].at.Sub(begin); first != time.Hour+30*time.Second {
			t.Errorf("the first one comes after %v", first)
		}
		// That one is answered 429 too: another hour in which nothing moves.
		if second := got[2].at.Sub(got[1].at); second != time.Hour+30*time.Second {
			t.Errorf("the second one comes %v later", second)
		}
		if third := got[3].at.Sub(got[2].at); third != 30*time.Second {
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
		if a.Holder != HeldByDomain || time.Until(a.NotBefore) != time.Hour {
			t.Errorf("the second: %v, %q", a.NotBefore, a.Holder)
		}
		// What the answer tells is what a restart leaves: all siblings still wait.
		restarted := n.client(t, calm)
		restarted.Hold("http://b.example.com/", a.NotBefore, a.Holder)
		if got, why := held(restarted, "http://c.example.com/"); got != time.Hour || why != HeldByDomain {
			t.Errorf("after a restart a sibling is held for %v (%q)", got, why)
		}
		for _, url := range []string{"http://c.example.com/", "https://example.com/", "http://never.heard.of.example.com/"} {
			if got, why := held(c, url); got != time.Hour || why != HeldByDomain {
				t.Errorf("%s is held for %v (%q)", url, got, why)
			}
		}
		q := ask("http://c.example.com/")
		q.StartBy = time.Now().Add(time.Minute)
		if got := c.Poll(t.Context(), q); got.Failure != policy.FailureNotStarted || got.Holder != HeldByDomain {
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
			c.Hold("http://"+host+"/", time.Now().Add(time.Hour), HeldByDomain)
			polls.Go(func() { c.Poll(t.Context(), policy.Ask{URL: "http://" + host + "/"}) })
		}
		begin := time.Now()
		polls.Wait()
		for i, want := range []time.Duration{time.Hour, time.Hour + 30*time.Second, time.Hour + 30*time.Second} {
			if got := n.requests()[i].at.Sub(begin); got != want {
				t.Errorf("request %d comes after %v, want %v", i+1, got, want)
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
				if a.Holder != HeldByURL || time.Until(a.NotBefore) != 10*time.Minute {
					t.Errorf("held until %v (%q)", a.NotBefore, a.Holder)
				}
				if got, why := held(c, "http://"+host+"/b"); got != 0 {
					t.Errorf("another URL is held for %v (%q)", got, why)
				}
				// The one that is held does not stand in the other's way.
				go c.Poll(t.Context(), ask("http://"+host+"/a"))
				time.Sleep(time.Second)
				c.Poll(t.Context(), ask("http://"+host+"/b"))
				if got := len(n.requests()); got != 2 {
					t.Errorf("%d requests, want 2", got)
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

// A public name at a private address counts as a private host.
func TestCooldownOfPrivateAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.say("rss.example.com:80", answerText(429, ""))
		settings := Settings{Hosts: unpaced, Private: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
		c := n.guardedClient(t, settings, map[string]string{"rss.example.com": "10.0.0.5"})
		a := c.Poll(t.Context(), ask("http://rss.example.com/a"))
		if a.Holder != HeldByURL || time.Until(a.NotBefore) != time.Hour {
			t.Errorf("held until %v (%q)", a.NotBefore, a.Holder)
		}
		if got, why := held(c, "http://rss.example.com/b"); got != 0 {
			t.Errorf("another URL is held for %v (%q)", got, why)
		}
	})
}

func TestHold(t *testing.T) {
	for _, tt := range []struct {
		why                     string
		until                   time.Duration
		same, host, domain      time.Duration // held afterwards
		wantSame, wantElsewhere string
	}{
		{HeldByHost, time.Hour, time.Hour, time.Hour, 0, HeldByHost, HeldByHost},
		{HeldByDomain, time.Hour, time.Hour, time.Hour, time.Hour, HeldByDomain, HeldByDomain},
		{HeldByURL, time.Hour, time.Hour, 0, 0, HeldByURL, ""},
		{HeldByRedirect, time.Hour, time.Hour, 0, 0, HeldByURL, ""},
		{HeldBySlot, time.Hour, 0, 0, 0, "", ""},
		{HeldByHost, -time.Hour, 0, 0, 0, "", ""},
		{HeldByHost, 1000 * 24 * time.Hour, maxPause, maxPause, 0, HeldByHost, HeldByHost},
	} {
		t.Run(tt.why+" "+tt.until.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n memnet
				n.say("www.example.com:80", ok(feedBody))
				c := n.client(t, calm)
				c.Hold("http://www.example.com/a", time.Now().Add(tt.until), tt.why)
				c.Hold("no URL", time.Now().Add(tt.until), tt.why)
				if got, why := held(c, "http://www.example.com/a"); got != tt.same || why != tt.wantSame {
					t.Errorf("the URL is held for %v (%q), want %v (%q)", got, why, tt.same, tt.wantSame)
				}
				if got, why := held(c, "http://www.example.com/b"); got != tt.host || why != tt.wantElsewhere {
					t.Errorf("the host is held for %v (%q), want %v (%q)", got, why, tt.host, tt.wantElsewhere)
				}
				if got, _ := held(c, "http://other.example.com/"); got != tt.domain {
					t.Errorf("the domain is held for %v, want %v", got, tt.domain)
				}
				started := time.Now()
				if a := c.Poll(t.Context(), ask("http://www.example.com/a")); a.Failure != "" || time.Since(started) != tt.same {
					t.Errorf("polled after %v: %v", time.Since(started), a.Err)
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
		for _, url := range []string{"http://a.example/", "http://b.example/", "http://c.example/"} {
			before, after := n.client(t, calm), n.client(t, calm)
			a := before.Poll(t.Context(), ask(url))
			if a.NotBefore.IsZero() {
				t.Fatalf("%s is not held", url)
			}
			after.Hold(url, a.NotBefore, a.Holder)
			if at, _ := after.Ready(url); !at.Equal(a.NotBefore) {
				t.Errorf("%s is held until %v, want %v", url, at, a.NotBefore)
			}
		}
	})
}
