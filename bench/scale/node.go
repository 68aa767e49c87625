// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

// node is a Pollard with a store.
type node struct {
	options
	feeds   int
	origin  *origin
	dir     string
	filling time.Duration

	process     *rig.Process
	admin, site string // addresses
}

// start starts the binary and waits for its first answer.
func (n *node) start(prefetch bool) (took time.Duration, err error) {
	if n.admin, err = rig.FreeAddress(); err != nil {
		return 0, err
	}
	if n.site, err = rig.FreeAddress(); err != nil {
		return 0, err
	}
	line := ""
	if prefetch {
		line = "prefetch"
	}
	store := "sqlite " + strconv.Quote(filepath.Join(n.dir, "store"))
	if n.postgres != "" {
		store = "postgres " + strconv.Quote(n.postgres)
	}
	config := filepath.Join(n.dir, "Caddyfile")
	err = os.WriteFile(config, fmt.Appendf(nil, `{
	admin %s
	auto_https off
	metrics
	pollard {
		store %s
		private_upstreams 127.0.0.0/8
		%s
	}
}
http://%s {
	feed_gateway
}
`, n.admin, store, line, n.site), 0o644)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if n.process, err = rig.StartAnywhere(filepath.Join(n.dir, "log"), n.pollard, "run", "--config", config); err != nil {
		return 0, err
	}
	for time.Since(began) < 10*time.Minute {
		if resp, err := http.Get(n.target(0)); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return time.Since(began), nil
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
	log, _ := os.ReadFile(filepath.Join(n.dir, "log"))
	return 0, fmt.Errorf("no answer in ten minutes:\n%s", log)
}

func (n *node) stop() {
	if n.process != nil {
		n.process.Stop()
		n.process = nil
	}
}

// target is the address of a feed through the gateway.
func (n *node) target(i int) string { return "http://" + n.site + "/" + n.url(i) }

const mb = 1e6

// measure measures what needs no polls.
func measure(nodes []*node) error {
	fmt.Println("| feeds | fill s | disk MB | bytes a feed | start ms | after a kill | RSS MB (anonymous, file) | metrics ms | list: first byte ms, s, MB | RSS after it (anonymous) | RSS after 20,000 feeds were read |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, n := range nodes {
		if err := n.measureStart(); err != nil {
			return fmt.Errorf("%d feeds: %w", n.feeds, err)
		}
	}
	return compareHits(nodes)
}

func (n *node) measureStart() error {
	var starts, scrapes []time.Duration
	for range 3 {
		n.stop()
		took, err := n.start(false)
		if err != nil {
			return err
		}
		starts = append(starts, took)
	}
	n.process.End(syscall.SIGKILL)
	killed, err := n.start(false) // which checks the tables
	if err != nil {
		return err
	}
	rss, anonymous, err := n.process.Memory()
	if err != nil {
		return err
	}
	for range 5 {
		s, err := fetch("http://" + n.admin + "/metrics")
		if err != nil {
			return err
		}
		scrapes = append(scrapes, s.total)
	}
	list, err := fetch("http://" + n.admin + "/pollard/feeds")
	if err != nil {
		return err
	}
	listed, listedAnonymous, err := n.process.Memory()
	if err != nil {
		return err
	}
	for i := range min(n.feeds, 20_000) {
		if _, err := fetch(n.target(i)); err != nil {
			return err
		}
	}
	read, readAnonymous, err := n.process.Memory()
	if err != nil {
		return err
	}
	disk := size(filepath.Join(n.dir, "store"))
	fmt.Printf("| %d | %.0f | %.0f | %d | %d | %d | %.0f (%.0f, %.0f) | %.1f | %.1f, %.2f, %.1f | %.0f (%.0f) | %.0f (%.0f) |\n",
		n.feeds, n.filling.Seconds(), float64(disk)/mb, disk/int64(n.feeds), rig.Median(starts).Milliseconds(), killed.Milliseconds(),
		float64(rss)/mb, float64(anonymous)/mb, float64(rss-anonymous)/mb, float64(rig.Median(scrapes).Microseconds())/1e3,
		float64(list.first.Microseconds())/1e3, list.total.Seconds(), float64(list.bytes)/mb,
		float64(listed)/mb, float64(listedAnonymous)/mb, float64(read)/mb, float64(readAnonymous)/mb)
	return nil
}

// answer is how an answer came.
type answer struct {
	first, total time.Duration
	bytes        int64
}

func fetch(url string) (a answer, err error) {
	began := time.Now()
	resp, err := http.Get(url)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	var one [1]byte
	if _, err := io.ReadFull(resp.Body, one[:]); err != nil {
		return a, err
	}
	a.first = time.Since(began)
	a.bytes, err = io.Copy(io.Discard, resp.Body)
	a.total = time.Since(began)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	return a, err
}

// compareHits compares the CPU time of a hit with that at the smallest store, in turns.
func compareHits(nodes []*node) error {
	header := http.Header{"User-Agent": {"FreshRSS/1.24.1"}, "Accept-Encoding": {"gzip"}, "If-Modified-Since": {time.Now().UTC().Format(http.TimeFormat)}}
	load := rig.Load{Connections: 16, Length: time.Second}
	cost, ratios := make([][]float64, len(nodes)), make([][]float64, len(nodes))
	for range nodes[0].rounds {
		for i, n := range nodes {
			cpu, err := load.CostPerRequest(n.process, n.target(i), header)
			if err != nil {
				return err
			}
			cost[i] = append(cost[i], float64(cpu.Nanoseconds())/1e3)
			ratios[i] = append(ratios[i], cost[i][len(cost[i])-1]/cost[0][len(cost[0])-1])
		}
	}
	fmt.Print("\n| feeds | CPU us of a 304 by URL | ratio |\n| --- | --- | --- |\n")
	for i, n := range nodes {
		fmt.Printf("| %d | %.1f | %.2f |\n", n.feeds, rig.Median(cost[i]), rig.Median(ratios[i]))
	}
	return nil
}
