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
// Ways whose program is not installed are left out. It needs Linux.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

func main() {
	pollard := flag.String("pollard", "./pollard", "the `binary` to compare")
	nginx := flag.String("nginx", "nginx", "nginx's `binary`")
	hour := flag.Duration("hour", 4*time.Second, "how `long` an hour of the day takes")
	flag.Parse()
	if err := run(*pollard, *nginx, *hour); err != nil {
		fmt.Fprintln(os.Stderr, "household:", err)
		os.Exit(1)
	}
}

func run(pollard, nginx string, hour time.Duration) error {
	ways := []way{{name: "directly"}}
	if path, err := exec.LookPath(nginx); err == nil {
		ways = append(ways, way{name: "nginx", binary: path, configure: nginxConfig})
	}
	ways = append(ways, way{name: "Pollard", binary: pollard, configure: caddyfile, proxied: true})

	days, err := each(ways, func(w way) (day, error) { return spend(w, hour) })
	if err != nil {
		return err
	}
	fmt.Printf("A day of %d readers and %d feeds, at %s an hour:\n\n", len(household()), len(feeds), hour)
	table(ways, days, []row[day]{
		{"requests at the sites", func(d day) string { return fmt.Sprint(d.sites.requests) }},
		{"bytes from the sites", func(d day) string { return megabytes(d.sites.bytes) }},
		{"unconditional requests", func(d day) string { return fmt.Sprint(d.sites.unconditional) }},
		{"requests that a site refused (429)", func(d day) string { return fmt.Sprint(d.sites.refused) }},
		{"errors and wrong pages that reached readers", func(d day) string { return fmt.Sprint(d.errors) }},
		{"bytes to readers", func(d day) string { return megabytes(d.bytes) }},
		{"from publication to the reader, mean", func(d day) string { return fmt.Sprintf("%.1f h", d.delay) }},
		{"entries that a reader never saw", func(d day) string { return d.lost(func(kind int) bool { return kinds[kind].name != "slow" }) }},
		{"the same for readers that ask every 8 hours", func(d day) string { return d.lost(func(kind int) bool { return kinds[kind].name == "slow" }) }},
	})
	hosts, err := each(ways, spendLimited)
	if err != nil {
		return err
	}
	fmt.Printf("\n%d feeds of a host that allows a request every 3 seconds, and a reader that asks for all of them every 30 seconds, 4 times:\n\n", limitedFeeds)
	table(ways, hosts, []row[limited]{
		{"requests that the host answered", func(l limited) string { return fmt.Sprint(l.answered) }},
		{"requests that the host refused", func(l limited) string { return fmt.Sprint(l.refused) }},
		{"feeds that the reader never got", func(l limited) string { return fmt.Sprint(l.missing) }},
	})
	return nil
}

// each runs something for all ways at the same time.
func each[T any](ways []way, run func(way) (T, error)) ([]T, error) {
	results, failures := make([]T, len(ways)), make([]error, len(ways))
	var wg sync.WaitGroup
	for i, w := range ways {
		wg.Go(func() {
			var err error
			if results[i], err = run(w); err != nil {
				failures[i] = fmt.Errorf("%s: %w", w.name, err)
			}
		})
	}
	wg.Wait()
	return results, errors.Join(failures...)
}

type row[T any] struct {
	name   string
	figure func(T) string
}

func table[T any](ways []way, results []T, rows []row[T]) {
	fmt.Print("| |")
	for _, w := range ways {
		fmt.Printf(" %s |", w.name)
	}
	fmt.Printf("\n|%s\n", strings.Repeat(" --- |", len(ways)+1))
	for _, r := range rows {
		fmt.Printf("| %s |", r.name)
		for _, result := range results {
			fmt.Printf(" %s |", r.figure(result))
		}
		fmt.Println()
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%.2f MB", float64(n)/1e6) }
