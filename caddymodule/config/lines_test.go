// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package config

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"allow", "clients", "deny", "feed", "max_interval", "min_interval"}
	for wrong, want := range map[string]string{
		"fed": "feed", "feeds": "feed", "alow": "allow", "alolw": "allow", "client": "clients", "min_intervall": "min_interval",
		"interval": "", "cache": "", "x": "", "": "",
	} {
		if got := Nearest(wrong, names); got != want {
			t.Errorf("%s: %q, want %q", wrong, got, want)
		}
	}
}
