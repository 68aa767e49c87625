// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Command scale measures how much one node carries.
//
//	go build -o pollard ./cmd/pollard
//	go run ./bench/scale -pollard ./pollard -feeds 1000,100000 -dir /var/tmp
//
// It fills an SQLite store for each number of feeds, with records that the engine itself
// has made of feeds of several kinds, and then measures with the real binary:
//
//   - from the start of the process to the first answer, also after a kill, and the memory after that;
//   - the CPU time of a hit, in turns with the smallest of the stores;
//   - a scrape of the metrics, and GET /pollard/feeds;
//   - memory after many different feeds were read;
//   - with -polls, polls a second of feeds that are due, each at a host of its own on
//     loopback, what they cost in CPU time and bytes written, and how many of them wait.
//
// With -polls and -postgres, the store is a database on this machine that is empty:
//
//	go run ./bench/scale -pollard ./pollard -feeds 72000 -rate 300 -polls 4m -postgres 'postgres://pollard@localhost/pollard'
//
// A million feeds take some 8 GB. It needs Linux.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

type options struct {
	pollard string
	dir     string
	feeds   []int
	body    int
	rounds  int
	polls   time.Duration
	rate    int
	fresh   float64
	// postgres is the URL of a database in place of an SQLite store; empty: there is none.
	postgres string
}

func main() {
	var o options
	var feeds string
	flag.StringVar(&o.pollard, "pollard", "./pollard", "the `binary` to measure")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "`directory` for stores")
	flag.StringVar(&feeds, "feeds", "1000,10000", "comma-separated `numbers` of feeds")
	flag.IntVar(&o.body, "body", 20_000, "size of a document, in `bytes`")
	flag.IntVar(&o.rounds, "rounds", 7, "`rounds` of the comparison of hits")
	flag.DurationVar(&o.polls, "polls", 0, "how long polls are measured; 0: not at all")
	flag.IntVar(&o.rate, "rate", 0, "feeds that come due in a `second`; 0: all are due at once")
	flag.Float64Var(&o.fresh, "new", 0.09, "`share` of polls that bring a new version of 50 KB")
	flag.StringVar(&o.postgres, "postgres", "", "`URL` of an empty PostgreSQL database on this machine, to measure polls with it as the store")
	flag.Parse()
	for _, n := range strings.Split(feeds, ",") {
		count, err := strconv.Atoi(n)
		if err != nil || count < 1 {
			fmt.Fprintf(os.Stderr, "scale: %q is not a number of feeds\n", n)
			os.Exit(2)
		}
		o.feeds = append(o.feeds, count)
	}
	if o.postgres != "" && (o.polls == 0 || len(o.feeds) != 1) {
		fmt.Fprintln(os.Stderr, "scale: -postgres goes with -polls and one number of feeds")
		os.Exit(2)
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(o options) (err error) {
	if o.pollard, err = filepath.Abs(o.pollard); err != nil {
		return err
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	origin, err := startOrigin(o)
	if err != nil {
		return err
	}
	if o.dir, err = os.MkdirTemp(o.dir, "scale-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	var nodes []*node
	defer func() {
		for _, n := range nodes {
			n.stop()
		}
	}()
	for _, count := range o.feeds {
		name := fmt.Sprintf("%d-feeds", count)
		if o.polls > 0 {
			name += fmt.Sprintf("-%d-a-second", o.rate)
		}
		n := &node{options: o, feeds: count, origin: origin, dir: filepath.Join(o.dir, name)}
		nodes = append(nodes, n)
		if err := n.fill(); err != nil {
			return err
		}
	}
	if o.polls > 0 {
		for _, n := range nodes {
			if err := n.measurePolls(); err != nil {
				return err
			}
		}
		return nil
	}
	return measure(nodes)
}
