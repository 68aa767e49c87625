// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Command household compares three ways from 50 feed readers to the sites of their feeds:
// directly, through nginx as an experienced person sets it up as a cache, and through Pollard.
//
//	go build -o pollard ./cmd/pollard
//	go run ./bench/household -pollard ./pollard
//
// The first comparison is a day with six feeds, which are described in sites.go, and readers
// of seven kinds, which are described in readers.go. An hour of that day takes four seconds,
// so an HTTP-date is exact to a quarter of an hour; -hour 20s makes it exact to three minutes.
// The second is a reader of 20 feeds at a host that allows one request every three seconds.
// nginx is left out if it is not installed. It needs Linux.
package main

import (
	"flag"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

func main() {
	pollard := flag.String("pollard", "./pollard", "the `binary` to compare")
	hour := flag.Duration("hour", 4*time.Second, "how `long` an hour of the day takes")
	flag.Parse()
	ways := []way{{name: "directly"}}
	if path, err := exec.LookPath("nginx"); err == nil {
		ways = append(ways, way{"nginx", path, configureNginx})
	}
	ways = append(ways, way{"Pollard", *pollard, configurePollard})

	days := each(ways, func(w way) day { return spend(w, *hour) })
	fmt.Printf("A day of %d readers and %d feeds, at %s an hour:\n\n", len(household()), len(feeds), *hour)
	table(ways, days, []row[day]{
		{"requests at the sites", func(d day) string { return fmt.Sprint(d.sites.requests) }},
		{"bytes from the sites", func(d day) string { return megabytes(d.sites.bytes) }},
		{"unconditional requests", func(d day) string { return fmt.Sprint(d.sites.unconditional) }},
		{"requests that a site refused (429)", func(d day) string { return fmt.Sprint(d.sites.refused) }},
		{"errors and wrong pages that reached readers", func(d day) string { return fmt.Sprint(d.errors) }},
		{"bytes to readers", func(d day) string { return megabytes(d.bytes) }},
		{"from publication to the reader, mean", func(d day) string { return fmt.Sprintf("%.1f h", d.meanDelay()) }},
		{"entries that a reader never saw", func(d day) string { return d.lost(false) }},
		{"the same for readers that ask every 8 hours", func(d day) string { return d.lost(true) }},
	})
	fmt.Printf("%d feeds of a host that allows a request every 3 seconds, and a reader that asks for all of them every 30 seconds, 4 times:\n\n", limitedFeeds)
	table(ways, each(ways, spendLimited), []row[limited]{
		{"requests that the host answered", func(l limited) string { return fmt.Sprint(l.answered) }},
		{"requests that the host refused", func(l limited) string { return fmt.Sprint(l.refused) }},
		{"feeds that the reader never got", func(l limited) string { return fmt.Sprint(l.missing) }},
	})
}

// each runs something for all ways at the same time.
func each[T any](ways []way, run func(way) T) []T {
	results := make([]T, len(ways))
	var wg sync.WaitGroup
	for i, w := range ways {
		wg.Go(func() { results[i] = run(w) })
	}
	wg.Wait()
	return results
}

type row[T any] struct {
	name   string
	figure func(T) string
}

func table[T any](ways []way, results []T, rows []row[T]) {
	head, cells := []string{""}, make([][]string, len(rows))
	for _, w := range ways {
		head = append(head, w.name)
	}
	for i, r := range rows {
		cells[i] = []string{r.name}
		for _, result := range results {
			cells[i] = append(cells[i], r.figure(result))
		}
	}
	rig.Table(head, cells)
}

func megabytes(n int64) string { return fmt.Sprintf("%.2f MB", float64(n)/1e6) }
