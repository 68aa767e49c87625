// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestNewest(t *testing.T) {
	rss := func(items string) string {
		return `<rss version="2.0"><channel><title>T</title><link>https://x.example/</link>` + items + `</channel></rss>`
	}
	var many strings.Builder
	for i := range 30 {
		fmt.Fprintf(&many, "<item><title>entry %d</title><pubDate>Mon, 02 Nov 2026 10:%02d:00 GMT</pubDate></item>", i, i)
	}
	tests := []struct {
		name, body string
		want       []Entry // without their dates
		problem    string
	}{
		{"Atom", fakeFeed, []Entry{
			{Title: "On cutting back, and what grows after", Link: "https://blog.example/1"}, {Title: "Willows & water", Link: "https://blog.example/2"}, {Title: "A year of winters", Link: "https://blog.example/3"},
		}, ""},
		{"the newest first", rss(`<item><title>old</title><pubDate>Mon, 02 Nov 2026 10:00:00 GMT</pubDate></item><item><title>new</title><pubDate>Tue, 03 Nov 2026 10:00:00 GMT</pubDate></item>`), []Entry{{Title: "new"}, {Title: "old"}}, ""},
		{"links that are none", rss(`<item><title>a</title><link>javascript:alert(1)</link></item><item><title>b</title><link>/relative</link></item><item><title>c</title><link>https://u:p@x.example/</link></item>`), []Entry{{Title: "a"}, {Title: "b"}, {Title: "c"}}, ""},
		{"without a title", rss(`<item><description>x</description></item>`), []Entry{{Title: "(without a title)"}}, ""},
		{"a long title", rss(`<item><title>` + strings.Repeat("ü", 500) + `</title></item>`), []Entry{{Title: strings.Repeat("ü", maxTitle) + "…"}}, ""},
		{"no entries", rss(""), nil, "no entries"},
		{"no feed", "<html><title>x</title></html>", nil, "cannot be read"},
		{"nothing", "", nil, "cannot be read"},
		{"entities", `<!DOCTYPE rss [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>` + rss(`<item><title>&b;</title></item>`), nil, ""},
		{"too large", rss(strings.Repeat(" ", maxParsed)), nil, "too large"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := newest(t.Context(), []byte(tt.body), "")
			if !strings.Contains(got.Problem, tt.problem) || tt.problem == "" && tt.want != nil && got.Problem != "" {
				t.Errorf("problem %q, want %q", got.Problem, tt.problem)
			}
			if tt.want == nil {
				return
			}
			if len(got.Newest) != len(tt.want) {
				t.Fatalf("got %+v", got)
			}
			for i, e := range got.Newest {
				if e.Date = (time.Time{}); e != tt.want[i] {
					t.Errorf("entry %d is %+v, want %+v", i, e, tt.want[i])
				}
			}
		})
	}
	if got := newest(t.Context(), []byte(rss(many.String())), ""); len(got.Newest) != maxEntries || got.Newest[0].Title != "entry 29" {
		t.Errorf("of many: %+v", got)
	}
}

// A page does not wait for a parser that others keep busy, nor does it add to them.
func TestNewestGivesUp(t *testing.T) {
	for range cap(parsers) {
		parsers <- struct{}{}
	}
	defer func() {
		for range cap(parsers) {
			<-parsers
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := newest(ctx, []byte(fakeFeed), ""); got.Newest != nil || got.Problem == "" {
		t.Errorf("got %+v", got)
	}
}

// FuzzNewest reads entries for a page. All of it is short, on one line, and leads to the
// web or nowhere.
func FuzzNewest(f *testing.F) {
	f.Add([]byte(fakeFeed), "text/xml")
	f.Add([]byte(`<rss version="2.0"><channel><title>T</title><item><link>javascript:1</link></item><item><pubDate>Mon, 02 Nov 2026 10:00:00 GMT</pubDate></item></channel></rss>`), "")
	f.Add([]byte(`{"version":"https://jsonfeed.org/version/1.1","title":"T","items":[{"id":"1","url":"//x","title":"a\nb","date_published":"2026-03-04T12:00:00Z"}]}`), "application/feed+json")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		e := newest(t.Context(), body, contentType)
		if len(e.Newest) > maxEntries || (e.Problem == "") != (len(e.Newest) > 0) {
			t.Errorf("%d entries, problem %q", len(e.Newest), e.Problem)
		}
		texts, links := []string{e.Title, e.Problem}, []string{}
		for _, entry := range e.Newest {
			texts, links = append(texts, entry.Title), append(links, entry.Link)
		}
		for _, text := range texts {
			if utf8.RuneCountInString(text) > 2*maxTitle || strings.ContainsAny(text, "\n\r\x00") {
				t.Errorf("text %q", text)
			}
		}
		for _, link := range links {
			if link != "" && !strings.HasPrefix(link, "http://") && !strings.HasPrefix(link, "https://") {
				t.Errorf("link %q", link)
			}
		}
	})
}
