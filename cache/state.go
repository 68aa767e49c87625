// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document/site"
)

// state is a snapshot of a feed. It is immutable: a change publishes a new one.
type state struct {
	known       bool // the store has a record
	established bool // see [store.Record]
	version     uint64
	due         time.Duration // when the next poll may be made, as [Cache.elapsed] counts; ended: never
	ended       bool          // automatic polling has ended

	// notBefore is until when the origin asks not to be polled, whatever hint decides, as elapsed
	// counts; 0: it does not.
	notBefore     time.Duration
	granted       time.Duration // when the store granted the last poll, as elapsed counts
	gap           time.Duration // of a poll under way: since the one before
	unconditional *policy.Term  // of a poll under way: why it is unconditional although there are validators; nil: it is not

	// deferredUntil is until when the poll has been put off in memory alone, as elapsed
	// counts: the store does not know of that. 0: it has not.
	deferredUntil time.Duration

	last  pollState
	feed  feedState
	saved uint64 // hash of the feedState as it is stored; 0: it is not

	response *version.Response // to requests for the version; nil: there is none
	size     int64             // what it takes of the memory's budget, in bytes, roughly
}

// pollState is what each poll changes. It is stored apart from the rest (store.Record.Facts), so
// that an unchanged feed costs the store little.
type pollState struct {
	At      time.Time      `json:"at,omitzero"` // end of the last poll
	Status  int            `json:"status,omitempty"`
	Result  status.Result  `json:"result,omitempty"`
	Failure policy.Failure `json:"failure,omitempty"`
	Error   string         `json:"error,omitempty"`

	// RedirectTo is the feed that a temporary redirect leads to, if that has polls of its own.
	RedirectTo string `json:"elsewhere,omitempty"`

	// Validated is when the origin last confirmed or replaced the version.
	Validated time.Time `json:"validated,omitzero"`
	// Unmatched counts polls in a row whose If-None-Match named the very ETag that
	// the answer bore, with the same bytes: the origin does not know its own ETag.
	Unmatched int `json:"unmatched,omitempty"`
	// Confirmed is for how long the origin has answered 304 alone, as of the last poll.
	Confirmed time.Duration `json:"confirmed_for,omitempty"`

	// Of the decision.
	Decided time.Time     `json:"decided,omitzero"`
	Pause   time.Duration `json:"pause,omitempty"`  // to the next poll
	Winner  string        `json:"winner,omitempty"` // the hint that won
	Jitter  policy.Term   `json:"jitter,omitzero"`

	Polls polls `json:"polls,omitempty"`

	// Site is the last 200 that was a web page naming feeds, instead of a feed.
	Site *site.Page `json:"site,omitempty"`
}

// storedPollState is the pollState as it is stored: with the part of the history that each poll
// changes.
type storedPollState struct {
	pollState
	Unsent   int           `json:"unsent,omitempty"`
	Failures int           `json:"failures,omitempty"`
	Unheeded int           `json:"unheeded,omitempty"`
	Interval time.Duration `json:"interval,omitempty"`
}

// feedState is what seldom changes (store.Record.Memo).
type feedState struct {
	// Groups are those that asked for it.
	Groups []groupDay `json:"marks,omitempty"`
	// Alias is the URL of the feed that this one has become by an adopted permanent
	// redirect; empty: it is itself.
	Alias string `json:"alias,omitempty"`
	// Moved is a permanent redirect that has not held long enough to be adopted.
	Moved seenRedirect `json:"moved,omitzero"`
	// Validators are the origin's, for the next conditional request.
	Validators policy.Validators `json:"validators,omitzero"`
	// Muted is until when the ETag is left out of conditional requests: the origin
	// does not know it.
	Muted time.Time `json:"muted,omitzero"`

	Version storedVersion `json:"version,omitzero"`
	// Past are the versions before it that readers may still hold, the newest first.
	Past []past `json:"past,omitempty"`

	Linked hubTopic     `json:"linked,omitzero"` // by Link fields of the last 200
	Push   subscription `json:"push,omitzero"`

	History    policy.History `json:"history"`
	Considered []policy.Term  `json:"considered,omitempty"` // of the last decision

	// Suspect is for how long answers have been kept back as suspect, as of the last
	// poll; 0: they are not.
	Suspect time.Duration `json:"suspect_for,omitempty"`
}

// past is what is remembered of an earlier version: what readers have of it.
type past struct {
	Tag          string    `json:"tag"`
	LastModified time.Time `json:"last_modified"`
}

// maxPast is how many earlier versions are remembered: those of a day or two of a
// busy feed.
const maxPast = 16

// decision is the last one, as it was made.
func (s *state) decision() policy.Decision {
	d := policy.Decision{At: s.last.Decided, Interval: s.last.Pause, Winner: s.last.Winner, Considered: s.feed.Considered}
	if s.last.Jitter.Hint != "" {
		d.Considered = append(d.Considered[:len(d.Considered):len(d.Considered)], s.last.Jitter)
	}
	switch {
	case d.At.IsZero():
	case s.ended:
		d.Next = policy.Never
	default:
		d.Next = d.At.Add(d.Interval)
	}
	return d
}

// decide records a decision. The jitter stands apart, as it is another one each time.
func (s *state) decide(d policy.Decision) {
	s.last.Decided, s.last.Pause, s.last.Winner, s.last.Jitter = d.At, d.Interval, d.Winner, policy.Term{}
	s.feed.Considered = nil
	for _, t := range d.Considered {
		if t.Hint == policy.HintJitter {
			s.last.Jitter = t
		} else {
			s.feed.Considered = append(s.feed.Considered, t)
		}
	}
	s.ended = d.Next.Equal(policy.Never)
}

// maxEncoded is the size, in bytes, up to which a pollState and a feedState are stored. Usual
// ones have one or two thousand. An origin decides how long its header fields are.
const maxEncoded = 64 << 10

var errTooLarge = errors.New("what the store has to remember of the feed is too large")

// encodePollState returns the pollState as it is stored.
func (s *state) encodePollState() ([]byte, error) {
	h := &s.feed.History
	b, err := json.Marshal(&storedPollState{s.last, h.Unsent, h.Failures, h.Unheeded, h.Interval})
	if err == nil && len(b) > maxEncoded {
		err = errTooLarge
	}
	return b, err
}

// encodeFeedState returns the feedState as it is stored, or nil if the stored one is the same.
// If it is too large, it loses what the next poll can do without.
func (s *state) encodeFeedState() ([]byte, error) {
	b, err := s.feed.encode()
	if err == nil && len(b) > maxEncoded {
		m := &s.feed
		m.Validators, m.Version.OriginTag, m.Version.Header = policy.Validators{}, "", nil
		m.Considered, m.History.Malformed, m.Past = nil, nil, nil
		if b, err = m.encode(); err == nil && len(b) > maxEncoded {
			err = errTooLarge
		}
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

func (m feedState) encode() ([]byte, error) {
	m.History.Failures, m.History.Unheeded, m.History.Interval, m.History.Unsent = 0, 0, 0, 0
	m.convert(widen)
	return json.Marshal(&m)
}

// stateOf is the inverse: the state that a record describes, seen at an elapsed time.
func stateOf(r store.Record, now time.Duration) *state {
	s := &state{known: true, established: r.Established, version: r.Version, ended: r.In == store.Ended, granted: neverGranted}
	if !s.ended {
		s.due = now + r.In
	}
	if r.Polled >= 0 {
		s.granted = now - r.Polled
	}
	if r.NotBefore > 0 {
		s.notBefore = now + r.NotBefore
	}
	err := s.decode(r)
	if err != nil {
		// One damaged record must not take the schedule with it. Its version, of which
		// nothing is known, has to be fetched again.
		*s = state{known: true, established: s.established, due: s.due, ended: s.ended, granted: s.granted, notBefore: s.notBefore}
		s.last = pollState{Result: status.ResultFailed, Failure: policy.FailureStore, Error: err.Error()}
		s.feed.Version.Number = r.Version
	}
	if s.version != 0 {
		s.response = s.feed.Version.response(shielded(r.URL))
	}
	s.size = stateOverhead + 2*int64(len(r.Memo)+len(r.Facts)+len(r.URL))
	return s
}

func (s *state) decode(r store.Record) error {
	var f storedPollState
	if len(r.Facts) > 0 {
		if err := json.Unmarshal(r.Facts, &f); err != nil {
			return fmt.Errorf("decoding the state of a poll: %w", err)
		}
	}
	if len(r.Memo) > 0 {
		if err := json.Unmarshal(r.Memo, &s.feed); err != nil {
			return fmt.Errorf("decoding the state of a feed: %w", err)
		}
		s.saved = xxhash.Sum64(r.Memo)
		s.feed.convert(narrow)
	}
	h := &s.feed.History
	s.last, h.Unsent, h.Failures, h.Unheeded, h.Interval = f.pollState, f.Unsent, f.Failures, f.Unheeded, f.Interval
	if s.version != 0 && s.feed.Version.Tag == "" {
		return fmt.Errorf("version %d of which nothing is recorded", s.version)
	}
	return nil
}

// neverGranted is long before the process began.
const neverGranted = math.MinInt64 / 2

// stateOverhead is what a feed in memory takes besides its texts, in bytes, roughly.
const stateOverhead = 1500

// dueAt reports whether the feed may be polled.
func (s *state) dueAt(now time.Duration) bool { return !s.ended && now >= s.due }

// convert puts header fields into another form: JSON is text, and what fields hold
// is octets. Obs-text (RFC 9110 section 5.5) is seldom UTF-8, and JSON would put
// U+FFFD in its place, so it is stored as ISO 8859-1, in which each octet is a
// character.
func (m *feedState) convert(octets func(string) string) {
	m.Validators.ETag, m.Validators.LastModified = octets(m.Validators.ETag), octets(m.Validators.LastModified)
	m.Version.OriginTag = octets(m.Version.OriginTag)
	if m.Version.Header == nil {
		return
	}
	header := make(map[string][]string, len(m.Version.Header)) // the old one belongs to a published state
	for name, values := range m.Version.Header {
		for _, v := range values {
			header[name] = append(header[name], octets(v))
		}
	}
	m.Version.Header = header
}

// widen makes a character of each octet.
func widen(octets string) string {
	text := make([]rune, len(octets))
	for i := range len(octets) {
		text[i] = rune(octets[i])
	}
	return string(text)
}

// narrow makes an octet of each character.
func narrow(text string) string {
	octets := make([]byte, 0, len(text))
	for _, r := range text {
		octets = append(octets, byte(r))
	}
	return string(octets)
}

// polls are the last polls of a feed, the oldest first, in pollSize bytes each.
type polls []byte

const (
	maxPolls = 32
	pollSize = 15
)

// resultCodes are the results as they are stored. Their positions must not change.
var resultCodes = [...]status.Result{status.ResultNew, status.ResultUnchanged, status.ResultMoved, status.ResultGone, status.ResultFailed, status.ResultUnsent}

// with returns the polls with one more, without the oldest if there are too many.
func (p polls) with(last status.Poll) polls {
	if len(p) >= maxPolls*pollSize {
		p = p[len(p)-(maxPolls-1)*pollSize:]
	}
	next := make(polls, 0, len(p)+pollSize) // the old ones belong to a published state
	next = append(next, p...)
	next = binary.BigEndian.AppendUint32(next, uint32(last.At.Unix()))
	next = binary.BigEndian.AppendUint16(next, uint16(last.Status))
	next = append(next, byte(max(slices.Index(resultCodes[:], last.Result), 0)))
	next = binary.BigEndian.AppendUint32(next, uint32(min(last.Bytes, 1<<32-1)))
	return binary.BigEndian.AppendUint32(next, uint32(min(time.Duration(last.Took), time.Minute*1000)/time.Millisecond))
}

// all returns the polls in a readable form.
func (p polls) all() []status.Poll {
	list := make([]status.Poll, 0, len(p)/pollSize)
	for ; len(p) >= pollSize; p = p[pollSize:] {
		one := status.Poll{
			At:     time.Unix(int64(binary.BigEndian.Uint32(p)), 0).UTC(),
			Status: int(binary.BigEndian.Uint16(p[4:])),
			Bytes:  int64(binary.BigEndian.Uint32(p[7:])),
			Took:   status.Seconds(binary.BigEndian.Uint32(p[11:])) * status.Seconds(time.Millisecond),
		}
		if code := int(p[6]); code < len(resultCodes) {
			one.Result = resultCodes[code]
		}
		list = append(list, one)
	}
	return list
}
