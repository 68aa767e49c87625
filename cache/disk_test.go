// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// TestRecordsGiveWay has one public network bring in new feeds as fast as it may, with little content and records as large as
// they can be. A household reads all its feeds in each hour, and the store keeps to its budget.
func TestRecordsGiveWay(t *testing.T) {
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
			g.by = store.OwnerOf(store.KindToken, "household")
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
			g.by = store.OwnerOf(store.KindPublic, "203.0.113.0/24")
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
