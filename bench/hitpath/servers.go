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

// baseline is the target that all others are compared with.
const baseline = "Caddy respond"

// setup is what servers are started with.
type setup struct {
	dir     string
	pollard string
	against string // another build, to be compared; empty: none
	doc     *document
	origin  string                 // its address
	fields  map[string]http.Header // of a gateway's answer, by kind
}

func (s setup) file(name, content string) (string, error) {
	path := filepath.Join(s.dir, name)
	return path, os.WriteFile(path, []byte(content), 0o644)
}

// startCaddy starts Caddy with a response in its configuration for each kind, with the
// header fields that a gateway sends. Each is a site of its own, as a Caddyfile makes them
// (http://127.0.0.1:8080 { respond ... }), so that only the matcher of the host is needed.
func startCaddy(s setup) ([]*target, error) {
	type object = map[string]any
	t := &target{name: baseline, plain: true, urls: make(map[string]string)}
	servers := object{}
	for _, k := range kinds {
		addr, err := rig.FreeAddress()
		if err != nil {
			return nil, err
		}
		response := object{"handler": "static_response", "status_code": k.status, "headers": s.fields[k.name]}
		switch {
		case k.status == 304:
		case k.gzip:
			response["body"] = string(s.doc.identity[:len(s.doc.gzip)])
		default:
			response["body"] = string(s.doc.identity)
		}
		servers[k.name] = object{
			"listen": []string{addr}, "automatic_https": object{"disable": true},
			"routes": []any{object{
				"match":    []any{object{"host": []string{"127.0.0.1"}}},
				"handle":   []any{object{"handler": "subroute", "routes": []any{object{"handle": []any{response}}}}},
				"terminal": true,
			}},
		}
		t.urls[k.name] = "http://" + addr + "/feed.xml"
	}
	config, err := json.Marshal(object{
		"admin": object{"disabled": true},
		"apps":  object{"http": object{"servers": servers}},
	})
	if err != nil {
		return nil, err
	}
	path, err := s.file("caddy.json", string(config))
	if err != nil {
		return nil, err
	}
	if t.process, err = rig.Start(filepath.Join(s.dir, "caddy.log"), s.pollard, "run", "--config", path); err != nil {
		return nil, err
	}
	for _, url := range t.urls {
		if err := t.process.Ready(strings.Split(url, "/")[2]); err != nil {
			return []*target{t}, err
		}
	}
	return []*target{t}, nil
}

// startPollard starts a gateway and a shield in one process, each with a site of its own.
func startPollard(s setup) ([]*target, error) { return startGateway(s, s.pollard, "") }

// startAgainst starts another build of Pollard beside it, if there is one.
func startAgainst(s setup) ([]*target, error) {
	if s.against == "" {
		return nil, nil
	}
	return startGateway(s, s.against, " (against)")
}

func startGateway(s setup, pollard, suffix string) ([]*target, error) {
	var addrs [3]string
	for i := range addrs {
		var err error
		if addrs[i], err = rig.FreeAddress(); err != nil {
			return nil, err
		}
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
`, addrs[0], strconv.Quote(filepath.Join(s.dir, "store"+suffix)), addrs[1], s.origin, addrs[2]))
	if err != nil {
		return nil, err
	}
	p, err := rig.Start(filepath.Join(s.dir, "pollard.log"+suffix), pollard, "run", "--config", path, "--adapter", "caddyfile")
	if err != nil {
		return nil, err
	}
	at := func(name, url string) *target {
		return &target{name: name + suffix, process: p, urls: map[string]string{"": url}}
	}
	targets := []*target{
		at("gateway by path", "http://"+addrs[1]+"/feed.xml"),
		at("gateway by URL", "http://"+addrs[1]+"/http://"+s.origin+"/feed.xml"),
		at("shield", "http://"+addrs[2]+"/feed.xml"),
	}
	return targets, p.Ready(addrs[2])
}

// startNginx starts nginx with proxy_cache, if it is installed.
func startNginx(s setup) ([]*target, error) {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		return nil, nil
	}
	var targets []*target
	for _, variant := range []struct{ name, lines string }{
		{"nginx proxy_cache", ""},
		{"nginx proxy_cache, open_file_cache", "open_file_cache max=100; open_file_cache_valid 10m;"},
	} {
		addr, err := rig.FreeAddress()
		if err != nil {
			return targets, err
		}
		dir := filepath.Join(s.dir, strings.ReplaceAll(strings.ReplaceAll(variant.name, " ", "-"), ",", ""))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return targets, err
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
`, dir, addr, s.origin, variant.lines))
		if err != nil {
			return targets, err
		}
		p, err := rig.Start(dir+".log", nginx, "-p", dir, "-c", path)
		if err != nil {
			return targets, err
		}
		targets = append(targets, &target{name: variant.name, process: p, urls: map[string]string{"": "http://" + addr + "/feed.xml"}})
		if err := p.Ready(addr); err != nil {
			return targets, err
		}
	}
	return targets, nil
}

// startVarnish starts Varnish, if it is installed. It leaves content codings to the
// origin, as the other caches do: as it comes, it would decompress for each reader
// that does not accept gzip.
func startVarnish(s setup) ([]*target, error) {
	varnishd, err := exec.LookPath("varnishd")
	if err != nil {
		return nil, nil
	}
	addr, err := rig.FreeAddress()
	if err != nil {
		return nil, err
	}
	p, err := rig.Start(filepath.Join(s.dir, "varnish.log"), varnishd, "-F", "-j", "none", "-n", filepath.Join(s.dir, "varnish"),
		"-a", addr, "-b", s.origin, "-s", "malloc,64m", "-p", "http_gzip_support=off")
	if err != nil {
		return nil, err
	}
	t := &target{name: "Varnish, http_gzip_support off", process: p, urls: map[string]string{"": "http://" + addr + "/feed.xml"}}
	return []*target{t}, p.Ready(addr)
}
