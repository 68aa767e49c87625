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
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
	"github.com/feedpollard/pollard/internal/origintest"
)

// kind is a kind of request that is measured.
type kind struct {
	name   string
	status int
	gzip   bool
	field  string // of the answer that the request sends back: ETag or Last-Modified
	as     string // the field of the request
}

var kinds = [...]kind{
	{"200 identity", 200, false, "", ""},
	{"200 gzip", 200, true, "", ""},
	{"304 by ETag", 304, true, "Etag", "If-None-Match"},
	{"304 by date", 304, true, "Last-Modified", "If-Modified-Since"},
}

// target is a server as readers see it.
type target struct {
	name    string
	process *rig.Process
	urls    [len(kinds)]string
	fields  [len(kinds)]http.Header // of its answers
	cpu     [len(kinds)][]time.Duration
}

func main() {
	pollard := flag.String("pollard", "./pollard", "the `binary` to measure, which is also the one for Caddy's respond")
	rounds := flag.Int("rounds", 9, "`number` of rounds")
	length := flag.Duration("for", time.Second, "`time` of load for each server and kind of request, in each round")
	connections := flag.Int("connections", 16, "`number` of connections, all kept alive")
	against := flag.String("against", "", "another `binary` to measure beside it, for an experiment")
	flag.Parse()
	if err := run(*pollard, *against, *rounds, rig.Load{Connections: *connections, Length: *length}); err != nil {
		fmt.Fprintln(os.Stderr, "hitpath:", err)
		os.Exit(1)
	}
}

func run(pollard, against string, rounds int, load rig.Load) (err error) {
	s := &servers{pollard: pollard, document: origintest.Document{Entries: 1, Text: rig.Words(1, 80_000)}.String()}
	s.packed = origintest.Encode(s.document, "gzip")
	if s.dir, err = os.MkdirTemp("", "hitpath-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	origin := &origintest.Origin{Answer: func(r *http.Request) origintest.Answer {
		fields := []string{"Cache-Control", "max-age=86400", "Vary", "Accept-Encoding", "Last-Modified", "Sun, 01 Nov 2026 09:00:00 GMT"}
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			return origintest.OK(s.packed, append(fields, "ETag", `"packed"`, "Content-Encoding", "gzip")...)
		}
		return origintest.OK(s.document, append(fields, "ETag", `"plain"`)...)
	}}
	server := httptest.NewServer(origin)
	defer server.Close()
	s.origin = server.Listener.Addr().String()
	defer s.stop()
	if err := s.start(against); err != nil {
		return err
	}
	asked := len(origin.Requests())
	for round := range rounds {
		for k := range kinds {
			for _, i := range rand.Perm(len(s.targets)) {
				t := s.targets[i]
				cpu, err := load.CostPerRequest(t.process, t.urls[k], t.header(k))
				if err != nil {
					return fmt.Errorf("%s, %s: %w", t.name, kinds[k].name, err)
				}
				t.cpu[k] = append(t.cpu[k], cpu)
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds)
	}
	if n := len(origin.Requests()) - asked; n > 0 {
		return fmt.Errorf("the origin was asked %d times while hits were measured", n)
	}
	fmt.Printf("%s, %d CPUs, %s; load by wrk over %d connections; %d bytes, %d as gzip; medians of %d rounds of %s each.\n\n",
		processor(), runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly), load.Connections,
		len(s.document), len(s.packed), rounds, load.Length)
	s.print("CPU us per request (fields of the answer)", func(t *target, k int) string {
		return fmt.Sprintf("%.1f (%d)", float64(rig.Median(t.cpu[k]))/1e3, len(t.fields[k]))
	})
	s.print("ratio to "+s.baseline.name+" in the same round", func(t *target, k int) string {
		var ratios []float64
		for i, cpu := range t.cpu[k] {
			ratios = append(ratios, float64(cpu)/float64(max(s.baseline.cpu[k][i], 1)))
		}
		return fmt.Sprintf("%.2f", rig.Median(ratios))
	})
	return nil
}

// print writes figures as a table in Markdown.
func (s *servers) print(title string, cell func(t *target, k int) string) {
	fmt.Printf("| %s |", title)
	for _, k := range kinds {
		fmt.Printf(" %s |", k.name)
	}
	fmt.Printf("\n| --- |%s\n", strings.Repeat(" --- |", len(kinds)))
	for _, t := range s.targets {
		fmt.Printf("| %s |", t.name)
		for k := range kinds {
			fmt.Printf(" %s |", cell(t, k))
		}
		fmt.Println()
	}
	fmt.Println()
}

// header is what readers send. The conditional kinds follow that whose validators they send.
func (t *target) header(k int) http.Header {
	h := http.Header{"User-Agent": {"FreshRSS/1.24.1 (Linux; https://freshrss.org)"}, "Accept": {"application/rss+xml, */*;q=0.1"}}
	if kinds[k].gzip {
		h["Accept-Encoding"] = []string{"gzip"}
	}
	if kinds[k].field != "" {
		h[kinds[k].as] = t.fields[1][kinds[k].field]
	}
	return h
}

// verify checks the answers to all kinds of request, twice: the first ones may be fetched.
func (t *target) verify(document, packed string) error {
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	for k := range 2 * len(kinds) {
		k %= len(kinds)
		r, err := http.NewRequest(http.MethodGet, t.urls[k], nil)
		if err != nil {
			return err
		}
		r.Header = t.header(k)
		resp, err := client.Do(r)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if z, err := gzip.NewReader(bytes.NewReader(text)); err == nil { // Caddy's gzip is text
			text, _ = io.ReadAll(z)
		}
		if err != nil {
			return err
		}
		if resp.StatusCode != kinds[k].status || !strings.HasPrefix(document, string(text)) || resp.StatusCode == http.StatusOK && len(text) < len(packed) {
			return fmt.Errorf("%s, %s: got %s with %d bytes, or another document", t.name, kinds[k].name, resp.Status, len(text))
		}
		t.fields[k] = resp.Header
	}
	return nil
}

func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimLeft(strings.TrimSpace(name), ": \t")
		}
	}
	return runtime.GOARCH
}
