// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpfield

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestTags(t *testing.T) {
	for list, want := range map[string][]Tag{
		``:                   nil,
		` , ,`:               nil,
		`w/"a"`:              {{Opaque: "a", Weak: true}},
		`"a", W/"b" ,"c"`:    {{Opaque: "a"}, {Opaque: "b", Weak: true}, {Opaque: "c"}},
		`"a,b"`:              {{Opaque: "a,b"}},
		`"a\", "b"`:          {{Opaque: `a\`}, {Opaque: "b"}},
		`*`:                  {{Any: true}},
		`"*"`:                {{Opaque: "*"}},
		`W/*`:                {{Opaque: "*", Weak: true}},
		`a, W/b`:             {{Opaque: "a"}, {Opaque: "b", Weak: true}},
		`W/`:                 {{Opaque: "W/"}},
		`"a`:                 {{Opaque: "a"}},
		`"a"-gzip, "b"`:      {{Opaque: `"a"-gzip`}, {Opaque: "b"}},
		"\t\"a\"\t,\t\"b\" ": {{Opaque: "a"}, {Opaque: "b"}},
	} {
		var got []Tag
		for rest := list; rest != ""; {
			var tag Tag
			if tag, rest = CutTag(rest); tag != (Tag{}) {
				got = append(got, tag)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %+v, want %+v", list, got, want)
		}
	}
}

func TestNotModified(t *testing.T) {
	const date = "Mon, 02 Mar 2026 10:00:00 GMT"
	current := ParseTag(`"abc"`)
	for name, c := range map[string]struct {
		tags, dates []string
		want        bool
	}{
		"no condition":     {nil, nil, false},
		"in a second line": {[]string{`"x"`, `"y", W/"abc"`}, nil, true},
		"another":          {[]string{`"x"`}, nil, false},
		"a weak one":       {[]string{`W/"abc"`}, nil, true},
		"any, in a list":   {[]string{`"x", *`}, nil, true},
		"empty":            {[]string{``}, nil, false},
		"the date":         {nil, []string{date}, true},
		"two dates":        {nil, []string{date, date}, false},
		// RFC 9110 section 13.2.2.
		"another tag and the date": {[]string{`"x"`}, []string{date}, false},
		"an empty tag list counts": {[]string{``}, []string{date}, false},
		"the tag and another date": {[]string{`"abc"`}, []string{""}, true},
	} {
		got := NotModified(c.tags, c.dates, current.Equal, func(text string) bool { return text == date })
		if got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

// FuzzIfNoneMatch checks that a tag is found in any list of well-formed members,
// weak or not, and that reading never hangs.
func FuzzIfNoneMatch(f *testing.F) {
	f.Add("\"abc\"", "W/\"x\", ")
	f.Add("W/\"a,b\"", "\"")
	f.Add("abc", "*")
	f.Add("\"\"", "")
	f.Fuzz(func(t *testing.T, tag, list string) {
		HasTag([]string{list}, ParseTag(tag).Equal)
		inner, quoted := strings.CutPrefix(tag, "\"")
		inner, ended := strings.CutSuffix(inner, "\"")
		if !quoted || !ended || inner == "" || strings.Contains(inner, "\"") {
			return // no entity tag
		}
		for _, list := range []string{tag, "W/" + tag, "\"x\" , " + tag, tag + ",\"y\""} {
			for _, has := range []string{tag, "W/" + tag} {
				if !HasTag([]string{list}, ParseTag(has).Equal) {
					t.Errorf("%s is not in %s", has, list)
				}
			}
		}
	})
}

// What is read for every request must not allocate.
func TestNoAllocations(t *testing.T) {
	h := http.Header{"If-None-Match": {`"x", W/"abc"`}, "Accept-Encoding": {"gzip, deflate;q=0.5, br"}}
	codings := []string{"br", "gzip", "identity"}
	current := ParseTag(`"abc"`)
	n := testing.AllocsPerRun(100, func() {
		var weights [3]int
		Weights(h["Accept-Encoding"], codings, weights[:])
		if weights[0] != 1000 || !NotModified(h["If-None-Match"], nil, current.Equal, nil) {
			t.Error("misread")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
