// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

const (
	// width bounds the columns of the text.
	width = 100
	// tableRows bounds the readers in the text.
	tableRows = 20
)

// WriteText writes the report for a publisher.
func (r *Report) WriteText(out io.Writer) error {
	var b strings.Builder
	r.writeSubject(&b)
	r.writeFigures(&b)
	r.writeNotes(&b)
	r.writeReaders(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

// writeSubject writes which feed and which time were replayed.
func (r *Report) writeSubject(b *strings.Builder) {
	const minute = "2006-01-02 15:04"
	path := r.Path
	if len(path) > 40 {
		path = path[:37] + "..."
	}
	fmt.Fprintf(b, "%s requests for %s from %s to %s GMT (%s)\n", count(r.Requests), oneLine(path),
		r.From.UTC().Format(minute), r.To.UTC().Format(minute), length(r.To.Sub(r.From)))
	name := map[string]string{"rss": "RSS", "atom": "Atom", "json": "JSON Feed"}[r.Feed.Format]
	changes := "it never changes"
	if r.Feed.ChangeEvery > 0 {
		changes = "it changes every " + length(r.Feed.ChangeEvery)
	}
	fmt.Fprintf(b, "The feed: %s, %s entries, %s, with gzip %s; %s\n",
		strings.TrimSpace(name+" "+r.Feed.Version), count(int64(r.Feed.Entries)), size(r.Feed.Bytes), size(r.Feed.Compressed), changes)
}

// writeFigures compares the log with the replay.
func (r *Report) writeFigures(b *strings.Builder) {
	row := func(what string, before, after string, change string) {
		fmt.Fprintln(b, strings.TrimRight(fmt.Sprintf("  %-36s%14s%16s%12s", what, before, after, change), " "))
	}
	fmt.Fprintf(b, "\n")
	row("", "in the log", "with Pollard", "")
	fmt.Fprintf(b, "The origin\n")
	row("requests", count(r.Requests), count(r.OriginRequests), change(r.Requests, r.OriginRequests))
	row("requests in the feed's skip hours", count(r.RequestsInSkipHours), count(r.OriginRequestsInSkipHours), "")
	row("304 Not Modified", count(r.Logged["304"]), count(r.OriginNotModified), "")
	row("bytes", size(r.Bytes), size(r.OriginBytes), change(r.Bytes, r.OriginBytes))
	fmt.Fprintf(b, "Readers\n")
	for _, s := range []struct{ status, what string }{
		{"200", "200 OK"}, {"304", "304 Not Modified"}, {"403", "403 Forbidden"}, {"406", "406 Not Acceptable"}, {"429", "429 Too Many Requests"},
	} {
		if r.Logged[s.status]+r.Served[s.status] > 0 {
			row(s.what, count(r.Logged[s.status]), count(r.Served[s.status]), "")
		}
	}
	if before, after := others(r.Logged), others(r.Served); before+after > 0 {
		row("other answers", count(before), count(after), "")
	}
	row("bytes", size(r.Bytes), size(r.ServedBytes), change(r.Bytes, r.ServedBytes))
	if r.HandshakeBytes > 0 {
		total := r.ServedBytes + r.HandshakeBytes
		row("bytes with TLS handshakes (estimate)", size(r.Bytes), size(total), change(r.Bytes, total))
	}
}

// others counts the answers whose status does not have a row.
func others(statuses map[string]int64) (n int64) {
	for status, count := range statuses {
		switch status {
		case "200", "304", "403", "406", "429":
		default:
			n += count
		}
	}
	return n
}

// writeNotes writes the limits of the comparison, and the lines that were not replayed.
func (r *Report) writeNotes(b *strings.Builder) {
	note := func(n int64, one, many string) {
		switch {
		case n == 1:
			fmt.Fprintf(b, "1 %s\n", one)
		case n > 1:
			fmt.Fprintf(b, "%s %s\n", count(n), many)
		}
	}
	fmt.Fprintf(b, "\n")
	if !r.BytesOfHeaders {
		fmt.Fprint(b, "The log counts bodies alone; so do the bytes that readers get. The origin's include headers.\n")
	}
	if r.Feed.Unchanging {
		fmt.Fprint(b, "The feed has no place for a new entry that could be found, so it did not change.\n")
	}
	note(r.Malformed, "line is malformed.", "lines are malformed.")
	note(r.OtherLines, "line is no request.", "lines are no requests.")
	note(r.OtherPaths, "request is for another path.", "requests are for other paths.")
	note(r.OutOfOrder, "request is older than the one before it, and was taken to be as new.",
		"requests are older than the ones before them, and were taken to be as new.")
	note(r.PassedThrough, "request is a redirect or no GET or HEAD, and stays what it was.",
		"requests are redirects or no GET or HEAD, and stay what they were.")
}

// writeReaders lists the readers with the most requests. Scores and reasons describe the
// log.
func (r *Report) writeReaders(b *strings.Builder) {
	const format = "%-34.34s %10s %10s %10s %6s %9s %9s %5s\n"
	text := strings.TrimRight(b.String(), "\n") + "\n\n"
	b.Reset()
	b.WriteString(text)
	fmt.Fprintf(b, format, "Reader", "requests", "bytes", "then", "cond.", "median", "refused", "score")
	for _, reader := range r.Readers[:min(len(r.Readers), tableRows)] {
		gap := "-"
		if reader.MedianGap > 0 {
			gap = length(time.Duration(reader.MedianGap) * time.Second)
		}
		name := clip(oneLine(reader.Family), 34)
		name += strings.Repeat(" ", 34-utf8.RuneCountInString(name))
		fmt.Fprintf(b, format, name, count(reader.Requests), size(reader.Bytes), size(reader.ServedBytes),
			fmt.Sprintf("%.0f %%", 100*reader.ShareConditional), gap, count(reader.Refused), reader.Score)
		if reader.Score != "-" {
			writeWrapped(b, "    ", strings.Join(reader.Reasons, "; "))
		}
	}
	if rest := len(r.Readers) - tableRows; rest > 0 {
		var requests int64
		for _, reader := range r.Readers[tableRows:] {
			requests += reader.Requests
		}
		fmt.Fprintf(b, "and %s more, with %s requests\n", count(int64(rest)), count(requests))
	}
}

// writeWrapped writes a text in lines of at most width columns, each after an indent.
func writeWrapped(b *strings.Builder, indent, text string) {
	column := 0
	for _, word := range strings.Fields(oneLine(text)) {
		word = clip(word, width-len(indent))
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
			b.WriteString(indent)
			column = len(indent)
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteString("\n")
}

func count(n int64) string { return humanize.Comma(n) }

func size(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }

// change returns the change from before to after in per cent. Small remainders get more
// digits.
func change(before, after int64) string {
	if before <= 0 {
		return ""
	}
	share := float64(after-before) / float64(before) * 100
	switch {
	case share > -99:
		return fmt.Sprintf("%+.1f %%", share)
	case share > -99.9:
		return fmt.Sprintf("%+.2f %%", share)
	}
	return fmt.Sprintf("%+.3f %%", share)
}

// length returns a duration in the largest unit of which it has at least two.
func length(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return trim(d.Hours()/24) + " d"
	case d >= 2*time.Hour:
		return trim(d.Hours()) + " h"
	case d >= 2*time.Minute:
		return trim(d.Minutes()) + " min"
	}
	return trim(d.Seconds()) + " s"
}

// trim formats a number with one digit after the point, unless that is 0.
func trim(n float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0") }

// oneLine replaces control characters in a text from a log, which may be shown on a
// terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || 0x7f <= r && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
}

// clip shortens a text to at most most characters.
func clip(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	runes := []rune(text)
	return strings.TrimRight(string(runes[:most-3]), " ") + "..."
}
