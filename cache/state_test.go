// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
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

