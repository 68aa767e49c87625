// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpfield

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestWeights(t *testing.T) {
	codings := []string{"br", "gzip", "identity"}
	for line, want := range map[string][3]int{
		// RFC 9110 sections 12.4.2 and 12.5.3.
		``:                                {0, 0, 1},
		`gzip`:                            {0, 1000, 1},
		`x-GZIP`:                          {0, 1000, 1},
		`deflate, BR;q=0.5 ,gzip; Q=0.25`: {500, 250, 1},
		`*`:                               {1000, 1000, 1000},
		`*;q=0`:                           {0, 0, 0},
		`*;q=0, gzip`:                     {0, 1000, 0},
		`gzip, *;q=0.1`:                   {100, 1000, 100},
		`identity;q=0, br;q=0.001`:        {1, 0, 0},
		`br;q=1.000, gzip;q=0.999`:        {1000, 999, 1},
		// Fields that cannot be read are left out.
		`br;q=x, gzip;q=0.1234`:  {1000, 123, 1},
		`br;q=1.5, gzip;level=1`: {1000, 1000, 1},
		`,;,;;q=0,br`:            {1000, 0, 1},
	} {
		var got [3]int
		Weights([]string{line}, codings, got[:])
		if got != want {
			t.Errorf("%s: got %v, want %v", line, got, want)
		}
	}
	var got [3]int
	Weights([]string{"gzip", "br;q=0"}, codings, got[:])
	if got != [3]int{0, 1000, 1} {
		t.Errorf("two lines: got %v", got)
	}
}

func TestVary(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  []string
		any   bool
	}{
		{nil, nil, false},
		{[]string{"", " ,"}, nil, false},
		{[]string{"accept-encoding, Cookie", "COOKIE,accept"}, []string{"Accept", "Accept-Encoding", "Cookie"}, false},
		{[]string{"*"}, nil, true},
		{[]string{"Accept", "Cookie, *"}, nil, true},
		{[]string{"Accept Cookie"}, nil, true},
	} {
		names, any := Vary(http.Header{"Vary": c.lines})
		if !slices.Equal(names, c.want) || any != c.any {
			t.Errorf("%q: got %q, %t", c.lines, names, any)
		}
	}
}

func TestRemoveHopByHop(t *testing.T) {
	for _, c := range []struct{ header, want string }{
		{"A:1 Keep-Alive:x Transfer-Encoding:chunked Trailer:X Upgrade:h2c Proxy-Authorization:x", "[A]"},
		{"Connection:close,x-a,,B A:1 B:1 X-A:1", "[A]"},
		{"Connection:te Te:trailers,gzip", "[Te]"},
		{"Te:gzip", "[]"},
	} {
		h := http.Header{}
		for field := range strings.FieldsSeq(c.header) {
			name, value, _ := strings.Cut(field, ":")
			h.Add(name, value)
		}
		RemoveHopByHop(h)
		if got := fmt.Sprint(slices.Sorted(maps.Keys(h))); got != c.want {
			t.Errorf("%s: left %s, want %s", c.header, got, c.want)
		}
		if te := h.Get("Te"); te != "" && te != "trailers" {
			t.Errorf("%s: TE is %q", c.header, te)
		}
	}
}

// FuzzLists reads a field value as each kind of list. A line can take nothing from the
// next one, and what is read is the same when it is read again.
func FuzzLists(f *testing.F) {
	for _, s := range []string{`a, "b, \" c" ,,d`, `"`, `gzip;q=0.5, *;q=0, br;Q=1.000`, "identity;q=0,x-gzip", "Accept,, foo, *", "close, Te, X-A", ";q=,=\\"} {
		f.Add(s)
	}
	codings := []string{"gzip", "br", "identity"}
	f.Fuzz(func(t *testing.T, line string) {
		members := SplitList(line)
		if again := SplitList(strings.Join(members, ",")); !strings.Contains(line, `"`) && !slices.Equal(again, members) {
			t.Errorf("%q was read as %q, then as %q", line, members, again)
		}
		if len(members) > len(line) {
			t.Errorf("%d members of %q", len(members), line)
		}

		alone, after := make([]int, len(codings)), make([]int, len(codings))
		Weights([]string{line}, codings, alone)
		for i, w := range alone {
			if w < 0 || w > 1000 || w > 0 && codings[i] != "identity" && !strings.Contains(line, "*") && !strings.Contains(strings.ToLower(line), codings[i]) {
				t.Errorf("%q gives %s %d", line, codings[i], w)
			}
		}
		Weights([]string{line, "gzip;q=0.25"}, codings, after)
		if after[0] != 250 || after[1] != alone[1] || after[2] != alone[2] {
			t.Errorf("%q gives %v, and before another line %v", line, alone, after)
		}

		names, any := Vary(http.Header{"Vary": {line}})
		if again, _ := Vary(http.Header{"Vary": names}); !any && !slices.Equal(again, names) || any && names != nil {
			t.Errorf("%q names %q, and those name %q", line, names, again)
		}

		h := http.Header{"Connection": {line}, "Te": {line}, "Upgrade": {"x"}, "X-A": {"1"}, "Content-Type": {"text/xml"}}
		RemoveHopByHop(h)
		for _, member := range strings.Split(line, ",") {
			if name := http.CanonicalHeaderKey(strings.Trim(member, " \t")); name != "Te" && h[name] != nil {
				t.Errorf("%q leaves %s", line, name)
			}
		}
		if h["Upgrade"] != nil || h["Te"] != nil && h.Get("Te") != "trailers" {
			t.Errorf("%q leaves %v", line, h)
		}
	})
}
