// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache"
)

func commitStoresEverything(t *testing.T, s cache.Store) {
	id, url := feed(1)
	reserve(t, s, 1, 0)
	commit(t, s, outcome(1, 1, text(1, "content")))
	wantRecord(t, s, 1, cache.Record{
		ID: id, URL: url, Memo: []byte("memo"),
		Schedule: cache.Schedule{Next: start.Add(2 * time.Hour), Token: 1, Version: 1},
	})
	wantBody(t, s, 1, text(1, "content"))
}

func commitWithoutBody(t *testing.T, s cache.Store) {
	reserve(t, s, 1, 0)
	o := outcome(1, 1, nil)
	o.Memo = []byte("no body yet")
	commit(t, s, o)
	want := load(t, s, 1)
	if want.Version != 0 || string(want.Memo) != "no body yet" {
		t.Errorf("record %+v, want version 0 and the memo", want)
	}
	commit(t, s, outcome(1, 1, text(4, "content")))
	o.Memo, o.Next = nil, start.Add(9*time.Hour)
	commit(t, s, o)
	want.Memo, want.Next, want.Version = nil, o.Next, 4
	wantRecord(t, s, 1, want)
	wantBody(t, s, 1, text(4, "content"))
}

func bodiesFollowEachOther(t *testing.T, s cache.Store) {
	reserve(t, s, 1, 0)
	for version := uint64(1); version <= 5; version++ {
		body := text(version*10, strings.Repeat("x", int(version)*100))
		commit(t, s, outcome(1, version, body))
		wantBody(t, s, 1, body)
		reserve(t, s, 1, version)
		wantBody(t, s, 1, body)
	}
}

func bodyStoredAgain(t *testing.T, s cache.Store) {
	reserve(t, s, 1, 0)
	body := text(1, "content")
	commit(t, s, outcome(1, 1, body))
	body.Coded["br"] = []byte("shorter")
	commit(t, s, outcome(1, 1, body))
	wantBody(t, s, 1, body)
}

func codingsAreKeptWhole(t *testing.T, s cache.Store) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	for n, coded := range []map[string][]byte{
		nil,
		{"": {}},
		{"gzip": nil, "identity": []byte("x")},
		{"br": []byte("b"), "": []byte("i"), "zstd": large, "gzip": []byte("g\x00g")},
		{strings.Repeat("long", 1000): []byte("x"), "\xff\x00": []byte("y")},
	} {
		reserve(t, s, n, 0)
		body := &cache.Body{Version: math.MaxUint64, Coded: coded}
		commit(t, s, outcome(n, 1, body))
		wantBody(t, s, n, body)
	}
}

func versionZero(t *testing.T, s cache.Store) {
	reserve(t, s, 1, 0)
	before := load(t, s, 1)
	if err := s.Commit(t.Context(), outcome(1, 1, text(0, "content"))); err == nil {
		t.Error("a body of version 0 was taken")
	}
	wantRecord(t, s, 1, before)
}

func lateCommitIsFenced(t *testing.T, s cache.Store) {
	reserve(t, s, 1, 0)
	commit(t, s, outcome(1, 1, text(1, "good")))
	reserve(t, s, 1, 1)
	before := load(t, s, 1)
	for _, token := range []uint64{0, 1, 3} {
		for _, body := range []*cache.Body{nil, text(2, "late"), text(1, "late")} {
			o := outcome(1, token, body)
			o.Memo = []byte("late")
			wantError(t, fmt.Sprintf("token %d", token), s.Commit(t.Context(), o), cache.ErrFenced)
			wantRecord(t, s, 1, before)
			wantBody(t, s, 1, text(1, "good"))
		}
	}
	commit(t, s, outcome(1, 2, text(2, "newer")))
	wantBody(t, s, 1, text(2, "newer"))
}

func commitWithoutRecord(t *testing.T, s cache.Store) {
	id, _ := feed(1)
	for _, token := range []uint64{0, 1} {
		for _, body := range []*cache.Body{nil, text(1, "content")} {
			wantError(t, "commit of an unknown feed", s.Commit(t.Context(), outcome(1, token, body)), cache.ErrFenced)
			_, err := s.Load(t.Context(), id)
			wantError(t, "Load after it", err, cache.ErrNoRecord)
		}
	}
}

// commitsOfOneToken races commits that are all allowed: whichever came last, the
// record and the body must be of the same one.
func commitsOfOneToken(t *testing.T, s cache.Store) {
	reserve(t, s, 1, 0)
	var wg sync.WaitGroup
	for version := uint64(1); version <= 12; version++ {
		wg.Go(func() {
			o := outcome(1, 1, text(version, fmt.Sprint("content ", version)))
			o.Memo = fmt.Append(nil, version)
			if err := s.Commit(t.Context(), o); err != nil {
				t.Errorf("Commit: %v", err)
			}
		})
	}
	wg.Wait()
	r := load(t, s, 1)
	if string(r.Memo) != fmt.Sprint(r.Version) {
		t.Errorf("version %d with the memo of %s", r.Version, r.Memo)
	}
	wantBody(t, s, 1, text(r.Version, fmt.Sprint("content ", r.Version)))
}

func copies(t *testing.T, s cache.Store) {
	reserve(t, s, 1, 0)
	o := outcome(1, 1, text(1, "content"))
	commit(t, s, o)
	want := load(t, s, 1)
	want.Memo = bytes.Clone(want.Memo)

	spoil := func(b []byte) {
		for i := range b {
			b[i] = '#'
		}
	}
	spoil(o.Memo)
	spoil(o.Body.Coded[""])
	spoil(load(t, s, 1).Memo)
	spoil(scan(t, s)[0].Memo)
	got, err := s.Body(t.Context(), o.ID)
	if err != nil {
		t.Fatalf("Body: %v", err)
	}
	spoil(got.Coded[""])
	wantRecord(t, s, 1, want)
	wantBody(t, s, 1, text(1, "content"))
}
