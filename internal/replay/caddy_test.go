// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

const caddyLine = `{"level":"info","ts":1711261567.25,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"198.51.100.9","remote_port":"41342","client_ip":"192.0.2.1","proto":"HTTP/2.0","method":"GET","host":"example.com","uri":"/feed.xml?a=b","headers":{"User-Agent":["Reader/1.0"],"Accept-Encoding":["gzip, br","zstd"],"If-None-Match":["\"abc\""],"Accept":["*/*"]},"tls":{"resumed":false,"version":772,"sni":["x",{"y":[]}]}},"bytes_read":0,"user_id":"","duration":0.000929675,"size":11051,"status":200,"resp_headers":{"Server":["Caddy"],"Etag":["\"def\""]}}`

func TestParseCaddy(t *testing.T) {
	plain := flat{"2024-03-24T06:26:07.25Z", "192.0.2.1", "GET", "/feed.xml", "Reader/1.0", "", 200, 11051}
	with := func(change func(*flat)) flat {
		f := plain
		change(&f)
		return f
	}
	swap := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(caddyLine) }
	var wide bytes.Buffer
	if err := json.Indent(&wide, []byte(caddyLine), " ", "\t"); err != nil {
		t.Fatal(err)
	}
	spaced := wide.String()
	tests := []struct {
		name, line string
		want       flat
	}{
		{"as Caddy writes it", caddyLine, plain},
		{"milliseconds", swap("1711261567.25", "1711261567250.0"), plain},
		{"nanoseconds", swap("1711261567.25", "1711261567250000000"), plain},
		{"RFC 3339", swap("1711261567.25", `"2024-03-24T07:26:07.25+01:00"`), plain},
		{"ISO 8601", swap("1711261567.25", `"2024-03-24T07:26:07.250+0100"`), plain},
		{"wall time", swap("1711261567.25", `"2024/03/24 06:26:07.250"`), plain},
		{"members in another order", `{"status":200,"size":11051,"request":{"headers":{"User-Agent":["Reader/1.0"]},"uri":"/feed.xml","method":"GET","remote_ip":"192.0.2.1"},"ts":1711261567.25}`, plain},
		{"white space", spaced, plain},
		{"no client_ip", swap(`"client_ip":"192.0.2.1",`, ""), with(func(f *flat) { f.remote = "198.51.100.9" })},
		{"escapes", swap("Reader/1.0", `R\"\\\/\u00e4\ud83d\ude00\n`), with(func(f *flat) { f.agent = `R"\/ä😀 ` })},
		{"a broken surrogate", swap("Reader/1.0", `\ud83dx`), with(func(f *flat) { f.agent = "\ufffdx" })},
		{"no headers", swap(`"headers":{`, `"trailers":{`), with(func(f *flat) { f.agent = "" })},
		{"odd headers", swap(`["Reader/1.0"]`, `"Reader/1.0"`), with(func(f *flat) { f.agent = "" })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !json.Valid([]byte(tt.line)) {
				t.Fatal("the case is no JSON")
			}
			l, err := parse([]byte(tt.line))
			if err != nil {
				t.Fatal(err)
			}
			if got := flatten(&l); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			if !l.Known {
				t.Error("headers are not known")
			}
		})
	}
}

func TestParseCaddyHeaders(t *testing.T) {
	l, err := parse([]byte(caddyLine))
	if err != nil {
		t.Fatal(err)
	}
	for name, field := range map[string][2]string{
		"Accept-Encoding": {l.AcceptEncoding, "gzip, br"}, // the first line of a field
		"If-None-Match":   {l.IfNoneMatch, `"abc"`},       // of the request, not of the response
		"Accept":          {l.Accept, "*/*"},
		"Referer":         {l.Referer, ""},
	} {
		if field[0] != field[1] {
			t.Errorf("%s: got %q, want %q", name, field[0], field[1])
		}
	}
}

func TestOtherJSONLines(t *testing.T) {
	tests := []struct {
		line string
		want error
	}{
		{`{"level":"info","ts":1711261567.25,"logger":"admin","msg":"admin endpoint started"}`, errOther},
		{`{}`, errOther},
		{`{"status":200,"size":1,"ts":1}`, errOther},
		{`{"status":200,"request":{"method":"GET"},"size":1}`, errMalformed},         // no time
		{`{"status":200,"request":{},"size":1,"ts":1}`, errMalformed},                // no method
		{`{"status":2000,"request":{"method":"GET"},"size":1,"ts":1}`, errMalformed}, // no status
		{`{"status":200,"request":{"method":"GET"},"size":1,"ts":1e300}`, errMalformed},
		{`{"status":200,"request":{"method":"GET"},"size":1,"ts":1}x`, errMalformed},
		{caddyLine[:len(caddyLine)-1], errMalformed},
		{caddyLine[:300], errMalformed},
		{`{"a"}`, errMalformed},
		{`{"a":}`, errMalformed},
		{`{"a":1,}`, errMalformed},
		{`{"a":[1,2}`, errMalformed},
		{`{"a":"\`, errMalformed},
		{`{"a":` + strings.Repeat("[", 100_000), errMalformed},
	}
	for _, tt := range tests {
		_, err := parse([]byte(tt.line))
		if !errors.Is(err, tt.want) {
			t.Errorf("%.80s: %v, want %v", tt.line, err, tt.want)
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
		if err == nil && (l.Status < 0 || l.Status > 999 || l.Bytes < 0 || l.Time.Year() < 1970 || l.Time.After(time.Unix(latest, 0))) {
			t.Errorf("%q became %+v", text, flatten(&l))
		}
		l.path()
	})
}
