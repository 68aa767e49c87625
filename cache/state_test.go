// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/policy"
)

// FuzzState reads what a damaged store, or another edition, may hold of a feed. Each
// record gives a state that can be described, and what is made of it is read again as
// the same.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"at":"2026-03-04T12:00:00Z","status":304,"result":"unchanged","interval":3600000000000,"decided":"2026-03-04T12:00:00Z","pause":7200000000000,"winner":"max-age","jitter":{"hint":"jitter"},"polls":[{"at":1}]}`),
		[]byte(`{"validators":{"etag":"\"é\""},"version":{"number":3,"tag":"0123456789abcdef","header":{"Link":["<é>"]},"vary":["Cookie"]},"past":[{"tag":"a"}],"history":{},"considered":[{"hint":"ttl","raw":"60"}]}`), uint64(3))
	f.Add([]byte(`{"failure":"gone"}`), []byte(`{"alias":"https://b.example/","moved":{"to":"x"},"suspect":"2026-03-04T12:00:00Z"}`), uint64(0))
	f.Add([]byte(`{"status":1e3}`), []byte(`null`), uint64(1))
	f.Fuzz(func(t *testing.T, facts, memo []byte, number uint64) {
		record := store.Record{URL: "https://a.example/", Version: number, In: time.Hour, Facts: facts, Memo: memo, State: store.StateFailing}
		s := stateOf(record, 0)
		if s.due != time.Hour || s.ended {
			t.Fatalf("the schedule has become %v", s.due)
		}
		if s.version != 0 && s.response == nil {
			t.Fatal("a version without headers")
		}
		s.shown(false, 0)
		s.decision()
		if age := s.maxAge(0); age != 3600 && (age != 60 || s.feed.Alias == "") {
			t.Errorf("max-age %d", age)
		}
		status := (version.CacheStatus{}).Text(s.due, !s.ended, s.last.Winner)
		if s.last.Failure == policy.FailureStore {
			if s.version != 0 || strings.ContainsAny(s.last.Error, "\n\r") {
				t.Errorf("of a damaged record came version %d, %q", s.version, s.last.Error)
			}
			return
		}
		if s.last.Winner == "" && strings.Contains(status, "detail") {
			t.Errorf("%q", status)
		}
		var err error
		if record.Facts, err = s.encodePollState(); err != nil {
			t.Fatal(err)
		}
		s.saved = 0
		if record.Memo, err = s.encodeFeedState(); err != nil {
			t.Fatal(err)
		}
		again := stateOf(record, 0)
		if got, err := again.encodePollState(); err != nil || string(got) != string(record.Facts) {
			t.Errorf("facts %s were read and written as %s, %v", record.Facts, got, err)
		}
		if got, err := again.encodeFeedState(); err != nil || got != nil {
			t.Errorf("memo %s was read and written as %s, %v", record.Memo, got, err)
		}
	})
}

// A 304 whose strong ETag is not that of the stored response updates nothing of it (RFC
// 9111 section 4.3.4).
func TestNotModifiedOfAnotherResponse(t *testing.T) {
	const lm, other = "Mon, 02 Mar 2026 09:00:00 GMT", "Sun, 01 Mar 2026 09:00:00 GMT"
	for _, test := range []struct {
		name, stored, modified string // the 200's ETag and Last-Modified
		told                   []string
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
		s := &state{feed: feedState{Validators: policy.Validators{ETag: test.stored, LastModified: test.modified}}}
		a := policy.Answer{Status: http.StatusNotModified, Header: http.Header{}}
		for i := 0; i < len(test.told); i += 2 {
			a.Header.Set(test.told[i], test.told[i+1])
		}
		if another := s.ofAnother(a); another == test.updates {
			t.Errorf("%s: it is of another response: %v", test.name, another)
		}
	}
}
