// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

// servers are the servers that are compared.
type servers struct {
	dir, pollard     string
	document, packed string
	origin           string // its address
	targets          []*target
	baseline         *target // with which all others are compared
}

// start starts all servers and verifies their answers. Those of the gateway come first: their
// header fields are Caddy's too.
func (s *servers) start(against string) error {
	starts := []func() error{func() error { return s.startPollard(s.pollard, "") }, s.startCaddy}
	if against != "" {
		starts = append(starts, func() error { return s.startPollard(against, " (against)") })
	}
	for _, start := range append(starts, s.startNginx, s.startVarnish) {
		from := len(s.targets)
		if err := start(); err != nil {
			return err
		}
		for _, t := range s.targets[from:] {
			if err := t.verify(s.document, s.packed); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *servers) stop() {
	for _, t := range s.targets {
		t.process.Stop()
	}
}

// add starts a program that listens on an address, and adds a target for each URL of it.
func (s *servers) add(names, urls []string, address, program string, args ...string) error {
	p, err := rig.Start(filepath.Join(s.dir, names[0]+".log"), program, args...)
	if err != nil {
		return err
	}
	for i, name := range names {
		t := &target{name: name, process: p}
		for k := range t.urls {
			t.urls[k] = urls[i]
		}
		s.targets = append(s.targets, t)
	}
	return p.Ready(address)
}

func (s *servers) file(name, content string) (string, error) {
	path := filepath.Join(s.dir, name)
	return path, os.WriteFile(path, []byte(content), 0o644)
}

func freeAddresses(n int) (list []string, err error) {
	for range n {
		address, err := rig.FreeAddress()
		if err != nil {
			return nil, err
		}
		list = append(list, address)
	}
	return list, nil
}

// startPollard starts a gateway and a shield in one process, each with a site of its own.
func (s *servers) startPollard(pollard, suffix string) error {
	at, err := freeAddresses(3)
	if err != nil {
		return err
	}
	path, err := s.file("Caddyfile"+suffix, fmt.Sprintf(`{
	admin %s
	auto_https off
	pollard {
		store sqlite %s
		private_upstreams 127.0.0.0/8
	}
}
http://%s {
	feed_gateway {
		feed /feed.xml http://%[4]s/feed.xml
		allow 127.0.0.1
	}
}
http://%[5]s {
	feed_shield {
		origin {
			reverse_proxy %[4]s
		}
	}
}
`, at[0], strconv.Quote(filepath.Join(s.dir, "store"+suffix)), at[1], s.origin, at[2]))
	if err != nil {
		return err
	}
	return s.add([]string{"gateway by path" + suffix, "gateway by URL" + suffix, "shield" + suffix},
		[]string{"http://" + at[1] + "/feed.xml", "http://" + at[1] + "/http://" + s.origin + "/feed.xml", "http://" + at[2] + "/feed.xml"},
		at[2], pollard, "run", "--config", path, "--adapter", "caddyfile")
}

// startCaddy starts Caddy with a response in its configuration for each kind, with the
// header fields that a gateway sends. Each is a site of its own, as a Caddyfile makes them
// (http://127.0.0.1:8080 { respond ... }), so that only the matcher of the host is needed.
func (s *servers) startCaddy() error {
	type object = map[string]any
	at, err := freeAddresses(len(kinds))
	if err != nil {
		return err
	}
	sites := object{}
	for k, kind := range kinds {
		fields := s.targets[0].fields[k].Clone()
		for _, own := range []string{"Content-Length", "Date", "Server"} {
			fields.Del(own)
		}
		response := object{"handler": "static_response", "status_code": kind.status, "headers": fields}
		switch {
		case kind.status == http.StatusNotModified:
		case kind.gzip:
			response["body"] = s.document[:len(s.packed)] // text of the same length
		default:
			response["body"] = s.document
		}
		sites[kind.name] = object{
			"listen": []string{at[k]}, "automatic_https": object{"disable": true},
			"routes": []any{object{
				"match":    []any{object{"host": []string{"127.0.0.1"}}},
				"handle":   []any{object{"handler": "subroute", "routes": []any{object{"handle": []any{response}}}}},
				"terminal": true,
			}},
		}
	}
	config, err := json.Marshal(object{"admin": object{"disabled": true}, "apps": object{"http": object{"servers": sites}}})
	if err != nil {
		return err
	}
	path, err := s.file("caddy.json", string(config))
	if err != nil {
		return err
	}
	if err := s.add([]string{"Caddy respond"}, []string{""}, at[len(at)-1], s.pollard, "run", "--config", path); err != nil {
		return err
	}
	s.baseline = s.targets[len(s.targets)-1]
	for k := range kinds {
		s.baseline.urls[k] = "http://" + at[k] + "/feed.xml"
	}
	return nil
}

// startNginx starts nginx with proxy_cache, if it is installed.
func (s *servers) startNginx() error {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		return nil
	}
	for name, lines := range map[string]string{
		"nginx proxy_cache": "", "nginx proxy_cache, open_file_cache": "open_file_cache max=100; open_file_cache_valid 10m;",
	} {
		at, err := freeAddresses(1)
		if err != nil {
			return err
		}
		dir := filepath.Join(s.dir, strings.NewReplacer(" ", "-", ",", "").Replace(name))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		path, err := s.file(filepath.Base(dir)+".conf", fmt.Sprintf(`daemon off; master_process off; worker_processes 1;
pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 1024; }
http {
	access_log off; keepalive_requests 100000000;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	proxy_cache_path %[1]s/cache keys_zone=feeds:1m inactive=1d;
	%[4]s
	server {
		listen %[2]s;
		location / { proxy_pass http://%[3]s; proxy_cache feeds; }
	}
}
`, dir, at[0], s.origin, lines))
		if err != nil {
			return err
		}
		if err := s.add([]string{name}, []string{"http://" + at[0] + "/feed.xml"}, at[0], nginx, "-p", dir, "-c", path); err != nil {
			return err
		}
	}
	return nil
}

// startVarnish starts Varnish, if it is installed. It leaves content codings to the
// origin, as the other caches do: as it comes, it would decompress for each reader
// that does not accept gzip.
func (s *servers) startVarnish() error {
	varnishd, err := exec.LookPath("varnishd")
	if err != nil {
		return nil
	}
	at, err := freeAddresses(1)
	if err != nil {
		return err
	}
	return s.add([]string{"Varnish, http_gzip_support off"}, []string{"http://" + at[0] + "/feed.xml"}, at[0], varnishd,
		"-F", "-j", "none", "-n", filepath.Join(s.dir, "varnish"), "-a", at[0], "-b", s.origin, "-s", "malloc,64m", "-p", "http_gzip_support=off")
}
