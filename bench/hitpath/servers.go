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

	"github.com/feedpollard/pollard/bench/internal/rig"
)

// servers are the servers that are compared.
type servers struct {
	dir              string
	pollard, before  string // binaries; before may be empty
	document, packed string
	origin           string // its address
	targets          []*target
	baseline         *target // with which all others are compared
}

// start starts all servers. Those of the gateway come first: their header fields are Caddy's too.
func (s *servers) start() {
	s.startPollard(s.pollard, "")
	if s.before != "" {
		s.startPollard(s.before, ", before")
	}
	s.startCaddy()
	if nginx, err := exec.LookPath("nginx"); err == nil {
		s.startNginx(nginx, "nginx proxy_cache", "")
		s.startNginx(nginx, "nginx proxy_cache, open_file_cache", "open_file_cache max=100; open_file_cache_valid 10m;")
	}
	if varnish, err := exec.LookPath("varnishd"); err == nil {
		s.startVarnish(varnish)
	}
}

func (s *servers) stop() {
	for _, t := range s.targets {
		t.process.Stop()
	}
	_ = os.RemoveAll(s.dir)
}

// run starts a program that listens on some addresses.
func (s *servers) run(addresses []string, program string, args ...string) *rig.Process {
	command := rig.Pinned("0", append([]string{program}, args...)...)
	return rig.Start(s.dir, addresses, command[0], command[1:]...)
}

// add adds a target with URLs for all kinds of request, or one for all of them, and verifies its answers.
func (s *servers) add(name string, p *rig.Process, urls ...string) *target {
	t := &target{name: name, process: p}
	for k := range t.urls {
		t.urls[k] = urls[k%len(urls)]
	}
	t.verify(s.document, s.packed)
	s.targets = append(s.targets, t)
	return t
}

// startPollard starts a gateway and a shield in one process, each with a site of its own. What ends the names of
// both says which binary it is.
func (s *servers) startPollard(binary, which string) {
	gateway, shield, admin := rig.FreeAddress(), rig.FreeAddress(), rig.FreeAddress()
	dir := rig.Must(os.MkdirTemp(s.dir, "pollard-"))
	p := s.run([]string{gateway, shield}, binary, rig.Pollard(dir, "admin "+admin, "store sqlite "+filepath.Join(dir, "store"), fmt.Sprintf(`http://%s {
	feed_gateway {
		feed /feed.xml http://%s/feed.xml
		allow 127.0.0.1
	}
}
http://%s {
	feed_shield {
		origin {
			reverse_proxy %[2]s
		}
	}
}
`, gateway, s.origin, shield))...)
	s.add("gateway by path"+which, p, "http://"+gateway+"/feed.xml").admin = admin
	s.add("gateway by URL"+which, p, "http://"+gateway+"/http://"+s.origin+"/feed.xml").admin = admin
	s.add("shield"+which, p, "http://"+shield+"/feed.xml").admin = admin
}

// startCaddy starts Caddy with a response in its configuration for each kind, with the
// header fields that a gateway sends. Each is a site of its own, as a Caddyfile makes them
// (http://127.0.0.1:8080 { respond ... }), so that only the matcher of the host is needed.
func (s *servers) startCaddy() {
	type object = map[string]any
	sites := object{}
	var addresses, urls []string
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
		address := rig.FreeAddress()
		addresses = append(addresses, address)
		urls = append(urls, "http://"+address+"/feed.xml")
		sites[kind.name] = object{
			"listen": []string{address}, "automatic_https": object{"disable": true},
			"routes": []any{object{
				"match":    []any{object{"host": []string{"127.0.0.1"}}},
				"handle":   []any{object{"handler": "subroute", "routes": []any{object{"handle": []any{response}}}}},
				"terminal": true,
			}},
		}
	}
	config := rig.Must(json.Marshal(object{"admin": object{"disabled": true}, "apps": object{"http": object{"servers": sites}}}))
	path := filepath.Join(s.dir, "caddy.json")
	rig.Check(os.WriteFile(path, config, 0o644))
	s.baseline = s.add("Caddy respond", s.run(addresses, s.pollard, "run", "--config", path), urls...)
}

func (s *servers) startNginx(program, name, lines string) {
	dir, address := rig.Must(os.MkdirTemp(s.dir, "nginx-")), rig.FreeAddress()
	rig.Check(os.Chmod(dir, 0o755))
	p := s.run([]string{address}, program, rig.Nginx(dir, fmt.Sprintf(`proxy_cache_path %s/cache keys_zone=feeds:1m inactive=1d;
%s
server {
	listen %s;
	location / { proxy_pass http://%s; proxy_cache feeds; }
}`, dir, lines, address, s.origin))...)
	s.add(name, p, "http://"+address+"/feed.xml")
}

// startVarnish leaves content codings to the origin, as the other caches do: as Varnish comes, it would
// decompress for each reader that does not accept gzip.
func (s *servers) startVarnish(program string) {
	address := rig.FreeAddress()
	p := s.run([]string{address}, program, "-F", "-j", "none", "-n", filepath.Join(s.dir, "varnish"), "-a", address, "-b", s.origin, "-s", "malloc,64m", "-p", "http_gzip_support=off")
	s.add("Varnish, http_gzip_support off", p, "http://"+address+"/feed.xml")
}
