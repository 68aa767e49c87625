// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Command hitpath measures the CPU time that a server needs for a request that it answers
// from memory, side by side with other servers on the same machine.
//
//	go build -o pollard ./cmd/pollard
//	go run ./bench/hitpath -pollard ./pollard [-before ./pollard-of-main]
//
// All servers give the same document. Caddy's own respond runs in the same binary with the
// same header fields; nginx and Varnish take part if they are installed. The answers of each
// are verified first. Then the servers are loaded in turn, in another order in every round,
// so that other work of the machine affects all of them. A result is the median over all
// rounds of CPU time (/proc/<pid>/stat) by request. Ratios are medians of the ratios of one
// round, so they can be trusted on a machine that does other work too.
//
// With -share 20s it says besides, by profiles of that length, which share of the CPU time of a 304 by date Pollard's
// handler and cache take; it needs the command go for that.
//
// It needs Linux and wrk.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"log"
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

// kinds are the kinds of request that are measured.
var kinds = [...]struct {
	name   string
	status int
	gzip   bool
	field  string // of the answer that the request sends back: ETag or Last-Modified
	as     string // the field of the request
}{
	{"200 identity", 200, false, "", ""},
	{"200 gzip", 200, true, "", ""},
	{"304 by ETag", 304, true, "Etag", "If-None-Match"},
	{"304 by date", 304, true, "Last-Modified", "If-Modified-Since"},
}

// target is a server as readers see it.
type target struct {
	name    string
	process *rig.Process
	admin   string // the address of Pollard's admin endpoint; empty: it is no Pollard
	urls    [len(kinds)]string
	fields  [len(kinds)]http.Header // of its answers
	cpu     [len(kinds)][]time.Duration
}

func main() {
	pollard := flag.String("pollard", "./pollard", "the `binary` to measure, which is also the one for Caddy's respond")
	before := flag.String("before", "", "another `binary` of Pollard to measure in the same rounds")
	rounds := flag.Int("rounds", 9, "`number` of rounds")
	share := flag.Duration("share", 0, "how `long` profiles take; 0: there are none")
	flag.Parse()
	s := &servers{pollard: *pollard, before: *before, dir: rig.Dir("hitpath-"), document: origintest.Document{Entries: 1, Text: rig.Words(1, 80_000)}.String()}
	s.packed = origintest.Encode(s.document, "gzip")
	origin := &origintest.Origin{Answer: func(r *http.Request) origintest.Answer {
		fields := []string{"Cache-Control", "max-age=86400", "Vary", "Accept-Encoding", "Last-Modified", "Sun, 01 Nov 2026 09:00:00 GMT"}
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			return origintest.OK(s.packed, append(fields, "ETag", `"packed"`, "Content-Encoding", "gzip")...)
		}
		return origintest.OK(s.document, append(fields, "ETag", `"plain"`)...)
	}}
	s.origin = httptest.NewServer(origin).Listener.Addr().String()
	s.start()
	defer s.stop()
	asked := len(origin.Requests())
	for round := range *rounds {
		for k := range kinds {
			for _, i := range rand.Perm(len(s.targets)) {
				t := s.targets[i]
				t.cpu[k] = append(t.cpu[k], rig.CostPerRequest(t.process, t.urls[k], t.header(k)))
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, *rounds)
	}
	if n := len(origin.Requests()) - asked; n > 0 {
		log.Fatalf("the origin was asked %d times while hits were measured", n)
	}
	fmt.Printf("%s, %d CPUs, %s; load by wrk over %d connections; %d bytes, %d as gzip; medians of %d rounds of 1s each.\n\n",
		processor(), runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly), rig.Connections, len(s.document), len(s.packed), *rounds)
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
	if *share > 0 {
		s.printShares(*share)
	}
}

func (s *servers) print(title string, cell func(t *target, k int) string) {
	head, rows := []string{title}, make([][]string, len(s.targets))
	for k, kind := range kinds {
		head = append(head, kind.name)
		for i, t := range s.targets {
			if k == 0 {
				rows[i] = []string{t.name}
			}
			rows[i] = append(rows[i], cell(t, k))
		}
	}
	rig.Table(head, rows)
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
func (t *target) verify(document, packed string) {
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	for k := range 2 * len(kinds) {
		k %= len(kinds)
		r := rig.Must(http.NewRequest(http.MethodGet, t.urls[k], nil))
		r.Header = t.header(k)
		resp := rig.Must(client.Do(r))
		text := rig.Must(io.ReadAll(resp.Body))
		_ = resp.Body.Close()
		if z, err := gzip.NewReader(bytes.NewReader(text)); err == nil { // Caddy's gzip is text
			text = rig.Must(io.ReadAll(z))
		}
		if resp.StatusCode != kinds[k].status || !strings.HasPrefix(document, string(text)) || resp.StatusCode == http.StatusOK && len(text) < len(packed) {
			log.Fatalf("%s, %s: got %s with %d bytes, or another document", t.name, kinds[k].name, resp.Status, len(text))
		}
		t.fields[k] = resp.Header
	}
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
