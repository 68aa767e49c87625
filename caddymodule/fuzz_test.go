// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// FuzzCaddyfile reads lines in each of the three blocks. What is wrong is told in one
// line, and what is right gives the same JSON each time.
func FuzzCaddyfile(f *testing.F) {
	for _, lines := range []string{
		"min_interval 2h\nmax_interval 1h", "jitter 10%\nmemory 64MiB\nspacing 0\nhost *.example.com {\n\tconcurrency 2\n}", "store bolt a b",
		"store postgres {env.X}", "contact a@example.com\nuser_agent \"a b\"\nreaders off\nprefetch", "private_upstreams private_ranges 10.0.0.0/8",
		"feed /a https://a.example/ {\n\ttimeout 3s\n}", "allow *.a.example b\ndeny *\nclients any", "token a b\npages off\ncors\nopml nowhere.opml",
		"query keep a b\nname x\nrfc9111\nstatus /s", "defend {\n\tmax_rate 3 1m\n\tskip_hours\n\texempt 10.0.0.0/8\n}", "query `a\nb`\n\\\n", "min_interval {\n}",
	} {
		f.Add(lines)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		if len(lines) > 4096 || strings.Contains(lines, "{$") || strings.Contains(lines, "{file") || strings.Contains(lines, "import") || strings.Contains(lines, "opml") {
			return // they read the environment and other files
		}
		open := 0
		for _, c := range lines {
			if c == '{' {
				open++
			} else if c == '}' {
				open--
			}
			if open < 0 {
				return // what follows is not in the block
			}
		}
		for _, text := range []string{
			"{\n\tpollard {\n" + lines + "\n\t}\n}\n",
			"http://a.test {\n\tfeed_gateway {\n" + lines + "\n\t}\n}\n",
			"http://a.test {\n\tfeed_shield /feed {\n" + lines + "\norigin {\nrespond x\n}\n\t}\n}\n",
		} {
			config, err := stage.Adapt(t, text)
			if err != nil {
				continue
			}
			if again, err := stage.Adapt(t, text); err != nil || !bytes.Equal(config, again) {
				t.Errorf("%q gives %s, then %s, %v", text, config, again, err)
			}
		}
	})
}
