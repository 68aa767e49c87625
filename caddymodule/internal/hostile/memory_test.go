// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/origintest"
)

// Memory is bounded by its setting and this much more, in MiB.
const (
	memorySetting = 64 // the default
	littleMemory  = 8
	memoryBeside  = 256
)

// largeOrigin answers each path with a feed of almost max_body.
func largeOrigin(t *testing.T) (o *origintest.Origin, url string) {
	words := make([]byte, 64<<10)
	for i := range words {
		words[i] = "abcdefghijklmnopqrstuvwxyz    "[rand.IntN(30)]
	}
	o = &origintest.Origin{Answer: func(r *http.Request) origintest.Answer {
		document := origintest.Document{Title: "Large " + r.URL.Path, Entries: 232, Text: string(words)}
		return origintest.OK(document.String(), "ETag", `"1"`, "Cache-Control", "max-age=3600")
	}}
	return o, o.Start(t).URL
}

// Readers of large feeds that have never been polled, by URL and as queries of a shielded
// one, all at once; and readers of a single large feed just after a restart. None of the feeds fits into memory.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	origin, url := largeOrigin(t)
	c := start(t, setup{
		app:  fmt.Sprintf("memory %dMiB\ntimeout 4m\nprivate_upstreams 127.0.0.0/8\nhost * {\n\tspacing 0\n\tconcurrency 64\n}", littleMemory),
		site: "handle /shield/* {\nfeed_shield {\norigin {\nreverse_proxy " + strings.TrimPrefix(url, "http://") + "\n}\n}\n}\n" + gatewayByURL,
	})
	known := feedAt(url + "/known")
	if a := c.get(known); a.Status != http.StatusOK {
		t.Fatalf("the feed that is to be known: %d", a.Status)
	}
	took := c.costs(5 * time.Minute)
	took.maxPeak = raced * (littleMemory + memoryBeside)

	const feeds, queries = 6, 2
	begun := time.Now()
	var codes map[int]int
	took.measure("cold feeds", func() {
		codes = storm(c, feeds+queries, func(i int) string {
			if i < feeds {
				return feedAt(fmt.Sprintf("%s/%d", url, i))
			}
			return fmt.Sprintf("/shield/feed?q=%d", i)
		})
	})
	t.Logf("%d cold feeds of 15 MiB and %d queries of one: %v, answers %v", feeds, queries, time.Since(begun).Round(time.Second), codes)
	if codes[200] == 0 { // polls have two minutes to wait for their turn, which a busy machine does not keep
		t.Errorf("no reader was served: %v", codes)
	}
	took.finish(len(origin.Requests()), "large feeds")

	c.end(syscall.SIGKILL)
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
