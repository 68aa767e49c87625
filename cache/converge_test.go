// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// leading answers as upstream does for URLs that redirect (with the status) to
// others; what does not redirect gives a document, or what it is told.
type leading struct {
	to     map[string]string
	status int
	broken map[string]policy.Answer
	hits   map[string][]time.Time // of URLs, redirects followed
}

func (l *leading) answer(ask policy.Ask) policy.Answer {
	a, url := policy.Answer{}, ask.URL
	for {
		if l.hits == nil {
			l.hits = map[string][]time.Time{}
		}
		l.hits[url] = append(l.hits[url], time.Now())
		if bad, ok := l.broken[url]; ok {
			bad.Moves, bad.URL = a.Moves, url
			return bad
		}
		next, redirects := l.to[url]
		if !redirects {
			good := ok(rss(2, ""), "ETag", `"v"`)
			if v := ask.Validators; v.ETag == `"v"` && v.URL == url {
				good = unchanged()
			}
			good.Moves, good.URL = a.Moves, url
			return good
		}
		a.Moves = append(a.Moves, policy.Move{From: url, To: next, Status: l.status})
		if err := ask.Hop(next); err != nil {
			a.Status, a.URL, a.Failure, a.Err = l.status, url, policy.FailureDelegated, err
			return a
		}
		url = next
	}
}

func (l *leading) wantSpaced(t *testing.T, url string) {
	t.Helper()
	hits := l.hits[url]
	for i := 1; i < len(hits); i++ {
		if gap := hits[i].Sub(hits[i-1]); gap < time.Hour {
			t.Fatalf("%s was asked for twice within %v, after %v", url, gap, hits[i].Sub(epoch))
		}
	}
	if len(hits) == 0 {
		t.Errorf("%s was never asked for", url)
	}
}

// Where two feeds lead to one URL one poll serves both, though nobody asks for that
// URL itself: one site is often known by several names.
func TestFeedsThatEndAtAURLOfNobodyArePolledOnce(t *testing.T) {
	const a, b, end = "http://www.one.test/feed", "http://one.test/feed", "https://one.test/feed"
	for name, status := range map[string]int{"temporary": 302, "permanent, adopted after a week": 301} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, dir string) {
				l := &leading{status: status, to: map[string]string{a: end, b: end}}
				g := newGateway(t, dir, l.answer).open()
				defer func() { g.close() }()
				for hour := range 24 * 16 {
					for _, url := range []string{a, b} {
						wantBody(t, g.get(url), 200, "Entry 2")
						time.Sleep(7 * time.Minute)
					}
					time.Sleep(46 * time.Minute)
					if hour == 100 {
						g.restart()
					}
				}
				l.wantSpaced(t, end)
				if n := len(l.hits[end]); n < 150 {
					t.Errorf("%d polls in sixteen days of hourly polling", n)
				}
				for _, url := range []string{a, b} {
					if account, err := g.Account(url); err != nil || account.Failures != 0 {
						t.Errorf("%s has failed %d times: %v", url, account.Failures, err)
					}
				}
			})
		})
	}
}

// The feed that polls for another one may fail on its own way there.
func TestFeedGoesOnWithoutOneThatFailsOnItsWay(t *testing.T) {
	const a, b, end = "http://www.one.test/feed", "http://one.test/feed", "https://one.test/feed"
	bubble(t, func(t *testing.T, dir string) {
		l := &leading{status: 302, to: map[string]string{a: end, b: end}, broken: map[string]policy.Answer{}}
		g := newGateway(t, dir, l.answer).open()
		defer g.close()
		g.get(a)
		g.get(b)
		time.Sleep(2 * time.Hour)
		l.broken[a] = failed(404, policy.FailureNotFound)
		g.get(a)
		g.get(b) // it still relies on the other one, or not: no matter
		before := len(l.hits[end])
		for range 24 {
			time.Sleep(2 * time.Hour)
			g.get(a)
			g.get(b)
		}
		if n := len(l.hits[end]) - before; n < 20 {
			t.Errorf("%d polls of a feed that is well, in two days", n)
		}
		delete(l.broken, a)
		l.hits = nil
		for range 100 {
			time.Sleep(40 * time.Minute)
			g.get(a)
			g.get(b)
		}
		l.wantSpaced(t, end)
	})
}

// A redirect names its target in other words than its readers do.
func TestAdoptedRedirectIsKnownInWhateverWords(t *testing.T) {
	const a, end = "https://old.test/feed", "https://new.test/feed"
	bubble(t, func(t *testing.T, dir string) {
		l := &leading{status: 301, to: map[string]string{a: "https://NEW.test:443/feed#top"}}
		g := newGateway(t, dir, l.answer).open()
		defer g.close()
		for range 24 * 12 {
			for _, url := range []string{end, a} {
				wantBody(t, g.get(url), 200, "Entry 2")
				time.Sleep(20 * time.Minute)
			}
			time.Sleep(21 * time.Minute)
		}
		for url := range l.hits {
			if url != a {
				l.hits[strings.ToLower(url)] = l.hits[url]
			}
		}
		l.wantSpaced(t, end)
		if account, err := g.Account(a); err != nil || account.Effective != end {
			t.Errorf("effective %q, %v", account.Effective, err)
		}
		for url := range l.hits {
			if url != a && url != end {
				t.Errorf("%s was asked for beside the feed that it is", url)
			}
		}
	})
}

// A feed that is new at a URL where another one's polls have ended leaves that one
// alone.
func TestNewFeedWhereAnotherOneEnded(t *testing.T) {
	const a, end = "https://old.test/feed", "https://new.test/feed"
	for name, pause := range map[string]time.Duration{"within its interval": 10 * time.Minute, "after it": 25 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, dir string) {
				l := &leading{status: 302, to: map[string]string{a: end}}
				g := newGateway(t, dir, l.answer).open()
				defer g.close()
				g.get(a)
				time.Sleep(pause)
				for range 48 {
					for _, url := range []string{end, a} {
						wantBody(t, g.get(url), 200, "Entry 2")
						time.Sleep(2 * time.Minute)
						for _, url := range []string{a, end} {
							if account, err := g.Account(url); err != nil || account.Failures != 0 {
								t.Fatalf("%s has failed %d times: %s, %v", url, account.Failures, account.LastError, err)
							}
						}
					}
					time.Sleep(26 * time.Minute)
				}
				l.wantSpaced(t, end)
			})
		})
	}
}

// A redirect to what is gone leads to nothing, whoever has found out.
func TestRedirectToAFeedThatIsGone(t *testing.T) {
	const a, end = "https://old.test/feed", "https://new.test/feed"
	bubble(t, func(t *testing.T, dir string) {
		l := &leading{status: 302, to: map[string]string{a: end}, broken: map[string]policy.Answer{}}
		g := newGateway(t, dir, l.answer).open()
		defer g.close()
		g.get(end)
		g.get(a)
		time.Sleep(25 * time.Hour)
		l.broken[end] = failed(http.StatusGone, policy.FailureGone)
		g.get(end)
		g.get(a)
		for _, url := range []string{a, end} {
			wantBody(t, g.get(url), 200, "Entry 2")
			if account, err := g.Account(url); err != nil || account.State != "gone" || account.LastStatus != 410 {
				t.Errorf("%s is %s after %d, %v", url, account.State, account.LastStatus, err)
			}
		}
	})
}

// What was sent counts for who wants a poll by hand, also where it came to nothing.
func TestRefreshAfterARedirectThatCameToNothing(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, redirecting(func(policy.Ask) policy.Answer {
			time.Sleep(25 * time.Second)
			return ok(rss(2, ""), "ETag", `"1"`)
		})).open()
		defer g.close()
		go g.get(movedURL)
		time.Sleep(time.Second)
		if w := g.get(feedURL); w.Code != 503 {
			t.Fatalf("got %d", w.Code)
		}
		_, err := g.Refresh(t.Context(), feedURL)
		wantTooEarly(t, err, "min_interval")
		time.Sleep(time.Minute)
	})
}
