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
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

type options struct {
	pollard  string
	dir      string
	feeds    string
	body     int
	polls    time.Duration
	rate     int
	fresh    float64
	postgres string // URL of a database in place of an SQLite store; empty: there is none
}

func main() {
	var o options
	flag.StringVar(&o.pollard, "pollard", "./pollard", "the `binary` to measure")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "`directory` for stores")
	flag.StringVar(&o.feeds, "feeds", "1000,10000", "comma-separated `numbers` of feeds")
	flag.IntVar(&o.body, "body", 20_000, "size of a document, in `bytes`")
	flag.DurationVar(&o.polls, "polls", 0, "how long polls are measured; 0: not at all")
	flag.IntVar(&o.rate, "rate", 0, "feeds that come due in a `second`; 0: all are due at once")
	flag.Float64Var(&o.fresh, "new", 0.09, "`share` of polls that bring a new version of 50 KB")
	flag.StringVar(&o.postgres, "postgres", "", "`URL` of an empty PostgreSQL database on this machine, to measure polls with it as the store")
	flag.Parse()
	counts := strings.Split(o.feeds, ",")
	if o.postgres != "" && (o.polls == 0 || len(counts) != 1) {
		log.Fatal("-postgres goes with -polls and one number of feeds")
	}
	o.pollard = rig.Must(filepath.Abs(o.pollard))
	o.dir = rig.Must(os.MkdirTemp(rig.Must(filepath.Abs(o.dir)), "scale-"))
	defer os.RemoveAll(o.dir)
	origin := startOrigin(o)
	var nodes []*node
	for i, count := range counts {
		n := &node{options: o, feeds: max(1, rig.Must(strconv.Atoi(count))), origin: origin, dir: filepath.Join(o.dir, fmt.Sprint(i))}
		defer n.stop()
		nodes = append(nodes, n)
		n.fill()
	}
	if o.polls == 0 {
		measure(nodes)
		return
	}
	for _, n := range nodes {
		n.measurePolls()
	}
}
