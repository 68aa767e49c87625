// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// all reads all records.
func (w *world) all(forgotten bool) []store.Record {
	w.t.Helper()
	records, err := w.s.Records(w.t.Context(), store.ID{}, 100, forgotten)
	w.must(err)
	return records
}

// A store that imports an export obeys it, also for feeds that were forgotten: the next poll, who asked and since when, and
// the pause of a URL.
func TestRestore(t *testing.T) {
	const known, gone, target = "https://known.test/", "https://gone.test/", "https://target.test/"
	a, b := named(store.KindNamed, 1), named(store.KindNamed, 2)
	old, now := newWorld(t), newWorld(t)
	for _, url := range []string{known, gone} {
		l := old.claim(store.Claim{URL: url, By: []store.Owner{a}, Own: true})
		o := store.Outcome{ID: l.ID, Token: l.Token, In: 48 * time.Hour, State: store.StateFresh, Body: &store.Body{Version: 1, Coding: "identity", Data: []byte("x")}}
		o.Hops = map[store.ID]time.Duration{store.IDOf(target): 72 * time.Hour}
		old.must(old.s.Commit(t.Context(), o))
	}
	old.now = old.now.Add(24 * time.Hour)
	old.must(old.s.Touch(t.Context(), map[store.ID]store.Asked{store.IDOf(known): {Own: true, By: []store.Owner{b}}}))
	old.must(old.s.Forget(t.Context(), store.IDOf(gone)))
	if n := len(old.all(true)); n != 2 {
		t.Fatalf("%d rows of times", n)
	}
	var saved []store.Saved
	for _, forgotten := range []bool{false, true} {
		for _, r := range old.all(forgotten) {
			saved = append(saved, store.Saved{Record: r})
		}
	}
	now.must(now.s.Restore(t.Context(), saved))
	for _, forgotten := range []bool{false, true} {
		want, got := old.all(forgotten), now.all(forgotten)
		if len(want) != len(got) {
			t.Fatalf("%d records of %d", len(got), len(want))
		}
		for i, w := range want {
			g := got[i]
			if g.ID != w.ID || g.In != w.In || g.Polled != w.Polled || g.NotBefore != w.NotBefore || g.Owner != w.Owner || !slices.Equal(g.Askers, w.Askers) || g.First != w.First || g.Asked != w.Asked {
				t.Errorf("restored is\n%+v of\n%+v", g, w)
			}
		}
	}
	for url, want := range map[string]time.Duration{known: 24 * time.Hour, gone: 24 * time.Hour, target: 48 * time.Hour} {
		if l := now.claim(store.Claim{URL: url}); l.Denied != store.DeniedNotDue || l.Wait != want {
			t.Errorf("%s: %q for %v, want %v", url, l.Denied, l.Wait, want)
		}
	}
}

// A record that is there stays if that of an import is a new one; it may become configured. Otherwise the later decision counts.
func TestRestoreOfAKnownFeed(t *testing.T) {
	w := newWorld(t)
	const url = "https://known.test/"
	w.read(url, store.Any, 10)
	r, _ := w.record(url)
	r.In, r.State = 5*time.Hour, store.StateGone
	w.must(w.s.Restore(t.Context(), []store.Saved{{Record: r, New: true}}))
	if got, _ := w.record(url); got.In != time.Hour || got.State != store.StateFresh || got.Version != 1 || got.Configured {
		t.Errorf("a new one: %+v", got)
	}
	r.Configured = true
	w.must(w.s.Restore(t.Context(), []store.Saved{{Record: r, New: true}}))
	got, _ := w.record(url)
	if got.In != time.Hour || !got.Configured || got.Owner != store.Operator || got.Renew {
		t.Errorf("a new one that is configured: %+v", got)
	}
	w.now = w.now.Add(25 * time.Hour)
	if got, _ = w.record(url); !got.Configured || !got.Renew {
		t.Errorf("a day later: %+v", got)
	}
	w.must(w.s.Restore(t.Context(), []store.Saved{{Record: r}}))
	if got, _ = w.record(url); got.In != 5*time.Hour || got.State != store.StateGone || got.Version != 0 {
		t.Errorf("another one: %+v", got)
	}
	w.now = w.now.Add(48 * time.Hour)
	w.sweep(store.SweepQuery{})
	if got, _ = w.record(url); got.Configured || got.Owner != store.Any {
		t.Errorf("two days later: %+v", got)
	}
}

// A site refuses if it refused more than one poll of a day, some time apart, and answered others well.
func TestSitesThatRefuse(t *testing.T) {
	w := newWorld(t)
	poll := func(site, url string, good bool) {
		l := w.claim(store.Claim{URL: "https://" + site + url, Own: true, Host: store.Host{Site: site}})
		o := store.Outcome{ID: l.ID, Token: l.Token, In: time.Hour, State: store.StateFresh, Site: site}
		if good {
			o.Good = []string{site}
			o.Body = &store.Body{Version: 1, Coding: "identity", Data: []byte("x")}
		} else {
			o.Pauses = []store.Pause{{Site: site, For: time.Minute, Why: policy.HintHostCooldown}}
		}
		w.must(w.s.Commit(t.Context(), o))
	}
	for n, site := range []string{"one.test", "two.test", "two.test", "good.test", "good.test", "good.test"} {
		poll(site, "/good"+string(rune('0'+n)), true)
	}
	for n, site := range []string{"two.test", "one.test", "two.test"} {
		poll(site, "/refused"+string(rune('0'+n)), false)
		w.now = w.now.Add(10 * time.Minute)
	}
	w.sweep(store.SweepQuery{})
	totals, err := w.s.Totals(t.Context())
	w.must(err)
	want := []store.SiteTotals{{Site: "two.test", Feeds: 4, Refuses: true}, {Site: "good.test", Feeds: 3}, {Site: "one.test", Feeds: 2}}
	if !slices.Equal(totals.Sites, want) {
		t.Errorf("sites are %+v, want %+v", totals.Sites, want)
	}
}
