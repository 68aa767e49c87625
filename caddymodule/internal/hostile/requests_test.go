// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/origintest"
)

// fields are added to a good request, each to one for a configured feed and to one by URL.
var fields = []struct{ name, raw string }{
	{"Accept-Encoding of 900 KB", "Accept-Encoding: " + strings.Repeat("gzip;q=0.1, ", 75_000) + "\r\n"},
	{"If-None-Match of 900 KB", "If-None-Match: \"" + strings.Repeat("x", 900_000) + "\"\r\n"},
	{"If-None-Match of 100,000 tags", "If-None-Match: " + strings.Repeat(`W/"a",`, 100_000) + "\r\n"},
	{"If-None-Match without an end", "If-None-Match: \"" + strings.Repeat(`\"`, 50_000) + "\r\n"},
	{"Range of 100,000 parts", "Range: bytes=" + strings.Repeat("0-0,", 100_000) + "0-0\r\n"},
	{"Cache-Control of 500 KB", "Cache-Control: " + strings.Repeat("max-age=0,", 50_000) + "\r\n"},
	{"Cookie of 900 KB", "Cookie: " + strings.Repeat("evil=1; ", 110_000) + "\r\n"},
	{"User-Agent of 500 KB", "User-Agent: evil" + strings.Repeat("x", 500_000) + "\r\n"},
	{"User-Agent with escapes", "User-Agent: evil\x1b[2J\x1b]0;owned\x07\r\n"},
	{"X-Forwarded-For of 10,000", "X-Forwarded-For: " + strings.Repeat("10.0.0.1, ", 10_000) + "x\r\n"},
	{"X-Forwarded-Host", "X-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: evil\r\nForwarded: for=evil;host=evil\r\n"},
	{"a body", "Content-Length: 4\r\n\r\nevil"},
}

// targets are asked for as they stand. ORIGIN is the origin's address.
var targets = []struct{ name, raw string }{
	{"CR LF, escaped", "/http://ORIGIN/a%0d%0aInjected:%201"},
	{"CR LF in the host", "/http://ORIGIN%0d%0aInjected:%201/a"},
	{"CR LF in the query", "/http://ORIGIN/a?x=%0d%0aInjected:%201%0d%0a%0d%0aGET%20/evil"},
	{"CR LF in a parameter", "/?url=http%3A%2F%2FORIGIN%2Fa%0D%0AInjected%3A%201"},
	{"dots", "/../../../../etc/passwd"},
	{"100 KB of path", "/http://ORIGIN/" + strings.Repeat("a", 100_000)},
	{"a URL in a URL in a URL", "/" + strings.Repeat("https://", 1000) + "x"},
	{"itself by URL", "/http://SITE/http://SITE/http://ORIGIN/a"},
	{"credentials", "/http://evil:evil@ORIGIN/a"},
	{"the admin API", "/pollard/feeds"},
	{"a feed that is not known", "/-/feeds?url=http%3A%2F%2Fnowhere.example%2F"},
	{"a search of 100 KB", "/-/feeds?q=" + strings.Repeat("x", 100_000)},
	{"script in a search", "/-/feeds?q=%3Cscript%3Eevil%3C/script%3E"},
	{"a wrong token", "/~s3cret-of-alice-0002/http://ORIGIN/a"},
	{"a token of 500 KB", "/~" + strings.Repeat("x", 500_000) + "/http://ORIGIN/a"},
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
	type request struct{ name, raw string }
	var attacks []request
	paths := []string{"/one.xml", "/" + url + "/byurl.xml"}
	for _, path := range paths {
		for _, f := range fields {
			end := "\r\n"
			if strings.Contains(f.raw, "\r\n\r\n") { // with a body
				end = ""
			}
			attacks = append(attacks, request{f.name + ", " + path, "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + f.raw + end})
		}
	}
	names := strings.NewReplacer("ORIGIN", address, "SITE", c.address)
	for _, target := range targets {
		attacks = append(attacks, request{target.name, "GET " + names.Replace(target.raw) + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"})
	}

	for _, path := range paths {
		c.get(path)
	}
	took := c.costs(maxReaderCPU)
	statuses := make(map[string]int)
	try := func(a request) {
		head, body, _ := bytes.Cut(c.send(a.raw), []byte("\r\n\r\n"))
		for _, line := range bytes.Split(head, []byte("\n")) {
			if bytes.HasPrefix(bytes.TrimSpace(line), []byte("Injected")) || len(line) > 16<<10 {
				t.Errorf("%s: got the line %.100q", a.name, line)
			}
		}
		status, _, _ := bytes.Cut(head, []byte("\r\n"))
		statuses[string(status[min(len(status), 9):min(len(status), 12)])]++
		if bytes.Contains(status, []byte(" 500 ")) || bytes.Contains(body, []byte("goroutine ")) || bytes.Contains(body, []byte(c.dir)) || bytes.Contains(body, []byte("<script>evil")) {
			t.Errorf("%s: got %.100q %.300q", a.name, head, body)
		}
	}
	for _, a := range attacks {
		took.measure(a.name, func() { try(a) })
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
	for i := range 100 { // at a configured path, another query is the same feed
		if a := c.get(fmt.Sprintf("/one.xml?x=%d", i), "Cache-Control", "no-cache"); a.Status != 200 {
			t.Fatalf("query %d: %v", i, a)
		}
	}
	if n := len(origin.For(url + "/one.xml")); n != 1 {
		t.Errorf("100 queries: %d requests at the origin", n)
	}
	if text := c.logged(); strings.Contains(text, "s3cret-of-alice-0001") || strings.Contains(text, "panic") {
		t.Error("the log has a secret, or a panic")
	}
	took.finish(len(origin.Requests()), fmt.Sprintf("%d requests, answered %v, and 100 queries", len(attacks), statuses))
}
