// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"golang.org/x/net/http/httpguts"
)

func TestCacheControlSeconds(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines []string
		want  time.Duration
		ok    bool
	}{
		{"absent", []string{"public"}, 0, false},
		{"any case", []string{"Max-AGE=60"}, time.Minute, true},
		{"among others", []string{"public,max-age=60 , must-revalidate"}, time.Minute, true},
		{"quoted", []string{`max-age="60"`}, time.Minute, true},
		{"single quotes", []string{"max-age='60'"}, 0, true},
		{"smallest of two", []string{"max-age=60, max-age=30"}, 30 * time.Second, true},
		{"smallest over lines", []string{"max-age=30", "max-age=60"}, 30 * time.Second, true},
		{"one of two invalid", []string{"max-age=60, max-age=x"}, 0, true},
		{"signed", []string{"max-age=+60"}, 0, true},
		{"no argument", []string{"max-age"}, 0, true},
		{"space before the sign", []string{"max-age =60"}, 0, false},
		{"2^31", []string{"max-age=2147483648"}, maxDelta, true},
		{"more than 2^64", []string{"max-age=99999999999999999999999"}, maxDelta, true},
		{"within a quoted string", []string{`ext="a, max-age=60"`}, 0, false},
		{"after a quoted string", []string{`ext="a\", b", max-age=60`}, time.Minute, true},
		{"an open quote ends with its line", []string{`ext="x`, "max-age=60"}, time.Minute, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := ParseCacheControl(test.lines).Seconds("max-age")
			if got != test.want || ok != test.ok {
				t.Errorf("%v %v, want %v %v", got, ok, test.want, test.ok)
			}
		})
	}
}

func TestCacheControlLookups(t *testing.T) {
	c := ParseCacheControl([]string{`No-Cache="Set-Cookie, x-a", private`, `no-store`})
	if !c.Has("no-cache") || !c.Has("private") || !c.Has("no-store") || c.Has("public") {
		t.Errorf("%+v", c)
	}
}

func FuzzCacheControl(f *testing.F) {
	for _, seed := range []string{"max-age=60, public", `no-cache="a,b"`, `x="\`, "max-age=\"60", "=,=;\"", "s-maxage=99999999999999999999"} {
		f.Add(seed, "max-age=1")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		c := ParseCacheControl([]string{first, second})
		for _, d := range c {
			if !httpguts.ValidHeaderFieldName(d.Name) {
				t.Errorf("a directive is named %q", d.Name)
			}
			if length, ok := c.Seconds(d.Name); !ok || length < 0 || length > maxDelta {
				t.Errorf("%s is %v, %v", d.Name, length, ok)
			}
		}
		// A line can take nothing from the next one.
		if second == "max-age=1" && !c.Has("max-age") {
			t.Errorf("the second line is lost after %q", first)
		}
	})
}
