// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Memory is bounded by its setting and this much more, in MiB.
const (
	memorySetting = 64 // the default
	littleMemory  = 8
	memoryBeside  = 256
)

// largeOrigin answers each path with a feed of almost max_body, and counts the requests.
func largeOrigin(t *testing.T) (s *httptest.Server, asked *atomic.Int64) {
	words := make([]byte, 1<<20)
	for i := range words {
		words[i] = "abcdefghijklmnopqrstuvwxyz    "[rand.IntN(30)]
	}
	return site(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/rss+xml")
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Cache-Control", "max-age=3600")
		fmt.Fprintf(w, `<rss version="2.0"><channel><title>Large %s</title>`, r.URL.Path)
		for i := range 155 {
			fmt.Fprintf(w, "<item><title>%d</title><guid>%d</guid><description>", i, i)
			part := len(words) / 16
			_, _ = w.Write(words[(i%16)*part : (i%16+1)*part-64])
			_, _ = io.WriteString(w, "</description></item>")
		}
		_, _ = io.WriteString(w, "</channel></rss>")
	})
}

// Readers of large feeds that have never been polled, by URL and as queries of a shielded
// one, all at once; readers that get 304; and readers of a single large feed just after a
// restart. None of the feeds fits into memory.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	origin, asked := largeOrigin(t)
	c := start(t, setup{
		app:  fmt.Sprintf("memory %dMiB\ntimeout 4m\nprivate_upstreams 127.0.0.0/8\nhost * {\n\tspacing 0\n\tconcurrency 64\n}", littleMemory),
		site: "handle /shield/* {\nfeed_shield {\norigin {\nreverse_proxy " + strings.TrimPrefix(origin.URL, "http://") + "\n}\n}\n}\n" + gatewayByURL,
	})
	known := feedAt(origin.URL + "/known")
	first := c.get(known)
	if first.Status != http.StatusOK {
		t.Fatalf("the feed that is to be known: %d", first.Status)
	}
	took := c.costs(5 * time.Minute)
	took.maxPeak = raced * (littleMemory + memoryBeside)

	const readers, each = 16, 20
	took.measure("answers 304", func() {
		before := c.cpu()
		var all sync.WaitGroup
		for range readers {
			all.Go(func() {
				for range each {
					if a := c.get(known, "If-None-Match", first.Header.Get("ETag")); a.Status != http.StatusNotModified {
						t.Errorf("a reader who has it: %d", a.Status)
					}
				}
			})
		}
		all.Wait()
		if cpu := c.cpu() - before; cpu > 5*time.Second {
			t.Errorf("%d answers 304 took %v of CPU", readers*each, cpu)
		}
	})

	const feeds, queries = 6, 2
	begun := time.Now()
	var codes map[int]int
	took.measure("cold feeds", func() {
		small, smallAsked := site(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/rss+xml")
			fmt.Fprint(w, feed)
		})
		var all sync.WaitGroup
		var over atomic.Bool
		all.Go(func() {
			codes = storm(c, feeds+queries, func(i int) string {
				if i < feeds {
					return feedAt(fmt.Sprintf("%s/%d", origin.URL, i))
				}
				return fmt.Sprintf("/shield/feed?q=%d", i)
			})
			over.Store(true)
		})
		for asked.Load() < 3 && !over.Load() {
			time.Sleep(time.Millisecond)
		}
		// A small feed does not wait until all large ones have been read.
		if a := c.get(feedAt(small.URL)); a.Status != http.StatusOK || smallAsked.Load() != 1 || over.Load() {
			t.Errorf("a small feed among large ones, which are all read: %v: %v", over.Load(), a)
		}
		all.Wait()
	})
	t.Logf("%d cold feeds of 10 MiB and %d queries of one: %v, answers %v", feeds, queries, time.Since(begun).Round(time.Second), codes)
	if codes[200] == 0 { // polls have two minutes to wait for their turn, which a busy machine does not keep
		t.Errorf("no reader was served: %v", codes)
	}
	took.finish(int(asked.Load()), "large feeds")

	c.process.End(syscall.SIGKILL)
	c.start()
	c.get("/-/about")
	took = c.costs(time.Minute)
	took.maxPeak = raced * (littleMemory + memoryBeside)
	const crowd = 80
	begun = time.Now()
	took.measure("readers of one feed", func() { codes = storm(c, crowd, func(int) string { return known }) })
	if codes[200] != crowd {
		t.Errorf("%d readers of one feed after a restart were answered %v", crowd, codes)
	}
	took.finish(0, fmt.Sprintf("%d readers after a restart: %v", crowd, time.Since(begun).Round(time.Second)))
}

// storm has many readers ask at once, who come back while they get 503, and counts the
// statuses of their last answers.
func storm(c *child, n int, path func(i int) string) map[int]int {
	var mu sync.Mutex // guards codes
	codes := make(map[int]int)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			coding := []string{"gzip", "gzip, br", "gzip, zstd", "identity"}[i%4]
			status, later := skim(c, path(i), coding)
			for begun := time.Now(); later && time.Since(begun) < 4*time.Minute; {
				time.Sleep(time.Second)
				status, later = skim(c, path(i), coding)
			}
			mu.Lock()
			codes[status]++
			mu.Unlock()
		})
	}
	all.Wait()
	return codes
}

// skim requests a path, as stored or decoded, and discards the body. It returns the status, 0 if the
// connection broke, and whether the reader should come back later.
func skim(c *child, path, coding string) (status int, later bool) {
	r, err := http.NewRequest("GET", "http://"+c.address+"/", nil)
	if err != nil {
		return 0, false
	}
	r.URL.Opaque = path
	r.Header.Set("Accept-Encoding", coding)
	resp, err := client.Do(r)
	if err != nil {
		return 0, false
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, false
	}
	return resp.StatusCode, resp.StatusCode == http.StatusServiceUnavailable || queued(resp.Header)
}

// site is a publisher's own site, which counts its requests.
func site(t *testing.T, answer http.HandlerFunc) (s *httptest.Server, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answer(w, r)
	}))
	s.Config.SetKeepAlivesEnabled(false) // idle connections would look like a leak
	t.Cleanup(s.Close)
	return s, asked
}
