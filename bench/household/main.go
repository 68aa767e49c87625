// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Command household compares three ways from 50 feed readers to the sites of their feeds:
// directly, through nginx as an experienced person sets it up as a cache, and through Pollard.
//
//	go build -o pollard ./cmd/pollard
//	go run ./bench/household -pollard ./pollard
//
// The first comparison is two days with six feeds, which are described in sites.go, and readers
// of seven kinds, which are described in readers.go. What becomes of the entries of the first day
// is counted at the end of the second, so that late is told from never. An hour takes ten
// seconds, so an HTTP-date is exact to six minutes, and all takes ten minutes; with -hour 4s, a date is exact to a
// quarter of an hour.
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
	hour := flag.Duration("hour", 10*time.Second, "how `long` an hour of these days takes")
	flag.Parse()
	ways := []way{{name: "directly"}}
	if path, err := exec.LookPath("nginx"); err == nil {
		ways = append(ways, way{"nginx", path, configureNginx})
	}
	ways = append(ways, way{"Pollard", *pollard, configurePollard})

	readers := 0
	for _, k := range kinds {
		readers += k.readers
	}
	fmt.Printf("Two days of %d readers and %d feeds, at %s an hour:\n\n", readers, len(feeds), *hour)
	results := run(ways, func(w way) result { return w.spend(&sites{feeds: feeds, hour: *hour}, kinds, 2*day) })
	compare(ways, results, []row{
		{"requests at the sites", func(r result) string { return fmt.Sprint(r.requests) }},
		{"bytes from the sites", func(r result) string { return megabytes(r.bytes) }},
		{"unconditional requests", func(r result) string { return fmt.Sprint(r.unconditional) }},
		{"requests that a site refused (429)", func(r result) string { return fmt.Sprint(r.refused) }},
		{"errors and wrong pages that reached readers", func(r result) string { return fmt.Sprint(r.sum(func(r *reader) int64 { return r.errors })) }},
		{"bytes to readers", func(r result) string { return megabytes(r.sum(func(r *reader) int64 { return r.bytes })) }},
		{"from publication to the reader, mean of the feeds", func(r result) string {
			var hours float64
			for i := range feeds {
				hours += r.fate(i, false).mean()
			}
			return fmt.Sprintf("%.1f h", hours/float64(len(feeds)))
		}},
		{"entries that a reader never saw", func(r result) string { return r.fate(all, false).never() }},
		{"the same for readers that ask every eight hours", func(r result) string { return r.fate(all, true).never() }},
		{"entries that a reader saw more than eight hours late", func(r result) string { return r.fate(all, false).late() }},
	})
	fmt.Print("By feed: the mean time from publication to the reader, and entries that a reader never saw:\n\n")
	var byFeed []row
	for i, f := range feeds {
		byFeed = append(byFeed, row{f.about, func(r result) string {
			fate := r.fate(i, false)
			return fmt.Sprintf("%.1f h; %s", fate.mean(), fate.never())
		}})
	}
	compare(ways, results, byFeed)
	fmt.Printf("%d feeds of a host that allows a request every 3 seconds, and a reader that asks for all of them every 30 seconds, 4 times:\n\n", len(limitedFeeds))
	results = run(ways, func(w way) result {
		return w.spend(&sites{feeds: limitedFeeds, oneHost: true, hour: 20 * time.Second}, []kind{{"unconditional", 1, 1.5}}, 6)
	})
	compare(ways, results, []row{
		{"requests that the host answered", func(r result) string { return fmt.Sprint(r.requests - r.refused) }},
		{"requests that the host refused", func(r result) string { return fmt.Sprint(r.refused) }},
		{"feeds that the reader never got", func(r result) string {
			return fmt.Sprint(r.sum(func(r *reader) int64 { return int64(1 - min(len(r.seen), 1)) }))
		}},
	})
}

type row struct {
	name   string
	figure func(result) string
}

// run runs something for all ways at the same time.
func run(ways []way, one func(way) result) []result {
	results := make([]result, len(ways))
	var wg sync.WaitGroup
	for i, w := range ways {
		wg.Go(func() { results[i] = one(w) })
	}
	wg.Wait()
	return results
}

// compare prints a table.
func compare(ways []way, results []result, rows []row) {
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
