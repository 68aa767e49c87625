// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestLearnFromDocument(t *testing.T) {
	doc := Document{Hints: Hints{TTL: ptr(60)}, Malformed: []Term{{Hint: "sy"}}, Rhythm: Rhythm{Median: day}}
	h := History{Failures: 4, Unheeded: 2, Interval: time.Hour}.Update(good("Cache-Control", "max-age=60"), &doc, false)
	want := History{
		Hints: doc.Hints, Malformed: doc.Malformed, Rhythm: doc.Rhythm, Validated: true, Answered: true, Interval: time.Hour,
		Freshness: Freshness{Source: HintMaxAge, Raw: "max-age=60", Lifetime: time.Minute},
	}
	if !reflect.DeepEqual(h, want) {
		t.Errorf("learned %+v, want %+v", h, want)
	}
}

func TestLearnKeepsHints(t *testing.T) {
	h := History{Hints: Hints{TTL: ptr(60)}, Rhythm: Rhythm{Median: day}, Validated: true, Interval: time.Hour, Unheeded: 1}
	for _, test := range []struct {
		name     string
		answer   Answer
		failures int
	}{
		{"304", Answer{At: noon, Status: 304}, 0},
		{"the same bytes", good(), 0},
		{"not found", failed(FailureNotFound, 404), 3},
		{"not started", Answer{Failure: FailureNotStarted}, 2},
		{"held", failed(FailureHeld, 301), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := h
			before.Failures = 2
			learned := before.Update(test.answer, nil, false)
			if learned.Failures != test.failures {
				t.Errorf("%d failures, want %d", learned.Failures, test.failures)
			}
			if !reflect.DeepEqual(learned.Hints, h.Hints) || learned.Rhythm != h.Rhythm || learned.Interval != h.Interval || !learned.Validated {
				t.Errorf("forgot something: %+v", learned)
			}
		})
	}
}

// Other entries than before are news, but not those of the first poll.
func TestLearnNews(t *testing.T) {
	entries := func(ids uint32) *Document { return &Document{Rhythm: Rhythm{IDs: ids}} }
	h := History{}.Update(good(), entries(1), false).Update(good(), entries(1), false).Update(good(), nil, true)
	if !h.News.IsZero() {
		t.Errorf("the first entries are news at %v", h.News)
	}
	if h = h.Update(good(), entries(2), false); !h.News.Equal(noon) {
		t.Errorf("other entries at %v are news at %v", noon, h.News)
	}
	old := History{Answered: true, Rhythm: Rhythm{Median: day}} // of a record without IDs
	if h = old.Update(good(), entries(1), false); !h.News.IsZero() {
		t.Errorf("entries that nothing is known of are news at %v", h.News)
	}
}

func TestLearnValidators(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer Answer
		want   bool
	}{
		{"ETag", good(), true},
		{"Last-Modified", Answer{Status: 200, Header: header("Last-Modified", "x")}, true},
		{"neither", Answer{Status: 200, Header: header()}, false},
		{"empty", Answer{Status: 200, Header: header("ETag", "")}, false},
		{"too long", Answer{Status: 200, Header: header("ETag", strings.Repeat("x", MaxValidators+1))}, false},
		{"no header at all", Answer{Status: 200}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if h := after(test.answer, Document{}); h.Validated != test.want {
				t.Errorf("validated: %v, want %v", h.Validated, test.want)
			}
		})
	}
}

func TestLearnUnheeded(t *testing.T) {
	same, unchanged := good(), Answer{At: noon, Status: 304}
	h := after(good(), Document{})
	for want := 1; want <= 3; want++ {
		// The same bytes, or others of the same meaning.
		if h = h.Update(same, []*Document{nil, {}}[want%2], true); h.Unheeded != want {
			t.Fatalf("unheeded %d times, want %d", h.Unheeded, want)
		}
	}
	if failing := h.Update(failed(FailureTimeout, 0), nil, false); failing.Unheeded != 3 {
		t.Errorf("a failure made it %d", failing.Unheeded)
	}
	if heeded := h.Update(unchanged, nil, false); heeded.Unheeded != 0 {
		t.Errorf("a 304 left it at %d", heeded.Unheeded)
	}
	if changed := h.Update(same, &Document{}, false); changed.Unheeded != 0 {
		t.Errorf("a new document left it at %d", changed.Unheeded)
	}
	bare := History{}.Update(Answer{Status: 200}, &Document{}, false).Update(Answer{Status: 200}, nil, true)
	if bare.Unheeded != 0 {
		t.Errorf("without validators nothing can be unheeded, but %d is counted", bare.Unheeded)
	}
}

// RFC 9111 section 3.2: a 304 replaces the fields that it carries, and no others.
func TestLearnFreshnessFrom304(t *testing.T) {
	maxAge := Freshness{Source: HintMaxAge, Raw: "max-age=600", Lifetime: 10 * time.Minute, Age: time.Minute}
	expires := Freshness{Source: HintExpires, Raw: "...", Lifetime: 10 * time.Minute}
	for _, test := range []struct {
		name   string
		stored Freshness
		fields []string
		want   Freshness
	}{
		{"no fields", maxAge, nil, Freshness{Source: HintMaxAge, Raw: "max-age=600", Lifetime: 10 * time.Minute}},
		{"an Age", maxAge, []string{"Age", "5"}, Freshness{Source: HintMaxAge, Raw: "max-age=600", Lifetime: 10 * time.Minute, Age: 5 * time.Second}},
		{"a new max-age", maxAge, []string{"Cache-Control", "max-age=60"}, Freshness{Source: HintMaxAge, Raw: "max-age=60", Lifetime: time.Minute}},
		{"a Cache-Control without one", maxAge, []string{"Cache-Control", "public"}, Freshness{Raw: "public"}},
		{"Expires does not replace a max-age", maxAge, []string{"Expires", "0"}, Freshness{Source: HintMaxAge, Raw: "max-age=600", Lifetime: 10 * time.Minute}},
		{"Expires beside a Cache-Control does", maxAge, []string{"Cache-Control", "public", "Expires", "0"}, Freshness{Source: HintExpires, Raw: "0"}},
		{"Expires stays", expires, []string{"Cache-Control", "public"}, expires},
		{"Expires replaces Expires", expires, []string{"Expires", "0"}, Freshness{Source: HintExpires, Raw: "0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := History{Freshness: test.stored}.Update(Answer{At: noon, Status: 304, Header: header(test.fields...)}, nil, false)
			if h.Freshness != test.want {
				t.Errorf("freshness %+v, want %+v", h.Freshness, test.want)
			}
			if h = h.Update(good(), nil, false); h.Freshness != (Freshness{}) { // a 200 replaces all
				t.Errorf("the freshness of a former answer is left: %+v", h.Freshness)
			}
		})
	}
}

// A poll that sent nothing changes no hints, and is not a failure.
func TestLearnUnsent(t *testing.T) {
	before := History{Failures: 2, Unheeded: 1, Validated: true, Answered: true, Interval: time.Hour}
	for _, failure := range []Failure{FailureNotStarted, FailureDNS, FailureConnect, FailureTimeout, FailureAddress} {
		h := before.Update(Answer{Failure: failure}, nil, false).Update(Answer{Failure: failure}, nil, false)
		want := before
		want.Unsent = 2
		if !reflect.DeepEqual(h, want) {
			t.Errorf("%s: learned %+v, want %+v", failure, h, want)
		}
		if h = h.Update(failed(FailureTimeout, 0), nil, false); h.Unsent != 0 || h.Failures != 3 {
			t.Errorf("%s, then a poll that was sent: unsent %d, failures %d", failure, h.Unsent, h.Failures)
		}
	}
	for _, failure := range []Failure{FailureTLS, FailureProtocol, FailureStatus, FailureStore} {
		if h := before.Update(Answer{Failure: failure}, nil, false); h.Unsent != 0 || h.Failures != 3 {
			t.Errorf("%s: unsent %d, failures %d", failure, h.Unsent, h.Failures)
		}
	}
}
