// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

// way is a way from the readers to the sites.
type way struct {
	name   string
	binary string // empty: directly
	// configure configures the program for feeds of some sites, and returns its arguments.
	configure func(dir, address string, urls []string, s *sites) []string
}

// open starts the program of the way, and returns where readers ask for the feeds.
func (w way) open(urls []string, s *sites) (addresses []string, stop func()) {
	if w.binary == "" {
		return urls, func() {}
	}
	dir, address := rig.Dir("household-"), rig.FreeAddress()
	process := rig.Start(dir, []string{address}, w.binary, w.configure(dir, address, urls, s)...)
	for i := range urls {
		addresses = append(addresses, fmt.Sprintf("http://%s/feed%d", address, i))
	}
	return addresses, func() {
		process.Stop()
		_ = os.RemoveAll(dir)
	}
}

// configurePollard leaves Pollard its defaults, in the time of the sites: an hour is the interval. A household
// has its readers in one network. Limits of hosts without a public name count for each URL alone, so Pollard
// comes to the host with a limit by a name and a proxy.
func configurePollard(dir, address string, urls []string, s *sites) []string {
	app := fmt.Sprintf("store sqlite %s/store\nmin_interval %s\ndefault_interval %[2]s\nunvalidated_interval %s\nmax_interval %[3]s\n", dir, s.hour, 24*s.hour)
	var lines strings.Builder
	for i, url := range urls {
		if s.oneHost {
			if i == 0 {
				app += fmt.Sprintf("prefetch\nhost limited.example {\nproxy %s\n}", strings.TrimSuffix(url, "/feed0"))
			}
			url = fmt.Sprint("http://limited.example/feed", i)
		}
		fmt.Fprintf(&lines, "\t\tfeed /feed%d %s\n", i, url)
	}
	return rig.Pollard(dir, "admin off", app, fmt.Sprintf("http://%s {\n\tfeed_gateway {\n%s\t}\n}\n", address, lines.String()))
}

// configureNginx configures a cache as nginx's manual advises for one that revalidates, with a lock and with
// stale answers, and leaves out the query.
func configureNginx(dir, address string, urls []string, s *sites) []string {
	var locations strings.Builder
	for i, url := range urls {
		fmt.Fprintf(&locations, "location = /feed%d { proxy_pass %s; }\n", i, strings.TrimSuffix(url, fmt.Sprintf("/feed%d", i)))
	}
	return rig.Nginx(dir, fmt.Sprintf(`proxy_cache_path %s/cache keys_zone=feeds:10m inactive=7d;
proxy_cache feeds;
proxy_cache_key $scheme$host$uri;
proxy_cache_valid 200 %ds;
proxy_cache_revalidate on;
proxy_cache_lock on;
proxy_cache_background_update on;
proxy_cache_use_stale error timeout updating http_500 http_502 http_503 http_504 http_403 http_404 http_429;
proxy_http_version 1.1;
proxy_set_header Connection "";
server { listen %s;
%s}`, dir, int(s.hour.Seconds()), address, locations.String()))
}
