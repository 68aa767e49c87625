// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document/site"
)

// FuzzState reads what a damaged store, or another edition, may hold of a feed. Each
// record gives a state that can be described, and what is made of it is read again as
// the same.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"at":"2026-03-04T12:00:00Z","status":304,"result":"unchanged","interval":3600000000000,"decided":"2026-03-04T12:00:00Z","pause":7200000000000,"winner":"max-age","jitter":{"hint":"jitter"},"polls":[{"at":1}]}`),
		[]byte(`{"validators":{"etag":"\"é\""},"version":{"number":3,"tag":"0123456789abcdef","header":{"Link":["<é>"]},"vary":["Cookie"]},"past":[{"tag":"a"}],"history":{},"considered":[{"hint":"ttl","raw":"60"}]}`), uint64(3))
	f.Add([]byte(`{"failure":"gone"}`), []byte(`{"alias":"https://b.example/","moved":{"to":"x"},"muted":"2026-03-04T12:00:00Z"}`), uint64(0))
	f.Add([]byte(`{"status":1e3}`), []byte(`null`), uint64(1))
	f.Add([]byte(`{}`), []byte(`{"version":`), uint64(1))
	f.Fuzz(func(t *testing.T, facts, memo []byte, number uint64) {
		record := store.Record{URL: "https://a.example/", Version: number, In: time.Hour, PollState: facts, FeedState: memo, State: store.StateFailing}
		s := FromRecord(record, 0)
		if s.Due != time.Hour || s.Ended {
			t.Fatalf("the schedule has become %v", s.Due)
		}
		if s.Version != 0 && s.Response == nil {
			t.Fatal("a version without headers")
		}
		s.StatusState(false, 0)
		s.Decision()
		if age := s.MaxAge(0, func() policy.Rules { return policy.Rules{MaxInterval: 24 * time.Hour} }); age != 3600 && (age != 60 || s.Points == "") {
			t.Errorf("max-age %d", age)
		}
		status := (version.CacheStatus{}).Text(s.Due, !s.Ended, s.Last.Winner)
		if s.Last.Failure == policy.FailureStore {
			if s.Version != 0 || strings.ContainsAny(s.Last.Error, "\n\r") {
				t.Errorf("of a damaged record came version %d, %q", s.Version, s.Last.Error)
			}
			return
		}
		if s.Last.Winner == "" && strings.Contains(status, "detail") {
			t.Errorf("%q", status)
		}
		var err error
		if record.PollState, err = s.EncodePollState(); err != nil {
			t.Fatal(err)
		}
		s.saved = 0
		if record.FeedState, err = s.EncodeFeedState(); err != nil {
			t.Fatal(err)
		}
		again := FromRecord(record, 0)
		if got, err := again.EncodePollState(); err != nil || string(got) != string(record.PollState) {
			t.Errorf("facts %s were read and written as %s, %v", record.PollState, got, err)
		}
		if got, err := again.EncodeFeedState(); err != nil || got != nil {
			t.Errorf("memo %s was read and written as %s, %v", record.FeedState, got, err)
		}
	})
}

// A 304 whose strong ETag is not that of the stored response updates nothing of it (RFC
// 9111 section 4.3.4).
func TestNotModifiedOfAnotherResponse(t *testing.T) {
	const lm, other = "Mon, 02 Mar 2026 09:00:00 GMT", "Sun, 01 Mar 2026 09:00:00 GMT"
	for _, test := range []struct {
		name, stored, modified string // the 200's ETag and Last-Modified
		fields                 []string
		updates                bool
	}{
		{"no validator", `"a"`, lm, nil, true},
		{"an empty one", `"a"`, lm, []string{"ETag", ""}, true},
		{"the date alone, another", `"a"`, lm, []string{"Last-Modified", other}, true},
		{"the same", `"a"`, lm, []string{"ETag", `"a"`}, true},
		{"another", `"a"`, lm, []string{"ETag", `"b"`}, false},
		{"another with the same date", `"a"`, lm, []string{"ETag", `"b"`, "Last-Modified", lm}, false},
		{"a longer one", `"a"`, lm, []string{"ETag", `"ab"`}, false},
		{"another that is weak", `"a"`, lm, []string{"ETag", `W/"b"`}, true},
		{"the same made weak", `"a"`, lm, []string{"ETag", `W/"a"`}, true},
		{"the same made strong", `W/"a"`, lm, []string{"ETag", `"a"`}, true},
		{"another than a weak one", `W/"a"`, lm, []string{"ETag", `"b"`}, false},
		{"of the plain body", `"a-gzip"`, lm, []string{"ETag", `"a"`}, true},
		{"of the compressed body", `"a"`, lm, []string{"ETag", `"a-gzip"`}, true},
		{"suffix behind the quotes", `"a"-gzip`, lm, []string{"ETag", `"a"`}, true},
		{"two dashes", `"a--gzip"`, lm, []string{"ETag", `"a"`}, true},
		{"semicolon", `"a;gzip"`, lm, []string{"ETag", `"a"`}, true},
		{"another coding", `W/"a-br"`, lm, []string{"ETag", `"a-zstd"`}, true},
		{"another and compressed", `"a-gzip"`, lm, []string{"ETag", `"b-gzip"`}, false},
		{"letters that end like a coding", `"agzip"`, lm, []string{"ETag", `"a"`}, false},
		{"without quotes", `"a"`, lm, []string{"ETag", `a`}, true},
		{"another without quotes", `"a"`, lm, []string{"ETag", `b`}, false},
		{"none is stored, the same date", "", lm, []string{"ETag", `"b"`, "Last-Modified", lm}, true},
		{"none is stored, another date", "", lm, []string{"ETag", `"b"`, "Last-Modified", other}, false},
		{"none is stored, no date", "", lm, []string{"ETag", `"b"`}, false},
	} {
		s := &State{Feed: feedState{Validators: policy.Validators{ETag: test.stored, LastModified: test.modified}}}
		a := policy.Answer{Status: http.StatusNotModified, Header: http.Header{}}
		for i := 0; i < len(test.fields); i += 2 {
			a.Header.Set(test.fields[i], test.fields[i+1])
		}
		if another := s.ofAnother(a); another == test.updates {
			t.Errorf("%s: it is of another response: %v", test.name, another)
		}
	}
}

// Readers of a shield do not get the fields of such a 304, and it confirms nothing. A pause that it asks for counts.
func TestFieldsOfAnotherResponse(t *testing.T) {
	pauses := map[string]http.Header{
		policy.HintRetryAfter: {"Retry-After": {"30000"}}, policy.HintRateLimit: {"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"30000"}},
	}
	for winner, fields := range pauses {
		for tag, want := range map[string]string{`"a"`: "new", `"b"`: "old"} {
			l := newLife(t)
			l.own = ParseKey("shield")
			l.poll(given(origintest.Feed(2, ""), "ETag", `"a"`, "X-Site", "old"))
			first := l.now
			a := policy.Answer{Status: http.StatusNotModified, Header: fields.Clone()}
			a.Header.Set("ETag", tag)
			a.Header.Set("X-Site", "new")
			l.poll(a)
			s := l.state
			if got := s.Feed.Version.Header.Get("X-Site"); got != want || s.Feed.Validators.ETag != `"a"` || s.Last.Validated.Equal(s.Last.At) != (want == "new") {
				t.Errorf("ETag %s: readers get %q, validators %+v, validated at %v", tag, got, s.Feed.Validators, s.Last.Validated)
			}
			if s.Last.Winner != winner || l.now-first != 30000*time.Second {
				t.Errorf("ETag %s: the next poll comes in %v by %s, want %s", tag, l.now-first, s.Last.Winner, winner)
			}
		}
	}
}

// Readers are not told to wait for a whole pause, which may end early. A time of the feed's own counts.
func TestMaxAge(t *testing.T) {
	const hour = 60 * 60
	rules := policy.Rules{MinInterval: time.Hour, MaxInterval: 24 * time.Hour}
	for _, tt := range []struct {
		winner string
		left   time.Duration
		rules  policy.Rules
		want   int64
	}{
		{policy.HintHostCooldown, 7 * time.Hour, rules, 7 * hour},
		{policy.HintHostCooldown, 7 * 24 * time.Hour, rules, 24 * hour},
		{policy.HintRateLimit, 5 * time.Hour, policy.Rules{MinInterval: time.Hour, MaxInterval: 2 * time.Hour}, 2 * hour},
		{policy.HintRateLimit, 5 * time.Hour, policy.Rules{MinInterval: 4 * time.Hour, MaxInterval: 2 * time.Hour}, 4 * hour},
		{policy.HintRetryAfter, 7 * 24 * time.Hour, rules, 24 * hour},
		{policy.HintHostCooldown, -time.Hour, rules, 60},
		{policy.HintSkipDays, 48 * time.Hour, rules, 48 * hour},
		{policy.HintComplete, 7 * 24 * time.Hour, rules, 7 * 24 * hour},
	} {
		s := &State{Due: time.Minute + tt.left, Last: pollState{Winner: tt.winner}}
		if got := s.MaxAge(time.Minute, func() policy.Rules { return tt.rules }); got != tt.want {
			t.Errorf("%s, %v left: max-age %d, want %d", tt.winner, tt.left, got, tt.want)
		}
	}
}

func TestShownState(t *testing.T) {
	for _, tt := range []struct {
		name       string
		winner     string
		status     int
		failing    bool
		unread     bool // no version
		configured bool
		page       bool
		due        bool
		shown      status.State
	}{
		{name: "in good order", winner: policy.HintTTL, status: 200, shown: status.StateFresh},
		{name: "in good order after a 429", winner: policy.HintTTL, status: 429, shown: status.StateFresh},
		{name: "its host pauses", winner: policy.HintHostCooldown, shown: status.StateWaiting},
		{name: "due after a pause", winner: policy.HintRetryAfter, due: true, shown: status.StateDue},
		{name: "due", winner: policy.HintTTL, status: 200, due: true, shown: status.StateDue},
		{name: "gone", status: http.StatusGone, failing: true, due: true, shown: status.StateGone},
		{name: "a bare 429", failing: true, winner: policy.HintBackOff, status: 429, shown: status.StateWaiting},
		{name: "a 429 with a wait", failing: true, winner: policy.HintRetryAfter, status: 429, shown: status.StateWaiting},
		{name: "a 429 long ago", failing: true, winner: policy.HintBackOff, status: 429, due: true, shown: status.StateFailing},
		{name: "a 503", failing: true, winner: policy.HintBackOff, status: 503, shown: status.StateFailing},
		{name: "a 404 that never was a feed", failing: true, winner: policy.HintBackOff, status: 404, unread: true, shown: status.StateUnread},
		{name: "a web page, due", failing: true, winner: policy.HintBackOff, status: 200, unread: true, page: true, due: true, shown: status.StateUnread},
		{name: "a configured URL that never was a feed", failing: true, winner: policy.HintBackOff, status: 404, unread: true, configured: true, shown: status.StateFailing},
		{name: "a configured URL before its first poll", unread: true, configured: true, due: true, shown: status.StateDue},
		{name: "a 410 from what never was a feed", unread: true, failing: true, status: 410, shown: status.StateUnread},
	} {
		s := &State{Version: 1}
		if tt.unread {
			s.Version = 0
		}
		s.Last.Winner, s.Last.Status = tt.winner, tt.status
		if tt.failing {
			s.Feed.History.Failures = 1
		}
		if tt.status == http.StatusGone {
			s.Last.Failure = policy.FailureGone
		}
		if tt.page {
			s.Last.Site = new(site.Page)
		}
		if !tt.due {
			s.Due = 1
		}
		if got := s.StatusState(tt.configured, 0); got != tt.shown {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.shown)
		}
	}
}

// Records of the first edition are read, and written with the names of today.
func TestNamesOfTheFirstEdition(t *testing.T) {
	const (
		facts = `{"at":"2026-03-04T12:00:00Z","failure":"status","error":"it said \"elsewhere\":","elsewhere":"https://b.example/","failures":2}`
		memo  = `{"marks":[{"m":7,"d":20516},{"m":18446744073709551615,"d":20515}],"version":{"number":3,"tag":"0123456789abcdef","title":",\"d\":","meaning":"0102030405060708090a0b0c0d0e0f10","from":"https://c.example/"},"history":{}}`
	)
	record := store.Record{URL: feedURL, Version: 3, PollState: []byte(facts), FeedState: []byte(memo)}
	want := []groupDay{{7, 20516}, {1<<64 - 1, 20515}}
	now := time.Unix(20520*24*60*60, 0)
	askers := []store.Owner{store.OwnerOfHash(store.KindNamed, 7), store.OwnerOfHash(store.KindNamed, 1<<64-1)}
	for range 2 {
		s := FromRecord(record, 0)
		if s.Last.Failure != policy.FailureStatus || s.Last.Error != `it said "elsewhere":` ||
			!slices.Equal(s.Feed.Groups, want) || s.Feed.Version.Title != `,"d":` {
			t.Fatalf("%s and %s are read as %+v, %+v", record.PollState, record.FeedState, s.Last, s.Feed)
		}
		if got := SummaryOf(&record, now); !slices.Equal(got.Askers, askers) || got.Title != `,"d":` || got.From != "https://c.example/" || got.Failures != 2 {
			t.Errorf("the summary is %+v", got)
		}
		var err error
		if record.PollState, err = s.EncodePollState(); err != nil {
			t.Fatal(err)
		}
		if record.FeedState, err = s.EncodeFeedState(); err != nil {
			t.Fatal(err)
		}
		if record.FeedState == nil { // it is as it was stored
			return
		}
	}
	t.Error("a record is written again although nothing has changed")
}

// Readers of a feed that points to another one miss nothing while that one has a version and its polls succeed. A pause is not a
// failure.
func TestWorks(t *testing.T) {
	for _, tt := range []struct {
		version  uint64
		failures int
		last     policy.Failure
		want     bool
	}{
		{0, 0, policy.FailureNone, false}, {1, 0, policy.FailureNone, true}, {1, 1, policy.FailureStatus, false}, {1, 1, policy.FailureRateLimited, true},
	} {
		s := State{Version: tt.version}
		s.Feed.History.Failures, s.Last.Failure = tt.failures, tt.last
		if got := s.Works(); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
