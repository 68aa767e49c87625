// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/status"
)

const movedURL = "https://new.test/feed.xml"

// moving is a web in which a feed has moved to another URL.
func moving(status int) func(url string) response {
	return func(url string) response {
		if url == movedURL {
			return given(rss(2, ""), "ETag", `"new"`, "Cache-Control", "max-age=60")
		}
		return redirect(status, movedURL)
	}
}

// asked is when a URL was asked for itself.
func (g *gateway) asked(url string) (at []time.Time) {
	g.origin.mu.Lock()
	defer g.origin.mu.Unlock()
	for i, ask := range g.origin.asks {
		if ask.URL.String() == url {
			at = append(at, g.origin.at[i])
		}
	}
	return at
}

// feed asks for the feed that answers for a URL, as a handler does.
func (g *gateway) feed(url string, headers ...string) *httptest.ResponseRecorder {
	g.t.Helper()
	f, err := g.Feed(g.t.Context(), url)
	if err != nil {
		g.t.Fatal(err)
	}
	f.Ask(g.by)
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/feed", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	requested := f
	f = f.Resolve(g.t.Context())
	f.Ask(g.by)
	_, err = f.Serve(w, r, cache.ServeOptions{Alias: f != requested})
	if u, ok := err.(*cache.Unavailable); ok && u.Alias {
		_, err = f.Resolve(g.t.Context()).Serve(w, r, cache.ServeOptions{Alias: true})
	}
	if u, ok := err.(*cache.Unavailable); ok && !u.Alias && u.RedirectTo != "" {
		return g.feed(u.RedirectTo, headers...)
	}
	if err != nil {
		u := err.(*cache.Unavailable)
		w.Header().Set("Location", u.RedirectTo)
		w.WriteHeader(u.Status)
		fmt.Fprint(w, u.Reason)
	}
	return w
}

// A permanent redirect that has held for seven days makes a feed an alias, whatever is known of its
// target: then the old URL is not polled any more.
func TestPermanentRedirectIsAdoptedAfterSevenDays(t *testing.T) {
	const day = 24 * time.Hour
	read := func(g *gateway, url string, wait time.Duration) {
		wantBody(t, g.feed(url), 200, "Entry 2")
		time.Sleep(wait)
	}
	daily := func(days int) func(g *gateway) {
		return func(g *gateway) {
			for range days {
				read(g, feedURL, 25*time.Hour)
			}
		}
	}
	both := func(first, second string) func(g *gateway) {
		return func(g *gateway) {
			for range 10 * 6 {
				read(g, first, 10*time.Minute)
				read(g, second, 230*time.Minute)
			}
		}
	}
	for name, c := range some(map[string]struct {
		status   int // 0: 301
		feeds    []string
		broken   time.Duration // when one poll finds no redirect; 0: never
		life     func(g *gateway)
		earliest time.Duration // of the adoption; 0: there is none
	}{
		"301":                 {status: 301, life: daily(10), earliest: 7 * day},
		"302":                 {status: 302, life: daily(10)},
		"308":                 {status: 308, life: daily(10), earliest: 7 * day},
		"interrupted":         {broken: 5 * 25 * time.Hour, life: daily(12)},
		"target known before": {life: both(movedURL, feedURL), earliest: 7 * day},
		"target known later":  {life: both(feedURL, movedURL), earliest: 7 * day},
		"both, with a version": {feeds: []string{feedURL, movedURL}, life: func(g *gateway) {
			read(g, feedURL, 2*time.Hour)
			both(movedURL, feedURL)(g)
		}, earliest: 7 * day},
		"seen now and then": {life: func(g *gateway) {
			for range 3 { // which says little of the days between
				read(g, feedURL, 10*day)
			}
			daily(6)(g)
		}, earliest: 30 * day},
		"not in memory": {feeds: []string{feedURL}, life: func(g *gateway) {
			for range 9 * 4 {
				g.restart()
				time.Sleep(6 * time.Hour)
			}
		}, earliest: 7 * day},
	}) {
		bubble(t, name, func(t *testing.T) {
			began := epoch
			var entries atomic.Int64 // the background polls as well
			entries.Store(2)
			g := newWebGateway(t, func(url string) response {
				if since := time.Since(began); url == movedURL || c.broken > 0 && since >= c.broken && since < c.broken+day {
					return given(rss(int(entries.Load()), ""), "Cache-Control", "max-age=3600")
				}
				return redirect(cmp.Or(c.status, 301), movedURL)
			})
			g.settings.Feeds, g.settings.Prefetch = c.feeds, name == "not in memory"
			g.open()
			c.life(g)
			last := g.asked(feedURL)
			held, lasted := last[len(last)-1].Sub(began), time.Since(began)
			if c.earliest == 0 && held < lasted-2*day || c.earliest > 0 && (held < c.earliest || held > c.earliest+5*day) {
				t.Errorf("the old URL was polled for %v", held)
			}
			if entries.Store(3); c.earliest > 0 {
				time.Sleep(2 * time.Hour)
				wantBody(t, g.feed(movedURL), 200, "Entry 3")
				w := g.feed(feedURL)
				wantBody(t, w, 200, "Entry 3")
				// A reader of the old URL may have had an earlier version at any time, one of the new one may not.
				time.Sleep(2 * time.Hour)
				now := time.Now().UTC().Format(http.TimeFormat)
				wantBody(t, g.feed(movedURL, "If-Modified-Since", now), 304, "")
				wantBody(t, g.feed(feedURL, "If-Modified-Since", now), 200, "Entry 3")
				wantBody(t, g.feed(feedURL, "If-Modified-Since", w.Header().Get("Last-Modified")), 304, "")
			}
		})
	}
}

func TestFeedThatFailsAtItsNewAddressGoesHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := false
		moved := moving(301)
		g := newWebGateway(t, func(url string) response {
			switch {
			case !dead:
				return moved(url)
			case url == movedURL:
				return response{Status: 404}
			}
			return given(rss(3, ""))
		}).open()
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

// A feed that becomes another's alias has been polled after that one: what readers have
// of it stays until the other has been polled as well.
func TestAdoptionDoesNotGoBackToAnOlderVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entries := 1
		g := newWebGateway(t, func(url string) response {
			if url == movedURL {
				return given(rss(entries, ""), "Cache-Control", "max-age=3600")
			}
			return redirect(301, movedURL)
		})
		g.settings.Feeds = []string{feedURL} // its redirect is followed, though there is a feed at its end
		g.open()
		wantBody(t, g.feed(movedURL), 200, "Entry 1")
		for day := range 12 {
			entries = 2 + day
			time.Sleep(25 * time.Hour)
			for n := range 3 {
				w := g.feed(feedURL)
				wantBody(t, w, 200, fmt.Sprintf("Entry %d<", entries-1+min(n, 1)))
				age := 0
				if _, err := fmt.Sscanf(w.Header().Get("Cache-Control"), "max-age=%d", &age); err != nil || age > 2*60*60 {
					t.Errorf("Cache-Control: %q, %v", w.Header().Get("Cache-Control"), err)
				}
				time.Sleep(time.Minute)
			}
		}
		if at := g.asked(movedURL); len(at) < 2 {
			t.Error("the redirect was not adopted")
		}
	})
}

// One poll that is redirected to a known feed, which may belong to another site, changes nothing.
// If a temporary redirect lasts for a week, readers are sent on.
func TestRedirectChangesNothingForAWeek(t *testing.T) {
	slow(t)
	for _, status := range []int{301, 302} {
		synctest.Test(t, func(t *testing.T) {
			const other = "https://other.test/feed.xml"
			moved := false
			g := newWebGateway(t, func(url string) response {
				switch {
				case url == other:
					return given(strings.ReplaceAll(rss(2, ""), "Entry", "Other"), "ETag", `"o"`)
				case moved:
					return redirect(status, other)
				}
				return given(rss(5, ""), "ETag", `"a"`)
			}).open()
			wantBody(t, g.feed(feedURL), 200, "Entry 5")
			wantBody(t, g.feed(other), 200, "Other 2")
			time.Sleep(26 * time.Hour)
			moved = true
			wantBody(t, g.feed(feedURL), 200, "Entry 5")
			moved = false
			for range 10 {
				time.Sleep(25 * time.Hour)
				wantBody(t, g.feed(feedURL), 200, "Entry 5")
			}
			if polls := g.asked(feedURL); len(polls) != 12 {
				t.Errorf("%d: %d polls in 12 days", status, len(polls))
			}
			moved = true
			for day := range 10 {
				time.Sleep(25 * time.Hour)
				w := g.feed(feedURL)
				if day < 7 {
					wantBody(t, w, 200, "Entry 5")
				} else if day > 7 {
					wantBody(t, w, 200, "Other 2")
				}
			}
		})
	}
}

// An adopted redirect leads to a feed without readers. It does not put off the poll for the first
// of them.
func TestAdoptedRedirectDoesNotFreezeWhatItLeadsTo(t *testing.T) {
	const evil = "https://evil.test/x"
	synctest.Test(t, func(t *testing.T) {
		g := newWebGateway(t, func(url string) response {
			if url == evil {
				return redirect(301, feedURL, "Retry-After", "604800")
			}
			return given(rss(2, ""), "Cache-Control", "max-age=3600")
		}).open()
		var account status.Feed
		for began := time.Now(); account.Alias != feedURL && time.Since(began) < 20*24*time.Hour; time.Sleep(time.Hour) {
			g.feed(evil)
			var err error
			if account, err = g.Status(t.Context(), evil); err != nil {
				t.Fatal(err)
			}
		}
		if account.Alias == "" {
			t.Fatal("the redirect was not adopted")
		}
		time.Sleep(time.Hour)
		wantBody(t, g.feed(feedURL), 200, "Entry 2")
	})
}

// Aliases that lead in a circle, or too far, are answered all the same.
func TestCircleOfAliases(t *testing.T) {
	slow(t)
	synctest.Test(t, func(t *testing.T) {
		next := map[string]string{}
		g := newWebGateway(t, func(url string) response {
			if to := next[url]; to != "" {
				return redirect(301, to)
			}
			return given(rss(2, ""), "ETag", `"v"`)
		}).open()
		urls := make([]string, 6)
		for i := range urls {
			urls[i] = fmt.Sprintf("https://h%d.test/", i)
		}
		for i := len(urls) - 1; i >= 0; i-- { // each becomes an alias of the one behind it
			if i+1 < len(urls) {
				next[urls[i]] = urls[i+1]
			}
			g.feed(urls[i])
			time.Sleep(time.Minute)
		}
		next[urls[len(urls)-1]] = urls[0]
		for range 9 { // and the last one of the first
			time.Sleep(25 * time.Hour)
			for _, url := range urls {
				g.feed(url)
			}
			wantBody(t, g.feed(urls[len(urls)-2]), 200, "Entry 2")
		}
		for _, url := range urls[:len(urls)-1] {
			if a, err := g.Status(t.Context(), url); err != nil || a.Alias == "" {
				t.Errorf("%s is an alias of %q, %v", url, a.Alias, err)
			}
		}
		for range 2 {
			g.restart()
			for _, url := range urls {
				began := time.Now()
				if w := g.feed(url); w.Code == 500 {
					t.Errorf("%s: %d", url, w.Code)
				}
				if d := time.Since(began); d > 2*time.Minute {
					t.Errorf("%s took %v", url, d)
				}
			}
			time.Sleep(31 * 24 * time.Hour)
		}
	})
}

// A feed that was good keeps its version while it redirects to nowhere: to a URL that
// a reader has asked for and that is not a feed, or in a circle.
func TestRedirectToWhatIsNoFeedKeepsTheVersion(t *testing.T) {
	const other = "https://other.test/"
	for name, back := range map[string]response{
		"no feed":  given("<!DOCTYPE html><html><body>Log in</body></html>"),
		"a circle": redirect(302, feedURL),
	} {
		bubble(t, name, func(t *testing.T) {
			lost := false
			g := newWebGateway(t, func(url string) response {
				switch {
				case lost && url == feedURL:
					return redirect(302, other)
				case url == feedURL || !lost && name == "a circle":
					return given(rss(2, ""), "Cache-Control", "max-age=3600")
				}
				return back
			}).open()
			wantBody(t, g.feed(feedURL), 200, "Entry 2")
			g.feed(other)
			lost = true
			for range 48 {
				time.Sleep(time.Hour)
				w := g.feed(feedURL)
				if w.Code == http.StatusFound { // the circle is not known yet
					w = g.feed(w.Header().Get("Location"))
				}
				wantBody(t, w, 200, "Entry 2")
				g.feed(other)
			}
		})
	}
}
