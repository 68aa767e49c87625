// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// TestUpgrade opens stores of version 1 of the tables, with all sites away. Every feed that has a version is
// served, but for one whose record is damaged.
func TestUpgrade(t *testing.T) {
	for _, how := range []string{"closed", "killed"} {
		g := &gateway{t: t, dir: t.TempDir(), origin: &script{answer: func(policy.Ask) policy.Answer {
			return policy.Answer{Failure: policy.FailureConnect, Err: io.ErrUnexpectedEOF}
		}}}
		g.unpack("version1-" + how)
		g.rules(policy.DefaultRules())
		g.open()
		served, dated := 0, 0
		for _, a := range g.accounts() {
			url := string(a.URL)
			w := g.get(url)
			switch {
			case a.Version == 0, strings.Contains(url, "large.test"): // that one has no description that fits
			case w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "<rss"):
				t.Errorf("%s: %s: %d %.80q", how, url, w.Code, w.Body)
			default:
				served++
				if again := g.get(url, "If-None-Match", w.Header().Get("ETag")); again.Code != http.StatusNotModified {
					t.Errorf("%s: %s: %d to its ETag", how, url, again.Code)
				}
				if date := w.Header().Get("Last-Modified"); date != "" {
					dated++
					if again := g.get(url, "If-Modified-Since", date); again.Code != http.StatusNotModified {
						t.Errorf("%s: %s: %d to its date", how, url, again.Code)
					}
				}
			}
		}
		if served != 23 || dated != 23 {
			t.Errorf("%s: %d feeds were served, %d with a date", how, served, dated)
		}
		g.close()
	}
}

// unpack writes a golden store into the gateway's directory.
func (g *gateway) unpack(name string) {
	g.t.Helper()
	for _, part := range []string{"", "-wal"} {
		packed, err := os.Open(filepath.Join("store", "sqlite", "testdata", name+".sqlite"+part+".gz"))
		if os.IsNotExist(err) {
			continue
		}
		data := must(io.ReadAll(must(gzip.NewReader(packed))))
		if err := os.WriteFile(filepath.Join(g.dir, "feeds.sqlite"+part), data, 0o600); err != nil {
			g.t.Fatal(err)
		}
	}
}

// madeVersion2 is when the stores of version 2 of the tables were made: by a test of the program of that version, in
// fake time, after nine days of polls; once closed, once copied while it was open.
var madeVersion2 = time.Date(2026, time.March, 11, 10, 2, 39, 0, time.UTC)

// TestUpgradeFromVersion2 opens stores of version 2 at the moment at which they were made. Feeds, next polls, pauses,
// tags and dates are those that the program of that version showed, and an alias is a feed that points.
func TestUpgradeFromVersion2(t *testing.T) {
	type feed struct {
		code  int
		tag   string // of the ETag; empty: none
		date  string // Last-Modified; empty: none
		state status.State
		next  string // the day of March, and the time; empty: none
	}
	const march2 = "Mon, 02 Mar 2026 10:00:"
	feeds := map[string]feed{
		"https://fresh.test/feed.xml":         {200, "bee2c9ec33a4082e8505", march2 + "00 GMT", status.StateFresh, "11 12:00:00"},
		"https://failing.test/feed.xml":       {200, "eb8b4c75de326af19c31", march2 + "03 GMT", status.StateFailing, "11 12:00:03"},
		"https://gone.test/feed.xml":          {200, "d3428d93abd372ee7281", march2 + "06 GMT", status.StateGone, ""},
		"https://old.test/feed.xml":           {200, "bf12ec7ba751f6358615", "", status.StateFresh, "16 10:00:09"}, // new.test answers for it
		"https://new.test/feed.xml":           {200, "bf12ec7ba751f6358615", march2 + "12 GMT", status.StateFresh, "11 12:00:12"},
		"https://www.paused.test/refused.xml": {200, "49fa277f119129c1e6af", march2 + "15 GMT", status.StateWaiting, "11 20:00:15"},
		"https://www.paused.test/other.xml":   {200, "e399fde0b5d086e3b90e", march2 + "18 GMT", status.StateWaiting, "11 11:00:15"},
		"https://blog.paused.test/feed.xml":   {200, "49b2b862596d28a7ccb3", march2 + "21 GMT", status.StateFresh, "11 12:00:21"},
		"https://limit.test/a.xml":            {200, "ba85d62e0cba9a3e6557", march2 + "24 GMT", status.StateFresh, "11 12:00:24"},
		"https://limit.test/b.xml":            {200, "01c09f810dc4d4096387", march2 + "27 GMT", status.StateWaiting, "11 10:09:24"},
		"https://configured.test/feed.xml":    {200, "850bff2486ae645b03fa", march2 + "00 GMT", status.StateFresh, "11 12:00:00"},
		"https://never.test/feed.xml":         {404, "", "", status.StateUnread, "11 12:00:36"},
	}
	for _, how := range []string{"closed", "killed"} {
		bubble(t, how, func(t *testing.T) {
			g := newGateway(t, func(ask policy.Ask) policy.Answer {
				t.Errorf("%s was polled", ask.URL)
				return failed(500, policy.FailureStatus)
			})
			time.Sleep(time.Until(madeVersion2))
			g.dir = t.TempDir()
			g.unpack("version2-" + how)
			g.settings.Feeds = []string{"https://configured.test/feed.xml"}
			g.open()
			known := make(map[string]bool)
			for _, a := range g.accounts() {
				known[string(a.URL)] = true
			}
			if len(known) != len(feeds) {
				t.Errorf("%d feeds are known, want %d: %v", len(known), len(feeds), known)
			}
			for url, want := range feeds {
				w := g.feed(url)
				if w.Code != want.code || w.Header().Get("Last-Modified") != want.date || want.code == 200 && !strings.Contains(w.Body.String(), "Entry 3") {
					t.Errorf("%s: %d, Last-Modified %q, %.60q", url, w.Code, w.Header().Get("Last-Modified"), w.Body)
				}
				if tag := w.Header().Get("ETag"); strings.Trim(tag, `"`) != want.tag {
					t.Errorf("%s has the ETag %s, want %q", url, tag, want.tag)
				}
				if want.tag != "" && g.feed(url, "If-None-Match", `"`+want.tag+`"`).Code != http.StatusNotModified {
					t.Errorf("%s: no 304 to its ETag", url)
				}
				if want.date != "" && g.feed(url, "If-Modified-Since", want.date).Code != http.StatusNotModified {
					t.Errorf("%s: no 304 to its date", url)
				}
				synctest.Wait()
				f := must(g.Status(t.Context(), url))
				next := ""
				if !f.NextPoll.IsZero() {
					next = f.NextPoll.Format("2 15:04:05")
				}
				if f.State != want.state || next != want.next {
					t.Errorf("%s is %s, its next poll is at %s by %s, want %s, %s", url, f.State, next, f.Winner, want.state, want.next)
				}
			}
			if f := must(g.Status(t.Context(), "https://old.test/feed.xml")); f.Alias != "https://new.test/feed.xml" {
				t.Errorf("the alias points to %q", f.Alias)
			}
			if w := g.feed("https://forgotten.test/feed.xml"); w.Code != http.StatusServiceUnavailable {
				t.Errorf("a feed that was polled and then forgotten: %d, want that it waits", w.Code)
			}
		})
	}
}
