// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/feedurl"
	"github.com/feedpollard/pollard/policy"
)

const movedURL = "https://new.test/feed.xml"

// redirects answers with a redirect, as far as it may be followed, and then with
// what the target says.
func redirects(ask policy.Ask, status int, to string, target func() policy.Answer) policy.Answer {
	moves := []policy.Move{{From: ask.URL, To: to, Status: status}}
	u, err := feedurl.Parse(to)
	if err == nil {
		err = ask.Hop(context.Background(), u, policy.Host{Name: u.Name(), Domain: u.Domain()})
	}
	if err != nil {
		return policy.Answer{Asked: time.Now(), Status: status, URL: ask.URL, Header: http.Header{}, Moves: moves, Failure: policy.FailureHeld, Err: err}
	}
	a := target()
	a.URL, a.Moves = to, moves
	return a
}

// moving is an origin whose feed has moved to another URL.
func moving(status int) func(policy.Ask) policy.Answer {
	target := func() policy.Answer { return ok(rss(2, ""), "ETag", `"new"`, "Cache-Control", "max-age=60") }
	return func(ask policy.Ask) policy.Answer {
		if ask.URL == movedURL {
			return target()
		}
		return redirects(ask, status, movedURL, target)
	}
}

// asked is when a URL was asked for itself.
func (g *gateway) asked(url string) (at []time.Time) {
	g.origin.mu.Lock()
	defer g.origin.mu.Unlock()
	for i, ask := range g.origin.asks {
		if ask.URL == url {
			at = append(at, g.origin.at[i])
		}
	}
	return at
}

// feed asks for the feed that answers for a URL, as a handler does.
func (g *gateway) feed(url string) *httptest.ResponseRecorder {
	g.t.Helper()
	f, err := g.Feed(g.t.Context(), url)
	if err != nil {
		g.t.Fatal(err)
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/feed", nil)
	_, err = f.Resolve(g.t.Context()).Serve(w, r)
	if u, ok := err.(*cache.Unavailable); ok && u.Alias {
		_, err = f.Resolve(g.t.Context()).Serve(w, r)
	}
	if err != nil {
		u := err.(*cache.Unavailable)
		w.Header().Set("Location", u.Elsewhere)
		w.WriteHeader(u.Status)
		fmt.Fprint(w, u.Reason)
	}
	return w
}

func TestPermanentRedirectIsAdoptedAfterSevenDays(t *testing.T) {
	for status, adopted := range map[int]bool{301: true, 308: true, 302: false, 303: false, 307: false} {
		bubble(t, func(t *testing.T, dir string) {
			g := newGateway(t, dir, moving(status)).open()
			defer func() { g.close() }()
			began := time.Now()
			for time.Since(began) < 10*24*time.Hour {
				wantBody(t, g.feed(feedURL), 200, "Entry 2")
				time.Sleep(25 * time.Hour)
			}
			g.restart()
			wantBody(t, g.feed(feedURL), 200, "Entry 2")
			at := g.asked(movedURL)
			if (len(at) > 0) != adopted {
				t.Fatalf("%d: the target was asked for itself %d times", status, len(at))
			}
			if !adopted {
				return
			}
			if at[0].Sub(began) < 7*24*time.Hour {
				t.Errorf("%d adopted after %v", status, at[0].Sub(began))
			}
			if home := g.asked(feedURL); !home[len(home)-1].Before(at[0]) {
				t.Errorf("%d: the old URL is still polled, at %v", status, home[len(home)-1])
			}
		})
	}
}

func TestInterruptedRedirectStartsAnew(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		day := 0
		moved := moving(301)
		g := newGateway(t, dir, func(ask policy.Ask) policy.Answer {
			if day == 5 {
				return ok(rss(2, ""))
			}
			return moved(ask)
		}).open()
		defer g.close()
		for day = range 12 {
			g.feed(feedURL)
			time.Sleep(25 * time.Hour)
		}
		if len(g.asked(movedURL)) > 0 {
			t.Error("adopted a redirect that has not held for seven days")
		}
	})
}

func TestFeedThatFailsAtItsNewAddressGoesHome(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		dead := false
		moved := moving(301)
		g := newGateway(t, dir, func(ask policy.Ask) policy.Answer {
			switch {
			case !dead:
				return moved(ask)
			case ask.URL == movedURL:
				return failed(404, policy.FailureNotFound)
			}
			return ok(rss(3, ""))
		}).open()
		defer g.close()
		for range 10 {
			g.feed(feedURL)
			time.Sleep(25 * time.Hour)
		}
		if len(g.asked(movedURL)) == 0 {
			t.Fatal("the redirect has not been adopted")
		}
		dead = true
		for range 7 {
			wantBody(t, g.feed(feedURL), 200, "Entry")
			time.Sleep(25 * time.Hour)
		}
		wantBody(t, g.feed(feedURL), 200, "Entry 3")
	})
}

func TestValidatorsAreBoundToTheURLThatGaveThem(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, moving(302)).open()
		defer g.close()
		g.get(feedURL)
		time.Sleep(25 * time.Hour)
		g.get(feedURL)
		if v := g.origin.last().Validators; v.URL != movedURL || v.ETag != `"new"` {
			t.Errorf("validators %+v, want them bound to the URL that gave them", v)
		}
	})
}

// Feeds that redirect to a URL of nobody share its interval.
func TestFeedsThatConvergeOnAURL(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		var hits []time.Time
		g := newGateway(t, dir, func(ask policy.Ask) policy.Answer {
			return redirects(ask, 302, movedURL, func() policy.Answer {
				hits = append(hits, time.Now())
				return ok(rss(2, ""), "ETag", `"v"`)
			})
		}).open()
		defer g.close()
		served := map[string]bool{}
		for range 24 * 10 {
			for i := range 5 {
				url := fmt.Sprintf("https://old%d.test/", i)
				if g.feed(url).Code == 200 {
					served[url] = true
				}
				time.Sleep(time.Minute)
			}
			time.Sleep(time.Hour)
		}
		for i := 1; i < len(hits); i++ {
			if gap := hits[i].Sub(hits[i-1]); gap < time.Hour {
				t.Fatalf("the shared URL was asked twice within %v", gap)
			}
		}
		if len(served) != 5 {
			t.Errorf("%d of 5 feeds ever got an answer", len(served))
		}
	})
}

// A feed that moves to another that is known becomes its alias: one is polled.
func TestPermanentRedirectToAKnownFeed(t *testing.T) {
	for name, order := range map[string][]string{"redirect first": {feedURL, movedURL}, "target first": {movedURL, feedURL}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, dir string) {
				n := 2
				g := newGateway(t, dir, func(ask policy.Ask) policy.Answer {
					target := func() policy.Answer { return ok(rss(n, ""), "Cache-Control", "max-age=3600") }
					if ask.URL == movedURL {
						return target()
					}
					return redirects(ask, 301, movedURL, target)
				}).open()
				defer g.close()
				for range 24 * 10 {
					for _, url := range order {
						wantBody(t, g.feed(url), 200, "Entry 2")
						time.Sleep(10 * time.Minute)
					}
					time.Sleep(40 * time.Minute)
				}
				if polls := g.asked(feedURL); len(polls) > 2 {
					t.Errorf("the old URL was polled %d times, want it to be an alias after two at most", len(polls))
				}
				n = 3
				time.Sleep(2 * time.Hour)
				wantBody(t, g.feed(movedURL), 200, "Entry 3")
				wantBody(t, g.feed(feedURL), 200, "Entry 3")
			})
		})
	}
}

// A feed that redirects for the time being to one with polls of its own sends its
// readers there: that one's interval is its own, and so is its content.
func TestTemporaryRedirectToAKnownFeed(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, moving(302)).open()
		defer g.close()
		wantBody(t, g.feed(movedURL), 200, "Entry 2")
		time.Sleep(10 * time.Minute)
		if w := g.feed(feedURL); w.Code != http.StatusFound || w.Header().Get("Location") != movedURL {
			t.Errorf("got %d to %q", w.Code, w.Header().Get("Location"))
		}
	})
}

// Whoever redirects to a feed decides nothing about it: not when it is polled, not
// what its readers get, also if it copies it first.
func TestRedirectToAFeedOfSomebodyElse(t *testing.T) {
	const evil = "https://evil.test/x"
	for name, configured := range map[string]bool{"configured": true, "asked for": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, dir string) {
				hijacked, n := false, 1
				victim := func() policy.Answer { return ok(rss(n, ""), "Cache-Control", "max-age=3600") }
				g := newGateway(t, dir, func(ask policy.Ask) policy.Answer {
					switch {
					case ask.URL != evil:
						n++
						return victim()
					case !hijacked:
						return ok(strings.Replace(rss(1, ""), "</channel>", `<link xmlns="http://www.w3.org/2005/Atom" rel="hub" href="https://evil.test/hub"/></channel>`, 1))
					}
					a := redirects(ask, 302, feedURL, victim)
					a.Header.Set("Retry-After", "604800")
					return a
				})
				if configured {
					g.settings.Feeds = []string{feedURL}
				}
				g.settings.Prefetch = true
				g.open()
				defer func() { g.close() }()
				g.feed(evil)
				hijacked = true
				time.Sleep(25 * time.Hour)
				g.feed(evil)
				if w := g.feed(feedURL); w.Code != 200 || strings.Contains(w.Body.String(), "evil") {
					t.Errorf("the first reader of the feed got %d %s", w.Code, w.Body)
				}
				g.restart()
				polls := len(g.asked(feedURL))
				for range 48 {
					time.Sleep(time.Hour)
					g.feed(evil)
					if w := g.feed(feedURL); w.Code != 200 || strings.Contains(w.Body.String(), "evil") {
						t.Fatalf("got %d %s", w.Code, w.Body)
					}
				}
				if got := len(g.asked(feedURL)) - polls; got < 40 {
					t.Errorf("%d polls in two days of hourly polling", got)
				}
			})
		})
	}
}

func TestFeedsThatRedirectToEachOtherFailAndDoNotHang(t *testing.T) {
	for _, status := range []int{301, 302} {
		bubble(t, func(t *testing.T, dir string) {
			g := newGateway(t, dir, func(ask policy.Ask) policy.Answer {
				to := movedURL
				if ask.URL == movedURL {
					to = feedURL
				}
				return redirects(ask, status, to, func() policy.Answer {
					return policy.Answer{Asked: time.Now(), Status: status, Header: http.Header{}, Failure: policy.FailureRedirect}
				})
			}).open()
			defer g.close()
			began := time.Now()
			for range 5 {
				for _, url := range []string{feedURL, movedURL} {
					if w := g.feed(url); w.Code == 200 {
						t.Errorf("got %d", w.Code)
					}
				}
			}
			if d := time.Since(began); d > 10*time.Second {
				t.Errorf("hung for %v", d)
			}
		})
	}
}
