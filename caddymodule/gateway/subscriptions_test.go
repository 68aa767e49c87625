// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestReadOPMLFile(t *testing.T) {
	tests := []struct {
		name    string
		opml    string
		want    []string
		skipped int
	}{
		{"nested", `<opml><body><outline text="dir"><outline xmlUrl="https://a.example/f"/></outline><outline xmlUrl="http://b.example/?x=1&amp;y=2"/></body></opml>`,
			[]string{"http://b.example/?x=1&y=2", "https://a.example/f"}, 0},
		{"canonical", `<OPML><OUTLINE xmlurl=" https://A.example:443/f?x=1&y=2 "/></OPML>`,
			[]string{"https://a.example/f?x=1&y=2"}, 0},
		{"doubles and others", `<opml><body><outline xmlUrl="https://a.example/f"/><outline xmlUrl="https://A.example/f"/><outline xmlUrl="ftp://a.example/f"/><outline xmlUrl="feed"/><outline htmlUrl="https://a.example/"/></body></opml>`,
			[]string{"https://a.example/f"}, 2},
		{"empty", `<opml/>`, nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, skipped, err := readOPMLFile(writeOPML(t, tt.opml))
			if err != nil || !slices.Equal(slices.Sorted(maps.Keys(got)), tt.want) || skipped != tt.skipped {
				t.Errorf("got %v, %d skipped, %v; want %q, %d", got, skipped, err, tt.want, tt.skipped)
			}
		})
	}
}

func writeOPML(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list.opml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
