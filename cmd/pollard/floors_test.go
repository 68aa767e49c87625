// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"strings"
	"testing"
)

// A package imports only floors below it, and the lower floors know nothing of
// Caddy: a cold build of Caddy takes minutes, and they must be tested without.
func TestFloors(t *testing.T) {
	const own, caddy = "github.com/feedpollard/pollard/", "github.com/caddyserver/caddy"
	for _, c := range []struct {
		floor string
		why   string
		never []string
	}{
		{"internal/httpfield", "reading fields needs nothing of ours", []string{caddy, own + "policy", own + "cache", own + "upstream", own + "internal/readers", own + "caddymodule"}},
		{"internal/feedurl", "all floors read URLs by it", []string{caddy, own + "internal/httpfield", own + "policy", own + "cache", own + "upstream", own + "internal/readers", own + "caddymodule"}},
		{"internal/opml", "a list of subscriptions is text", []string{caddy, own + "policy", own + "cache", own + "upstream", own + "internal/readers", own + "caddymodule"}},
		{"policy", "the decision is arithmetic on what was read", []string{caddy, own + "policy/document", own + "cache", own + "upstream", own + "internal/readers", own + "caddymodule", "github.com/mmcdole"}},
		{"policy/document", "documents are read without I/O", []string{caddy, own + "cache", own + "upstream", own + "internal/readers", own + "caddymodule", "go.etcd.io"}},
		{"policy/document/links", "documents are rewritten without I/O", []string{caddy, own + "cache", own + "upstream", own + "internal/readers", own + "caddymodule", "go.etcd.io"}},
		{"internal/check", "it judges polls that others make", []string{caddy, own + "cache", own + "upstream", own + "internal/readers", own + "caddymodule"}},
		{"figures", "numbers add up without being understood", []string{caddy, own + "policy", own + "cache", own + "upstream", own + "internal/readers", own + "caddymodule", "go.etcd.io", "github.com/jackc"}},
		{"upstream", "a poll is made for whoever asks", []string{caddy, own + "cache", own + "internal/readers", own + "caddymodule"}},
		{"cache", "it declares what it consumes: stores and origins are joined to it above", []string{caddy, own + "upstream", own + "internal/readers", own + "caddymodule", own + "cache/store/bolt", own + "cache/store/postgres", "go.etcd.io"}},
		{"cache/store/bolt", "a store knows the engine's interface alone", []string{caddy, own + "upstream", own + "internal/readers", own + "caddymodule"}},
		{"cache/store/volatile", "a store knows the engine's interface alone", []string{caddy, own + "upstream", own + "internal/readers", own + "caddymodule"}},
		{"internal/replay", "the engine that a log runs through needs no Caddy", []string{caddy, own + "upstream", own + "caddymodule", "go.etcd.io"}},
		{"caddymodule/config", "what rooms have in common knows no room", []string{own + "cache", own + "upstream", own + "internal/readers", own + "caddymodule/poller", own + "caddymodule/gateway", own + "caddymodule/shield"}},
		{"caddymodule/poller", "the app knows no handler", []string{own + "caddymodule/gateway", own + "caddymodule/shield", own + "caddymodule/command"}},
		{"caddymodule/gateway", "handlers know nothing of each other", []string{own + "caddymodule/shield", own + "caddymodule/command"}},
		{"caddymodule/shield", "handlers know nothing of each other", []string{own + "caddymodule/gateway", own + "caddymodule/command"}},
		{"caddymodule/pages", "what people see comes from a source, and is tested without Caddy", []string{caddy, own + "cache", own + "upstream", own + "internal/readers", own + "caddymodule/poller", own + "caddymodule/config", "go.etcd.io"}},
		{"internal/readers", "what is known of readers needs no Caddy", []string{caddy, own + "caddymodule"}},
	} {
		out, err := exec.Command("go", "list", "-deps", own+c.floor).Output()
		if err != nil {
			t.Fatalf("go list -deps %s: %v", c.floor, err)
		}
		for dep := range strings.Lines(string(out)) {
			for _, never := range c.never {
				if dep = strings.TrimSpace(dep); dep == never || strings.HasPrefix(dep, strings.TrimSuffix(never, "/")+"/") {
					t.Errorf("%s imports %s, and must not: %s", c.floor, dep, c.why)
				}
			}
		}
	}
}
