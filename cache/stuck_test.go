// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// stuckAt1970 are validators that never change.
var stuckAt1970 = []string{"ETag", `"same"`, "Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT", "Cache-Control", "max-age=86400"}

// conditional answers 304 to conditional polls, and all others with a document.
func conditional(document func() policy.Answer) func(policy.Ask) policy.Answer {
	return func(ask policy.Ask) policy.Answer {
		if !ask.Validators.Empty() {
			return unchanged()
		}
		return document()
	}
}

// pollGap is the time between two polls of a feed with stuckAt1970: a little more than its max-age.
const pollGap = 25 * time.Hour

// live has a reader ask so many times, and returns which polls so far were unconditional.
func (g *gateway) live(steps int) (unconditional []int) {
	g.t.Helper()
	for range steps {
		g.get(feedURL)
		time.Sleep(pollGap)
	}
	for i, ask := range g.origin.asks {
		if ask.Validators.Empty() {
			unconditional = append(unconditional, i)
		}
		if i > 0 && g.origin.at[i].Sub(g.origin.at[i-1]) < pollGap {
			g.t.Errorf("poll %d came %v after the one before", i, g.origin.at[i].Sub(g.origin.at[i-1]))
		}
	}
	return unconditional
}

func wantUnconditional(t *testing.T, got []int, want ...int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("unconditional polls: %v, want %v", got, want)
	}
}

// An origin that answers 304 for ever is asked without validators each 8 days, in place of
// a regular poll and as long as that helps.
func TestStuckOriginIsAskedWithoutValidators(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		entries := 1
		g := newGateway(t, dir, conditional(func() policy.Answer { return ok(rss(entries, ""), stuckAt1970...) })).open()
		defer func() { g.close() }()
		g.live(3)
		entries = 2
		g.restart()
		g.live(4)
		wantBody(t, g.get(feedURL), 200, "Entry 1")
		g.restart()
		time.Sleep(pollGap)
		wantBody(t, g.get(feedURL), 200, "Entry 2")
		g.wantProbe("clocks begin")
		if v := g.origin.last().Validators; !v.Empty() {
			t.Errorf("the probe sent %+v", v)
		}
		time.Sleep(pollGap)
		g.get(feedURL)
		g.wantProbe("")
		if v := g.origin.last().Validators; v.ETag != stuckAt1970[1] || v.LastModified != stuckAt1970[3] {
			t.Errorf("the poll after the probe sent %+v", v)
		}
		entries = 3
		time.Sleep(pollGap)
		wantUnconditional(t, g.live(62), 0, 8, 16, 24, 40, 71)
		wantBody(t, g.get(feedURL), 200, "Entry 3")
	})
}

// wantProbe checks what the record says of the last poll being unconditional; empty: nothing.
func (g *gateway) wantProbe(why string) {
	g.t.Helper()
	a, err := g.Status(g.t.Context(), feedURL)
	if err != nil {
		g.t.Fatal(err)
	}
	i := slices.IndexFunc(a.Considered, func(t policy.Term) bool { return t.Hint == policy.HintStuck })
	if (i >= 0) != (why != "") || i >= 0 && !strings.Contains(a.Considered[i].Note, why) {
		g.t.Errorf("considered %+v, want %q", a.Considered, why)
	}
}

// Each probe that brings nothing new makes the next one come later. None is tried again,
// whatever has become of it.
func TestProbesForNothingBecomeRare(t *testing.T) {
	for name, answer := range map[string]policy.Answer{
		"the same":          ok(rss(2, ""), stuckAt1970...),
		"the same meaning":  ok(rss(2, "now"), stuckAt1970...),
		"304 all the same":  failed(304, policy.FailureUnasked),
		"an error":          failed(500, policy.FailureStatus),
		"too many requests": failed(429, policy.FailureRateLimited),
		"no feed":           ok("<html>"),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, dir string) {
				now := ok(rss(2, ""), stuckAt1970...)
				g := newGateway(t, dir, conditional(func() policy.Answer { return now })).open()
				defer func() { g.close() }()
				g.live(2)
				now = answer
				g.live(10)
				g.restart()
				wantUnconditional(t, g.live(14), 0, 8, 24)
				wantBody(t, g.get(feedURL), 200, "Entry 2")
			})
		})
	}
}

// A probe of which nothing was sent was none.
func TestProbeThatWasNotSentIsMadeLater(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		full := conditional(func() policy.Answer { return ok(rss(2, ""), stuckAt1970...) })
		g := newGateway(t, dir, full).open()
		defer g.close()
		g.live(8)
		g.origin.answers(func(policy.Ask) policy.Answer { return failed(0, policy.FailureDNS) })
		g.get(feedURL)
		g.wantProbe("")
		g.origin.answers(full)
		time.Sleep(pollGap)
		wantUnconditional(t, g.live(30), 0, 8, 9, 25) // nobody has got the eighth
	})
}

// Whoever has a poll made by hand gets a conditional one.
func TestPollByHandIsNoProbe(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, conditional(func() policy.Answer { return ok(rss(2, ""), stuckAt1970...) })).open()
		defer g.close()
		g.live(8)
		if _, err := g.Refresh(t.Context(), feedURL); err != nil {
			t.Fatal(err)
		}
		if n := g.origin.polls(); n != 9 || g.origin.last().Validators.Empty() {
			t.Errorf("%d polls, the last with %+v", n, g.origin.last().Validators)
		}
		g.wantProbe("")
		time.Sleep(pollGap)
		wantUnconditional(t, g.live(2), 0, 9)
	})
}

// What a probe brings says nothing of the origin's validators: it had none to match.
func TestProbeDoesNotCountAgainstValidators(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		answer := ok(rss(2, ""), stuckAt1970[:4]...)
		full := false
		g := newGateway(t, dir, func(ask policy.Ask) policy.Answer {
			if ask.Validators.Empty() || full {
				return answer
			}
			return unchanged()
		}).open()
		defer g.close()
		for !full {
			time.Sleep(time.Hour)
			g.get(feedURL)
			full = g.origin.polls() > 1 && g.origin.last().Validators.Empty()
		}
		for range 3 {
			if a, err := g.Status(t.Context(), feedURL); err != nil || a.Winner != policy.HintDefault {
				t.Errorf("the next poll is decided by %s, %v", a.Winner, err)
			}
			time.Sleep(time.Hour)
			g.get(feedURL)
			if v := g.origin.last().Validators; v.ETag == "" {
				t.Errorf("the ETag is left out already: %+v", v)
			}
		}
		if a, err := g.Status(t.Context(), feedURL); err != nil || a.Winner != policy.HintUnvalidated {
			t.Errorf("after three polls that did not heed them: %s, %v", a.Winner, err)
		}
	})
}

// Where nothing speaks against 304s, every poll but the first is conditional; that a feed is
// quiet does not, unless it has become so since its version was first seen.
func TestProbesNeedEvidence(t *testing.T) {
	dated := func(newest time.Time) string {
		body := rss(0, "")
		for i := range 10 {
			body = strings.Replace(body, "</channel>", fmt.Sprintf("<item><guid>%d</guid><pubDate>%s</pubDate></item></channel>",
				i, newest.AddDate(0, 0, -i).Format(time.RFC1123)), 1)
		}
		return body
	}
	for _, test := range []struct {
		name, body, etag, modified string
		want                       []int
	}{
		{"sound validators", rss(2, ""), `"v"`, "Mon, 02 Mar 2026 09:00:00 GMT", []int{0}},
		{"a feed that was quiet already", dated(epoch.AddDate(0, 0, -5)), `"v"`, "", []int{0}},
		{"a feed that has become so", dated(epoch.AddDate(0, 0, -3)), `"v"`, "", []int{0, 8, 24}},
		{"a date for an ETag", rss(2, ""), `"2026-03-02"`, "", []int{0, 8, 24}},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, dir string) {
				g := newGateway(t, dir, conditional(func() policy.Answer {
					return ok(test.body, "ETag", test.etag, "Last-Modified", test.modified, "Cache-Control", "max-age=86400")
				})).open()
				defer g.close()
				wantUnconditional(t, g.live(26), test.want...)
			})
		})
	}
}

// Polls that are made ahead of readers are probes as well, and none comes besides them.
func TestProbeOfAPrefetchedFeed(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, conditional(func() policy.Answer { return ok(rss(2, ""), stuckAt1970...) }))
		g.settings.Prefetch = true
		g.settings.Feeds = []string{feedURL}
		g.open()
		defer g.close()
		g.get(feedURL)
		time.Sleep(30 * 24 * time.Hour)
		g.origin.mu.Lock()
		defer g.origin.mu.Unlock()
		var unconditional []int
		for i, ask := range g.origin.asks {
			if ask.Validators.Empty() {
				unconditional = append(unconditional, i)
			}
			if i > 0 && g.origin.at[i].Sub(g.origin.at[i-1]) < 24*time.Hour {
				t.Errorf("poll %d came %v after the one before", i, g.origin.at[i].Sub(g.origin.at[i-1]))
			}
		}
		wantUnconditional(t, unconditional, 0, 8, 24)
	})
}
