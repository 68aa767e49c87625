// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Command walks measures how much of the code one request runs: how many functions, in
// how many files and packages of this module.
//
//	go run -cover -covermode=atomic -coverpkg=./... ./bench/walks
//
// What the process does in the background at the same moment is counted too, and small.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime/coverage"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/feedpollard/pollard/caddymodule"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "walks:", err)
		os.Exit(1)
	}
}

// kind is what comes before the request that is measured.
type kind int

const (
	cold  kind = 1 << iota // nothing; otherwise another request for the same
	again                  // it has the ETag of that other request
	due                    // the feed has become due
)

// interval is the time between two polls of the feeds.
const interval = 2 * time.Second

func run(w io.Writer) error {
	dir, err := os.MkdirTemp("", "walks-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	origin := httptest.NewServer(http.HandlerFunc(feed))
	defer origin.Close()
	gateway, shield, err := start(filepath.Join(dir, "store"), strings.TrimPrefix(origin.URL, "http://"))
	if err != nil {
		return err
	}
	defer caddy.Stop()

	byPath, byURL, behind := gateway+"/feed.xml", gateway+"/"+origin.URL+"/other.xml", shield+"/feed.xml"
	for _, url := range []string{byPath, behind} { // the first requests of a process do more
		if _, err := get(url, ""); err != nil {
			return err
		}
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "functions\tfiles\tpackages\tof\t")
	for _, walk := range []struct {
		name, url string
		kind      kind
		want      int
	}{
		{name: "cold feed by URL", url: byURL, kind: cold, want: 200},
		{name: "200 from memory, chosen path", url: byPath, want: 200},
		{name: "304 from memory, chosen path", url: byPath, kind: again, want: 304},
		{name: "304 from memory, by URL", url: byURL, kind: again, want: 304},
		{name: "304 from memory, shield", url: behind, kind: again, want: 304},
		{name: "due poll, answered 304", url: byPath, kind: due | again, want: 304},
		{name: "page of feeds", url: gateway + "/-/feeds", want: 200},
	} {
		if err := measure(out, filepath.Join(dir, "cover"), walk.name, walk.url, walk.kind, walk.want); err != nil {
			return fmt.Errorf("%s: %w", walk.name, err)
		}
	}
	return out.Flush()
}

// feed is an origin whose feeds never change.
func feed(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/rss+xml")
	w.Header().Set("ETag", `"1"`)
	if r.Header.Get("If-None-Match") == `"1"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	fmt.Fprint(w, `<rss version="2.0"><channel><title>Walks</title><link>/</link><item><title>One</title><link>/1</link></item></channel></rss>`)
}

// start runs a gateway and a shield and returns their addresses.
func start(store, origin string) (gateway, shield string, err error) {
	var addrs [2]string
	for i := range addrs {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		addrs[i] = "http://" + l.Addr().String()
		l.Close()
	}
	config := fmt.Sprintf(`{
	admin off
	auto_https off
	log {
		level ERROR
	}
	pollard {
		store sqlite %s
		private_upstreams 127.0.0.0/8
		min_interval %s
		default_interval %[2]s
		unvalidated_interval %[2]s
		spacing 0
	}
}
%s {
	feed_gateway {
		feed /feed.xml http://%s/feed.xml
		allow 127.0.0.1
	}
}
%s {
	feed_shield {
		origin {
			reverse_proxy %[4]s
		}
	}
}
`, strconv.Quote(store), interval, addrs[0], origin, addrs[1])
	json, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(config), nil)
	if err != nil {
		return "", "", err
	}
	return addrs[0], addrs[1], caddy.Load(json, true)
}

func get(url, etag string) (*http.Response, error) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", "Walks/1.0")
	if etag != "" {
		r.Header.Set("If-None-Match", etag)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp, errors.Join(err, resp.Body.Close())
}

// measure makes one request and writes what it ran.
func measure(w io.Writer, dir, name, url string, k kind, want int) error {
	etag := ""
	if k&cold == 0 {
		resp, err := get(url, "")
		if err != nil {
			return err
		}
		if k&again != 0 {
			etag = resp.Header.Get("ETag")
		}
	}
	if k&due != 0 {
		time.Sleep(interval * 3 / 2) // jitter is 10 % at most
	}
	if err := coverage.ClearCounters(); err != nil {
		return fmt.Errorf("%w: run this with -cover, as its documentation says", err)
	}
	resp, err := get(url, etag)
	if err != nil {
		return err
	}
	if resp.StatusCode != want {
		return fmt.Errorf("%s answered %s", url, resp.Status)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(coverage.WriteMetaDir(dir), coverage.WriteCountersDir(dir)); err != nil {
		return err
	}
	report, err := exec.Command("go", "tool", "covdata", "func", "-i="+dir).Output()
	if err != nil {
		return err
	}
	functions, files, packages := 0, make(map[string]bool), make(map[string]bool)
	for line := range bytes.Lines(report) {
		// github.com/feedpollard/pollard/cache/serve.go:31:	ServeHTTP	85.7%
		place, rest, found := strings.Cut(string(line), ":")
		if !found || strings.Contains(rest, "\t0.0%") || strings.Contains(place, "/bench/") {
			continue
		}
		functions++
		files[place], packages[path.Dir(place)] = true, true
	}
	_, err = fmt.Fprintf(w, "%d\t%d\t%d\t%s\t\n", functions, len(files), len(packages), name)
	return err
}
