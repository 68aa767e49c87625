// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

var lives = flag.Int("lives", 0, "how many lives of clusters to try, each another one; 0: a few, always the same")

// deed is one thing that happens in the life of a cluster.
type deed struct {
	do    string
	node  int
	feed  int
	habit int
	pause time.Duration // afterwards
}

func (d deed) String() string {
	return fmt.Sprintf("%s node=%d feed=%d habit=%q, then %v", d.do, d.node, d.feed, habits[d.habit].name, d.pause)
}

func drawDeeds(t *rapid.T) []deed {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) deed {
		return deed{
			do: rapid.SampledFrom([]string{
				"read", "read", "read", "storm", "storm", "habit", "habit", "habit", "habit",
				"kill", "start", "start", "stop", "continue", "continue", "cut", "mend", "mend", "reload", "by hand", "restart",
			}).Draw(t, "do"),
			node:  rapid.IntRange(0, 2).Draw(t, "node"),
			feed:  rapid.IntRange(0, len(clusterFeeds)-1).Draw(t, "feed"),
			habit: rapid.IntRange(0, len(habits)-1).Draw(t, "habit"),
			pause: rapid.SampledFrom([]time.Duration{0, time.Second, 7 * time.Second, time.Minute, 20 * time.Minute, time.Hour, 3 * time.Hour}).Draw(t, "pause") +
				time.Duration(rapid.IntRange(0, 1e9).Draw(t, "moment")),
		}
	}), 20, 60).Draw(t, "deeds")
}

// Whatever readers, origins and nodes do, origins see one polite poller: one poll of a
// feed in its interval, one gap and one pause of a host, over all nodes of a store. No
// version is lost, and in the end no feed is left behind.
func TestClusterLife(t *testing.T) {
	checks, seed := *lives, "0"
	if checks == 0 {
		checks, seed = 2, "7"
	}
	setFlag(t, "rapid.checks", strconv.Itoa(checks))
	setFlag(t, "rapid.seed", seed)
	setFlag(t, "rapid.nofailfile", "true") // a seed is enough
	rapid.Check(t, func(rt *rapid.T) {
		nodes := rapid.IntRange(1, 3).Draw(rt, "nodes")
		deeds := drawDeeds(rt)
		var violations []string
		synctest.Test(t, func(t *testing.T) { violations = lead(newCluster(t, nodes), deeds) })
		for _, v := range violations {
			rt.Error(v)
		}
	})
}

func setFlag(t *testing.T, name, value string) {
	t.Helper()
	f := flag.Lookup(name)
	before := f.Value.String()
	if err := f.Value.Set(value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(before) })
}

// lead leads a life and returns what broke the invariants.
func lead(c *cluster, deeds []deed) []string {
	r := &public{cluster: c, served: make(map[string]int), at: make(map[string]time.Time)}
	for _, url := range clusterFeeds {
		r.read(c.members[0], url)
	}
	for _, d := range deeds {
		r.happen(d)
		time.Sleep(d.pause)
	}
	r.settle()
	c.close()
	return c.origins.violations
}

// public is all readers of a cluster, who may ask any of its nodes.
type public struct {
	*cluster
	mu     sync.Mutex           // guards what follows
	served map[string]int       // the newest version of a feed that a reader has got
	at     map[string]time.Time // and when
}

func (r *public) happen(d deed) {
	m, url := r.members[d.node%len(r.members)], clusterFeeds[d.feed]
	if m.gateway == nil && d.do != "start" && d.do != "habit" && d.do != "restart" && d.do != "storm" {
		return
	}
	stopped, cut := false, false
	if m.gateway != nil {
		stopped, cut = m.condition()
	}
	r.origins.event("%v", d)
	switch d.do {
	case "read":
		r.read(m, url)
	case "storm":
		var crowd sync.WaitGroup
		for i := range 3 * len(r.members) {
			crowd.Go(func() { r.read(r.members[i%len(r.members)], clusterFeeds[(d.feed+i/6)%len(clusterFeeds)]) })
		}
		crowd.Wait()
	case "habit":
		r.origins.mu.Lock()
		r.origins.sites[url].habit = &habits[d.habit]
		r.origins.mu.Unlock()
	case "kill":
		r.end(m, true)
	case "start":
		if m.gateway == nil {
			r.start(m)
		}
	case "stop":
		m.change(true, cut)
	case "continue":
		m.change(false, cut)
	case "cut":
		m.change(stopped, true)
	case "mend":
		m.change(stopped, false)
	case "reload":
		m.gateway.Apply(r.settings(d.feed%2 == 0))
	case "by hand":
		if !stopped {
			r.insist(url, true)
			_, _ = m.gateway.Refresh(r.t.Context(), url)
			r.insist(url, false)
		}
	case "restart":
		r.restart()
	}
}

func (r *public) insist(url string, insisted bool) {
	r.origins.mu.Lock()
	defer r.origins.mu.Unlock()
	r.origins.sites[url].insisted = insisted
}

var entry = regexp.MustCompile(`<title>Entry (\d+)</title>`)

// read asks a node for a feed, and judges its answer.
func (r *public) read(m *member, url string) {
	if m.gateway == nil {
		return
	}
	if stopped, _ := m.condition(); stopped {
		return
	}
	f, err := m.gateway.Feed(r.t.Context(), url)
	due := err != nil || f.Due() // if only until it is seen that another node has polled it
	began := time.Now()
	w := m.gateway.get(url, "Cache-Control", "no-cache", "Cookie", "session=1", "Referer", "https://reader.test/", "User-Agent", "Reader/1.0")
	took := time.Since(began)
	r.mu.Lock()
	defer r.mu.Unlock()
	judge := func(ok bool, format string, args ...any) {
		r.origins.judge(ok, "%s (%s from node %d: %d, %s, took %v)", fmt.Sprintf(format, args...), url, m.number, w.Code, w.Header().Get("Cache-Status"), took)
	}
	status := w.Header().Get("Cache-Status")
	judge(took <= 16*time.Second, "I6: a reader waited too long")
	if strings.Contains(status, "; hit") {
		judge(took == 0 || due, "I6: a hit waited")
	}
	_, cut := m.condition()
	if w.Code != 200 {
		judge(r.served[url] == 0 || cut, "I2: a feed that was served before is not: %s", w.Body)
		return
	}
	body := w.Body.String()
	found := entry.FindStringSubmatch(body)
	if found == nil || !strings.HasPrefix(body, "<?xml") {
		judge(false, "I8: no feed: %.100q", body)
		return
	}
	version, _ := strconv.Atoi(found[1])
	judge(strings.Contains(body, "<title>"+url+"</title>"), "I10: another's feed: %.200q", body)
	r.origins.mu.Lock()
	given := r.origins.sites[url].versions[version]
	r.origins.mu.Unlock()
	judge(given, "I2: version %d, which no origin has given", version)
	// A version of one node is on the others shortly after.
	if !cut && !m.stoppedSince(began.Add(-2*time.Second)) && began.Sub(r.at[url]) > 2*time.Second {
		judge(version >= r.served[url], "I2: version %d after version %d", version, r.served[url])
	}
	if version > r.served[url] {
		r.served[url], r.at[url] = version, time.Now()
	}
}

// settle lets all be well again, and looks at what has become of everything.
func (r *public) settle() {
	r.origins.event("all is well again")
	for _, m := range r.members {
		if m.gateway == nil {
			r.start(m)
		}
		m.change(false, false)
	}
	r.origins.mu.Lock()
	ended := make(map[string]bool)
	for url, s := range r.origins.sites {
		ended[url] = time.Until(s.next) > 30*24*time.Hour || s.habit.ended
		s.habit = &habits[0]
	}
	r.origins.mu.Unlock()
	for range 16 {
		time.Sleep(2 * time.Hour)
		for _, m := range r.members {
			for _, url := range clusterFeeds {
				r.read(m, url)
			}
		}
	}
	time.Sleep(3 * time.Second)
	for _, url := range clusterFeeds {
		for _, m := range r.members {
			r.read(m, url)
		}
		s := r.origins.sites[url]
		r.origins.judge(ended[url] || time.Since(s.takenAt) < 5*time.Hour, "%s was not polled for %v", url, time.Since(s.takenAt))
		r.origins.judge(r.served[url] >= s.taken, "I2: %s: readers have version %d, origins gave %d", url, r.served[url], s.taken)
	}
	for _, m := range r.members {
		for _, a := range m.gateway.accounts() {
			explained := a.LastPoll.IsZero()
			for _, term := range a.Considered {
				explained = explained || term.Hint == a.Winner && term.Used
			}
			r.origins.judge(explained, "I9: %s waits for %q, of which its account says nothing: %+v", a.URL, a.Winner, a.Considered)
		}
	}
}
