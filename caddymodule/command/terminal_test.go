// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTableFitsTheTerminal(t *testing.T) {
	const url = "https://a-very-long-name-of-a-host.example/with/a/path/that/goes/on/and/on/feed.xml"
	for _, tt := range []struct {
		columns string
		widest  int // columns; 0: any number
		want    string
	}{
		{"", 0, url},
		{"60", 60, "https://a-very-long-name-of-a-h…/and/on/feed.xml"},
		{"10", 12 + minLast, "https://a-ve…eed.xml"},
		{"wide", 0, url},
	} {
		t.Run("COLUMNS="+tt.columns, func(t *testing.T) {
			t.Setenv("COLUMNS", tt.columns)
			var b bytes.Buffer
			table := newTable(&b, "%-5s  %3s  ", "STATE", "N", "FEED")
			table.row("fresh", "7", url)
			if err := table.flush(); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(b.String(), "\n")
			if lines[0] != "STATE    N  FEED" || lines[1] != "fresh    7  "+tt.want {
				t.Errorf("got\n%swant\n%s", b.String(), tt.want)
			}
			if n := utf8.RuneCountInString(lines[1]); tt.widest > 0 && n != tt.widest {
				t.Errorf("%d columns, want %d", n, tt.widest)
			}
		})
	}
}
