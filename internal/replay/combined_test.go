// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"testing"
	"time"
)

// flat is a line in comparable form.
type flat struct {
	at                               string // RFC 3339
	remote, method, path, agent, ref string
	status                           int
	bytes                            int64
}

func flatten(l *Line) flat {
	return flat{l.Time.UTC().Format(time.RFC3339Nano), l.Remote, l.Method, l.path(), l.UserAgent, l.Referer, l.Status, l.Bytes}
}

func TestParseCombined(t *testing.T) {
	plain := flat{"2024-03-24T06:26:07Z", "192.0.2.1", "GET", "/feed.xml", "Reader/1.0", "", 200, 11051}
	with := func(change func(*flat)) flat {
		f := plain
		change(&f)
		return f
	}
	tests := []struct {
		name, line string
		want       flat
	}{
		{"nginx and Apache", `192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET /feed.xml HTTP/1.1" 200 11051 "-" "Reader/1.0"`, plain},
		{"a zone east", `192.0.2.1 - - [24/Mar/2024:08:56:07 +0230] "GET /feed.xml HTTP/1.1" 200 11051 "-" "Reader/1.0"`, plain},
		{"a zone west", `192.0.2.1 - - [23/Mar/2024:23:26:07 -0700] "GET /feed.xml HTTP/1.1" 200 11051 "-" "Reader/1.0"`, plain},
		{"the end of a line of Windows", "192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] \"GET /feed.xml HTTP/1.1\" 200 11051 \"-\" \"Reader/1.0\"\r", plain},
		{"a user with a blank", `192.0.2.1 - Jo Doe [24/Mar/2024:06:26:07 +0000] "GET /feed.xml HTTP/1.1" 200 11051 "-" "Reader/1.0"`, plain},
		{"a query", `192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET /feed.xml?a=b HTTP/1.1" 200 11051 "-" "Reader/1.0"`, plain},
		{"an absolute target", `192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET http://example.com/feed.xml HTTP/1.1" 200 11051 "-" "Reader/1.0"`, plain},
		{"HTTP/0.9", `192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET /feed.xml" 200 11051 "-" "Reader/1.0"`, plain},
		{"further fields", `192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET /feed.xml HTTP/1.1" 200 11051 "-" "Reader/1.0" "-" 0.003`, plain},
		{
			"a virtual host in front", `example.com:443 192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET /feed.xml HTTP/1.1" 200 11051 "-" "Reader/1.0"`,
			plain,
		},
		{
			"IPv6", `2001:db8::1 - - [24/Mar/2024:06:26:07 +0000] "GET /feed.xml HTTP/1.1" 200 11051 "-" "Reader/1.0"`,
			with(func(f *flat) { f.remote = "2001:db8::1" }),
		},
		{
			"nothing sent", `192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "HEAD /feed.xml HTTP/1.1" 304 - "-" "Reader/1.0"`,
			with(func(f *flat) { f.method, f.status, f.bytes = "HEAD", 304, 0 }),
		},
		{
			"the common format", `192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET /feed.xml HTTP/1.1" 200 11051`,
			with(func(f *flat) { f.agent = "" }),
		},
		{
			"quotation marks of Apache", `192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET /feed.xml HTTP/1.1" 200 11051 "https://example.com/\"" "A \"B\\"`,
			with(func(f *flat) { f.ref, f.agent = `https://example.com/\"`, `A \"B\\` }),
		},
		{
			"a client that speaks no HTTP", `192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "\x16\x03\x01" 400 150 "-" "-"`,
			with(func(f *flat) { f.method, f.path, f.agent, f.status, f.bytes = `\x16\x03\x01`, "", "", 400, 150 }),
		},
		{
			"nothing asked", `192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "-" 408 0 "-" "-"`,
			with(func(f *flat) { f.method, f.path, f.agent, f.status, f.bytes = "-", "", "", 408, 0 }),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := parse([]byte(tt.line))
			if err != nil {
				t.Fatal(err)
			}
			if got := flatten(&l); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestMalformedLines(t *testing.T) {
	for _, line := range []string{
		"", "-", "hello", "[", " [", `192.0.2.1 - - [24/Mar/2024:06:26:07 +0000]`,
		`192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] GET / 200 5`,
		`192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET / HTTP/1.1 200 5`,
		`192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET / HTTP/1.1" - 5`,
		`192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET / HTTP/1.1" 2000 5`,
		`192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET / HTTP/1.1" 200 five`,
		`192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET / HTTP/1.1" 200 -5`,
		`192.0.2.1 - - [31/Feb/2024:06:26:07 +0000] "GET / HTTP/1.1" 200 5`,
		`192.0.2.1 - - [24/Mrz/2024:06:26:07 +0000] "GET / HTTP/1.1" 200 5`,
		`192.0.2.1 - - [24/arA/2024:06:26:07 +0000] "GET / HTTP/1.1" 200 5`,
		`192.0.2.1 - - [24/Mar/2024:26:26:07 +0000] "GET / HTTP/1.1" 200 5`,
		`192.0.2.1 - - [24/Mar/2024:06:26:07 *0000] "GET / HTTP/1.1" 200 5`,
		`192.0.2.1 - - [24/Mar/9024:06:26:07 +0000] "GET / HTTP/1.1" 200 5`,
		`192.0.2.1 - - [24/Mar/1024:06:26:07 +0000] "GET / HTTP/1.1" 200 5`,
	} {
		l, err := parse([]byte(line))
		if !errors.Is(err, errMalformed) {
			t.Errorf("%q: %v, %+v", line, err, flatten(&l))
		}
	}
}
