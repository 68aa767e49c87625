// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"
)

// tokenized splits a text as the Caddyfile does, as far as these tests need it.
func tokenized(text string) (tokens []token) {
	for i, line := range strings.Split(text, "\n") {
		for _, word := range strings.Fields(line) {
			tokens = append(tokens, token{word, i + 1})
		}
	}
	return tokens
}

func TestAnswersAll(t *testing.T) {
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"respond hello", true},
		{"respond /health ok", false},
		{"respond @outside 403", false},
		{"respond * hello", true},
		{"handle {\nreverse_proxy localhost\n}", true},
		{"handle /api/* {\nreverse_proxy localhost\n}", false},
		{"handle {\nheader X y\n}", false},
		{"handle {\n@x path /x\nrespond @x hi\nroute {\nencode\nfile_server\n}\n}", true},
		{"handle {\nroute /x {\nrespond hi\n}\n}", false},
		{"handle {\nreverse_proxy localhost {\nheader_up X y\n}\nheader X y\n}", true},
		{"route {\nreverse_proxy /api localhost\n}", false},
		{"respond ok ok", false}, // what is left of respond /health ok
		{"handle {\nrespond hi\n} }", false},
		{"header X y", false},
		{"handle", false},
	} {
		if got := answersAll(tokenized(tt.text)); got != tt.want {
			t.Errorf("%q: %v", tt.text, got)
		}
	}
}

func TestDirectives(t *testing.T) {
	got := fmt.Sprint(directives(tokenized("a b\nc {\nd e\nf {\ng\n}\n}\nh\n}\ni")))
	if want := "[[{a 1} {b 1}] [{c 2} {{ 2} {d 3} {e 3} {f 4} {{ 4} {g 5} {} 6} {} 7}] [{h 8}]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"allow", "clients", "deny", "feed", "max_interval", "min_interval"}
	for wrong, want := range map[string]string{
		"fed": "feed", "feeds": "feed", "alow": "allow", "alolw": "allow", "client": "clients", "min_intervall": "min_interval",
		"interval": "", "cache": "", "x": "", "": "",
	} {
		if got := nearest(wrong, names); got != want {
			t.Errorf("%s: %q, want %q", wrong, got, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"64MiB": 64 << 20, "1GB": 1e9, "512KiB": 512 << 10, "64": 0, "0": 0, "lots": 0, "-1MiB": 0} {
		if got, err := ParseSize(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
}
