// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

// configurePollard is a gateway with a feed at each path. The lines make an interval short, and nothing else.
func configurePollard(dir, address, site string, interval time.Duration, paths []string) []string {
	app := fmt.Sprintf("store sqlite %s/store\nmin_interval %s\ndefault_interval %[2]s\nunvalidated_interval %[2]s\njitter 0\nspacing 0\nconcurrency 64\n"+
		"contact https://conformance.test/about", dir, interval)
	var feeds strings.Builder
	for _, path := range paths {
		fmt.Fprintf(&feeds, "feed %s http://%s%[1]s\n", path, site)
	}
	return rig.Pollard(dir, "admin off", app, fmt.Sprintf("http://%s {\nfeed_gateway {\n%s}\n}\n", address, feeds.String()))
}

// configureNginx is a cache as an experienced person sets it up: it revalidates, has a lock, serves stale
// answers, compresses, and passes on nothing of readers.
func configureNginx(dir, address, site string, interval time.Duration, _ []string) []string {
	return rig.Nginx(dir, fmt.Sprintf(`proxy_cache_path %s/cache keys_zone=feeds:10m inactive=7d;
proxy_cache feeds;
proxy_cache_key $uri;
proxy_cache_valid 200 301 302 %ds;
proxy_cache_revalidate on;
proxy_cache_lock on;
proxy_cache_background_update on;
proxy_cache_use_stale error timeout updating http_500 http_502 http_503 http_504 http_403 http_404 http_429;
proxy_ignore_headers Set-Cookie;
proxy_hide_header Set-Cookie;
proxy_http_version 1.1;
proxy_pass_request_headers off;
proxy_set_header Connection "";
proxy_set_header Accept-Encoding gzip;
proxy_set_header User-Agent "nginx (+https://conformance.test/about)";
gunzip on;
gzip on;
gzip_types application/rss+xml;
gzip_proxied any;
gzip_vary on;
server {
	listen %s;
	location / {
		if ($request_method !~ ^(GET|HEAD)$) {
			return 405;
		}
		proxy_pass http://%s;
	}
}`, dir, int(interval.Seconds()), address, site))
}

// configureVarnish is the same with Varnish: it keeps objects for conditional requests and for the time that the site is away,
// and drops answers of the background that are errors.
func configureVarnish(dir, address, site string, interval time.Duration, _ []string) []string {
	host, port, _ := strings.Cut(site, ":")
	path := filepath.Join(dir, "default.vcl")
	rig.Check(os.WriteFile(path, fmt.Appendf(nil, `vcl 4.1;

backend default {
	.host = "%s";
	.port = "%s";
}

sub vcl_recv {
	if (req.method != "GET" && req.method != "HEAD") {
		return (synth(405));
	}
	unset req.http.Cookie;
	unset req.http.Authorization;
	unset req.http.Referer;
	unset req.http.Accept-Language;
	set req.http.User-Agent = "Varnish (+https://conformance.test/about)";
	return (hash);
}

sub vcl_backend_fetch {
	unset bereq.http.X-Forwarded-For;
}

sub vcl_backend_response {
	unset beresp.http.Set-Cookie;
	if (beresp.status >= 400 && bereq.is_bgfetch) {
		return (abandon);
	}
	set beresp.grace = 24h;
	set beresp.keep = 24h;
	if (beresp.http.Content-Type ~ "xml") {
		set beresp.do_gzip = true;
	}
}
`, host, port), 0o600))
	return []string{"-F", "-j", "none", "-p", fmt.Sprint("default_ttl=", int(interval.Seconds())), "-n", filepath.Join(dir, "run"), "-s", "malloc,32m", "-a", address, "-f", path}
}
