// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document"
)

// feed makes the revisions of a feed that changes at a steady pace.
type feed struct {
	first    []byte
	document *policy.Document // of the first revision
	header   http.Header      // from the options
	begin    time.Time        // of the log; revisions are counted from here
	every    time.Duration    // between revisions; 0: the feed never changes

	current *revision
}

// revision is what the origin serves between two changes.
type revision struct {
	number       int64
	body, packed []byte // packed is compressed with gzip, or is the body if that is smaller
	header       http.Header
	modified     time.Time // of Last-Modified; zero if it is missing or malformed
}

// errSameMeaning reports that the model could not add an entry to the feed.
var errSameMeaning = errors.New("no place for a new entry was found in the feed")

func newFeed(o Options, begin time.Time) (*feed, error) {
	d, err := document.Read(o.Feed, o.Header.Get("Content-Type"), begin)
	if err != nil {
		return nil, fmt.Errorf("reading the feed: %w", err)
	}
	f := &feed{first: o.Feed, document: d, header: o.Header, begin: begin, every: max(o.ChangeEvery, 0)}
	if f.current, err = f.revision(0); err != nil {
		return nil, err
	}
	return f, nil
}

// changes reports whether the model is able to change the feed.
func (f *feed) changes() bool {
	next, err := f.revision(1)
	if err != nil {
		return false
	}
	d, err := document.Read(next.body, next.header.Get("Content-Type"), f.begin.Add(f.every))
	return err == nil && d.Fingerprint != f.document.Fingerprint
}

// at returns the revision that is served at now. Calls must be in order of time.
func (f *feed) at(now time.Time) (*revision, error) {
	var number int64
	if f.every > 0 && now.After(f.begin) {
		number = int64(now.Sub(f.begin) / f.every)
	}
	if number <= f.current.number {
		return f.current, nil
	}
	next, err := f.revision(number)
	if err != nil {
		return nil, err
	}
	f.current = next
	return next, nil
}

// revision makes a revision. The first one is as old as its newest entry, or a day older than
// the log. The header fields of the options override those of the model, but for validators of later ones.
func (f *feed) revision(number int64) (*revision, error) {
	e := &revision{number: number, body: f.first, header: make(http.Header)}
	since := f.begin.Add(-24 * time.Hour)
	if newest := f.document.Rhythm.Newest; !newest.IsZero() && newest.Before(f.begin) {
		since = newest
	}
	if number > 0 {
		since = f.begin.Add(time.Duration(number) * f.every)
		var err error
		if e.body, err = withEntry(f.first, f.document.Format, number, since); err != nil {
			return nil, err
		}
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(e.body) // into memory
	_ = w.Close()
	e.packed = e.body
	if packed.Len() < len(e.body) {
		e.packed = packed.Bytes()
		e.header.Set("Content-Encoding", "gzip")
		e.header.Set("Vary", "Accept-Encoding")
	}
	e.header.Set("Content-Type", map[string]string{"rss": "application/rss+xml", "atom": "application/atom+xml", "json": "application/feed+json"}[f.document.Format])
	e.header.Set("Etag", `"`+strconv.FormatUint(xxhash.Sum64(e.body), 16)+`"`)
	e.header.Set("Last-Modified", since.UTC().Format(http.TimeFormat))
	for name, values := range f.header {
		switch {
		case values[0] == "":
			e.header.Del(name)
		case number == 0 || name != "Etag" && name != "Last-Modified":
			e.header[name] = slices.Clone(values)
		}
	}
	e.modified, _ = http.ParseTime(e.header.Get("Last-Modified")) // zero if it is malformed
	return e, nil
}

// A new entry is inserted at the first entry of a document, or, if it has none, at the
// end of the feed. The new element gets the same namespace prefix.
var (
	entryStart = regexp.MustCompile(`<((?:[\w.-]+:)?)(?:item|entry)[\s>/]`)
	feedEnd    = regexp.MustCompile(`</((?:[\w.-]+:)?)(?:channel|feed)\s*>`)
	itemsStart = regexp.MustCompile(`"items"\s*:\s*\[(\s*\])?`)
)

// withEntry returns the document with one more entry. Only that entry differs between
// the editions after the first.
func withEntry(body []byte, format string, number int64, at time.Time) ([]byte, error) {
	if format == "json" {
		where := itemsStart.FindSubmatchIndex(body)
		if where == nil {
			return nil, errSameMeaning
		}
		entry := fmt.Sprintf(`{"id":"tag:replay.invalid,2026:%d","title":"Change %d of the replay","content_text":"","date_published":"%s"}`,
			number, number, at.UTC().Format(time.RFC3339))
		from := where[1]
		if where[2] >= 0 { // the list is empty
			from = where[2]
		} else {
			entry += ","
		}
		return slices.Concat(body[:from], []byte(entry), body[from:]), nil
	}
	where := entryStart.FindSubmatchIndex(body)
	if where == nil {
		where = feedEnd.FindSubmatchIndex(body)
	}
	if where == nil {
		return nil, errSameMeaning
	}
	prefix := string(body[where[2]:where[3]])
	id := fmt.Sprintf("tag:replay.invalid,2026:%d", number)
	var entry string
	if format == "atom" {
		entry = fmt.Sprintf("<%[1]sentry><%[1]sid>%[2]s</%[1]sid><%[1]stitle>Change %[3]d of the replay</%[1]stitle><%[1]supdated>%[4]s</%[1]supdated></%[1]sentry>\n",
			prefix, id, number, at.UTC().Format(time.RFC3339))
	} else {
		entry = fmt.Sprintf("<%[1]sitem><%[1]stitle>Change %[3]d of the replay</%[1]stitle><%[1]sguid isPermaLink=\"false\">%[2]s</%[1]sguid><%[1]spubDate>%[4]s</%[1]spubDate></%[1]sitem>\n",
			prefix, id, number, at.UTC().Format(http.TimeFormat))
	}
	return slices.Concat(body[:where[0]], []byte(entry), body[where[0]:]), nil
}
