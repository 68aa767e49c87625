// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
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
func (n *node) start(prefetch string) (took time.Duration) {
	n.admin, n.site = rig.FreeAddress(), rig.FreeAddress()
	app := "store sqlite " + strconv.Quote(filepath.Join(n.dir, "store"))
	if n.postgres != "" {
		app = "store postgres " + strconv.Quote(n.postgres)
	}
	args := rig.Pollard(n.dir, "metrics\n\tadmin "+n.admin, app+"\n\t\t"+prefetch, fmt.Sprintf("http://%s {\n\tfeed_gateway\n}\n", n.site))
	began := time.Now()
	n.process = rig.Start(n.dir, []string{n.site}, n.pollard, args...)
	for time.Since(began) < 10*time.Minute {
		resp := rig.Must(http.Get(n.target(0)))
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return time.Since(began)
		}
		time.Sleep(2 * time.Millisecond)
	}
	log.Fatalf("no answer in ten minutes: see %s", n.dir)
	return 0
}

func (n *node) stop() { n.process.Stop() }

// target is the address of a feed through the gateway.
func (n *node) target(i int) string { return "http://" + n.site + "/" + n.url(i) }

const mb = 1e6

// measure measures what needs no polls.
func measure(nodes []*node) {
	fmt.Println("| feeds | fill s | disk MB | bytes a feed | start ms | after a kill | RSS MB (anonymous, file) | metrics ms | list: first byte ms, s, MB | RSS after it (anonymous) | RSS after 20,000 feeds were read |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, n := range nodes {
		n.measureStart()
	}
	fmt.Println()
	compareHits(nodes)
}

func (n *node) measureStart() {
	var starts, scrapes []time.Duration
	for range 3 {
		n.stop()
		starts = append(starts, n.start(""))
	}
	n.process.End(syscall.SIGKILL)
	killed := n.start("") // which checks the tables
	rss, anonymous := n.process.Memory()
	for range 5 {
		scrapes = append(scrapes, fetch("http://"+n.admin+"/metrics").total)
	}
	list := fetch("http://" + n.admin + "/pollard/feeds")
	listed, listedAnonymous := n.process.Memory()
	for i := range min(n.feeds, 20_000) {
		fetch(n.target(i))
	}
	read, readAnonymous := n.process.Memory()
	disk := size(filepath.Join(n.dir, "store"))
	fmt.Printf("| %d | %.0f | %.0f | %d | %d | %d | %.0f (%.0f, %.0f) | %.1f | %.1f, %.2f, %.1f | %.0f (%.0f) | %.0f (%.0f) |\n",
		n.feeds, n.filling.Seconds(), float64(disk)/mb, disk/int64(n.feeds), rig.Median(starts).Milliseconds(), killed.Milliseconds(),
		float64(rss)/mb, float64(anonymous)/mb, float64(rss-anonymous)/mb, float64(rig.Median(scrapes).Microseconds())/1e3,
		float64(list.first.Microseconds())/1e3, list.total.Seconds(), float64(list.bytes)/mb,
		float64(listed)/mb, float64(listedAnonymous)/mb, float64(read)/mb, float64(readAnonymous)/mb)
}

// answer is how an answer came.
type answer struct {
	first, total time.Duration
	bytes        int64
}

func fetch(url string) (a answer) {
	began := time.Now()
	resp := rig.Must(http.Get(url))
	defer resp.Body.Close()
	rig.Must(io.ReadFull(resp.Body, make([]byte, 1)))
	a.first = time.Since(began)
	a.bytes = rig.Must(io.Copy(io.Discard, resp.Body))
	a.total = time.Since(began)
	if resp.StatusCode != http.StatusOK {
		log.Fatalf("%s: %s", url, resp.Status)
	}
	return a
}

// compareHits compares the CPU time of a hit with that at the smallest store, in turns.
func compareHits(nodes []*node) {
	header := http.Header{"User-Agent": {"FreshRSS/1.24.1"}, "Accept-Encoding": {"gzip"}, "If-Modified-Since": {time.Now().UTC().Format(http.TimeFormat)}}
	cost, ratios := make([][]float64, len(nodes)), make([][]float64, len(nodes))
	for range 7 {
		for i, n := range nodes {
			cpu := rig.CostPerRequest(n.process, n.target(i), header)
			cost[i] = append(cost[i], float64(cpu.Nanoseconds())/1e3)
			ratios[i] = append(ratios[i], cost[i][len(cost[i])-1]/cost[0][len(cost[0])-1])
		}
	}
	var rows [][]string
	for i, n := range nodes {
		rows = append(rows, []string{strconv.Itoa(n.feeds), fmt.Sprintf("%.1f", rig.Median(cost[i])), fmt.Sprintf("%.2f", rig.Median(ratios[i]))})
	}
	rig.Table([]string{"feeds", "CPU us of a 304 by URL", "ratio"}, rows)
}
