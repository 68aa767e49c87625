// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/http"
	"testing"
	"time"
)

func TestFreshnessOf(t *testing.T) {
	const (
		date  = "Wed, 04 Mar 2026 12:00:00 GMT"
		later = "Wed, 04 Mar 2026 13:00:00 GMT"
	)
	for _, test := range []struct {
		name     string
		fields   []string
		source   string
		lifetime time.Duration
		age      time.Duration
	}{
		// RFC 9111 section 4.2.1: which lifetime.
		{"none", nil, "", 0, 0},
		{"max-age", []string{"Cache-Control", "max-age=60"}, HintMaxAge, time.Minute, 0},
		{"s-maxage first", []string{"Cache-Control", "s-maxage=30, max-age=60"}, HintSMaxAge, 30 * time.Second, 0},
		{"max-age before Expires", []string{"Cache-Control", "max-age=60", "Expires", later}, HintMaxAge, time.Minute, 0},
		{"max-age=0 before Expires", []string{"Cache-Control", "max-age=0", "Expires", later}, HintMaxAge, 0, 0},
		{"Expires", []string{"Date", date, "Expires", later}, HintExpires, time.Hour, 0},
		{"Expires beside other directives", []string{"Cache-Control", "public", "Date", date, "Expires", later}, HintExpires, time.Hour, 0},
		{"Expires without Date", []string{"Expires", later}, HintExpires, time.Hour, 0},
		{"duplicates: the smallest", []string{"Cache-Control", "max-age=60", "Cache-Control", "max-age=30"}, HintMaxAge, 30 * time.Second, 0},
		{"duplicates: the earliest Expires", []string{"Date", date, "Expires", later, "Expires", date}, HintExpires, 0, 0},
		// Section 4.2.1 and 5.3: invalid is stale.
		{"Expires in the past", []string{"Date", later, "Expires", date}, HintExpires, 0, 0},
		{"Expires: 0", []string{"Expires", "0"}, HintExpires, 0, 0},
		{"Expires in 2100", []string{"Date", date, "Expires", "Thu, 04 Mar 2100 12:00:00 GMT"}, HintExpires, maxDelta, 0},
		// Section 4.2.3: age.
		{"Age", []string{"Cache-Control", "max-age=60", "Age", "10"}, HintMaxAge, time.Minute, 10 * time.Second},
		{"a slow clock", []string{"Cache-Control", "max-age=60", "Date", "Wed, 04 Mar 2026 11:59:00 GMT"}, HintMaxAge, time.Minute, 0},
		{"a slow clock, and an Age", []string{"Cache-Control", "max-age=60", "Age", "10", "Date", "Wed, 04 Mar 2026 11:00:00 GMT"}, HintMaxAge, time.Minute, 10 * time.Second},
		{"Date in the future", []string{"Cache-Control", "max-age=60", "Date", later}, HintMaxAge, time.Minute, 0},
		// Section 5.1: the first member of Age, if it is valid.
		{"Age list", []string{"Age", "10, 20"}, "", 0, 10 * time.Second},
		{"Age lines", []string{"Age", "10", "Age", "20"}, "", 0, 10 * time.Second},
		{"invalid Age", []string{"Age", "10s"}, "", 0, 0},
		{"huge Age", []string{"Age", "99999999999999999999"}, "", 0, maxDelta},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := FreshnessOf(header(test.fields...), noon)
			if f.Source != test.source || f.Lifetime != test.lifetime || f.Age != test.age {
				t.Errorf("%+v, want %s %v aged %v", f, test.source, test.lifetime, test.age)
			}
		})
	}
}

// A 304 replaces the Cache-Control of before only if it has one itself.
func TestRevalidateAfter304(t *testing.T) {
	const later = "Wed, 04 Mar 2026 13:00:00 GMT"
	for _, test := range []struct {
		name    string
		before  []string
		renewed []string
		want    bool
	}{
		{"none", []string{"Cache-Control", "max-age=60"}, nil, false},
		{"kept", []string{"Cache-Control", "max-age=60, must-revalidate"}, nil, true},
		{"kept beside Expires", []string{"Cache-Control", "Must-Revalidate", "Expires", later}, []string{"Expires", later}, true},
		{"kept beside max-age", []string{"Cache-Control", "max-age=60, proxy-revalidate"}, []string{"Expires", later}, true},
		{"withdrawn", []string{"Cache-Control", "no-cache", "Expires", later}, []string{"Cache-Control", "public"}, false},
		{"added", []string{"Cache-Control", "max-age=60"}, []string{"Cache-Control", "no-cache"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if f := FreshnessOf(header(test.before...), noon).renewed(header(test.renewed...), noon); f.Revalidate != test.want {
				t.Errorf("%+v", f)
			}
		})
	}
}

// FuzzFreshness reads the fields by which an origin says how long an answer is fresh.
func FuzzFreshness(f *testing.F) {
	f.Add("max-age=60, s-maxage=120", "Sat, 21 Nov 2026 06:00:00 GMT", "Sat, 21 Nov 2026 05:00:00 GMT", "30, 5")
	f.Add("public", "0", "", "-1")
	f.Add("s-maxage=99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", "4294967296")
	f.Add("", "Saturday, 21-Nov-26 06:00:00 GMT", "\x00", "")
	at := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, control, expires, date, told string) {
		header := http.Header{"Age": {told}}
		for name, value := range map[string]string{"Cache-Control": control, "Expires": expires, "Date": date} {
			if value != "" {
				header.Set(name, value)
			}
		}
		got := FreshnessOf(header, at)
		if got.Lifetime < 0 || got.Lifetime > maxDelta || got.Age < 0 || got.Age > maxDelta || got.left() < 0 || got.left() > got.Lifetime {
			t.Fatalf("%+v", got)
		}
		if got.Source == "" && got.Lifetime != 0 {
			t.Fatalf("a lifetime without a source: %+v", got)
		}
		if c := ParseCacheControl([]string{control}); (c.Has("max-age") || c.Has("s-maxage")) != (got.Source == HintMaxAge || got.Source == HintSMaxAge) {
			t.Fatalf("%q gave %+v", control, got)
		}
		// A 304 with the same fields says the same, and one without any changes nothing but the age.
		if again := got.renewed(header, at); again != got {
			t.Fatalf("%+v was confirmed as %+v", got, again)
		}
		if again := got.renewed(http.Header{}, at); again.Lifetime != got.Lifetime || again.Source != got.Source {
			t.Fatalf("%+v was confirmed by nothing as %+v", got, again)
		}
	})
}
