// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/internal/status/statustest"
	"github.com/feedpollard/pollard/policy"
)

// Pages name every hint by the words that the log, commands and docs have.
func TestHintsInWords(t *testing.T) {
	p, source, at := newPages(t, 1)
	source.account = func(Which) (f status.Feed, _ []byte, _ error) {
		f = source.row(0)
		for _, name := range status.HintNames() {
			f.Considered = append(f.Considered, policy.Term{Hint: name, Raw: name})
		}
		return f, nil, nil
	}
	body := ask(p, at, "GET", "feeds?id=1").Body.String()
	for _, name := range status.HintNames() {
		row := `<th scope="row">` + status.HintShort(name) + ` <small>` + html.EscapeString(status.HintMeaning(name)) + `</small></th><td data-label="Given"></td>`
		if strings.Count(body, row) != 1 {
			t.Errorf("%s is not on the page as %q", name, row)
		}
		f := source.row(0)
		if f.Winner = name; f.Next(source.now) != "poll in 3 min: "+status.HintShort(name) {
			t.Errorf("the list says %q", f.Next(source.now))
		}
	}
}

// The reason of a failure stands on a feed's page once.
func TestCauseIsSaidOnce(t *testing.T) {
	p, source, at := newPages(t, 3)
	const cause = "the site sends a check for browsers (Cloudflare) in place of the feed"
	for _, winner := range []string{policy.HintBackOff, policy.HintOffline} {
		source.account = func(Which) (status.Feed, []byte, error) {
			f := source.detailed(source.row(0))
			f.State, f.Failures, f.LastStatus, f.LastFailure, f.LastError, f.Winner = status.StateFailing, 2, 403, policy.FailureChallenge, cause, winner
			f.Reason = f.Explain(source.now, nil)
			return f, nil, nil
		}
		if body := ask(p, at, "GET", "feeds?id=1").Body.String(); strings.Count(body, cause) != 1 || strings.Contains(body, "refuses programs") {
			t.Errorf("%s: %s", winner, body)
		}
	}
}

// Nothing on a feed's page, and in its row of a list, contradicts another fact of the feed.
func TestPageAgreesWithFacts(t *testing.T) {
	p, source, at := newPages(t, 1)
	tag, said := regexp.MustCompile(`<[^>]*>`), make(map[string]bool)
	for name, f := range statustest.Few(source.now) {
		f.Hints, f.ID = policy.Hints{}, "1"
		source.account = func(Which) (status.Feed, []byte, error) { return f, nil, nil }
		source.list = func(status.Query) (status.FeedList, error) {
			return status.FeedList{Feeds: []status.Feed{f}, Matched: 1}, nil
		}
		p, at := p, at
		if f.Shield {
			p, at = ofShield(p)
		}
		for _, target := range []string{"feeds?id=1", "feeds"} {
			_, body, _ := strings.Cut(ask(p, at, "GET", target).Body.String(), "<h1")
			if decision := strings.Index(body, "<h2>How the next poll"); decision >= 0 {
				body = body[:decision] // what follows is a table of all hints
			}
			text := html.UnescapeString(tag.ReplaceAllString(body, ""))
			if wrong := statustest.Contradiction(&f, text, source.now); wrong != "" && !said[f.Winner+wrong] {
				said[f.Winner+wrong] = true
				t.Errorf("%s: %s, at %s: %s", name, wrong, target, text)
			}
		}
	}
}

// The headline counts the feeds, and nothing else does again.
func TestCountsOnce(t *testing.T) {
	for _, size := range []int{3, 100} {
		p, _, at := newPages(t, size)
		if got := strings.Count(ask(p, at, "GET", "feeds").Body.String(), fmt.Sprintf("%d feeds", size)); got != 1 {
			t.Errorf("%d feeds are counted %d times", size, got)
		}
	}
}
