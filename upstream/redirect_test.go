// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
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
		{"over http", "https://example.com/a", "http://example.com/b", "http://example.com/b", ""},
		{"over http, with a secret", "https://example.com/a?token=0123456789abcdef", "http://example.com/b", "", "from https to http"},
		{"over http, to a secret", "https://example.com/a", "http://example.com/b?token=0123456789abcdef", "", "from https to http"},
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
	for _, stranger := range []bool{false, true} {
		p := redirectedPoll("http://a.example/", to)
		p.ask.Stranger = stranger
		if err := p.mayFollow(feedurl.MustParse(to)); (err != nil) != stranger {
			t.Errorf("of a stranger %v: %v", stranger, err)
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
			{"http://chain.example/5", "", 6, 200},
			{"http://chain.example/6", policy.FailureRedirect, 6, 301},
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

// A poll of a feed ends at a permanent redirect of its own URL. It follows others, and those behind one that is not.
func TestPollEndsAtMove(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second int
		requests      int
		failure       policy.Failure
	}{
		{"for good", 301, 302, 1, policy.FailureMoved},
		{"for good, 308", 308, 302, 1, policy.FailureMoved},
		{"not for good", 302, 301, 3, policy.FailureNone},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var n memnet
			n.say("a.example:80", answerText(tt.first, "", "Location: http://b.example/", "Retry-After: 60"))
			n.say("b.example:80", answerText(tt.second, "", "Location: http://c.example/"))
			n.say("c.example:80", ok(feedBody))
			c := n.client(t, Settings{Hosts: unpaced})
			a := ask("http://a.example/")
			a.EndAtMove = true
			got := c.Poll(t.Context(), a)
			if got.Failure != tt.failure || len(n.requests()) != tt.requests || len(got.Moves) != max(1, tt.requests-1) || got.Moves[0].To != "http://b.example/" {
				t.Errorf("answer = %+v", got)
			}
			// What a redirect asks for is the URL's.
			if len(got.Pauses) > 0 || got.Holder != policy.HintURLCooldown || got.NotBefore.IsZero() {
				t.Errorf("pauses %+v, not before %v (%q)", got.Pauses, got.NotBefore, got.Holder)
			}
		})
	}
}

// A permanent redirect is followed each time if it needs a cookie, leads over http, or to a secret of another origin.
func TestMovesThatAreFollowed(t *testing.T) {
	for _, tt := range []struct{ name, from, to, field string }{
		{"with a cookie", "http://a.example/", "http://b.example/", "Set-Cookie: a=b"},
		{"over http", "https://a.example/", "http://b.example/", ""},
		{"to a secret", "http://a.example/", "http://b.example/?token=0123456789abcdef", ""},
	} {
		p := redirectedPoll(tt.from, tt.to)
		p.ask.EndAtMove, p.answer.Status = true, 301
		if name, value, found := strings.Cut(tt.field, ": "); found {
			p.answer.Header.Set(name, value)
		}
		if !p.follow(t.Context()) || p.url.String() != tt.to {
			t.Errorf("%s: led to %s, %q (%v)", tt.name, p.url, p.answer.Failure, p.answer.Err)
		}
	}
}

// Cookies that redirects set go back to where they belong, until the end of the poll: a site that tests for them by a
// redirect to itself gives its feed.
func TestCookies(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		var n memnet
		n.serve("a.example:80", func(r request, w io.Writer) {
			switch {
			case r.path() == "/feed" && !strings.Contains(r.head, "Cookie: seen=1\r\n"):
				io.WriteString(w, answerText(301, "", "Location: /feed", "Set-Cookie: seen=1; Path=/feed", "Set-Cookie: safe=1; Secure", "Set-Cookie: other=1; Path=/other"))
			default:
				io.WriteString(w, ok(feedBody))
			}
		})
		c := n.client(t, Settings{Hosts: unpaced})
		for range 2 { // nothing is kept for the next poll
			before := len(n.requests())
			a := ask("http://a.example/feed")
			a.EndAtMove = true
			if got := c.Poll(patient(t), a); got.Failure != "" || len(n.requests())-before != 2 {
				t.Errorf("failure %q (%v) after %d requests", got.Failure, got.Err, len(n.requests())-before)
			}
			if first, second := n.requests()[before].head, n.requests()[before+1].head; strings.Contains(first, "Cookie") || !strings.Contains(second, "Cookie: seen=1\r\n") {
				t.Errorf("cookies of %q and %q", first, second)
			}
		}
	})
}

// A redirect that may not be followed, as far as can be told from the URL, ends the poll without waiting, and does not move the feed.
func TestRedirectsThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name, location string
		failure        policy.Failure
		text           string
		moved          bool
	}{
		{"allowed", "http://b.example/", policy.FailureMoved, "", true},
		{"private address", "http://10.9.9.9/payroll.xml", policy.FailureAddress, "10.9.9.9 is a private address: a redirect from a public address", false},
		{"listed private address", "http://10.0.0.5/payroll.xml", policy.FailureAddress, "10.0.0.5 is a private address: a redirect from a public address", false},
		{"loopback in another notation", "http://[::ffff:127.0.0.1]/", policy.FailureAddress, "127.0.0.1 is a loopback address", false},
		{"name of a listed private address", "http://nas.example/payroll.xml", policy.FailureAddress, "its address is a private address: a redirect from a public address", false},
		{"port of another protocol", "http://1.1.1.1:25/", policy.FailureAddress, "another protocol", false},
		{"loop", "/start", policy.FailureRedirect, "in circles", false},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var n memnet
			n.say("a.example:80", answerText(301, "", "Location: "+tt.location))
			n.say("b.example:80", ok(feedBody))
			c := n.guardedClient(t, Settings{Private: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}},
				map[string]string{"a.example": "93.184.216.34", "b.example": "93.184.216.35", "nas.example": "10.0.0.5"})
			a := ask("http://a.example/start")
			a.EndAtMove = true
			started := time.Now()
			got := c.Poll(t.Context(), a)
			if got.Failure != tt.failure || !strings.Contains(errorText(got.Err), tt.text) {
				t.Errorf("failure %q: %v; want %q: %s", got.Failure, got.Err, tt.failure, tt.text)
			}
			if len(got.Moves) != map[bool]int{true: 1}[tt.moved] || time.Since(started) != 0 {
				t.Errorf("moves %v; after %v", got.Moves, time.Since(started))
			}
		})
	}
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
		if to.User() != nil || to.Name() == "" || !strings.HasPrefix(to.Path(), "/") {
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
