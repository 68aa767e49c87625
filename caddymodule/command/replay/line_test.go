// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const caddyLine = `{"level":"info","ts":1711261567.25,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"198.51.100.9","remote_port":"41342","client_ip":"192.0.2.1","proto":"HTTP/2.0","method":"GET","host":"example.com","uri":"/feed.xml?a=b","headers":{"User-Agent":["Reader/1.0"],"Accept-Encoding":["gzip, br","zstd"],"If-None-Match":["\"abc\""],"Authorization":["x"]},"tls":{"resumed":false,"version":772,"sni":["x",{"y":[]}]}},"bytes_read":0,"user_id":"","duration":0.000929675,"size":11051,"status":200,"resp_headers":{"Server":["Caddy"],"Etag":["\"def\""]}}`

// described is a line in comparable form.
func described(l *Line) string {
	return fmt.Sprintf("%s %s %s %q %d %d %q", l.Time.Format(time.RFC3339Nano), l.Remote, l.Method, l.path(), l.Status, l.Bytes, l.Header)
}

func TestParse(t *testing.T) {
	const (
		common = `192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET /feed.xml HTTP/1.1" 200 11051`
		line   = common + ` "-" "Reader/1.0"`
		want   = `2024-03-24T06:26:07Z 192.0.2.1 GET "/feed.xml" 200 11051 map["User-Agent":["Reader/1.0"]]`
		logged = `2024-03-24T06:26:07.25Z 192.0.2.1 GET "/feed.xml" 200 11051 map["Accept-Encoding":["gzip, br"] "If-None-Match":["\"abc\""] "User-Agent":["Reader/1.0"]]`
	)
	for _, tt := range []struct {
		name string
		line string
		swap []string // in the line
		want string
		with []string // in what is wanted
	}{
		{"nginx and Apache", line, nil, want, nil},
		{"a zone east", line, []string{"06:26:07 +0000", "08:56:07 +0230"}, want, nil},
		{"a zone west", line, []string{"24/Mar/2024:06:26:07 +0000", "23/Mar/2024:23:26:07 -0700"}, want, nil},
		{"the end of a line of Windows", line + "\r", nil, want, nil},
		{"a user with a blank", line, []string{"- - [", "- Jo Doe ["}, want, nil},
		{"a query", line, []string{"feed.xml", "feed.xml?a=b"}, want, nil},
		{"an absolute target", line, []string{"/feed.xml", "http://example.com/feed.xml"}, want, nil},
		{"HTTP/0.9", line, []string{" HTTP/1.1", ""}, want, nil},
		{"further fields", line + ` "-" 0.003`, nil, want, nil},
		{"a virtual host in front", "example.com:443 " + line, nil, want, nil},
		{"IPv6", line, []string{"192.0.2.1", "2001:db8::1"}, want, []string{"192.0.2.1", "2001:db8::1"}},
		{"nothing sent", line, []string{"200 11051", "304 -", "GET", "HEAD"}, want, []string{"200 11051", "304 0", "GET", "HEAD"}},
		{"the common format", common, nil, want, []string{`"User-Agent":["Reader/1.0"]`, ""}},
		{"quotation marks of Apache", line, []string{`"-"`, `"https://a/\""`, "Reader/1.0", `A \"B\\`}, want, []string{`"User-Agent":["Reader/1.0"]`, `"Referer":["https://a/\\\""] "User-Agent":["A \\\"B\\\\"]`}},
		{"a client that speaks no HTTP", line, []string{"GET /feed.xml HTTP/1.1", `\x16\x03`}, want, []string{`GET "/feed.xml"`, `\x16\x03 ""`}},
		{"nothing asked", line, []string{"GET /feed.xml HTTP/1.1", "-"}, want, []string{`GET "/feed.xml"`, `- ""`}},

		{"as Caddy writes it", caddyLine, nil, logged, nil},
		{"milliseconds", caddyLine, []string{"1711261567.25", "1711261567250.0"}, logged, nil},
		{"nanoseconds", caddyLine, []string{"1711261567.25", "1711261567250000000"}, logged, nil},
		{"RFC 3339", caddyLine, []string{"1711261567.25", `"2024-03-24T07:26:07.25+01:00"`}, logged, nil},
		{"ISO 8601", caddyLine, []string{"1711261567.25", `"2024-03-24T07:26:07.250+0100"`}, logged, nil},
		{"wall time", caddyLine, []string{"1711261567.25", `"2024/03/24 06:26:07.250"`}, logged, nil},
		{"no client_ip", caddyLine, []string{`"client_ip":"192.0.2.1",`, ""}, logged, []string{"192.0.2.1", "198.51.100.9"}},
		{"escapes", caddyLine, []string{"Reader/1.0", `R\"\u00e4\ud83d\ude00\n`}, logged, []string{"Reader/1.0", `R\"ä😀 `}},
		{"odd headers", caddyLine, []string{`["Reader/1.0"]`, `"Reader/1.0"`}, logged, []string{` "User-Agent":["Reader/1.0"]`, ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := parse([]byte(strings.NewReplacer(tt.swap...).Replace(tt.line)))
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.NewReplacer(tt.with...).Replace(tt.want); described(&l) != want || l.HasHeader != (tt.line == caddyLine) {
				t.Errorf("got  %s\nwant %s", described(&l), want)
			}
		})
	}
}

func TestLinesThatAreNoRequests(t *testing.T) {
	for line, want := range map[string]error{
		`{"level":"info","ts":1711261567.25,"logger":"admin","msg":"admin endpoint started"}`: errOther,
		`{}`:                             errOther,
		`{"status":200,"size":1,"ts":1}`: errOther,
		`{"status":200,"request":{"method":"GET"},"size":1}`:            errMalformed, // no time
		`{"status":200,"request":{},"size":1,"ts":1}`:                   errMalformed, // no method
		`{"status":2000,"request":{"method":"GET"},"size":1,"ts":1}`:    errMalformed,
		`{"status":200,"request":{"method":"GET"},"size":1,"ts":1e300}`: errMalformed,
		`{"status":200,"request":{"method":"GET"},"size":1,"ts":1}x`:    errMalformed,
		caddyLine[:300]: errMalformed,
		"":              errMalformed,
		"hello":         errMalformed,
		`192.0.2.1 - - [24/Mar/2024:06:26:07 +0000]`:                           errMalformed,
		`192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] GET / 200 5`:               errMalformed,
		`192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET / HTTP/1.1 200 5`:     errMalformed,
		`192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET / HTTP/1.1" 2000 5`:   errMalformed,
		`192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET / HTTP/1.1" 200 five`: errMalformed,
		`192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET / HTTP/1.1" 200 -5`:   errMalformed,
		`192.0.2.1 - - [31/Feb/2024:06:26:07 +0000] "GET / HTTP/1.1" 200 5`:    errMalformed,
		`192.0.2.1 - - [24/Mar/9024:06:26:07 +0000] "GET / HTTP/1.1" 200 5`:    errMalformed,
		`192.0.2.1 - - [24/Mar/1024:06:26:07 +0000] "GET / HTTP/1.1" 200 5`:    errMalformed,
	} {
		if l, err := parse([]byte(line)); !errors.Is(err, want) {
			t.Errorf("%.80q: %v, %s; want %v", line, err, described(&l), want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range []string{
		caddyLine,
		`{"ts":"2024/03/24 06:26:07","request":{"method":"\u0047ET","headers":{"User-Agent":["\ud83d\ude00\"",""]}},"status":304,"size":0}`,
		`{"a":[{"b":[1,2,{}]},"\\"],"ts":1e9,"status":200}`,
		`192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET /feed.xml HTTP/1.1" 200 11051 "-" "Reader/1.0"`,
		`example.com:443 192.0.2.1 - - [23/Mar/2024:23:59:60 -0700] "\"\\" 304 - "\\\"" "`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := parse(text)
		if err == nil && (l.Status < 0 || l.Status > 999 || l.Bytes < 0 || l.Time.Year() < 1970 || time.Until(l.Time) > clocksDiffer) {
			t.Errorf("%q became %s", text, described(&l))
		}
		l.path()
	})
}
