// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// An origin gives a document that means the same as its victim's, but for what the meaning
// leaves out, and redirects to the victim from then on. Readers of the victim get what the
// victim has said, whoever asked first, and also after a restart.
func TestHostileTakeover(t *testing.T) {
	t.Parallel()
	const (
		mine   = rssOpen + `<lastBuildDate>Mon, 01 Jan 2024 00:00:00 GMT</lastBuildDate><atom:link rel="hub" href="https://evil.test/"/>` + rssClose
		theirs = rssOpen + `<lastBuildDate>Tue, 02 Jan 2024 00:00:00 GMT</lastBuildDate>` + rssClose
	)
	var turned atomic.Bool
	var redirected [400][2]atomic.Int64 // by status and pair
	origin, asked := site(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/rss+xml")
		var status, i int
		if _, err := fmt.Sscanf(r.URL.Path, "/evil/%d/%d", &status, &i); err == nil {
			if turned.Load() {
				redirected[status][i].Add(1)
				w.Header().Set("Location", fmt.Sprintf("/victim/%d/%d", status, i))
				w.Header().Set("Retry-After", "604800")
				w.Header().Set("ETag", `"of the victim"`)
				w.WriteHeader(status)
				return
			}
			w.Header().Set("ETag", `"of the victim"`)
			fmt.Fprint(w, mine)
			return
		}
		w.Header().Set("ETag", `"of the victim"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, theirs)
	})
	c := start(t, setup{app: quick, site: gatewayByURL})
	statuses := []int{301, 302, 303, 307, 308}
	path := func(who string, status, i int) string {
		return feedAt(fmt.Sprintf("%s/%s/%d/%d", origin.URL, who, status, i))
	}
	// Of each pair the victim is known before (0), or asked for only afterwards (1).
	each := func(do func(status, i int)) {
		var all sync.WaitGroup
		for _, status := range statuses {
			for i := range 2 {
				all.Go(func() { do(status, i) })
			}
		}
		all.Wait()
	}
	until200 := func(path string) (a answered) {
		for range 60 {
			if a = c.get(path); a.Status == http.StatusOK {
				break
			}
			time.Sleep(500 * time.Millisecond)
		}
		return a
	}
	each(func(status, i int) {
		until200(path("evil", status, i))
		if i == 0 {
			until200(path("victim", status, i))
		}
	})
	took := c.costs(maxOriginCPU)
	end := took.begin("all of them")
	turned.Store(true)
	look := func(when string) {
		each(func(status, i int) {
			a := until200(path("victim", status, i))
			if a.Status != http.StatusOK || strings.Contains(a.Body, "evil.test") || !strings.Contains(a.Body, "02 Jan 2024") {
				t.Errorf("%s, %d, pair %d: the victim's readers get %v", when, status, i, a)
			}
			// A process that dies in a poll costs minutes, and not the week of the redirect.
			if age := a.Header.Get("Cache-Control"); len(age) > len("max-age=999") {
				t.Errorf("%s, %d, pair %d: the victim's readers are told %s", when, status, i, age)
			}
		})
	}
	each(func(status, i int) { // as soon as it is due
		for range 300 {
			if c.get(path("evil", status, i)); redirected[status][i].Load() > 0 {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Errorf("%d, pair %d: the attack was not made: it was not polled again", status, i)
	})
	for range 2 { // once more, where what it has caused lets it
		time.Sleep(1100 * time.Millisecond)
		each(func(status, i int) { c.get(path("evil", status, i)) })
	}
	look("at once")
	time.Sleep(1100 * time.Millisecond)
	look("later")
	end()
	took.over()
	took.polls = int(asked.Load())
	took.log("10 pairs of feeds")
	c.kill()
	c.start()
	look("after a restart")
}
