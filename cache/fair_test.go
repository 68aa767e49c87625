// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// fed is a feed with its readers.
type fed struct {
	by          store.Owner
	established bool
	size        int   // of the random bytes in its document
	stored      int64 // bytes of its version
	kept        bool
}

// rank is the order in which owners give way.
func rank(o store.Owner) int {
	switch o.Kind() {
	case store.KindPublic:
		return 0
	case store.KindOperator:
		return 2
	}
	return 1
}

// Of random owners, feeds and budgets of the disk: feeds of public networks give way before those of
// named owners, and the operator's never. Within a class no owner below its fair share loses to one
// above it. Requests of other sites' pages move nothing.
func TestFairShares(t *testing.T) {
	setFlag(t, "rapid.checks", strconv.Itoa(max(*lives, 5)))
	setFlag(t, "rapid.nofailfile", "true") // a seed is enough
	rapid.Check(t, func(rt *rapid.T) {
		feeds := make(map[string]*fed)
		kinds := []store.Kind{store.KindPublic, store.KindPublic, store.KindToken, store.KindAddress, store.KindShield, store.KindOperator}
		for n := range rapid.IntRange(1, 30).Draw(rt, "feeds") {
			by := store.OwnerOf(rapid.SampledFrom(kinds).Draw(rt, "kind"), fmt.Sprint(rapid.IntRange(0, 2).Draw(rt, "owner")))
			if by.Kind() == store.KindOperator {
				by = store.Operator
			}
			feeds[fmt.Sprintf("https://host%d.test/feed", n)] = &fed{
				by: by, established: by == store.Operator || rapid.Bool().Draw(rt, "established"), size: rapid.IntRange(1, 8).Draw(rt, "size") * 10_000,
			}
		}
		percent := rapid.Int64Range(0, 110).Draw(rt, "percent")
		var violation string
		synctest.Test(t, func(t *testing.T) { violation = share(t, feeds, percent) })
		if violation != "" {
			rt.Fatal(violation)
		}
	})
}

// share has feeds read for some days, and then makes the disk so small. It returns what is not fair.
func share(t *testing.T, feeds map[string]*fed, percent int64) string {
	g := newGateway(t, "", func(ask policy.Ask) policy.Answer {
		random := make([]byte, feeds[ask.URL.String()].size)
		rand.NewChaCha8([32]byte{}).Read(random)
		return ok(rss(1, hex.EncodeToString(random)), "Cache-Control", "max-age=500000")
	})
	for url, f := range feeds {
		if f.by == store.Operator {
			g.settings.Feeds = append(g.settings.Feeds, url)
		}
	}
	g.open()
	defer g.close()
	for day := range 3 {
		for url, f := range feeds {
			if day == 0 || f.established {
				g.by = f.by
				g.get(url)
			}
			f, err := g.Feed(t.Context(), url)
			if err == nil { // a page of another site
				_, err = f.Serve(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			}
			if err != nil {
				return err.Error()
			}
		}
		time.Sleep(24 * time.Hour)
	}
	for url, f := range feeds {
		id := cache.IDOf(url)
		r := must(g.store.Lookup(t.Context(), []store.ID{id}))[0]
		if r.Established != f.established {
			return fmt.Sprintf("%s is established: %v", url, r.Established)
		}
		f.stored = must(g.store.Body(t.Context(), id, r.Version)).Size
	}
	budget := max(1, must(g.store.Totals(t.Context())).Used*percent/100)
	g.settings.Disk = budget
	g.Apply(g.settings)
	time.Sleep(15 * time.Minute)

	kept := make(map[store.Owner]map[bool]int64)
	left := make(map[int]int64) // bytes that could give way, by rank
	for url, f := range feeds {
		r := must(g.store.Lookup(t.Context(), []store.ID{cache.IDOf(url)})) // feeds that gave way may be forgotten
		if f.kept = len(r) > 0 && r[0].Version != 0; !f.kept {
			continue
		}
		if kept[f.by] == nil {
			kept[f.by] = make(map[bool]int64)
		}
		kept[f.by][f.established] += f.stored
		left[rank(f.by)] += f.stored
	}
	if used := must(g.store.Totals(t.Context())).Used; used > budget && left[0]+left[1] > 0 {
		return fmt.Sprintf("%d bytes are used, and %d may", used, budget)
	}
	const largest = 100_000
	for url, f := range feeds {
		if f.kept {
			continue
		}
		for lower := range rank(f.by) {
			if left[lower] > 0 {
				return fmt.Sprintf("%s of rank %d gave way before others of rank %d", url, rank(f.by), lower)
			}
		}
		if f.by == store.Operator {
			return fmt.Sprintf("%s of the operator gave way", url)
		}
		for other, use := range kept {
			if rank(other) == rank(f.by) && use[f.established] > kept[f.by][f.established]+f.stored+largest {
				return fmt.Sprintf("%s gave way, though its owner keeps %d bytes and another one %d", url, kept[f.by][f.established], use[f.established])
			}
		}
	}
	return ""
}
