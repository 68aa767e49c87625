// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/internal/status"
)

var update = flag.Bool("update", false, "make the golden stores of the present version of the tables again")

// goldenDir has stores as programs of each version of the tables have left them.
const goldenDir = "store/sqlite/testdata"

// golden is what the program that made a golden store showed of it at that moment.
type golden struct {
	Made   time.Time
	Feeds  []goldenFeed
	Pauses []string
}

type goldenFeed struct {
	URL, Points        string
	Code               int
	ETag, LastModified string
	State              status.State
	Next               time.Time
	Winner             string
}

const (
	goldenClosed     = time.Minute // after it was copied
	goldenConfigured = "https://configured.test/feed.xml"
	goldenRounds     = 8
	goldenUnderWay   = "https://slow.test/feed.xml" // its poll is under way when the store is copied
)

// goldenWeb are sites after some days: one that fails, one that is gone, one that has moved, one that refuses and so on.
func goldenWeb(round *int) func(url string) response {
	return func(url string) response {
		switch name, _, _ := strings.Cut(strings.TrimPrefix(url, "https://"), "/"); {
		case name == "never.test":
			return response{Status: http.StatusNotFound}
		case name == "slow.test":
			time.Sleep(20 * time.Second)
		case *round == 0:
		case name == "failing.test":
			return response{Status: http.StatusInternalServerError}
		case name == "gone.test":
			return response{Status: http.StatusGone}
		case name == "old.test":
			return redirect(http.StatusMovedPermanently, "https://new.test/feed.xml")
		case strings.HasSuffix(url, "/refused.xml") && *round == goldenRounds-1:
			return response{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"36000"}}}
		case name == "dated.test":
			return given(rss(3, ""), "Last-Modified", "Mon, 02 Mar 2026 08:00:00 GMT", "Cache-Control", "max-age=20000")
		}
		return origintest.Versioned(rss(3, ""), `"`+url+`"`)
	}
}

// goldenStore lets an engine work for some days, and shows what it knows then. copied is called while its store is open.
func goldenStore(t *testing.T, dir string, copied func()) (shown golden) {
	round := 0
	g := newWebGateway(t, goldenWeb(&round))
	g.dir, g.by = dir, store.OwnerOf(store.KindNamed, "a token")
	g.settings.Feeds = []string{goldenConfigured}
	g.open()
	defer g.close()
	for round = range goldenRounds {
		if round > 0 {
			time.Sleep(27 * time.Hour)
		}
		for _, url := range []string{
			"https://fresh.test/feed.xml", "https://failing.test/feed.xml", "https://gone.test/feed.xml", "https://new.test/feed.xml", "https://old.test/feed.xml",
			"https://www.paused.test/refused.xml", "https://www.paused.test/other.xml", "https://blog.paused.test/feed.xml", "https://dated.test/feed.xml",
			"https://forgotten.test/feed.xml", "https://poked.test/feed.xml", "https://never.test/feed.xml", goldenConfigured,
		} {
			g.feed(url)
			time.Sleep(5 * time.Second)
		}
	}
	if err := g.Forget(t.Context(), "https://forgotten.test/feed.xml"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Refresh(t.Context(), "https://poked.test/feed.xml"); err == nil {
		t.Error("the poke is not for later")
	}
	time.Sleep(10 * time.Minute) // what readers asked for is stored
	slow := must(g.Feed(t.Context(), goldenUnderWay))
	slow.Ask(g.by, false)
	go slow.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/feed", nil), cache.ServeOptions{}) //nolint:errcheck // the store is copied before
	time.Sleep(time.Second)
	shown = g.shown()
	copied()
	time.Sleep(goldenClosed)
	return shown
}

// shown is what the engine shows now.
func (g *gateway) shown() golden {
	g.t.Helper()
	shown := golden{Made: time.Now().UTC()}
	for _, a := range g.accounts() {
		url := string(a.URL)
		if url == goldenUnderWay {
			continue
		}
		w := g.feed(url)
		synctest.Wait()
		f := must(g.Status(g.t.Context(), url))
		shown.Feeds = append(shown.Feeds, goldenFeed{url, string(f.Alias), w.Code, w.Header().Get("ETag"), w.Header().Get("Last-Modified"), f.State, f.NextPoll.UTC(), f.Winner})
	}
	for _, p := range must(g.store.Pauses(g.t.Context())) {
		shown.Pauses = append(shown.Pauses, fmt.Sprint(p.Site, " new=", p.New, " until ", shown.Made.Add(p.For).Format(time.RFC3339), " ", p.Why, " ", p.URL))
	}
	return shown
}

// pack writes a file into the golden stores.
func pack(t *testing.T, from, to string) {
	t.Helper()
	f := must(os.Create(filepath.Join(goldenDir, to+".gz")))
	z := must(gzip.NewWriterLevel(f, gzip.BestCompression))
	must(z.Write(must(os.ReadFile(from))))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestGoldenStores opens the stores that programs of version 3 of the tables and later ones left, one closed and one killed, at the
// moment at which they were made. All is as that program showed it: feeds, tags, dates, next polls, pauses.
func TestGoldenStores(t *testing.T) {
	present := fmt.Sprint("version", store.Version)
	if *update {
		bubble(t, "made", func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "feeds.sqlite")
			shown := goldenStore(t, dir, func() {
				pack(t, file, present+"-killed.sqlite")
				pack(t, file+"-wal", present+"-killed.sqlite-wal")
			})
			pack(t, file, present+"-closed.sqlite")
			text := append(must(json.MarshalIndent(shown, "", "\t")), '\n')
			if err := os.WriteFile(filepath.Join(goldenDir, present+".json"), text, 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
	files := must(filepath.Glob(filepath.Join(goldenDir, "version*.json")))
	if _, err := os.Stat(filepath.Join(goldenDir, present+".json")); err != nil {
		t.Errorf("there is no golden store of the present version: run .ci/golden, which runs this with -update (%v)", err)
	}
	for _, file := range files {
		var want golden
		if err := json.Unmarshal(must(os.ReadFile(file)), &want); err != nil {
			t.Fatal(err)
		}
		version := strings.TrimSuffix(filepath.Base(file), ".json")
		for _, how := range []string{"closed", "killed"} {
			bubble(t, version+"-"+how, func(t *testing.T) {
				g := newWebGateway(t, func(url string) response {
					t.Errorf("%s was polled", url)
					return response{Status: http.StatusInternalServerError}
				})
				if time.Sleep(time.Until(want.Made)); how == "closed" {
					time.Sleep(goldenClosed)
				}
				g.dir, g.by = t.TempDir(), store.OwnerOf(store.KindNamed, "a token")
				g.unpack(version + "-" + how)
				g.settings.Feeds = []string{goldenConfigured}
				g.open()
				is := g.shown()
				if len(is.Feeds) != len(want.Feeds) || len(want.Feeds) < 12 || len(want.Pauses) == 0 || fmt.Sprint(is.Pauses) != fmt.Sprint(want.Pauses) {
					t.Errorf("%d feeds, want %d; pauses %q, want %q", len(is.Feeds), len(want.Feeds), is.Pauses, want.Pauses)
				}
				for i, f := range is.Feeds[:min(len(is.Feeds), len(want.Feeds))] {
					if w := want.Feeds[i]; f != w {
						t.Errorf("shown is\n%+v, want\n%+v", f, w)
					}
				}
				g.feed(goldenUnderWay) // it is not polled again
			})
		}
	}
}
