// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	gatewaymodule "github.com/feedpollard/pollard/caddymodule/gateway"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/caddymodule/shield"
)

// FuzzCaddyfile reads lines in each of the three blocks, without the rest of a Caddyfile.
// An error is one line, and valid lines are the same after a way to JSON and back.
func FuzzCaddyfile(f *testing.F) {
	for _, lines := range []string{
		"min_interval 2h\nmax_interval 1h", "jitter 10%\nmemory 64MiB\nspacing 0\nhost *.example.com {\n\tconcurrency 2\n}", "store sqlite a b",
		"store postgres {env.X}", "contact a@example.com\nuser_agent \"a b\"\nprefetch", "private_upstreams private_ranges 10.0.0.0/8",
		"feed /a https://a.example/ {\n\ttimeout 3s\n}", "allow *.a.example b\ndeny *\nclients any", "token a b\npages off\ncors\nopml nowhere.opml",
		"query keep a b\nname x\nstatus /s", "defend {\n\tmax_rate 3 1m\n\tskip_hours\n\texempt 10.0.0.0/8\n}", "query `a\nb`\n\\\n", "min_interval {\n}",
	} {
		f.Add(lines)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		for name, block := range map[string]func() caddyfile.Unmarshaler{
			"pollard":      func() caddyfile.Unmarshaler { return new(poller.App) },
			"feed_gateway": func() caddyfile.Unmarshaler { return new(gatewaymodule.Gateway) },
			"feed_shield":  func() caddyfile.Unmarshaler { return new(shield.Shield) },
		} {
			tokens, err := caddyfile.Tokenize([]byte(name+" {\n"+lines+"\n}\n"), "Caddyfile")
			if err != nil {
				return
			}
			read := block()
			if err := read.UnmarshalCaddyfile(caddyfile.NewDispenser(tokens)); err != nil {
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: not one line: %q", name, err)
				}
				continue
			}
			config, err := json.Marshal(read)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			again := block()
			if err := json.Unmarshal(config, again); err != nil {
				t.Fatalf("%s: %s: %v", name, config, err)
			}
			if same, err := json.Marshal(again); err != nil || string(same) != string(config) {
				t.Errorf("%s: %s is %s when it is read again, %v", name, config, same, err)
			}
		}
	})
}
