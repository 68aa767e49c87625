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

func TestSplitList(t *testing.T) {
	for text, want := range map[string][]string{
		``:               nil,
		` , ,,`:          nil,
		`a`:              {`a`},
		"a ,\tb,, c d ":  {`a`, `b`, `c d`},
		`"a, b", c`:      {`"a, b"`, `c`},
		`"a\", b", c`:    {`"a\", b"`, `c`},
		`x="1,2";q=0, y`: {`x="1,2";q=0`, `y`},
		`"a, b`:          {`"a, b`},
		`"a\`:            {`"a\`},
	} {
		if got := SplitList(text); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

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
		// What cannot be read is not there.
		`br;q=x, gzip;q=0.1234`:  {1000, 1000, 1},
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
