// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

// way is a way from the readers to the sites.
type way struct {
	name   string
	binary string // empty: directly
	// configure writes a configuration for some feeds into a directory, and returns the
	// arguments of the program.
	configure func(dir, address string, urls []string, interval time.Duration, proxy string) ([]string, error)
	proxied   bool // it can come to a host by a name that only a proxy knows

	dir, address string
	process      *rig.Process
}

func (w *way) start(urls []string, interval time.Duration, proxy string) (err error) {
	if w.binary == "" {
		return nil
	}
	if w.dir, err = os.MkdirTemp("", "household-"); err != nil {
		return err
	}
	if err := os.Chmod(w.dir, 0o755); err != nil { // the workers of nginx have another user
		return err
	}
	if w.address, err = rig.FreeAddress(); err != nil {
		return err
	}
	args, err := w.configure(w.dir, w.address, urls, interval, proxy)
	if err != nil {
		return err
	}
	if w.process, err = rig.StartAnywhere(filepath.Join(w.dir, "log"), w.binary, args...); err != nil {
		return err
	}
	return w.process.Ready(w.address)
}

func (w *way) stop() {
	if w.process != nil {
		w.process.Stop()
		_ = os.RemoveAll(w.dir)
	}
}

// url is where readers ask for a feed.
func (w *way) url(urls []string, feed int) string {
	if w.process == nil {
		return urls[feed]
	}
	return fmt.Sprintf("http://%s/feed%d", w.address, feed)
}

// caddyfile configures Pollard with its defaults, in the time of the day: an hour is the interval.
// A household has its readers in one network, and the host with a limit behind a proxy.
func caddyfile(dir, address string, urls []string, interval time.Duration, proxy string) ([]string, error) {
	var lines strings.Builder
	for i, url := range urls {
		fmt.Fprintf(&lines, "\t\tfeed /feed%d %s\n", i, url)
	}
	host := ""
	if proxy != "" {
		host = fmt.Sprintf("prefetch\n\t\thost limited.example {\n\t\t\tproxy http://%s\n\t\t}", proxy)
	}
	config := fmt.Sprintf(`{
	admin off
	auto_https off
	pollard {
		store sqlite %s
		private_upstreams 127.0.0.0/8
		min_interval %[2]s
		default_interval %[2]s
		unvalidated_interval %[3]s
		max_interval %[3]s
		%[4]s
	}
}
http://%[5]s {
	feed_gateway {
%[6]s	}
}
`, filepath.Join(dir, "store"), interval, 24*interval, host, address, lines.String())
	path := filepath.Join(dir, "Caddyfile")
	return []string{"run", "--config", path}, os.WriteFile(path, []byte(config), 0o600)
}

// nginxConfig configures a cache as nginx's manual advises for one that revalidates, with a lock and with
// stale answers, and leaves out the query.
func nginxConfig(dir, address string, urls []string, interval time.Duration, _ string) ([]string, error) {
	var locations strings.Builder
	for i, url := range urls {
		site := strings.TrimSuffix(url, fmt.Sprintf("/feed%d", i))
		fmt.Fprintf(&locations, "location = /feed%d { proxy_pass %s; }\n", i, site)
	}
	var temporary strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temporary, "%s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	config := fmt.Sprintf(`daemon off; worker_processes 1; pid %[1]s/pid; error_log %[1]s/errors;
events {}
http {
access_log off;
%[2]s
proxy_cache_path %[1]s/cache keys_zone=feeds:10m inactive=7d;
proxy_cache feeds;
proxy_cache_key $scheme$host$uri;
proxy_cache_valid 200 %[3]ds;
proxy_cache_revalidate on;
proxy_cache_lock on;
proxy_cache_background_update on;
proxy_cache_use_stale error timeout updating http_500 http_502 http_503 http_504 http_403 http_404 http_429;
proxy_http_version 1.1;
proxy_set_header Connection "";
server { listen %[4]s;
%[5]s}
}
`, dir, temporary.String(), int(interval.Seconds()), address, locations.String())
	path := filepath.Join(dir, "nginx.conf")
	return []string{"-c", path, "-p", dir}, os.WriteFile(path, []byte(config), 0o600)
}

// serve starts a server at an address of this machine.
func serve(h http.Handler) (*http.Server, string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(l) }()
	return server, l.Addr().String(), nil
}
