// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
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
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/feed", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	requested, err := g.Feed(g.t.Context(), url)
	if err != nil {
		g.t.Fatal(err)
	}
	for {
		requested.Ask(g.by, false)
		f := requested.Resolve(g.t.Context())
		_, err := f.Serve(w, r, cache.ServeOptions{Pointed: f != requested})
		if u, ok := err.(*cache.Unavailable); ok && u.Moved != "" && f.Resolve(g.t.Context()) != f {
			continue
		}
		if u, ok := err.(*cache.Unavailable); ok {
			w.WriteHeader(u.Status)
			fmt.Fprint(w, u.Reason)
		} else if err != nil {
			g.t.Fatal(err)
		}
		return w
	}
}

// A feed whose URL redirects permanently is answered by the feed at the other URL, at once and for as long as it
// redirects. The old URL is looked at once a day. Its readers learn no date, as they may have any content of any date.
func TestMovedFeed(t *testing.T) {
	for _, status := range []int{301, 308} {
		for _, prefetch := range []bool{false, true} {
			bubble(t, fmt.Sprint(status, prefetch), func(t *testing.T) {
				entries, back := 2, false
				g := newWebGateway(t, func(url string) response {
					switch {
					case url == movedURL:
						return given(rss(entries, ""), "Cache-Control", "max-age=3600")
					case back:
						return given(rss(9, ""))
					}
					return redirect(status, movedURL)
				})
				if g.settings.Prefetch = prefetch; prefetch {
					g.settings.Feeds = []string{feedURL}
				}
				g.open()
				wantBody(t, g.feed(feedURL), 200, "Entry 2") // the reader who waits for the first poll
				for range 3 * 24 {
					time.Sleep(time.Hour)
					wantBody(t, g.feed(feedURL), 200, "Entry 2")
				}
				if n := len(g.asked(feedURL)); n > 4 {
					t.Errorf("the old URL was asked %d times in three days", n)
				}
				g.restart()
				if g.change(func() { entries = 3 }); prefetch {
					time.Sleep(2 * time.Hour) // without readers
					wantBody(t, g.feed(movedURL), 200, "Entry 3")
				}
				time.Sleep(2 * time.Hour)
				wantBody(t, g.feed(feedURL), 200, "Entry 3")
				time.Sleep(2 * time.Hour)
				now := time.Now().UTC().Format(http.TimeFormat)
				wantBody(t, g.feed(movedURL, "If-Modified-Since", now), 304, "")
				wantBody(t, g.feed(feedURL, "If-Modified-Since", now), 200, "Entry 3")
				wantBody(t, g.feed(feedURL, "If-Modified-Since", g.feed(movedURL).Header().Get("Last-Modified")), 200, "Entry 3")
				w := g.feed(feedURL)
				if w.Header().Get("Last-Modified") != "" {
					t.Errorf("Last-Modified of a feed that points: %v", w.Header())
				}
				wantBody(t, g.feed(feedURL, "If-None-Match", w.Header().Get("ETag")), 304, "")
				g.change(func() { back = true })
				time.Sleep(26 * time.Hour)
				g.feed(feedURL) // looks
				time.Sleep(time.Minute)
				wantBody(t, g.feed(feedURL), 200, "Entry 9")
			})
		}
	}
}

// At a path that the operator has chosen, the document of the feed that answers does not name its own address.
func TestDocumentOfATarget(t *testing.T) {
	for _, configured := range []bool{true, false} {
		bubble(t, fmt.Sprint(configured), func(t *testing.T) {
			g := newWebGateway(t, func(url string) response {
				if url == movedURL {
					return given(origintest.Document{Entries: 2, Extra: `<atom:link rel="via" href="` + movedURL + `"/>`}.String())
				}
				return redirect(301, movedURL)
			})
			if configured {
				g.settings.Feeds = []string{feedURL}
			}
			g.open()
			w := g.feed(feedURL)
			wantBody(t, w, 200, "Entry 2")
			if named := strings.Contains(w.Body.String(), movedURL); named == configured {
				t.Errorf("it is named (%v): %s", named, w.Body)
			}
		})
	}
}

// Of two feeds, one of which redirects to the other, the readers of both see each new entry, in whatever order they ask.
func TestOrderOfReaders(t *testing.T) {
	for _, status := range []int{301, 302} {
		for _, configured := range []bool{false, true} {
			for _, first := range []string{feedURL, movedURL} {
				bubble(t, fmt.Sprint(status, configured, first), func(t *testing.T) {
					entries := func() int { return 2 + int(time.Since(epoch)/(4*time.Hour)) }
					g := newWebGateway(t, func(url string) response {
						if url == feedURL && time.Since(epoch) > time.Minute {
							return redirect(status, movedURL)
						}
						return given(rss(entries(), ""), "Cache-Control", "max-age=3600", "ETag", fmt.Sprintf(`"%d"`, entries()))
					})
					if configured {
						g.settings.Feeds = []string{feedURL}
					}
					g.open()
					g.feed(movedURL)
					g.feed(feedURL)
					stale := 0
					for range 48 {
						time.Sleep(62 * time.Minute)
						got := map[string]string{first: g.feed(first).Body.String()}
						for _, url := range []string{feedURL, movedURL} {
							if url != first {
								got[url] = g.feed(url).Body.String()
							}
						}
						if got[feedURL] != got[movedURL] {
							stale++
						}
					}
					if stale > 1 { // the one in which the redirect begins
						t.Errorf("%d of 48 answers differ", stale)
					}
					if n := len(g.asked(feedURL)); status == 301 && n > 6 || n > 50 {
						t.Errorf("the URL that redirects was asked %d times in two days", n)
					}
				})
			}
		}
	}
}

// An error of a URL that redirected ends nothing: readers go on with the other feed's version. A temporary redirect and a
// document of its own end it.
func TestPointingEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		now  response
		want string
	}{
		"an error":             {response{Status: 503}, "Entry 7"},
		"not found":            {response{Status: 404}, "Entry 7"},
		"gone":                 {response{Status: 410}, "Entry 7"},
		"refused":              {response{Status: 429}, "Entry 7"},
		"another redirect":     {redirect(301, "https://third.test/"), "Entry 5"},
		"a temporary redirect": {redirect(302, "https://third.test/"), "Entry 5"},
		"a document":           {given(rss(3, "")), "Entry 3"},
	} {
		bubble(t, name, func(t *testing.T) {
			var now *response
			g := newWebGateway(t, func(url string) response {
				switch {
				case url == movedURL:
					return given(rss(7, ""))
				case url == "https://third.test/":
					return given(rss(5, ""))
				case now != nil:
					return *now
				}
				return redirect(301, movedURL)
			}).open()
			wantBody(t, g.feed(feedURL), 200, "Entry 7")
			now = &tt.now
			time.Sleep(25 * time.Hour)
			g.feed(feedURL)
			time.Sleep(time.Minute)
			wantBody(t, g.feed(feedURL), 200, tt.want)
		})
	}
}

// If a pointing begins or ends, no reader gets a 304 for a content that it does not have, whatever date it sends.
func TestDatesAroundAPointing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var moved bool
		g := newWebGateway(t, func(url string) response {
			switch {
			case url == movedURL:
				return given(rss(7, ""), "ETag", `"t"`)
			case moved:
				return redirect(301, movedURL)
			}
			return given(strings.ReplaceAll(rss(3, ""), "Entry", "Own"), "ETag", `"a"`)
		}).open()
		wantBody(t, g.feed(movedURL), 200, "Entry 7")
		own := g.feed(feedURL).Header().Get("Last-Modified")
		var dates []string
		look := func(want string) {
			t.Helper()
			for range 26 {
				now := time.Now().UTC().Format(http.TimeFormat)
				wantBody(t, g.feed(feedURL), 200, want)
				for _, date := range append(dates, now) {
					if w := g.feed(feedURL, "If-Modified-Since", date); w.Code != 200 {
						t.Errorf("%v: %d for the date %s", time.Since(epoch), w.Code, date)
					}
				}
				dates = append(dates, now)
				time.Sleep(time.Hour)
			}
		}
		time.Sleep(2 * time.Hour)
		moved = true
		g.feed(feedURL)
		time.Sleep(time.Minute)
		look("Entry 7")
		moved = false
		for range 2 {
			time.Sleep(25 * time.Hour)
			g.feed(feedURL)
		}
		w := g.feed(feedURL)
		wantBody(t, w, 200, "Own 3")
		if date := w.Header().Get("Last-Modified"); date == own || date == "" {
			t.Errorf("the version that is back has the date %q, as before", date)
		}
		for _, date := range append(dates, own) {
			wantBody(t, g.feed(feedURL, "If-Modified-Since", date), 200, "Own 3")
		}
		wantBody(t, g.feed(feedURL, "If-Modified-Since", w.Header().Get("Last-Modified")), 304, "")
	})
}

// A redirect that cannot be followed yet is not tried again before min_interval has passed, however often the other site
// has a turn, and does not fail.
func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newWebGateway(t, func(url string) response {
			if url == feedURL {
				return redirect(302, movedURL)
			}
			return given(rss(2, ""), "ETag", `"v"`)
		})
		g.settings.Feeds = []string{feedURL}
		g.open()
		if err := g.store.Restore(t.Context(), []store.Saved{{Pause: &policy.Pause{Site: "new.test", For: 5 * time.Hour, Why: policy.HintHostCooldown}}}); err != nil {
			t.Fatal(err)
		}
		for range 24 * 6 {
			g.feed(feedURL)
			time.Sleep(10 * time.Minute)
		}
		asked := g.asked(feedURL)
		for i := 1; i < len(asked); i++ {
			if gap := asked[i].Sub(asked[i-1]); gap < time.Hour {
				t.Errorf("asked again after %v", gap)
			}
		}
		if s, err := g.Status(t.Context(), feedURL); err != nil || s.Failures != 0 || s.LastResult != status.ResultNew && s.LastResult != status.ResultUnchanged {
			t.Errorf("after the pause: %+v, %v", s, err)
		}
		if len(asked) > 24 || len(asked) < 3 {
			t.Errorf("asked %d times in a day", len(asked))
		}
	})
}

// A document that names another address for seven days has its readers follow, if the newest entry is there, and only
// as long as it names that.
func TestDocumentNamesAnotherAddress(t *testing.T) {
	for name, tt := range map[string]struct {
		newest time.Time // entry at the other address
		want   string
	}{
		"with the newest entry": {epoch, "moved"},
		"without it":            {epoch.Add(-24 * time.Hour), "stays"},
	} {
		bubble(t, name, func(t *testing.T) {
			names := true
			g := newWebGateway(t, func(url string) response {
				d := origintest.Document{Title: "stays", Entries: 2, Newest: epoch}
				switch {
				case url == movedURL:
					d.Title, d.Newest, d.Entries = "moved", tt.newest, 1
				case names:
					d.Extra = `<itunes:new-feed-url>` + movedURL + `</itunes:new-feed-url>`
				}
				return given(d.String(), "ETag", d.Title)
			}).open()
			for range 6 * 24 {
				wantBody(t, g.feed(feedURL), 200, "stays")
				time.Sleep(time.Hour)
			}
			if n := len(g.asked(movedURL)); n > 0 {
				t.Errorf("the other address was asked %d times in six days", n)
			}
			if s, err := g.Status(t.Context(), feedURL); err != nil || s.Incident == nil || s.Incident.Kind != status.IncidentNamed {
				t.Errorf("incident %+v, %v", s.Incident, err)
			}
			for range 4 * 24 {
				g.feed(feedURL)
				time.Sleep(time.Hour)
			}
			wantBody(t, g.feed(feedURL), 200, tt.want)
			for range 30 { // it stays so
				time.Sleep(24 * time.Hour)
				g.feed(feedURL)
				time.Sleep(time.Minute)
				wantBody(t, g.feed(feedURL), 200, tt.want)
			}
			names = false
			time.Sleep(25 * time.Hour)
			g.feed(feedURL)
			time.Sleep(time.Minute)
			wantBody(t, g.feed(feedURL), 200, "stays")
		})
	}
}

// While the feed that answers fails, it is looked at the feed's own interval where its URL leads.
func TestTargetFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails, back := false, false
		g := newWebGateway(t, func(url string) response {
			switch {
			case url == movedURL && fails:
				return response{Status: 404}
			case url == feedURL && !back:
				return redirect(301, movedURL)
			}
			return given(rss(4, ""), "Cache-Control", "max-age=3600")
		}).open()
		for range 5 {
			wantBody(t, g.feed(feedURL), 200, "Entry 4")
			time.Sleep(time.Hour)
		}
		before := len(g.asked(feedURL))
		fails = true
		for range 10 {
			time.Sleep(time.Hour)
			wantBody(t, g.feed(feedURL), 200, "Entry 4")
		}
		if n := len(g.asked(feedURL)) - before; n < 5 || n > 10 {
			t.Errorf("asked %d times in ten hours", n)
		}
	})
}

// A feed that moves keeps its version until there is one at its new address, and so it does if that is no feed or
// leads back.
func TestMoveToWhatIsNoFeedKeepsTheVersion(t *testing.T) {
	for name, other := range map[string]response{
		"no feed": given("<!DOCTYPE html><html><body>Log in</body></html>"), "not found": {Status: 404}, "a circle": redirect(301, feedURL),
	} {
		bubble(t, name, func(t *testing.T) {
			moved := false
			g := newWebGateway(t, func(url string) response {
				switch {
				case url == movedURL:
					return other
				case moved:
					return redirect(301, movedURL)
				}
				return given(rss(5, ""), "Cache-Control", "max-age=3600")
			}).open()
			wantBody(t, g.feed(feedURL), 200, "Entry 5")
			moved = true
			for range 10 {
				time.Sleep(25 * time.Hour)
				wantBody(t, g.feed(feedURL), 200, "Entry 5")
				if f, err := g.Status(t.Context(), feedURL); err != nil || f.State == status.StateUnread {
					t.Errorf("readers get a version of it, and its state is %q (%v)", f.State, err)
				}
			}
			if n := len(g.asked(movedURL)); n > 12 {
				t.Errorf("it was asked %d times", n)
			}
		})
	}
}

// Feeds that point in a circle, or too far, fail.
func TestCircleOfPointers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newWebGateway(t, func(url string) response {
			var n int
			if _, err := fmt.Sscanf(url, "https://circle%d.test/", &n); err == nil {
				return redirect(301, fmt.Sprintf("https://circle%d.test/", (n+1)%3))
			}
			if _, err := fmt.Sscanf(url, "https://far%d.test/", &n); err == nil && n < 9 {
				return redirect(301, fmt.Sprintf("https://far%d.test/", n+1))
			}
			return given(rss(2, ""))
		}).open()
		for _, url := range []string{"https://circle0.test/", "https://far0.test/", "https://circle0.test/", "https://far0.test/"} {
			began := time.Now()
			if w := g.feed(url); w.Code != 502 || !strings.Contains(w.Body.String(), "circle") {
				t.Errorf("%s: %d %s", url, w.Code, w.Body)
			}
			if d := time.Since(began); d > time.Minute {
				t.Errorf("%s took %v", url, d)
			}
			time.Sleep(time.Hour)
		}
		wantBody(t, g.feed("https://far6.test/"), 200, "Entry 2")
	})
}

// A poll by hand of a feed that points asks its own URL and the feed that answers.
func TestRefreshOfAFeedThatPoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := false
		g := newWebGateway(t, func(url string) response {
			if url == feedURL && back {
				return given(rss(9, ""))
			}
			return moving(301)(url)
		}).open()
		wantBody(t, g.feed(feedURL), 200, "Entry 2")
		time.Sleep(2 * time.Hour)
		if _, err := g.Refresh(t.Context(), feedURL); err != nil {
			t.Fatal(err)
		}
		if own, target := len(g.asked(feedURL)), len(g.asked(movedURL)); own != 2 || target != 2 {
			t.Errorf("its own URL was asked %d times and that of the target %d times, want both twice", own, target)
		}
		back = true
		time.Sleep(2 * time.Hour)
		if s, err := g.Refresh(t.Context(), feedURL); err != nil || string(s.URL) != feedURL {
			t.Errorf("refreshed %v, %v", s.URL, err)
		}
		wantBody(t, g.feed(feedURL), 200, "Entry 9")
	})
}

// The feed at the end of a row that the operator has configured is the operator's.
func TestRowOfTargetsOfTheOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newWebGateway(t, func(url string) response {
			switch url {
			case feedURL:
				return redirect(301, "https://second.test/")
			case "https://second.test/":
				return redirect(301, movedURL)
			}
			return given(rss(2, ""), "Cache-Control", "max-age=3600")
		})
		g.settings.Prefetch, g.settings.Feeds = true, []string{feedURL}
		g.open()
		time.Sleep(10 * 24 * time.Hour)
		if n := len(g.asked(movedURL)); n < 10*23 {
			t.Errorf("the feed that answers was asked %d times in ten days, want every hour", n)
		}
		for _, url := range []string{feedURL, "https://second.test/"} {
			if n := len(g.asked(url)); n > 13 {
				t.Errorf("%s, which redirects, was asked %d times in ten days", url, n)
			}
		}
		records, err := g.store.Lookup(t.Context(), []store.ID{store.IDOf(movedURL)})
		if err != nil || len(records) != 1 || !records[0].Configured {
			t.Errorf("its record is not the operator's: %v", err)
		}
		wantBody(t, g.feed(feedURL), 200, "Entry 2")
	})
}

// Two feeds that begin to redirect to each other in the same moment keep their versions, and each comes back by its own answer.
func TestCircleAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		moved, back := false, ""
		g := newWebGateway(t, func(url string) response {
			if moved && url != back {
				return redirect(301, map[string]string{feedURL: movedURL, movedURL: feedURL}[url])
			}
			return given(strings.ReplaceAll(rss(2, ""), "Entry", url), "Cache-Control", "max-age=3600")
		}).open()
		both := []string{feedURL, movedURL}
		for _, url := range both {
			wantBody(t, g.feed(url), 200, url+" 2")
		}
		g.change(func() { moved = true })
		time.Sleep(2 * time.Hour)
		for _, url := range both {
			f := must(g.Feed(t.Context(), url))
			f.Ask(g.by, false)
			f.PollIfDue()
		}
		for range 100 {
			time.Sleep(time.Hour)
			for _, url := range both {
				wantBody(t, g.feed(url), 200, " 2")
			}
		}
		for _, url := range both {
			if n := len(g.asked(url)); n > 103 {
				t.Errorf("%s was asked %d times", url, n)
			}
		}
		g.change(func() { back = movedURL })
		for range 50 {
			time.Sleep(time.Hour)
			for _, url := range both {
				g.feed(url)
			}
		}
		for _, url := range both {
			wantBody(t, g.feed(url), 200, movedURL+" 2")
		}
	})
}

// Two sites that redirect to each other at once, and a site that redirects within itself at a long spacing, hold no poll.
func TestRedirectsThatWaitForEachOther(t *testing.T) {
	for name, to := range map[string]map[string]string{
		"two sites": {"https://one.test/x": "https://two.test/y", "https://two.test/z": "https://one.test/w"},
		"one site":  {"https://one.test/x": "https://one.test/y", "https://one.test/z": "https://one.test/w"},
	} {
		bubble(t, name, func(t *testing.T) {
			g := newWebGateway(t, func(url string) response {
				if to[url] != "" {
					return redirect(302, to[url])
				}
				return given(rss(2, ""), "Cache-Control", "max-age=3600")
			})
			g.client.Apply(upstream.Settings{Hosts: []upstream.HostRule{{Pattern: "*", Spacing: 30 * time.Second}}})
			for url := range to {
				g.settings.Feeds = append(g.settings.Feeds, url)
			}
			g.settings.Prefetch = true
			g.open()
			for range 24 {
				time.Sleep(time.Hour)
				for _, f := range g.accounts() {
					if f.LastResult == status.ResultHeld || f.Failures > 0 {
						t.Errorf("%v: %s: %s %s", time.Since(epoch), f.URL, f.LastResult, f.LastError)
					}
				}
			}
			for url := range to {
				if n := len(g.asked(url)); n < 20 || n > 24 {
					t.Errorf("%s was asked %d times in a day", url, n)
				}
			}
		})
	}
}
