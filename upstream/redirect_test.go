// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

func TestLocation(t *testing.T) {
	for _, tt := range []struct{ name, from, location, want, failure string }{
		{"absolute", "http://example.com/a", "http://example.net/b?c#d", "http://example.net/b?c", ""},
		{"to https", "http://example.com/a", "https://example.com/a", "https://example.com/a", ""},
		{"path", "http://example.com/a/b?c", "/d", "http://example.com/d", ""},
		{"relative", "http://example.com/a/b?c", "d/../e?f", "http://example.com/a/e?f", ""},
		{"query alone", "http://example.com/a/b?c", "?d", "http://example.com/a/b?d", ""},
		{"bare question mark", "http://example.com/a?b", "?", "http://example.com/a?", ""},
		{"network path", "https://example.com/a", "//example.net/b", "https://example.net/b", ""},
		{"escapes kept", "http://example.com/a", "/%7eu/%2f?a=%41&&b=", "http://example.com/%7eu/%2f?a=%41&&b=", ""},
		{"credentials dropped", "http://example.com/a", "http://u:p@example.net/b", "http://example.net/b", ""},
		{"one slash", "http://example.com/a", "http:/example.net/b", "http://example.net/b", ""},
		{"one slash, to https", "http://example.com/a", "https:/example.net/b", "https://example.net/b", ""},
		{"feed:", "http://example.com/a", "feed:https://example.net/b", "https://example.net/b", ""},
		{"podcast app's scheme", "http://example.com/a", "pcast://example.net/b", "http://example.net/b", ""},
		{"space", "http://example.com/a", "/b c", "http://example.com/b%20c", ""},
		{"UTF-8", "http://example.com/a", "/caf\u00e9", "http://example.com/caf%C3%A9", ""},
		{"Latin-1", "http://example.com/a", "/caf\xe9", "http://example.com/caf%E9", ""},
		{"not escaped", "http://example.com/a", "/b|c[0]", "http://example.com/b%7Cc%5B0%5D", ""},
		{"lone percent sign in the base", "http://example.com/100%", "/b", "http://example.com/b", ""},

		{"empty", "http://example.com/a", "", "", "without a Location"},
		{"fragment of itself", "http://example.com/a", "#b", "", "goes round in circles"},
		{"itself", "http://example.com/a", "http://EXAMPLE.com:80/a#x", "", "goes round in circles"},
		{"bad escape", "http://example.com/a", "/%zz", "", "to something that is not a URL"},
		{"bad host", "http://example.com/a", "http://exa mple/", "", "to something that is not a URL"},
		{"no host", "http://example.com/a", "http:///b", "", "leads astray"},
		{"other scheme", "http://example.com/a", "ftp://example.com/b", "", "leads astray"},
		{"downgrade", "https://example.com/a", "http://example.com/a", "", "from https to http"},
		{"much too long", "http://example.com/a", "/" + strings.Repeat("a", feedurl.MaxLength), "", "leads astray"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := redirectedPoll(tt.from, tt.location)
			followed := p.follow(t.Context())
			if followed != (tt.want != "") || followed && p.url.String() != tt.want {
				t.Errorf("led to %q, want %q (%v)", p.url, tt.want, p.answer.Err)
			}
			if tt.failure == "" {
				if want := []policy.Move{{From: tt.from, To: tt.want, Status: 302}}; !slices.Equal(p.answer.Moves, want) {
					t.Errorf("moves = %v, want %v", p.answer.Moves, want)
				}
				return
			}
			if p.answer.Failure != policy.FailureRedirect || !strings.Contains(errorText(p.answer.Err), tt.failure) || len(p.answer.Moves) != 0 {
				t.Errorf("failure %q, %v; want %q in it", p.answer.Failure, p.answer.Err, tt.failure)
			}
		})
	}
}

// redirectedPoll is a poll that has just been told to go elsewhere.
func redirectedPoll(from, location string) *poll {
	p := newPoll(New(WithDial(nil), WithoutPacing()), ask(from))
	p.visited[p.url] = true
	p.answer.Status, p.answer.Header = 302, map[string][]string{"Location": {location}}
	return p
}

func TestRedirectOfStrangersToLongURL(t *testing.T) {
	to := "http://b.example/?" + strings.Repeat("x", 2048)
	for standing, refused := range map[policy.Standing]bool{policy.StandingKnown: false, policy.StandingNew: false, policy.StandingStranger: true} {
		p := redirectedPoll("http://a.example/", to)
		p.ask.Standing = standing
		if err := p.mayFollow(feedurl.MustParse(to)); (err != nil) != refused {
			t.Errorf("standing %d: %v", standing, err)
		}
	}
}

func TestRedirectLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.serve("chain.example:80", func(r request, w io.Writer) {
			var left int
			fmt.Sscanf(r.path(), "/%d", &left)
			if left == 0 {
				io.WriteString(w, ok(feedBody))
				return
			}
			io.WriteString(w, answerText(301, "", fmt.Sprintf("Location: /%d", left-1)))
		})
		n.serve("loop.example:80", func(r request, w io.Writer) {
			next := map[string]string{"/a": "/b", "/b": "/c", "/c": "/b#again"}[r.path()]
			io.WriteString(w, answerText(307, "", "Location: "+next))
		})
		c := n.client(t, Settings{})
		for _, tt := range []struct {
			url      string
			failure  policy.Failure
			requests int
			status   int
		}{
			{"http://chain.example/10", "", 11, 200},
			{"http://chain.example/11", policy.FailureRedirect, 11, 301},
			{"http://loop.example/a", policy.FailureRedirect, 3, 307},
		} {
			before, started := len(n.requests()), time.Now()
			a := c.Poll(t.Context(), ask(tt.url))
			got := n.requests()[before:]
			if a.Failure != tt.failure || len(got) != tt.requests || a.Status != tt.status || len(a.Moves) != tt.requests-1 {
				t.Errorf("%s: failure %q (%v) after %d requests and %d moves, status %d", tt.url, a.Failure, a.Err, len(got), len(a.Moves), a.Status)
			}
			// Each hop keeps the gap of its host.
			for i := 1; i < len(got); i++ {
				if gap := got[i].at.Sub(got[i-1].at); gap < defaultSpacing {
					t.Errorf("%s: hop %d came %v after the one before", tt.url, i, gap)
				}
			}
			if !a.Asked.Equal(got[0].at) || time.Since(started) < time.Duration(tt.requests-1)*defaultSpacing {
				t.Errorf("%s: asked %v, want %v", tt.url, a.Asked, got[0].at)
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestHopIsAskedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.say("a.example:80", answerText(301, "", "Location: http://b.example/", "Retry-After: 60"))
		n.say("b.example:80", answerText(302, "", "Location: http://c.example/"))
		n.say("c.example:80", ok(feedBody))
		c := n.client(t, Settings{Hosts: unpaced})
		var targets []string
		a := ask("http://a.example/")
		known := errors.New("known")
		a.Hop = func(_ context.Context, u feedurl.URL, host policy.Host) error {
			if want := (policy.Host{Name: u.Name(), Domain: u.Name()}); host != want {
				t.Errorf("host %+v, want %+v", host, want)
			}
			if busy := c.Busy(); len(busy) != 0 {
				t.Errorf("busy: %q", busy)
			}
			targets = append(targets, u.String())
			if u.Name() == "c.example" {
				return known
			}
			return nil
		}
		got := c.Poll(t.Context(), a)
		if !slices.Equal(targets, []string{"http://b.example/", "http://c.example/"}) {
			t.Errorf("asked about %q", targets)
		}
		if got.Failure != policy.FailureHeld || !errors.Is(got.Err, known) || got.URL != "http://b.example/" || len(n.requests()) != 2 {
			t.Errorf("answer = %+v", got)
		}
		want := []policy.Move{
			{From: "http://a.example/", To: "http://b.example/", Status: 301},
			{From: "http://b.example/", To: "http://c.example/", Status: 302},
		}
		if !slices.Equal(got.Moves, want) {
			t.Errorf("moves = %v", got.Moves)
		}
		// What a redirect asks for is the URL's.
		if len(got.Pauses) > 0 || got.Holder != policy.HintURLCooldown || got.NotBefore.IsZero() {
			t.Errorf("pauses %+v, not before %v (%q)", got.Pauses, got.NotBefore, got.Holder)
		}
	})
}

// Who keeps the schedule is asked about a redirect only when it may be followed as
// far as can be told from the URL; what may not ends the poll without waiting.
func TestRefusalsComeBeforeHop(t *testing.T) {
	for _, tt := range []struct {
		name, location string
		failure        policy.Failure
		text           string
		hop            bool
	}{
		{"allowed", "http://b.example/", policy.FailureNone, "", true},
		{"private address", "http://10.9.9.9/payroll.xml", policy.FailureAddress, "10.9.9.9 is a private address: a redirect from a public address", false},
		{"listed private address", "http://10.0.0.5/payroll.xml", policy.FailureAddress, "10.0.0.5 is a private address: a redirect from a public address", false},
		{"loopback in another notation", "http://[::ffff:127.0.0.1]/", policy.FailureAddress, "127.0.0.1 is a loopback address", false},
		{"port of another protocol", "http://1.1.1.1:25/", policy.FailureAddress, "another protocol", false},
		{"loop", "/start", policy.FailureRedirect, "in circles", false},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var n memnet
			n.say("a.example:80", answerText(302, "", "Location: "+tt.location))
			n.say("b.example:80", ok(feedBody))
			c := n.guardedClient(t, Settings{Private: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}},
				map[string]string{"a.example": "93.184.216.34", "b.example": "93.184.216.35"})
			hop := false
			a := ask("http://a.example/start")
			a.Hop = func(context.Context, feedurl.URL, policy.Host) error { hop = true; return nil }
			started := time.Now()
			got := c.Poll(t.Context(), a)
			if got.Failure != tt.failure || !strings.Contains(errorText(got.Err), tt.text) {
				t.Errorf("failure %q: %v; want %q: %s", got.Failure, got.Err, tt.failure, tt.text)
			}
			if hop != tt.hop || len(got.Moves) != map[bool]int{true: 1}[hop] || time.Since(started) != 0 {
				t.Errorf("asked about the hop: %v; moves %v; after %v", hop, got.Moves, time.Since(started))
			}
		})
	}
}

// Hop may take its time: neither the poll's clock nor a slot is running meanwhile. But
// all hops together may not take longer than the poll is claimed for.
func TestHopMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.serve("a.example:80", func(r request, w io.Writer) {
			if hops, _ := strconv.Atoi(r.path()[1:]); hops > 0 {
				io.WriteString(w, answerText(302, "", "Location: /"+strconv.Itoa(hops-1)))
				return
			}
			io.WriteString(w, ok(feedBody))
		})
		c := n.client(t, Settings{})
		for hops, want := range map[int]policy.Failure{1: policy.FailureNone, 2: policy.FailureNone, 3: policy.FailureHeld, 9: policy.FailureHeld} {
			started := time.Now()
			a := ask("http://a.example/" + strconv.Itoa(hops))
			a.Hop = func(ctx context.Context, _ feedurl.URL, _ policy.Host) error {
				select {
				case <-time.After(50 * time.Second):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			got := c.Poll(t.Context(), a)
			if took := time.Since(started); got.Failure != want || took > policy.MaxHopWait+a.Timeout || took < min(time.Duration(hops)*50*time.Second, policy.MaxHopWait) {
				t.Errorf("%d hops: %q after %v: %v", hops, got.Failure, took, got.Err)
			}
			time.Sleep(time.Hour)
		}
	})
}

// Two polls that are redirected to each other's host do not wait for each other.
func TestCrossedRedirects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		for _, pair := range [][2]string{{"a.example", "b.example"}, {"b.example", "a.example"}} {
			n.serve(pair[0]+":80", func(r request, w io.Writer) {
				time.Sleep(time.Second)
				if r.path() == "/" {
					io.WriteString(w, answerText(302, "", "Location: http://"+pair[1]+"/x"))
					return
				}
				io.WriteString(w, ok(feedBody))
			})
		}
		c := n.client(t, Settings{})
		answers := make(chan policy.Answer, 2)
		for _, host := range []string{"a.example", "b.example"} {
			go func() { answers <- c.Poll(t.Context(), ask("http://"+host+"/")) }()
		}
		for range 2 {
			if a := <-answers; a.Failure != "" {
				t.Errorf("failure %q: %v", a.Failure, a.Err)
			}
		}
	})
}

func FuzzLocation(f *testing.F) {
	for _, location := range []string{
		"", "/", "//", "///", "?", "#", "..", "http://", "https://b.example/%2f?#", "//u:p@b.example:80", "/%zz", "http:b", "\\\\b.example\\", "/\x00", "/\xff", "http://[::1%25a]/",
	} {
		f.Add(location)
	}
	f.Fuzz(func(t *testing.T, location string) {
		p := redirectedPoll("https://a.example/b/c?d", location)
		ok := p.follow(t.Context())
		if ok == (p.answer.Failure != "") {
			t.Fatalf("followed %v with failure %q", ok, p.answer.Failure)
		}
		if !ok {
			return
		}
		to := p.url
		if to.Scheme() != "https" || to.User() != nil || to.Name() == "" || !strings.HasPrefix(to.Path(), "/") {
			t.Errorf("led to %+v", to)
		}
		again, err := feedurl.Parse(to.String())
		if err != nil || again != to {
			t.Errorf("%q is read as %+v, then as %+v (%v)", to.String(), to, again, err)
		}
		if sent := to.RequestURL().RequestURI(); strings.ContainsAny(sent, " \r\n\t") || !strings.HasPrefix(sent, "/") {
			t.Errorf("sends %q", sent)
		}
	})
}
