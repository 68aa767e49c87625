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
	"testing"
	"time"
)

// Memory is bounded by its setting and this much more, in MiB, whatever is asked for.
const (
	memorySetting = 64
	memoryBeside  = 256
)

// largeOrigin answers each path with a feed of almost max_body.
func largeOrigin(t *testing.T) *httptest.Server {
	words := make([]byte, 1<<20)
	for i := range words {
		words[i] = "abcdefghijklmnopqrstuvwxyz    "[rand.IntN(30)]
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	}))
	t.Cleanup(s.Close)
	return s
}

// A storm of readers of large feeds that nobody has polled yet, and one on a single
// large feed just after a restart.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	origin := largeOrigin(t)
	c := start(t, setup{
		app:  fmt.Sprintf("memory %dMiB\ntimeout 4m\nprivate_upstreams 127.0.0.0/8\nhost * {\n\tspacing 0\n\tconcurrency 64\n}", memorySetting),
		site: gatewayByURL,
	})
	feeds := 16
	if *campaign {
		feeds = 80
	}
	if a := c.get(feedAt(origin.URL + "/known")); a.Status != 200 {
		t.Fatalf("the feed that is to be known: %v", a)
	}
	begun := time.Now()
	codes := storm(c, feeds, func(i int) string { return feedAt(fmt.Sprintf("%s/%d", origin.URL, i)) })
	t.Logf("%d cold feeds of 10 MiB: %v, answers %v, peak %d MiB", feeds, time.Since(begun).Round(time.Second), codes, c.peak())
	if peak := c.peak(); peak > raced*(memorySetting+memoryBeside) {
		t.Errorf("%d cold feeds of 10 MiB took %d MiB, want %d at most", feeds, peak, memorySetting+memoryBeside)
	}
	if codes[200] == 0 { // polls have two minutes to wait for their turn, which a busy machine does not keep
		t.Errorf("nobody was served: %v", codes)
	}
	c.kill()
	c.start()
	const readers = 200
	begun = time.Now()
	codes = storm(c, readers, func(int) string { return feedAt(origin.URL + "/known") })
	t.Logf("%d readers after a restart: %v, answers %v, peak %d MiB", readers, time.Since(begun).Round(time.Second), codes, c.peak())
	if peak := c.peak(); peak > raced*(memorySetting+memoryBeside) || codes[200] != readers {
		t.Errorf("%d readers of one feed of 10 MiB took %d MiB, want %d at most, and were answered %v", readers, peak, memorySetting+memoryBeside, codes)
	}
}

// Queries of a large feed through a shield are feeds of their own, and readers whose
// conditions hold need no body, however little memory there is.
func TestMemoryOfShieldsIsBounded(t *testing.T) {
	t.Parallel()
	const memory = 8
	origin := largeOrigin(t)
	c := start(t, setup{
		app:  fmt.Sprintf("memory %dMiB\ntimeout 4m", memory),
		site: "feed_shield {\norigin {\nreverse_proxy " + strings.TrimPrefix(origin.URL, "http://") + "\n}\n}\n",
	})
	first := c.get("/feed")
	if first.Status != http.StatusOK {
		t.Fatal(first)
	}
	c.forgetPeak()
	before := c.cpu()
	const readers, each = 16, 20
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			for range each {
				if a := c.get("/feed", "If-None-Match", first.Header.Get("ETag")); a.Status != http.StatusNotModified {
					t.Errorf("a reader who has it: %v", a)
				}
			}
		})
	}
	all.Wait()
	cpu, peak := c.cpu()-before, c.peak()
	if peak > raced*(memory+memoryBeside) || cpu > 5*time.Second {
		t.Errorf("%d answers 304 took %d MiB and %v of CPU", readers*each, peak, cpu)
	}
	queries := 8
	if *campaign {
		queries = 60
	}
	codes := storm(c, queries, func(i int) string { return fmt.Sprintf("/feed?q=%d", i) })
	if codes[200] == 0 || c.peak() > raced*(memory+memoryBeside) {
		t.Errorf("%d queries of a feed of 10 MiB took %d MiB, want %d at most, and were answered %v", queries, c.peak(), memory+memoryBeside, codes)
	}
	t.Logf("%d answers 304: %d MiB, %v of CPU; %d queries of a feed of 10 MiB: %d MiB, %v", readers*each, peak, cpu, queries, c.peak(), codes)
}

// storm has many readers ask at once, who come back while they are told to, and counts the
// statuses of their last answers.
func storm(c *child, n int, path func(i int) string) map[int]int {
	var mu sync.Mutex // guards codes
	codes := make(map[int]int)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			status, later := skim(c, path(i))
			for begun := time.Now(); later && time.Since(begun) < 4*time.Minute; {
				time.Sleep(time.Second)
				status, later = skim(c, path(i))
			}
			mu.Lock()
			codes[status]++
			mu.Unlock()
		})
	}
	all.Wait()
	return codes
}

// skim asks for a path and keeps nothing of the body. It returns the status, 0 where it broke
// off, and whether the reader is to come back later.
func skim(c *child, path string) (status int, later bool) {
	r, err := http.NewRequest("GET", "http://"+c.address+"/", nil)
	if err != nil {
		return 0, false
	}
	r.URL.Opaque = "//" + c.address + path
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
