// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// maxEncoded is the size, in bytes, up to which a pollState and a feedState are stored. Usual
// ones have one or two thousand. An origin decides how long its header fields are. Of a feed of
// strangers, a pollState has a quarter of maxNew and a feedState the rest.
const (
	maxEncoded = 64 << 10
	maxNew     = 8 << 10
)

var errTooLarge = errors.New("what the store has to remember of the feed is too large")

// storedPollState is the pollState as it is stored: with the part of the history that each poll
// changes.
type storedPollState struct {
	pollState
	Unsent   int           `json:"unsent,omitempty"`
	Failures int           `json:"failures,omitempty"`
	Refusals int           `json:"refusals,omitempty"`
	Unheeded int           `json:"unheeded,omitempty"`
	Interval time.Duration `json:"interval,omitempty"`
}

// EncodePollState returns the pollState as it is stored.
func (s *State) EncodePollState() ([]byte, error) {
	h := &s.Feed.History
	last := s.Last
	b, err := json.Marshal(&storedPollState{last, h.Unsent, h.Failures, h.Refusals, h.Unheeded, h.Interval})
	if last.Site = nil; err == nil && s.small() && len(b) > maxNew/4 {
		b, err = json.Marshal(&storedPollState{last, h.Unsent, h.Failures, h.Refusals, h.Unheeded, h.Interval})
	}
	if err == nil && len(b) > maxEncoded {
		err = errTooLarge
	}
	return b, err
}

// EncodeFeedState returns the feedState as it is stored, or nil if the stored one is the same.
// If it is too large, it loses what the next poll can do without.
func (s *State) EncodeFeedState() ([]byte, error) {
	m, limit := &s.Feed, maxEncoded
	if s.small() {
		limit = maxNew * 3 / 4
	}
	b, err := m.encode()
	for _, lose := range []func(){
		func() { m.History.Malformed = nil },
		func() { m.Past, m.Considered, m.Version.Header = nil, nil, nil },
		func() { m.Linked = HubTopic{} },
		func() { m.Validators = policy.Validators{} },
	} {
		if err == nil && len(b) > limit {
			lose()
			b, err = m.encode()
		}
	}
	if err == nil && len(b) > maxEncoded {
		err = errTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the state of a feed: %w", err)
	}
	hash := xxhash.Sum64(b)
	if hash == s.saved {
		return nil, nil
	}
	s.saved = hash
	return b, nil
}

// small reports whether little is remembered of the feed: it counts for strangers, or has no owner yet.
func (s *State) small() bool { return !s.Configured && (s.Owner == 0 || s.Owner == store.Any) }

func (m feedState) encode() ([]byte, error) {
	m.History.Failures, m.History.Refusals, m.History.Unheeded, m.History.Interval, m.History.Unsent = 0, 0, 0, 0, 0
	m.convert(textOf)
	return json.Marshal(&m)
}

// FromRecord returns the state that a record describes, which was read at an elapsed time.
func FromRecord(r store.Record, now time.Duration) *State {
	s := &State{Recorded: true, Owner: r.Owner, Poked: r.Poked, Configured: r.Configured, Points: r.Points, Version: r.Version, Ended: r.In == store.Ended, Granted: NeverGranted, First: NeverGranted}
	if !s.Ended {
		s.Due = now + r.In
	}
	if r.Polled >= 0 {
		s.Granted, s.Leased = now-r.Polled, r.Token != 0
	}
	if r.First >= 0 {
		s.First = now - r.First
	}
	if r.NotBefore > 0 {
		s.NotBefore = now + r.NotBefore
	}
	err := s.decode(r)
	if err != nil {
		// One damaged record must not take the schedule with it. Its version, of which
		// nothing is known, has to be fetched again.
		*s = State{Recorded: true, Owner: s.Owner, Poked: s.Poked, Configured: s.Configured, Points: s.Points, Due: s.Due, Ended: s.Ended, Granted: s.Granted, NotBefore: s.NotBefore}
		s.Last = pollState{Result: status.ResultFailed, Failure: policy.FailureStore, Error: err.Error()}
		s.Feed.Version.Number = r.Version
	}
	if s.Feed.Inherited {
		s.Version = 0 // another block gave it
	}
	if s.Version != 0 {
		s.Response = s.Feed.Version.Response(Shielded(r.URL))
	}
	s.Size = stateOverhead + 2*int64(len(r.FeedState)+len(r.PollState))
	return s
}

// Decode returns the version that a record describes. It fails if the record makes no sense.
func Decode(r store.Record) (*storedVersion, error) {
	s := State{Version: r.Version}
	err := s.decode(r)
	return &s.Feed.Version, err
}

func (s *State) decode(r store.Record) error {
	var f storedPollState
	if len(r.PollState) > 0 {
		if err := json.Unmarshal(withNames(r.PollState), &f); err != nil {
			return fmt.Errorf("decoding the state of a poll: %w", err)
		}
	}
	if len(r.FeedState) > 0 {
		m, err := decodeFeedState(r.FeedState)
		if err != nil {
			return fmt.Errorf("decoding the state of a feed: %w", err)
		}
		s.Feed, s.saved = m, xxhash.Sum64(r.FeedState)
	}
	if s.Points == "" && s.Feed.Alias != "" {
		s.Points, s.Feed.Pointing.Since = s.Feed.Alias, f.At
	}
	s.Feed.Alias = ""
	h := &s.Feed.History
	s.Last, h.Unsent, h.Failures, h.Refusals, h.Unheeded, h.Interval = f.pollState, f.Unsent, f.Failures, f.Refusals, f.Unheeded, f.Interval
	if s.Version != 0 && s.Feed.Version.Tag == "" {
		return fmt.Errorf("version %d of which nothing is recorded", s.Version)
	}
	return nil
}

func decodeFeedState(b []byte) (m feedState, err error) {
	err = json.Unmarshal(withNames(b), &m)
	m.convert(Octets)
	return m, err
}

// A Summary is what a list shows of a feed, read from its record without the rest.
type Summary struct {
	Askers      []store.Owner
	Title, From string // of the version, see [State.From]
	Failures    int
	Incident    status.Incident
}

// SummaryOf returns the summary of a feed. It leaves out damaged parts.
func SummaryOf(r *store.Record, now time.Time) (s Summary) {
	var m struct {
		Groups   []groupDay
		Alias    string
		Version  struct{ Title, From string }
		Incident status.Incident
	}
	_ = json.Unmarshal(withNames(r.FeedState), &m)
	_ = json.Unmarshal(r.PollState, &s) // the failures
	s.Askers = append(ownersOf(r.Askers), askersOf(m.Groups, now)...)
	s.Title, s.From, s.Incident = m.Version.Title, cmp.Or(r.Points, m.Alias, m.Version.From), m.Incident
	return s
}

// names are names of the first edition's records, and those that they have now. A name stands
// before a colon; within a text of JSON, its quotes would be escaped.
var names = strings.NewReplacer(`"marks":[{"m":`, `"groups":[{"group":`, `,"d":`, `,"day":`, `},{"m":`, `},{"group":`)

// withNames returns a record of the first edition with the names of today.
func withNames(record []byte) []byte {
	if bytes.Contains(record, []byte(`"marks":`)) {
		return []byte(names.Replace(string(record)))
	}
	return record
}

// stateOverhead is what a feed in memory takes besides its texts and its key, in bytes, roughly.
const stateOverhead = 1500

// Unknown returns the state of a feed that has no record.
func Unknown() *State { return &State{Size: stateOverhead} }

// convert puts header fields into another form: JSON is text, and what fields hold
// is octets. Obs-text (RFC 9110 section 5.5) is seldom UTF-8, and JSON would put
// U+FFFD in its place, so it is stored as ISO 8859-1, in which each octet is a
// character.
func (m *feedState) convert(form func(string) string) {
	m.Validators.ETag, m.Validators.LastModified = form(m.Validators.ETag), form(m.Validators.LastModified)
	if m.Version.Header == nil {
		return
	}
	header := make(map[string][]string, len(m.Version.Header)) // the old one belongs to a published state
	for name, values := range m.Version.Header {
		for _, v := range values {
			header[name] = append(header[name], form(v))
		}
	}
	m.Version.Header = header
}

// textOf makes a character of each octet.
func textOf(octets string) string {
	text := make([]rune, len(octets))
	for i := range len(octets) {
		text[i] = rune(octets[i])
	}
	return string(text)
}

// Octets makes an octet of each character.
func Octets(text string) string {
	b := make([]byte, 0, len(text))
	for _, r := range text {
		b = append(b, byte(r))
	}
	return string(b)
}
