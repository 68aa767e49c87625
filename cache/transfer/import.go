// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

const (
	// importBatch is how many feeds are stored at once, and importBytes how many bytes
	// of bodies.
	importBatch = 256
	importBytes = 8 << 20
	// maxLine is how long a line may be, in bytes: base64 of the largest version.
	maxLine = 512 << 20
)

// Importer takes feeds into a store.
type Importer struct {
	Store store.Store
	// Host is whom polls of a URL ask.
	Host func(u feedurl.URL) policy.Host
	// Shielded reports whether a key that is not a URL is that of a shielded feed.
	Shielded func(key string) bool
	// Refused is called with the number of each invalid line.
	Refused func(number int64, err error)
	// Report is called from time to time with the number of feeds so far.
	Report func(feeds int64)

	now   time.Time
	batch []store.Saved
	size  int
	done  int64
}

// Import reads lines of JSON and returns how many of them have become feeds of the
// store. Lines that make no sense are left out. Of a feed that the store knows already,
// the later next poll counts; a line without a version does not replace it otherwise.
func (i *Importer) Import(ctx context.Context, r io.Reader) (feeds int64, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	number := int64(0)
	for in.Scan() {
		number++
		text := bytes.TrimSpace(bytes.TrimPrefix(in.Bytes(), []byte("\xef\xbb\xbf")))
		if len(text) == 0 {
			continue
		}
		if err := i.take(ctx, number, text); err != nil {
			return i.done, err
		}
	}
	if err := in.Err(); err != nil {
		return i.done, fmt.Errorf("reading line %d: %w", number+1, err)
	}
	return i.done, i.flush(ctx)
}

// take takes a line. It fails if the import cannot go on.
func (i *Importer) take(ctx context.Context, number int64, text []byte) error {
	i.now = time.Now()
	saved, err := i.read(text)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		i.Refused(number, err)
		return nil
	}
	i.batch = append(i.batch, saved)
	if saved.Body != nil {
		i.size += len(saved.Body.Data)
	}
	if len(i.batch) < importBatch && i.size < importBytes {
		return nil
	}
	return i.flush(ctx)
}

func (i *Importer) flush(ctx context.Context) error {
	if len(i.batch) == 0 {
		return nil
	}
	if err := i.Store.Restore(ctx, i.batch); err != nil {
		return fmt.Errorf("storing feeds, after %d of them: %w", i.done, err)
	}
	for _, s := range i.batch {
		if s.URL != "" {
			i.done++
		}
	}
	i.batch, i.size = i.batch[:0], 0
	i.Report(i.done)
	return nil
}

// read makes a record of a line.
func (i *Importer) read(text []byte) (store.Saved, error) {
	if bytes.HasPrefix(text, []byte(`{"figure":`)) { // of an export by an earlier version
		return store.Saved{}, errors.New("statistics are not imported: they stay in the store that counted them")
	}
	var l exported
	if err := json.Unmarshal(text, &l); err != nil && text[0] == '{' && text[len(text)-1] != '}' {
		return store.Saved{}, errors.New("it ends in the middle, as in a file that was not copied whole: copy it again, and repeat the import")
	} else if err != nil {
		return store.Saved{}, fmt.Errorf("no line of an export: %w", err)
	}
	if l.Pause != nil {
		return i.readPause(l.Pause)
	}
	ours := len(l.Memo) > 0 || len(l.Facts) > 0
	switch {
	case l.Forgotten != "":
		return i.readForgotten(&l)
	case l.URL == "":
		return store.Saved{}, errors.New(`it names no feed: expected {"url": "https://..."}`)
	case ours && feedstate.Shielded(l.URL):
		if !i.Shielded(l.URL) {
			return store.Saved{}, errors.New("its url is not a URL")
		}
	default:
		key, err := feedurl.Canonical(l.URL)
		if err != nil {
			return store.Saved{}, err // says "not a feed URL"
		}
		l.URL = key
	}
	s, err := i.readTimes(&l)
	if err != nil {
		return store.Saved{}, err
	}
	s.ID, s.URL, s.Configured = store.IDOf(l.URL), l.URL, l.Configured
	if !feedstate.Shielded(l.URL) {
		s.Site = i.Host(feedstate.ParseKey(l.URL).URL()).Site
	}
	if ours {
		err = i.readExported(&s, &l)
	} else {
		err = i.readAnswer(&s, &l)
	}
	return s, err
}

// readTimes reads when a feed was polled and read, and when it will be.
func (i *Importer) readTimes(l *exported) (s store.Saved, err error) {
	first := l.FirstReader
	if first == nil && (l.Hold != 0 || len(l.Memo) == 0) { // an earlier version, or another system, did not say
		first = l.LastReader
	}
	s.Record = store.Record{Polled: i.ago(l.LastPoll), Asked: i.ago(l.LastReader), First: i.ago(first)}
	if l.NotBefore != nil {
		s.NotBefore = min(l.NotBefore.Sub(i.now), longest)
	}
	for _, a := range l.Askers {
		owner, err := strconv.ParseInt(a.Owner, 16, 64)
		if kind := store.Owner(owner).Kind(); err != nil || kind < store.KindAny || kind > store.KindOperator {
			return s, fmt.Errorf("askers: %q is no owner", feedurl.OneLine(a.Owner))
		}
		s.Askers = append(s.Askers, store.Asker{Owner: store.Owner(owner), Ago: int64(i.ago(&a.At) / day)})
	}
	s.In, err = i.in(l.NextPoll)
	return s, err
}

// readForgotten reads what is remembered of a feed without its URL.
func (i *Importer) readForgotten(l *exported) (store.Saved, error) {
	s, err := i.readTimes(l)
	id, bad := hex.DecodeString(l.Forgotten)
	if copy(s.ID[:], id); bad != nil || len(id) != len(s.ID) {
		return s, fmt.Errorf("forgotten: %q is no ID of a feed", feedurl.OneLine(l.Forgotten))
	}
	return s, err
}

// readPause reads the pause of a site. That of a host, of an earlier version, holds for its site for an hour at most,
// whatever it was for: a refusal or a rate limit.
func (i *Importer) readPause(p *exportedPause) (store.Saved, error) {
	pause := store.Pause{Site: p.Site, New: p.New, For: p.Until.Sub(i.now), Why: p.Why, Step: max(0, p.Step), URL: p.URL}
	if scope := strings.Fields(p.Scope); len(scope) > 1 {
		name := scope[1]
		if u, err := feedurl.Parse("http://" + name + "/"); err == nil {
			pause.Site, pause.Step, pause.For = u.Site(), 0, min(pause.For, time.Hour)
		}
	}
	if pause.Site == "" {
		return store.Saved{}, fmt.Errorf("pause: it names no site: scope %q", feedurl.OneLine(p.Scope))
	}
	return store.Saved{Pause: &pause}, nil
}

// ago is how long ago a time is; negative: never.
func (i *Importer) ago(t *time.Time) time.Duration {
	if t == nil {
		return -1
	}
	return max(0, i.now.Sub(*t))
}

// longest is how far a next poll may be away: origins' pauses end within a week, and
// no operator's interval is longer than a year.
const longest = 366 * 24 * time.Hour

// in is the time to the next poll. Without one, the feed is due.
func (i *Importer) in(text string) (time.Duration, error) {
	switch text {
	case "":
		return 0, nil
	case never:
		return store.Ended, nil
	}
	next, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, fmt.Errorf("next_poll: %q is not a time: expected one such as 2026-11-21T08:00:00Z, or never", feedurl.OneLine(text))
	}
	in := next.Sub(i.now)
	if in > longest {
		return 0, fmt.Errorf("next_poll: %s is more than a year away", text)
	}
	return in, nil
}

// readExported reads what an engine has kept.
func (i *Importer) readExported(s *store.Saved, l *exported) error {
	s.State, s.PollState, s.FeedState = l.State, l.Facts, l.Memo
	if s.Points = l.Points; s.Points != "" {
		if _, err := feedurl.Canonical(s.Points); err != nil {
			return fmt.Errorf("points: %w", err)
		}
	}
	switch s.State {
	case store.StateCold, store.StateFresh, store.StateWaiting, store.StateFailing, store.StateGone:
	default:
		return fmt.Errorf("state: %q is not known", feedurl.OneLine(string(l.State)))
	}
	if l.Version != 0 {
		s.Version, s.Body = l.Version, &store.Body{Version: l.Version, Coding: l.Coding, Data: l.Data}
	}
	v, err := feedstate.Decode(s.Record)
	if err != nil || s.Body == nil {
		return err
	}
	coding := version.CodingOf(l.Coding)
	if v.Number != s.Version || v.Length < 0 || v.Length > maxLine || v.Coding != l.Coding || coding.String() != l.Coding {
		return errors.New("its version is not the one that is described")
	}
	if _, err := version.Unpack(coding, l.Data, v.Length); err != nil {
		return fmt.Errorf("its data is damaged: %w", err)
	}
	return nil
}

// readAnswer reads what another system knows of a feed: perhaps an answer of its origin.
// Without a body there is nothing that a 304 could confirm, so validators are left out.
func (i *Importer) readAnswer(s *store.Saved, l *exported) error {
	s.State = store.StateCold
	if l.LastReader == nil {
		s.Asked, s.First = 0, 0 // as though it had been asked for now: idle_after counts from here
	}
	st := &feedstate.State{}
	s.Hold = st.LeaseTime(policy.DefaultRules())
	if l.Body == "" {
		// As it is the operator who brings it, it is polled in the background though it
		// has no version.
		s.New, s.Configured = true, true
		return nil
	}
	at := i.now
	if l.LastPoll != nil && l.LastPoll.Before(at) {
		at = *l.LastPoll
	}
	header := http.Header{}
	for name, value := range map[string]string{"Content-Type": l.ContentType, "ETag": feedstate.Octets(l.ETag), "Last-Modified": feedstate.Octets(l.LastModified)} {
		if value != "" {
			header.Set(name, value)
		}
	}
	a := policy.Answer{Asked: at, At: at, URL: l.URL, Status: http.StatusOK, Header: header, Body: []byte(l.Body)}
	key := feedstate.ParseKey(l.URL)
	v := st.ClassifyDocument(key, s.Configured, a, at, nil)
	if !v.Good() {
		return fmt.Errorf("its body: %w", v.Answer.Err)
	}
	st.Update(key, v)
	var err error
	st.Version, st.Ended = st.Feed.Version.Number, s.In == store.Ended
	st.Last.Polls = nil // there was none of ours
	if !st.Ended {
		st.Last.Decided, st.Last.Pause = i.now.Round(0).UTC(), max(0, s.In)
	}
	if s.PollState, err = st.EncodePollState(); err != nil {
		return err
	}
	if s.FeedState, err = st.EncodeFeedState(); err != nil {
		return err
	}
	s.State, s.Version = st.StoreState(s.Configured), st.Version
	s.Body = &store.Body{Version: s.Version, Coding: v.Body.Coding, Data: v.Body.Data}
	return nil
}
