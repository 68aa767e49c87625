// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
)

// tableRows bounds the readers in the text.
const tableRows = 20

// anotherSize is by which share the bytes of whole answers must differ for the feed to have another size.
const anotherSize = 0.02

// WriteText writes the report for a publisher.
func (r *Report) WriteText(out io.Writer) error {
	var b strings.Builder
	r.writeSubject(&b)
	r.writeComparison(&b)
	r.writeNotes(&b)
	text := strings.TrimRight(b.String(), "\n") + "\n\n"
	b.Reset()
	r.writeReaders(&b)
	_, err := io.WriteString(out, text+b.String())
	return err
}

// writeSubject writes which feed and which time were replayed.
func (r *Report) writeSubject(b *strings.Builder) {
	const minute = "2006-01-02 15:04"
	fmt.Fprintf(b, "%s requests for %s from %s to %s GMT (%s)\n", count(r.Requests), feedurl.Short(r.Path, 40),
		r.From.UTC().Format(minute), r.To.UTC().Format(minute), status.Length(r.To.Sub(r.From)))
	name := map[string]string{"rss": "RSS", "atom": "Atom", "json": "JSON Feed"}[r.Feed.Format]
	changes := "it never changes"
	if r.Feed.ChangeEvery > 0 {
		changes = "it changes every " + status.Length(r.Feed.ChangeEvery)
	}
	fmt.Fprintf(b, "The feed: %s, %s, %s, with gzip %s; %s\n",
		strings.TrimSpace(name+" "+r.Feed.Version), count(int64(r.Feed.Entries))+status.Plural(int64(r.Feed.Entries), " entry", " entries"), status.Size(r.Feed.Bytes), status.Size(r.Feed.Compressed), changes)
	if math.Abs(float64(r.ServedWholeBytes-r.WholeBytes)) > anotherSize*float64(r.WholeBytes) {
		fmt.Fprintf(b, "In the log the feed had another size: whole answers have %s bytes here, for that reason alone.\n", change(r.WholeBytes, r.ServedWholeBytes))
	}
}

// writeComparison compares the log with the replay.
func (r *Report) writeComparison(b *strings.Builder) {
	row := func(what string, before, after string, change string) {
		fmt.Fprintln(b, strings.TrimRight(fmt.Sprintf("  %-36s%14s%16s%12s", what, before, after, change), " "))
	}
	fmt.Fprintf(b, "\n")
	row("", "in the log", "with Pollard", "")
	fmt.Fprintf(b, "The origin\n")
	row("requests", count(r.Requests), count(r.OriginRequests), change(r.Requests, r.OriginRequests))
	row("requests in the feed's skip hours", count(r.RequestsInSkipHours), count(r.OriginRequestsInSkipHours), "")
	row("304 Not Modified", count(r.Logged["304"]), count(r.OriginNotModified), "")
	row("bytes", status.Size(r.Bytes), status.Size(r.OriginBytes), change(r.Bytes, r.OriginBytes))
	fmt.Fprintf(b, "Readers\n")
	before, after := total(r.Logged), total(r.Served) // of the answers without a row
	for _, code := range []int{200, 304, 403, 406, 429} {
		logged, served := r.Logged[strconv.Itoa(code)], r.Served[strconv.Itoa(code)]
		if before, after = before-logged, after-served; logged+served > 0 {
			row(fmt.Sprint(code, " ", http.StatusText(code)), count(logged), count(served), "")
		}
	}
	if before+after > 0 {
		row("other answers", count(before), count(after), "")
	}
	row("bytes", status.Size(r.Bytes), status.Size(r.ServedBytes), change(r.Bytes, r.ServedBytes))
	if r.HandshakeBytes > 0 {
		total := r.ServedBytes + r.HandshakeBytes
		row("bytes with TLS handshakes (estimate)", status.Size(r.Bytes), status.Size(total), change(r.Bytes, total))
	}
}

// writeNotes writes the limits of the comparison, and the lines that were not replayed.
func (r *Report) writeNotes(b *strings.Builder) {
	note := func(n int64, one, many string) {
		if n > 0 {
			fmt.Fprintln(b, count(n), status.Plural(n, one, many))
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
	note(r.OtherLines, "line is not a request.", "lines are not requests.")
	note(r.OtherPaths, "request is for another path.", "requests are for other paths.")
	note(r.OutOfOrder, "request is older than the one before it, and was taken to be as new.",
		"requests are older than the ones before them, and were taken to be as new.")
	note(r.PassedThrough, "request is a redirect, or not a GET or HEAD, and stays what it was.",
		"requests are redirects, or not GET or HEAD, and stay what they were.")
}

// writeReaders lists the readers with the most requests. Scores and reasons describe the
// log.
func (r *Report) writeReaders(b *strings.Builder) {
	const format = "%-26.26s %10s %7s %10s %10s %6s %9s %9s %5s\n"
	fmt.Fprintf(b, format, "Reader", "requests", "addr.", "bytes", "then", "cond.", "median", "refused", "score")
	fleets := false
	for _, reader := range r.Readers[:min(len(r.Readers), tableRows)] {
		gap := "-"
		if reader.MedianGap > 0 {
			gap = status.Short(time.Duration(reader.MedianGap) * time.Second)
		}
		name := feedurl.Short(reader.Family, 25)
		name += strings.Repeat(" ", 26-utf8.RuneCountInString(name))
		fmt.Fprintf(b, format, name, count(reader.Requests), count(reader.Addresses), status.Size(reader.Bytes), status.Size(reader.ServedBytes),
			fmt.Sprintf("%.0f %%", 100*reader.ShareConditional), gap, count(reader.Refused), reader.Score)
		for _, reason := range reader.Reasons {
			if reader.Score != "-" {
				fmt.Fprintln(b, "    "+reason)
			}
		}
		if fleet := reader.AsFleet; fleet != nil {
			fleets = true
			fmt.Fprintf(b, "    as a fleet: %s more refused, %s less\n", count(fleet.Refused), status.Size(fleet.Bytes))
		}
	}
	if rest := len(r.Readers) - tableRows; rest > 0 {
		var requests int64
		for _, reader := range r.Readers[tableRows:] {
			requests += reader.Requests
		}
		fmt.Fprintf(b, "and %s more, with %s requests\n", count(int64(rest)), count(requests))
	}
	if fleets {
		fmt.Fprint(b, "\nA line fleet in defend counts all addresses of a crawler as one. Never name an app that people run.\n")
	}
}

func count(n int64) string { return humanize.Comma(n) }

func total(counts map[string]int64) (sum int64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

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
