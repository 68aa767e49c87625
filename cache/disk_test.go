// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	zapobserver "go.uber.org/zap/zaptest/observer"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// TestRecordsGiveWay has strangers bring in new feeds as fast as it may, with little content and records as large as
// they can be. A household reads all its feeds in each hour, and the store keeps to its budget.
func TestRecordsGiveWay(t *testing.T) {
	slow(t)
	long := func(n int) string { return strings.Repeat("a", n) }
	synctest.Test(t, func(t *testing.T) {
		var links strings.Builder
		for i := range 5 {
			fmt.Fprintf(&links, `<atom:link rel="hub" href="https://h%d.test/%s"/>`, i, long(2000))
		}
		hostile := `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>` + long(1000) + `</title>` + links.String() +
			`<item><title>x</title><guid>1</guid></item></channel></rss>`
		g := newGateway(t, func(a policy.Ask) policy.Answer {
			if strings.Contains(a.URL.String(), "stranger") {
				return ok(hostile, "ETag", `"`+long(2000)+`"`, "Cache-Control", "max-age=604800")
			}
			return ok(rss(60, ""), "Cache-Control", "max-age=86400")
		})
		g.settings.Disk = 8 << 20
		g.open()
		served := func() (served int) {
			g.by = store.OwnerOf(store.KindNamed, "household")
			for i := range 20 {
				if g.get(fmt.Sprintf("https://home%d.test/", i)).Code == http.StatusOK {
					served++
				}
			}
			return served
		}
		for range 5 {
			served()
			time.Sleep(25 * time.Hour)
		}
		served()
		n := 0
		for hour := range 4 {
			g.by = store.Any
			for range 360 {
				g.get(fmt.Sprintf("https://s%d.stranger.test/", n))
				n++
				time.Sleep(10 * time.Second)
			}
			totals := must(g.store.Totals(t.Context()))
			if served := served(); served != 20 || totals.Used > g.settings.Disk*12/10 {
				t.Errorf("hour %d: %d of 20 feeds are served, %+v", hour, served, totals)
			}
		}
	})
}

// A disk that is nearly full loses no feed: what is stored stays, and follows its site. New feeds are served, are polled
// politely and survive a failing site, as long as the process runs; they are stored once there is room.
func TestFullDiskLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const old, fresh = "https://old.test/feed", "https://new.test/feed"
		entries, down := 3, false
		random := make([]byte, 400<<10) // which does not compress, and is more than memory takes
		rand.NewChaCha8([32]byte{}).Read(random)
		g := newGateway(t, func(a policy.Ask) policy.Answer {
			tag := fmt.Sprintf(`"%d"`, entries)
			switch {
			case down:
				return failed(http.StatusInternalServerError, policy.FailureStatus)
			case a.Validators.ETag == tag:
				return unchanged()
			}
			return ok(rss(entries, hex.EncodeToString(random)), "ETag", tag, "Cache-Control", "max-age=3600")
		})
		var free atomic.Uint64
		free.Store(30 << 20)
		g.dir, g.space = t.TempDir(), func(string) (uint64, uint64) { return free.Load(), 40 << 20 }
		g.by = store.OwnerOf(store.KindNamed, "household")
		read := func(when string, want int, urls ...string) {
			t.Helper()
			for _, url := range urls {
				if w := g.get(url); w.Code != want || want == http.StatusOK && strings.Count(w.Body.String(), "<item>") != entries {
					t.Errorf("%s: %s answers %d with %d entries, want %d with %d", when, url, w.Code, strings.Count(w.Body.String(), "<item>"), want, entries)
				}
			}
		}
		g.open()
		read("there is room", http.StatusOK, old)
		free.Store(1 << 20)
		g.restart()
		read("nearly full", http.StatusOK, old, fresh)
		if status := g.get(fresh).Header().Get("Cache-Status"); strings.Contains(status, "stored") {
			t.Errorf("Cache-Status %q of a feed that is not stored", status)
		}
		polls := g.origin.polls()
		time.Sleep(61 * time.Minute)
		read("an hour later", http.StatusOK, old, fresh)
		if asked := g.origin.polls() - polls; asked != 2 || g.origin.last().Validators.ETag == "" {
			t.Errorf("%d polls an hour later, the last with %+v", asked, g.origin.last().Validators)
		}
		entries = 5
		time.Sleep(61 * time.Minute)
		read("they have news", http.StatusOK, old, fresh)
		down = true
		for range 3 {
			time.Sleep(61 * time.Minute)
			read("the site fails", http.StatusOK, old, fresh)
		}
		g.restart()
		read("after a restart", http.StatusOK, old)
		down = false
		time.Sleep(25 * time.Hour)
		read("a day later", http.StatusOK, old, fresh)
		free.Store(30 << 20)
		time.Sleep(61 * time.Minute)
		read("there is room again", http.StatusOK, old, fresh)
		g.restart()
		polls = g.origin.polls()
		read("after another restart", http.StatusOK, old, fresh)
		if asked := g.origin.polls() - polls; asked > 0 {
			t.Errorf("%d polls of feeds that are stored", asked)
		}
	})
}

// The log says at once that the disk is nearly full, and once. So it does if configured feeds take more than the budget, which
// they keep.
func TestLogSaysThatDiskIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, lines := zapobserver.New(zap.WarnLevel)
		said := func(when, message string, want int) {
			t.Helper()
			time.Sleep(time.Second)
			if n := lines.FilterMessageSnippet(message).Len(); n != want {
				t.Errorf("%s: the log has %d lines %q, want %d", when, n, message, want)
			}
		}
		random := make([]byte, 40<<10) // which does not compress
		rand.NewChaCha8([32]byte{}).Read(random)
		g := newGateway(t, func(policy.Ask) policy.Answer {
			return ok(rss(3, hex.EncodeToString(random)), "Cache-Control", "max-age=86400")
		})
		g.settings.Log, g.settings.Disk = zap.New(core), 64<<10
		for i := range 4 {
			g.settings.Feeds = append(g.settings.Feeds, fmt.Sprintf("https://home%d.test/", i))
		}
		g.store.hook(nil, func(call string, result any) error {
			if call == "Totals" {
				result.(*store.Totals).Short = true
			}
			return nil
		})
		g.open()
		said("at the start", "nearly full", 1)
		for _, url := range g.settings.Feeds {
			wantBody(t, g.get(url), http.StatusOK, "<rss")
		}
		time.Sleep(2 * time.Hour)
		said("hours later", "nearly full", 1)
		said("hours later", "more than the disk budget", 1)
		if s := g.Summary(t.Context()); s.DiskOver <= 0 || !s.DiskShort {
			t.Errorf("the summary says %+v", s.Trouble)
		}
		g.restart()
		for _, url := range g.settings.Feeds {
			wantBody(t, g.get(url), http.StatusOK, "<rss")
		}
		if n := g.origin.polls(); n != 4 {
			t.Errorf("%d polls of 4 feeds: versions were lost", n)
		}
	})
}

// The body of a feed that becomes configured stays, although the disk budget shrinks at the same moment.
func TestConfiguredFeedStaysWhenTheBudgetShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := make([]byte, 40<<10)
		rand.NewChaCha8([32]byte{}).Read(random)
		g := newGateway(t, func(policy.Ask) policy.Answer {
			return ok(rss(3, hex.EncodeToString(random)), "Cache-Control", "max-age=86400")
		})
		g.budget, g.by = 16<<10, store.Any
		g.open()
		wantBody(t, g.get(feedURL), http.StatusOK, "<rss")
		g.store.delay(5*time.Second, "Configured")
		g.settings.Feeds, g.settings.Disk = []string{feedURL}, 32<<10
		g.Apply(g.settings)
		time.Sleep(time.Minute)
		wantBody(t, g.get(feedURL), http.StatusOK, "<rss")
		if n := g.origin.polls(); n != 1 {
			t.Errorf("%d polls: the version was lost", n)
		}
	})
}
