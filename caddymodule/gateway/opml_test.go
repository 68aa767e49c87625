// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestReadOPML(t *testing.T) {
	tests := []struct {
		name    string
		opml    string
		want    []string
		skipped int
	}{
		{"flat", `<opml version="2.0"><body><outline type="rss" text="A" xmlUrl="https://a.example/f"/></body></opml>`,
			[]string{"https://a.example/f"}, 0},
		{"nested", `<opml><body><outline text="dir"><outline text="dir"><outline xmlUrl="https://a.example/f"/></outline></outline><outline xmlUrl="http://b.example/?x=1&amp;y=2"/></body></opml>`,
			[]string{"https://a.example/f", "http://b.example/?x=1&y=2"}, 0},
		{"in the wild", `<?xml version="1.0" encoding="ISO-8859-1"?><OPML><BODY><OUTLINE text="caf` + "\xe9" + `&nbsp;" xmlurl=" https://A.example:443/f?x=1&y=2 "/></BODY></OPML>`,
			[]string{"https://a.example/f?x=1&y=2"}, 0},
		{"doubles and others", `<opml><body><outline xmlUrl="https://a.example/f"/><outline xmlUrl="https://a.example/f"/><outline xmlUrl="ftp://a.example/f"/><outline xmlUrl="feed"/><outline htmlUrl="https://a.example/"/></body></opml>`,
			[]string{"https://a.example/f"}, 2},
		{"empty", `<opml/>`, nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, skipped, err := readOPML(strings.NewReader(tt.opml))
			if err != nil || !slices.Equal(got, tt.want) || skipped != tt.skipped {
				t.Errorf("got %q, %d skipped, %v; want %q, %d", got, skipped, err, tt.want, tt.skipped)
			}
		})
	}
}

func TestReadOPMLRefuses(t *testing.T) {
	tests := []struct{ name, text string }{
		{"nothing", ""},
		{"text", "https://a.example/f"},
		{"a feed", `<rss version="2.0"><channel/></rss>`},
		{"HTML", `<!DOCTYPE html><html><body></body></html>`},
		{"a deep one", `<opml>` + strings.Repeat("<outline>", maxOPMLDepth) + `</opml>`},
		{"a large one", `<opml>` + strings.Repeat(" ", maxOPML) + `</opml>`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := readOPML(strings.NewReader(tt.text)); !errors.Is(err, errNotOPML) {
				t.Errorf("got %v, want that it is not OPML", err)
			}
		})
	}
}

func FuzzReadOPML(f *testing.F) {
	f.Add(`<opml><body><outline text="d"><outline xmlUrl="https://a.example/f"/></outline></body></opml>`)
	f.Add(`<opml></outline></opml>`)
	f.Fuzz(func(t *testing.T, text string) {
		feeds, _, err := readOPML(strings.NewReader(text))
		if err != nil && feeds != nil {
			t.Error("feeds and an error")
		}
		for _, feed := range feeds {
			if !strings.HasPrefix(feed, "http://") && !strings.HasPrefix(feed, "https://") {
				t.Errorf("%q is no feed URL", feed)
			}
		}
	})
}
