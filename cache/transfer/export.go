// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// exported is a feed in an export: one line of JSON. Times are those of the wall clock, so
// that what passes between export and import counts.
type exported struct {
	// URL is the feed's key.
	URL string `json:"url,omitempty"`
	// NextPoll is when the feed is due, or "never".
	NextPoll   string     `json:"next_poll,omitempty"`
	LastPoll   *time.Time `json:"last_poll,omitempty"`
	LastReader *time.Time `json:"last_reader,omitempty"`
	// FirstReader is when a reader first asked for it at its own address.
	FirstReader *time.Time `json:"first_reader,omitempty"`
	Configured  bool       `json:"configured,omitempty"`
	// Askers are those that asked for it in the last 30 days.
	Askers []exportedAsker `json:"askers,omitempty"`

	// Of an export: what the engine has kept, and the version as it is stored.
	State store.State `json:"state,omitempty"`
	Hold  float64     `json:"hold_seconds,omitempty"` // of an export by an earlier version
	// NotBefore is until when the origin asks not to be polled.
	NotBefore *time.Time `json:"not_before,omitempty"`
	// Points is the URL to which the feed's own redirects permanently.
	Points string          `json:"points,omitempty"`
	Facts  json.RawMessage `json:"facts,omitempty"`
	Memo   json.RawMessage `json:"memo,omitempty"`

	Version uint64 `json:"version,omitempty"`
	Coding  string `json:"coding,omitempty"`
	Data    []byte `json:"data,omitempty"` // in base64

	// Of another system: an answer of the origin, and the body as text.
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	ContentType  string `json:"content_type,omitempty"`
	Body         string `json:"body,omitempty"`

	// Pause makes the line that of a site's pause instead of a feed.
	Pause *exportedPause `json:"pause,omitempty"`
	// Forgotten makes it what is remembered of a feed without its URL, until NextPoll: its ID.
	Forgotten string `json:"forgotten,omitempty"`
}

// exportedAsker is an owner that asked for a feed.
type exportedAsker struct {
	Owner string    `json:"owner"` // in hexadecimal
	At    time.Time `json:"at"`    // on that day
}

// exportedPause is the pause of a site in an export.
type exportedPause struct {
	Site  string    `json:"site,omitempty"`
	New   bool      `json:"new,omitempty"`   // of its feeds alone that never gave a version
	Scope string    `json:"scope,omitempty"` // of an export by an earlier version: "host <name>" or "ratelimit <name>", and the rank of feeds
	Until time.Time `json:"until"`
	Why   string    `json:"why"`
	Step  int       `json:"step,omitempty"`
	URL   string    `json:"url,omitempty"` // of the feed that was refused
}

// never is the next poll of a feed that is not polled any more.
const never = "never"

const day = 24 * time.Hour

// exportPage is how many records are read at once.
const exportPage = 64

// Export writes the pauses of sites, all feeds of a store, and what is remembered of forgotten ones as
// lines of JSON, for [Importer.Import]. report is called from time to time with the number of feeds so far.
func Export(ctx context.Context, s store.Store, w io.Writer, report func(feeds int64)) error {
	pauses, err := s.Pauses(ctx)
	if err != nil {
		return fmt.Errorf("reading the pauses of sites: %w", err)
	}
	read := time.Now()
	out, count := json.NewEncoder(w), int64(0)
	out.SetEscapeHTML(false)
	for _, p := range pauses {
		if err := out.Encode(exported{Pause: &exportedPause{Site: p.Site, New: p.New, Until: read.Add(p.For).UTC(), Why: p.Why, Step: p.Step, URL: p.URL}}); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
	}
	for _, forgotten := range []bool{false, true} {
		for records, err := range store.Pages(ctx, s, exportPage, forgotten) {
			if err != nil {
				return fmt.Errorf("reading feeds: %w", err)
			}
			read := time.Now()
			for _, r := range records {
				l, err := exportRecord(ctx, s, r, read)
				if err != nil {
					return err
				}
				if err := out.Encode(l); err != nil {
					return fmt.Errorf("writing: %w", err)
				}
				if r.URL != "" {
					count++
				}
			}
			report(count)
		}
	}
	return nil
}

func exportRecord(ctx context.Context, s store.Store, r store.Record, now time.Time) (*exported, error) {
	var body store.Body
	if r.Version != 0 {
		var err error
		body, err = store.ReadBody(ctx, s, r.ID)
		switch {
		case errors.Is(err, store.ErrNoBody):
			r.Version = 0 // it is fetched again
		case err != nil:
			return nil, fmt.Errorf("reading a body: %w", err)
		case body.Version != r.Version:
			// A node has committed another version meanwhile: its record belongs to it.
			records, err := s.Lookup(ctx, []store.ID{r.ID})
			if err != nil {
				return nil, fmt.Errorf("reading a feed again: %w", err)
			}
			if len(records) > 0 {
				return exportRecord(ctx, s, records[0], time.Now())
			}
			r.Version = 0
		}
	}
	l := &exported{
		URL: r.URL, NextPoll: never, Configured: r.Configured, State: r.State,
		LastPoll: timeBefore(now, r.Polled), LastReader: timeBefore(now, r.Asked), FirstReader: timeBefore(now, r.First),
		Points: r.Points, Facts: r.PollState, Memo: r.FeedState,
	}
	for _, a := range r.Askers {
		l.Askers = append(l.Askers, exportedAsker{strconv.FormatInt(int64(a.Owner), 16), now.Add(-time.Duration(a.Ago) * day).UTC()})
	}
	if r.URL == "" {
		l.Forgotten, l.State = hex.EncodeToString(r.ID[:]), ""
	}
	if r.In != store.Ended {
		l.NextPoll = now.Add(r.In).UTC().Format(time.RFC3339Nano)
	}
	if r.NotBefore > 0 {
		l.NotBefore = timeBefore(now.Add(r.NotBefore), 0)
	}
	if r.Version != 0 {
		l.Version, l.Coding, l.Data = r.Version, body.Coding, body.Data
	}
	return l, nil
}

// timeBefore is when something was that is so long ago; nil: never.
func timeBefore(now time.Time, ago time.Duration) *time.Time {
	if ago < 0 {
		return nil
	}
	return new(now.Add(-ago).UTC())
}
