// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Command hitpath measures the CPU time that a server needs for a request that it answers
// from memory, side by side with other servers on the same machine.
//
//	go build -o pollard ./cmd/pollard
//	go run ./bench/hitpath -pollard ./pollard
//
// All servers give the same document. Caddy's own respond runs in the same binary with the
// same header fields; nginx and Varnish take part if they are installed. The answers of each
// are verified first. Then the servers are loaded in turn, in another order in every round,
// so that other work of the machine affects all of them. A result is the median over all
// rounds of CPU time (/proc/<pid>/stat) by request. Ratios are medians of the ratios of one
// round, so they can be trusted on a machine that does other work too.
//
// It needs Linux and wrk.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

func main() {
	pollard := flag.String("pollard", "./pollard", "the `binary` to measure, which is also the one for Caddy's respond")
	rounds := flag.Int("rounds", 9, "`number` of rounds")
	length := flag.Duration("for", time.Second, "`time` of load for each server and kind of request, in each round")
	connections := flag.Int("connections", 16, "`number` of connections, all kept alive")
	against := flag.String("against", "", "another `binary` to measure beside it, for an experiment")
	flag.Parse()
	if err := run(*pollard, *against, *rounds, *length, *connections); err != nil {
		fmt.Fprintln(os.Stderr, "hitpath:", err)
		os.Exit(1)
	}
}

func run(pollard, against string, rounds int, length time.Duration, connections int) error {
	pollard, err := filepath.Abs(pollard)
	if err != nil {
		return err
	}
	if against != "" {
		if against, err = filepath.Abs(against); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "hitpath-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	doc := newDocument()
	origin, server := startOrigin(doc)
	defer server.Close()

	var targets []*target
	defer func() {
		for _, t := range targets {
			t.process.Stop()
		}
	}()
	s := setup{dir: dir, pollard: pollard, against: against, doc: doc, origin: server.Listener.Addr().String()}
	for _, start := range []func(setup) ([]*target, error){startPollard, startCaddy, startAgainst, startNginx, startVarnish} {
		started, err := start(s)
		targets = append(targets, started...)
		if err != nil {
			return err
		}
		if s.fields == nil {
			if s.fields, err = fieldsOf(started[0], doc); err != nil {
				return err
			}
		}
	}
	for _, t := range targets {
		for _, k := range kinds {
			if err := t.verify(k, doc); err != nil {
				return fmt.Errorf("%s, %s: %w", t.name, k.name, err)
			}
		}
	}
	asked := len(origin.Requests())

	load := rig.Load{Connections: connections, Length: length}
	figures := newTable(targets)
	for round := range rounds {
		for _, k := range kinds {
			for _, i := range rand.Perm(len(targets)) {
				cpu, err := measure(targets[i], k, load)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", targets[i].name, k.name, err)
				}
				figures.add(targets[i], k, round, cpu)
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds)
	}
	if n := len(origin.Requests()) - asked; n > 0 {
		return fmt.Errorf("the origin was asked %d times while hits were measured", n)
	}
	figures.print(os.Stdout, doc, load)
	return nil
}

// fieldsOf returns the header fields of a target's answers by kind, without those that
// every server writes by itself.
func fieldsOf(t *target, d *document) (map[string]http.Header, error) {
	fields := make(map[string]http.Header)
	for _, k := range kinds {
		if err := t.verify(k, d); err != nil {
			return nil, fmt.Errorf("%s, %s: %w", t.name, k.name, err)
		}
		h := t.fields[k.name].Clone()
		for _, name := range []string{"Content-Length", "Date", "Server"} {
			h.Del(name)
		}
		fields[k.name] = h
	}
	return fields, nil
}

// measure loads a target for a moment, and returns its CPU time per request.
func measure(t *target, k kind, l rig.Load) (time.Duration, error) {
	before, err := t.process.CPU()
	if err != nil {
		return 0, err
	}
	requests, err := l.Run(t.url(k), t.header(k))
	if err != nil {
		return 0, err
	}
	after, err := t.process.CPU()
	if err != nil {
		return 0, err
	}
	if requests == 0 {
		return 0, fmt.Errorf("no request was answered")
	}
	return (after - before) / time.Duration(requests), nil
}
