// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Command conformance says what readers get from a program in front of sites with feeds, and what these sites see
// of it. Its rows are of RFC 9110 and 9111, of RSS, and of what publishers ask of feed readers.
//
//	go build -o pollard ./cmd/pollard
//	go run ./bench/conformance -pollard ./pollard
//
// compares Pollard with nginx and Varnish, as far as these are installed, and prints a table. All else that speaks
// HTTP is tried at its own address, while its site is the command's:
//
//	go run ./bench/conformance -url 'http://127.0.0.1:8080{path}' -site 127.0.0.1:8090 -interval 2s
//
// For a program that takes the URL of a feed, write {url} or {escaped} in place of {path}. The interval is that in which the
// program is set to ask a site once. It takes a minute and needs Linux.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

// program is something in front of sites that the command starts.
type program struct {
	name, binary string
	configure    func(dir, address, site string, interval time.Duration, paths []string) []string
}

func main() {
	pollard := flag.String("pollard", "./pollard", "the `binary` to try, beside nginx and Varnish")
	address := flag.String("url", "", "the `address` of a feed at a program that runs, with {path}, {url} or {escaped}")
	site := flag.String("site", "127.0.0.1:0", "the `address` of the site")
	interval := flag.Duration("interval", 2*time.Second, "how `long` a program waits between two requests for a feed")
	flag.Parse()
	rows := slices.Concat(ofReaders, ofSites)
	if *address != "" {
		printTable(rows, []string{"it does"}, [][]string{runAt(rows, *interval, *site, func(s string) func(path string) string { return addressOf(*address, s) })})
		return
	}
	programs := []program{{"Pollard", *pollard, configurePollard}}
	for _, p := range []program{{"nginx", "nginx", configureNginx}, {"Varnish", "varnishd", configureVarnish}} {
		if path, err := exec.LookPath(p.binary); err == nil {
			programs = append(programs, program{p.name, path, p.configure})
		}
	}
	results, names := make([][]string, len(programs)), make([]string, len(programs))
	var wg sync.WaitGroup
	for i, p := range programs {
		names[i] = p.name
		wg.Go(func() { results[i] = p.run(rows, *interval) })
	}
	wg.Wait()
	printTable(rows, names, results)
}

// run starts the program, and runs rows against it.
func (p program) run(rows []row, interval time.Duration) []string {
	dir, address := rig.Dir("conformance-"), rig.FreeAddress()
	defer os.RemoveAll(dir)
	var process *rig.Process
	defer func() { process.Stop() }()
	return runAt(rows, interval, "127.0.0.1:0", func(site string) func(path string) string {
		process = rig.Start(dir, []string{address}, p.binary, p.configure(dir, address, site, interval, paths(rows))...)
		return func(path string) string { return "http://" + address + path }
	})
}

// runAt runs rows, with a site at an address, against what address returns for it.
func runAt(rows []row, interval time.Duration, at string, address func(site string) func(path string) string) []string {
	s := newSuite(interval)
	listener := rig.Must(net.Listen("tcp", at))
	server := &http.Server{Handler: s}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	s.address = address(listener.Addr().String())
	return s.run(rows)
}

// addressOf returns the address of a feed, by its path at a site.
func addressOf(written, site string) func(path string) string {
	return func(path string) string {
		feed := "http://" + site + path
		return strings.NewReplacer("{path}", path, "{url}", feed, "{escaped}", url.QueryEscape(feed)).Replace(written)
	}
}

// printTable prints what programs do, and below it what they do instead.
func printTable(rows []row, names []string, results [][]string) {
	for _, about := range []string{"readers", "sites"} {
		title := map[string]string{"readers": "Readers get", "sites": "Sites see"}[about]
		var cells [][]string
		for i, r := range rows {
			if r.about != about {
				continue
			}
			line := []string{r.name, r.by}
			for _, result := range results {
				line = append(line, map[bool]string{true: "yes", false: "no"}[result[i] == ""])
			}
			cells = append(cells, line)
		}
		rig.Table(append([]string{title, "by"}, names...), cells)
	}
	for n, result := range results {
		for i, seen := range result {
			if seen != "" {
				fmt.Fprintf(os.Stderr, "%s, %s: %s: %s\n", names[n], rows[i].about, rows[i].name, seen)
			}
		}
	}
}
