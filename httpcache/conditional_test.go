// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"testing"
	"time"
)

func TestConditions(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	const (
		modified = "Mon, 02 Mar 2026 10:00:00 GMT"
		later    = "Mon, 02 Mar 2026 11:00:00 GMT"
		before   = "Mon, 02 Mar 2026 09:00:00 GMT"
	)
	strong := []string{"ETag: \"abc\"", "Last-Modified: " + modified, "Date: " + later}
	for name, c := range map[string]struct {
		request []string
		status  int
		answer  []string
		want    bool
	}{
		// RFC 9110 section 13.1.2.
		"no condition":             {nil, 200, strong, false},
		"the tag":                  {[]string{"If-None-Match: \"abc\""}, 200, strong, true},
		"another":                  {[]string{"If-None-Match: \"abd\""}, 200, strong, false},
		"a list":                   {[]string{"If-None-Match: \"x\", W/\"y\" ,\"abc\""}, 200, strong, true},
		"a second line":            {[]string{"If-None-Match: \"x\"", "If-None-Match: \"abc\""}, 200, strong, true},
		"a comma in a tag":         {[]string{"If-None-Match: \"x,abc\""}, 200, strong, false},
		"any":                      {[]string{"If-None-Match: *"}, 200, strong, true},
		"any, without a tag":       {[]string{"If-None-Match: *"}, 200, nil, true},
		"a star that is a tag":     {[]string{"If-None-Match: \"*\""}, 200, strong, false},
		"weak asks for strong":     {[]string{"If-None-Match: W/\"abc\""}, 200, strong, true},
		"strong asks for weak":     {[]string{"If-None-Match: \"abc\""}, 200, []string{"ETag: W/\"abc\""}, true},
		"weak asks for weak":       {[]string{"If-None-Match: W/\"abc\""}, 200, []string{"ETag: W/\"abc\""}, true},
		"quotes lost":              {[]string{"If-None-Match: abc"}, 200, strong, true},
		"quotes never there":       {[]string{"If-None-Match: abc"}, 200, []string{"ETag: abc"}, true},
		"no tag":                   {[]string{"If-None-Match: \"abc\""}, 200, nil, false},
		"nothing against no tag":   {[]string{"If-None-Match: \"\""}, 200, nil, false},
		"empty":                    {[]string{"If-None-Match:"}, 200, strong, false},
		"before If-Modified-Since": {[]string{"If-None-Match: \"abd\"", "If-Modified-Since: " + modified}, 200, strong, false},
		"after it, too":            {[]string{"If-None-Match: \"abc\"", "If-Modified-Since: " + before}, 200, strong, true},

		// Section 13.1.3.
		"the date":                     {[]string{"If-Modified-Since: " + modified}, 200, strong, true},
		"a later date":                 {[]string{"If-Modified-Since: " + later}, 200, strong, true},
		"an earlier date":              {[]string{"If-Modified-Since: " + before}, 200, strong, false},
		"the date in the RFC 850 form": {[]string{"If-Modified-Since: Monday, 02-Mar-26 10:00:00 GMT"}, 200, strong, true},
		"no date":                      {[]string{"If-Modified-Since: yesterday"}, 200, strong, false},
		"two dates":                    {[]string{"If-Modified-Since: " + modified, "If-Modified-Since: " + modified}, 200, strong, false},
		// RFC 9111 section 4.3.2.
		"Date instead":               {[]string{"If-Modified-Since: " + later}, 200, []string{"Date: " + later}, true},
		"Date instead, and later":    {[]string{"If-Modified-Since: " + modified}, 200, []string{"Date: " + later}, false},
		"If-Match is not for caches": {[]string{"If-Match: \"abd\""}, 200, strong, false},

		// Section 13.2.1.
		"an error":   {[]string{"If-None-Match: \"abc\""}, 404, strong, false},
		"a redirect": {[]string{"If-None-Match: *"}, 301, strong, false},
		"a 203":      {[]string{"If-None-Match: \"abc\""}, 203, strong, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := notModified(headerOf(c.request...), c.status, headerOf(c.answer...), now)
			if got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

func TestConditionalServing(t *testing.T) {
	body := []string{"Cache-Control: max-age=60", "ETag: \"e\"", "Last-Modified: @-1h", "Content-Type: text/x", "Content-Language: en", "Content-Location: /x", "Vary: Foo", "Expires: @1h", "Content-Security-Policy: sandbox", "X-A: 1"}
	of304 := []string{"ETag: \"e\"", "Cache-Control: max-age=60", "Vary: Foo", "Content-Location: /x", "X-A: 1", "Content-Security-Policy: sandbox", "-Content-Type", "-Content-Language", "-Content-Length", "-Last-Modified"}
	inm := []string{"If-None-Match: \"e\""}
	scenes(t, map[string][]step{
		// RFC 9110 section 15.4.5.
		"the header of a 304": {
			{origin: says(200, "a", body...), asked: true, body: "a"},
			{after: time.Second, send: inm, status: http.StatusNotModified, has: append([]string{"Age: 1"}, of304...)},
			{method: "HEAD", send: inm, status: http.StatusNotModified, has: of304},
		},
		"Last-Modified where it is all": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "Last-Modified: @-1h"), asked: true, body: "a"},
			{send: []string{"If-Modified-Since: @-1h"}, status: http.StatusNotModified, has: []string{"Last-Modified: @-1h"}},
		},
		"a reader's validators do not keep the store empty": {
			{send: append(inm, "If-Modified-Since: @-1h", "If-Range: \"e\""), origin: says(200, "a", body...), shared: true, sees: []string{"-If-None-Match", "-If-Modified-Since", "-If-Range"}, status: http.StatusNotModified, has: of304},
			{body: "a"},
		},
		"but are the origin's where nothing can be stored": {
			{origin: says(200, "a", "Cache-Control: no-store", "ETag: \"e\""), asked: true, body: "a"},
			{send: append(inm, "Range: bytes=0-0"), origin: says(304, "", "ETag: \"e\""), asked: true, sees: append(inm, "Range: bytes=0-0"), status: http.StatusNotModified},
			{send: []string{"Range: bytes=0-0"}, origin: says(206, "a", "Content-Range: bytes 0-0/2", "Cache-Control: max-age=60"), asked: true, status: 206, body: "a"},
			{origin: says(200, "ab"), asked: true, body: "ab"},
		},
		"If-Match goes to the origin": {
			{send: []string{"If-Match: \"x\""}, origin: says(412, "no", "Cache-Control: max-age=60"), asked: true, sees: []string{"If-Match: \"x\""}, status: 412, body: "no"},
			{origin: says(200, "a", "Cache-Control: max-age=60"), asked: true, body: "a"},
			{send: []string{"If-Match: \"x\""}, body: "a"},
		},
	})
}

func TestRange(t *testing.T) {
	stored := step{origin: says(200, "0123456789", "Cache-Control: max-age=60", "ETag: \"e\"", "Content-Type: text/x"), asked: true, body: "0123456789"}
	scenes(t, map[string][]step{
		// RFC 9110 section 14.2.
		"of a stored response": {
			stored,
			{send: []string{"Range: bytes=2-4"}, status: 206, body: "234", has: []string{"Content-Range: bytes 2-4/10", "Content-Length: 3", "Age: 0", "ETag: \"e\""}},
			{send: []string{"Range: bytes=-1"}, status: 206, body: "9"},
			{send: []string{"Range: bytes=8-"}, status: 206, body: "89"},
			{send: []string{"Range: bytes=10-"}, status: 416, body: "*", has: []string{"Content-Range: bytes */10"}},
			{send: []string{"Range: lines=1"}, body: "0123456789"},
			{send: []string{"Range: bytes=0-0, 2-2"}, status: 206, body: "*"},
			{body: "0123456789"},
		},
		"If-Range": {
			stored,
			{send: []string{"Range: bytes=2-4", "If-Range: \"e\""}, status: 206, body: "234"},
			{send: []string{"Range: bytes=2-4", "If-Range: \"x\""}, body: "0123456789"},
		},
		"a condition comes first": {
			stored,
			{send: []string{"Range: bytes=2-4", "If-None-Match: \"e\""}, status: 304},
		},
		"not of a HEAD": {
			stored,
			{method: "HEAD", send: []string{"Range: bytes=2-4"}, has: []string{"Content-Length: 10"}},
		},
		"of nothing that is stored: the origin decides what it sends": {
			{send: []string{"Range: bytes=2-4"}, origin: stored.origin, shared: true, sees: []string{"Range: bytes=2-4"}, body: "0123456789"},
			{send: []string{"Range: bytes=2-4"}, status: 206, body: "234"},
		},
		"of a stale response that is confirmed": {
			stored,
			{after: time.Minute, send: []string{"Range: bytes=2-4"}, origin: says(304, ""), shared: true, sees: []string{"-Range", "If-None-Match: \"e\""}, status: 206, body: "234"},
		},
		"of a stale response that has changed": {
			stored,
			{after: time.Minute, send: []string{"Range: bytes=2-4"}, origin: says(200, "abcdefgh", "Cache-Control: max-age=60"), shared: true, status: 206, body: "cde", has: []string{"Content-Range: bytes 2-4/8", "Content-Length: 3"}},
			{send: []string{"Range: bytes=2-4"}, status: 206, body: "cde"},
		},
	})
}
