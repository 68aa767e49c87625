// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/origintest"
)

// request is what a reader sends, and whether the server waits for more of it.
type request struct {
	name, raw string
	waits     bool
}

// methods are sent to each target, and are refused, or answered by the server itself.
var methods = []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "PURGE", "get", "GE\tT", "", "\x00", strings.Repeat("G", 100_000)}

// fields are added to a good request, each to one for a configured feed and to one by URL.
var fields = []struct{ name, raw string }{
	{"Accept-Encoding of 900 KB", "Accept-Encoding: " + strings.Repeat("gzip;q=0.1, ", 75_000) + "\r\n"},
	{"Accept-Encoding of nothing", "Accept-Encoding: identity;q=0, *;q=0\r\n"},
	{"Accept-Encoding of signs", "Accept-Encoding: ,;=q,\"\\,;q=\r\n"},
	{"Accept-Encoding, bad weight", "Accept-Encoding: gzip;q=1e9, br;q=-1, zstd;q=NaN\r\n"},
	{"If-None-Match of 900 KB", "If-None-Match: \"" + strings.Repeat("x", 900_000) + "\"\r\n"},
	{"If-None-Match of 100,000 tags", "If-None-Match: " + strings.Repeat(`W/"a",`, 100_000) + "\r\n"},
	{"If-None-Match without an end", "If-None-Match: \"" + strings.Repeat(`\"`, 50_000) + "\r\n"},
	{"If-None-Match of a lone W/", "If-None-Match: W/\r\n"},
	{"If-None-Match with octets", "If-None-Match: \"\xff\xfe\x80\"\r\n"},
	{"If-Modified-Since of words", "If-Modified-Since: last week\r\n"},
	{"If-Modified-Since twice", "If-Modified-Since: Sat, 21 Nov 2026 06:00:00 GMT\r\nIf-Modified-Since: x\r\n"},
	{"If-Match", "If-Match: \"nothing\"\r\n"},
	{"If-Unmodified-Since", "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n"},
	{"Range", "Range: bytes=0-9\r\n"},
	{"Range of 100,000 parts", "Range: bytes=" + strings.Repeat("0-0,", 100_000) + "0-0\r\n"},
	{"Range of all, overlapping", "Range: bytes=" + strings.Repeat("0-,", 1000) + "0-\r\n"},
	{"Cache-Control of 500 KB", "Cache-Control: " + strings.Repeat("max-age=0,", 50_000) + "\r\n"},
	{"only-if-cached", "Cache-Control: only-if-cached\r\n"},
	{"Cookie of 900 KB", "Cookie: " + strings.Repeat("evil=1; ", 110_000) + "\r\n"},
	{"Authorization", "Authorization: Basic ZXZpbDpldmls\r\n"},
	{"Referer", "Referer: http://evil.example/\r\n"},
	{"User-Agent of 500 KB", "User-Agent: evil" + strings.Repeat("x", 500_000) + "\r\n"},
	{"User-Agent of a billion subscribers", "User-Agent: evil (999999999999999999999 subscribers)\r\n"},
	{"User-Agent with escapes", "User-Agent: evil\x1b[2J\x1b]0;owned\x07\r\n"},
	{"X-Forwarded-For of 10,000", "X-Forwarded-For: " + strings.Repeat("10.0.0.1, ", 10_000) + "x\r\n"},
	{"X-Forwarded-Host", "X-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: evil\r\nForwarded: for=evil;host=evil\r\n"},
	{"Connection names what counts", "Connection: Host, Accept-Encoding, evil\r\n"},
	{"Early-Data", "Early-Data: 1\r\n"},
	{"Accept of pages", "Accept: text/html, */*;q=0.1\r\n"},
	{"A-IM", "A-IM: feed, gzip\r\n"},
	{"Origin and Sec-Fetch", "Origin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n"},
	{"a body", "Content-Length: 4\r\n\r\nevil"},
	{"a length and chunks", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"a body that never comes", "Content-Length: 1000000\r\n"},
	{"CR in a value", "X-Evil: a\rInjected: 1\r\n"},
	{"20,000 fields", strings.Repeat("X-Evil: 1\r\n", 20_000)},
	{"two megabytes", "X-Evil: " + strings.Repeat("x", 2<<20) + "\r\n"},
}

// targets are asked for as they stand. ORIGIN is the origin's address.
var targets = []struct{ name, raw string }{
	{"CR LF, escaped", "/http://ORIGIN/a%0d%0aInjected:%201"},
	{"CR LF in the host", "/http://ORIGIN%0d%0aInjected:%201/a"},
	{"CR LF in the query", "/http://ORIGIN/a?x=%0d%0aInjected:%201%0d%0a%0d%0aGET%20/evil"},
	{"CR LF in a parameter", "/?url=http%3A%2F%2FORIGIN%2Fa%0D%0AInjected%3A%201"},
	{"a CR as it is", "/http://ORIGIN/a\rInjected:1"},
	{"NUL, escaped", "/http://ORIGIN/a%00b"},
	{"octets", "/http://ORIGIN/\xff\xfe"},
	{"a bad escape", "/http://ORIGIN/%zz"},
	{"an escaped escape", "/http://ORIGIN/%252e%252e%252f"},
	{"dots", "/../../../../etc/passwd"},
	{"escaped dots", "/%2e%2e/%2e%2e/etc/passwd"},
	{"slashes", "//////////////one.xml"},
	{"100 KB of path", "/http://ORIGIN/" + strings.Repeat("a", 100_000)},
	{"100 KB of query", "/?url=" + strings.Repeat("x", 100_000)},
	{"2 MB of path", "/" + strings.Repeat("a", 2<<20)},
	{"a URL in a URL in a URL", "/" + strings.Repeat("https://", 1000) + "x"},
	{"itself by URL", "/http://SITE/http://SITE/http://ORIGIN/a"},
	{"another scheme", "/file:///etc/passwd"},
	{"script", "/javascript:alert(1)"},
	{"data", "/?url=data:text/html,evil"},
	{"credentials", "/http://evil:evil@ORIGIN/a"},
	{"a port of another protocol", "/http://127.0.0.1:22/"},
	{"metadata of a cloud", "/http://169.254.169.254/latest/meta-data/"},
	{"an address in one number", "/http://2130706433/"},
	{"a fragment", "/http://ORIGIN/a#evil"},
	{"an absolute target", "http://evil.example/one.xml"},
	{"the admin API", "/pollard/feeds"},
	{"profiles", "/debug/pprof/heap"},
	{"pages of none", "/-/nothing"},
	{"a feed that is not known", "/-/feeds?url=http%3A%2F%2Fnowhere.example%2F"},
	{"a search of 100 KB", "/-/feeds?q=" + strings.Repeat("x", 100_000)},
	{"script in a search", "/-/feeds?q=%3Cscript%3Eevil%3C/script%3E"},
	{"a wrong token", "/~s3cret-of-alice-0002/http://ORIGIN/a"},
	{"the beginning of the token", "/~s3cret-of-alice/http://ORIGIN/a"},
	{"more than the token", "/~s3cret-of-alice-0001x/http://ORIGIN/a"},
	{"the token's name", "/~alice/http://ORIGIN/a"},
	{"a token of 500 KB", "/~" + strings.Repeat("x", 500_000) + "/http://ORIGIN/a"},
}

// wholes are not quite requests.
var wholes = []request{
	{name: "NULs", raw: strings.Repeat("\x00", 100_000), waits: true},
	{name: "half a request", raw: "GET /one.xml HT", waits: true},
	{name: "3,000 requests at once", raw: strings.Repeat("GET /one.xml HTTP/1.1\r\nHost: x\r\nIf-None-Match: *\r\n\r\n", 2999) + "GET /one.xml HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"},
	{name: "a host with a path", raw: "GET /one.xml HTTP/1.1\r\nHost: a/../b\r\nConnection: close\r\n\r\n"},
	{name: "a host with a new line, escaped", raw: "GET /one.xml HTTP/1.1\r\nHost: a%0d%0aInjected:1\r\nConnection: close\r\n\r\n"},
}

// newOrigin starts an origin whose feeds are all alike.
func newOrigin(t *testing.T) (o *origintest.Origin, url string) {
	t.Helper()
	o = origintest.New(origintest.OK(feed, "ETag", `"1"`, "Cache-Control", "max-age=3600"))
	return o, o.Start(t).URL
}

// send sends bytes and returns what comes back within a while.
func (c *child) send(raw string) []byte {
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		c.t.Errorf("connecting: %v", err)
		return nil
	}
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, raw) }() // it may be cut short
	_ = conn.SetReadDeadline(time.Now().Add(3 * time.Second))
	answer, _ := io.ReadAll(io.LimitReader(conn, 4<<20))
	return answer
}

// The server survives what readers send, nothing of it gets into the header of an answer or
// to the origin, the origin gets one request for each feed, and other readers are served.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	origin, url := newOrigin(t)
	address := strings.TrimPrefix(url, "http://")
	c := start(t, setup{
		app:     "private_upstreams 127.0.0.0/8",
		site:    "feed_gateway {\n\tfeed /one.xml " + url + "/one.xml\n\tclients any\n\ttoken alice s3cret-of-alice-0001\n}\n",
		servers: "max_header_size 4MiB", // above Caddy's own limit, so that the parsers see it
	})
	var attacks []request
	paths := []string{"/one.xml", "/" + url + "/byurl.xml"}
	for _, path := range paths {
		for _, m := range methods {
			attacks = append(attacks, request{name: fmt.Sprintf("method %.20q, %s", m, path), raw: m + " " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"})
		}
		for _, f := range fields {
			end := "\r\n"
			if strings.Contains(f.raw, "\r\n\r\n") {
				end = ""
			}
			attacks = append(attacks, request{name: f.name + ", " + path, raw: "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + f.raw + end})
		}
	}
	names := strings.NewReplacer("ORIGIN", address, "SITE", c.address)
	for _, target := range targets {
		attacks = append(attacks, request{name: target.name, raw: "GET " + names.Replace(target.raw) + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"})
	}
	attacks = append(attacks, wholes...)

	for _, path := range paths {
		c.get(path)
	}
	took := c.costs(maxReaderCPU)
	statuses := make(map[string]int)
	var mu sync.Mutex // guards statuses
	try := func(a request) {
		head, body, _ := bytes.Cut(c.send(a.raw), []byte("\r\n\r\n"))
		for _, line := range bytes.Split(head, []byte("\n")) {
			if bytes.HasPrefix(bytes.TrimSpace(line), []byte("Injected")) || len(line) > 16<<10 {
				t.Errorf("%s: got the line %.100q", a.name, line)
			}
		}
		status, _, _ := bytes.Cut(head, []byte("\r\n"))
		mu.Lock()
		statuses[string(status[min(len(status), 9):min(len(status), 12)])]++
		mu.Unlock()
		if bytes.Contains(status, []byte(" 500 ")) || bytes.Contains(body, []byte("goroutine ")) || bytes.Contains(body, []byte(c.dir)) || bytes.Contains(body, []byte("<script>evil")) {
			t.Errorf("%s: got %.100q %.300q", a.name, head, body)
		}
	}
	took.measure("all that are waited for", func() {
		var all sync.WaitGroup
		for _, a := range attacks {
			if a.waits {
				all.Go(func() { try(a) })
			}
		}
		all.Wait()
	})
	for _, a := range attacks {
		if !a.waits {
			took.measure(a.name, func() { try(a) })
		}
	}
	for _, path := range paths {
		if a := c.get(path); a.Status != 200 || a.Body != feed {
			t.Errorf("%s, after all: %v", path, a)
		}
	}
	asked := make(map[string]int)
	for _, r := range origin.Requests() {
		asked[strings.TrimPrefix(r.URL, url)]++
		for name, values := range r.Header {
			if line := name + ": " + strings.Join(values, ", "); strings.Contains(strings.ToLower(line), "evil") || name == "Injected" || name == "Range" || name == "Cookie" {
				t.Errorf("the origin got %.100q", line)
			}
		}
	}
	for path, n := range asked {
		if n > 1 || path == "/evil" {
			t.Errorf("the origin was asked %d times for %q", n, path)
		}
	}
	for i := range 500 { // at a configured path, another query is the same feed
		if a := c.get(fmt.Sprintf("/one.xml?x=%d", i), "Cache-Control", "no-cache"); a.Status != 200 {
			t.Fatalf("query %d: %v", i, a)
		}
	}
	if n := len(origin.For(url + "/one.xml")); n != 1 {
		t.Errorf("500 queries: %d requests at the origin", n)
	}
	if text := c.logged(); strings.Contains(text, "s3cret-of-alice-0001") || strings.Contains(text, "panic") {
		t.Error("the log has a secret, or a panic")
	}
	took.over()
	took.polls = len(origin.Requests())
	took.log(fmt.Sprintf("%d requests, answered %v, and 500 queries", len(attacks), statuses))
}
