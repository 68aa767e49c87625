// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// zip compresses a text as one member of a gzip file.
func zip(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestLogLines(t *testing.T) {
	long := strings.Repeat("x", 3*longestLine)
	tests := []struct {
		name, log string
		want      []string // - for a line that is too long
	}{
		{"nothing", "", nil},
		{"lines", "a\nb\n", []string{"a", "b"}},
		{"no end of the last line", "a\nb", []string{"a", "b"}},
		{"empty lines", "\n\r\na\n\n", []string{"a"}},
		{"one byte", "a", []string{"a"}},
		{"a long line", "a\n" + long + "\nb\n", []string{"a", "-", "b"}},
		{"a long last line", "a\n" + long, []string{"a", "-"}},
		{"gzip", zip(t, "a\nb\n"), []string{"a", "b"}},
		{"joined gzip", zip(t, "a\nb\n") + zip(t, "c\n"), []string{"a", "b", "c"}},
		{"a long line in gzip", zip(t, "a\n"+long+"\nb\n"), []string{"a", "-", "b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := openLogs([]io.Reader{iotest.HalfReader(strings.NewReader(tt.log))})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for {
				line, err := l.next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if line == nil {
					line = []byte("-")
				}
				got = append(got, string(line))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestBrokenLogs(t *testing.T) {
	whole := zip(t, strings.Repeat("a line of a log\n", 1000))
	for name, r := range map[string]io.Reader{
		"a gzip file that was cut off": strings.NewReader(whole[:len(whole)/2]),
		"no more than gzip's magic":    strings.NewReader(whole[:2]),
		"a disk that fails":            iotest.ErrReader(errors.New("disk fails")),
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Run(t.Context(), []io.Reader{r}, options(t))
			if err == nil || errors.Is(err, ErrNoRequests) {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

func TestOpening(t *testing.T) {
	line := func(method, path, status, bytes string) string {
		return `192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "` + method + " " + path + ` HTTP/1.1" ` + status + " " + bytes + " \"-\" \"R\"\n"
	}
	tests := []struct {
		name, head, given string
		path              string
		headers           bool
	}{
		{"the only path", line("GET", "/a", "200", "5"), "", "/a", true},
		{"a feed's name among pages", strings.Repeat(line("GET", "/", "200", "5"), 50) + strings.Repeat(line("GET", "/favicon.ico", "200", "5"), 50) + line("GET", "/feed.xml?x", "200", "5") + line("HEAD", "/feed.xml", "200", "5"), "", "/feed.xml", true},
		{"a sitemap is none", line("GET", "/sitemap.xml", "200", "5") + line("GET", "/index.xml", "200", "5"), "", "/index.xml", true},
		{"two feeds", strings.Repeat(line("GET", "/feed.xml", "200", "5"), 3) + strings.Repeat(line("GET", "/atom.xml", "200", "5"), 2), "", "", true},
		{"nothing speaks for any", line("GET", "/b", "200", "5") + line("GET", "/a", "200", "5"), "", "", true},
		{"pages alone", line("GET", "/", "200", "5") + line("GET", "/style.css", "200", "5"), "", "", true},
		{"other methods", line("POST", "/a", "200", "5") + line("POST", "/a", "200", "5") + line("GET", "/b", "200", "5"), "", "/b", true},
		{"a given path", line("GET", "/a", "200", "5"), "/c", "/c", true},
		{"no request", "hello\n", "", "", true},
		{"bodies alone, by 304", line("GET", "/a", "304", "0"), "", "/a", false},
		{"bodies alone, by HEAD", line("HEAD", "/a", "200", "-"), "", "/a", false},
		{"headers, by 304", line("GET", "/a", "304", "250"), "", "/a", true},
		{"Caddy", caddyLine + "\n", "", "/feed.xml", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := readOpening([]byte(tt.head), tt.given)
			if got.path != tt.path || got.headers != tt.headers {
				t.Errorf("got %+v, want path %q, headers %v", got, tt.path, tt.headers)
			}
		})
	}
}

// If a path has to be chosen, the likeliest are listed.
func TestOpeningSuggests(t *testing.T) {
	var log strings.Builder
	for i := range 20 {
		for range i + 1 {
			fmt.Fprintf(&log, "192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] \"GET /page%02d HTTP/1.1\" 200 5 \"-\" \"R\"\n", i)
		}
	}
	for _, path := range []string{"", "/none"} {
		o := options(t)
		o.Path = path
		_, err := Run(t.Context(), []io.Reader{strings.NewReader(log.String())}, o)
		unclear, ok := errors.AsType[*AmbiguousError](err)
		if !ok || !errors.Is(err, ErrNoRequests) || !strings.Contains(unclear.Suggestions, "      20 requests: /page19\n") || strings.Count(unclear.Suggestions, "\n") != 11 {
			t.Errorf("path %q: %v", path, err)
		}
	}
}

// Several logs are one, whatever their order and whether they are compressed.
func TestJoin(t *testing.T) {
	line := func(day int) string {
		return fmt.Sprintf("192.0.2.1 - - [%02d/Mar/2024:06:26:07 +0000] \"GET /feed.xml HTTP/1.1\" 200 5 \"-\" \"R\"", day)
	}
	joined, err := openLogs([]io.Reader{strings.NewReader(line(3) + "\n"), strings.NewReader(zip(t, line(1)+"\n"+line(2))), strings.NewReader(""), strings.NewReader("no log\n" + line(4))})
	if err != nil {
		t.Fatal(err)
	}
	var days []string
	for text := range strings.Lines(string(joined.opening)) {
		if _, rest, ok := strings.Cut(text, "["); ok {
			days = append(days, rest[:2])
		}
	}
	if got := strings.Join(days, " "); got != "01 02 03 04" {
		t.Errorf("got days %s", got)
	}
}
