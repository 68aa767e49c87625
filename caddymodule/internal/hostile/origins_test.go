// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const feed = `<rss version="2.0"><channel><title>T</title><item><title>Good</title><guid>1</guid></item></channel></rss>`

func answerOf(header, body string) string {
	return "HTTP/1.1 200 OK\r\nContent-Type: application/rss+xml\r\n" + header + "\r\n" + body
}

// origins are what hostile origins send, byte for byte; then they close, or hang where
// the name says so. None of it is a complete feed.
var origins = []struct{ name, raw string }{
	{"nothing", ""},
	{"nothing, hangs", ""},
	{"half a status line, hangs", "HTTP/1.1 20"},
	{"half a header", "HTTP/1.1 200 OK\r\nContent-Type: app"},
	{"half a header, hangs", "HTTP/1.1 200 OK\r\nContent-Type: app"},
	{"another protocol", "220 mail.example ESMTP\r\n"},
	{"HTTP/0.9", feed},
	{"status 999", "HTTP/1.1 999 No\r\nContent-Length: 0\r\n\r\n"},
	{"status of letters", "HTTP/1.1 abc OK\r\n\r\n"},
	{"interim answers without end", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 2000)},
	{"a header of 4 MB", answerOf("X-A: "+strings.Repeat("a", 4<<20)+"\r\n", feed)},
	{"100,000 header fields", answerOf(strings.Repeat("X-A: b\r\n", 100_000), feed)},
	{"NUL in a header", answerOf("X-A: \x00\r\nContent-Length: 3\r\n", feed)},
	{"folded header", answerOf("Content-Length: 5\r\n  7\r\n", feed)},
	{"body shorter than its length", answerOf("Content-Length: 4000\r\n", feed)},
	{"body shorter than its length, hangs", answerOf("Content-Length: 4000\r\n", feed)},
	{"two lengths", answerOf("Content-Length: 5\r\nContent-Length: 110\r\n", feed)},
	{"negative length", answerOf("Content-Length: -1\r\n", feed)},
	{"huge length", answerOf("Content-Length: 99999999999999\r\n", feed)},
	{"chunk of a size that is no number", answerOf("Transfer-Encoding: chunked\r\n", "zz\r\n"+feed)},
	{"chunk of 2^64", answerOf("Transfer-Encoding: chunked\r\n", "10000000000000000\r\n"+feed)},
	{"chunks without an end", answerOf("Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n", len(feed), feed))},
	{"chunks without an end, hangs", answerOf("Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n", len(feed), feed))},
	{"unknown coding", answerOf("Content-Encoding: rot13\r\nContent-Length: "+strconv.Itoa(len(feed))+"\r\n", feed)},
	{"gzip that is none", answerOf("Content-Encoding: gzip\r\nContent-Length: 4\r\n", "\x1f\x8b\x08z")},
	{"brotli that is none", answerOf("Content-Encoding: br\r\nContent-Length: 4\r\n", "\xff\xff\xff\xff")},
	{"zstd that is none", answerOf("Content-Encoding: zstd\r\nContent-Length: 4\r\n", "\x28\xb5\x2f\xfd")},
	{"empty", answerOf("Content-Length: 0\r\n", "")},
	{"a page", answerOf("Content-Length: 53\r\n", "<html><title>db_password=hunter2</title><p>a page</p>")},
	{"text", answerOf("Content-Length: 19\r\n", "db_password=hunter2")},
	{"404", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"},
	{"403", "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"},
	{"429", "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 999999999999\r\nContent-Length: 0\r\n\r\n"},
	{"503", "HTTP/1.1 503 Unavailable\r\nRetry-After: -1\r\nContent-Length: 0\r\n\r\n"},
	{"206", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/99\r\nContent-Length: 10\r\n\r\n<rss><chan"},
	{"304 to a reader without validators", "HTTP/1.1 304 Not Modified\r\n\r\n"},
	{"redirect to itself", "HTTP/1.1 302 Found\r\nLocation: \r\nContent-Length: 0\r\n\r\n"},
	{"redirect to a file", "HTTP/1.1 301 Moved\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"},
	{"redirect to metadata", "HTTP/1.1 301 Moved\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n"},
	{"redirect to ssh", "HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:22/\r\nContent-Length: 0\r\n\r\n"},
	{"redirect with a new line", "HTTP/1.1 301 Moved\r\nLocation: http://x.test/%0d%0aHost:y\rz\r\nContent-Length: 0\r\n\r\n"},
}

// hostileOrigin sends the case that the path names: /cold/<n> at once, /warm/<n> after
// one good answer.
type hostileOrigin struct {
	net.Listener
	mu    sync.Mutex // guards asked
	asked map[string]int
}

func newHostileOrigin(t *testing.T) *hostileOrigin {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &hostileOrigin{Listener: l, asked: make(map[string]int)}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go o.serve(conn)
		}
	}()
	return o
}

func (o *hostileOrigin) serve(conn net.Conn) {
	defer conn.Close()
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	o.mu.Lock()
	o.asked[r.URL.Path]++
	n := o.asked[r.URL.Path]
	o.mu.Unlock()
	kind, number, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	i, err := strconv.Atoi(number)
	if err != nil || i >= len(origins) {
		return
	}
	if kind == "warm" && n == 1 {
		fmt.Fprint(conn, answerOf("ETag: \"1\"\r\nContent-Length: "+strconv.Itoa(len(feed))+"\r\n", feed))
		return
	}
	_, _ = conn.Write([]byte(origins[i].raw)) // whoever has left misses nothing
	if strings.HasSuffix(origins[i].name, "hangs") {
		time.Sleep(5 * time.Second)
	}
}

func (o *hostileOrigin) requests(path string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[path]
}

// Whatever an origin sends, readers of a feed that was good go on getting it, others
// get an error that quotes nothing, and the origin gets one request for each poll.
func TestHostileOrigins(t *testing.T) {
	o := newHostileOrigin(t)
	c := start(t, setup{app: quick, site: gatewayByURL})
	at := func(kind string, i int) string { return fmt.Sprintf("http://%s/%s/%d", o.Addr(), kind, i) }
	before := c.descriptors()
	var all sync.WaitGroup
	for i, attack := range origins {
		all.Go(func() {
			cold := c.get(feedAt(at("cold", i)))
			if cold.Status < 400 || strings.Contains(cold.Body, "hunter2") || strings.Contains(cold.Body, "<") {
				t.Errorf("%s, cold: %v", attack.name, cold)
			}
			if n := o.requests(fmt.Sprintf("/cold/%d", i)); n != 1 {
				t.Errorf("%s, cold: %d requests at the origin", attack.name, n)
			}
			if first := c.get(feedAt(at("warm", i))); first.Status != 200 {
				t.Errorf("%s, before the attack: %v", attack.name, first)
				return
			}
			for range 30 { // until it has been polled again
				if a := c.get(feedAt(at("warm", i))); a.Status != 200 || a.Body != feed {
					t.Errorf("%s, warm: %v", attack.name, a)
				}
				if o.requests(fmt.Sprintf("/warm/%d", i)) > 1 {
					return
				}
				time.Sleep(200 * time.Millisecond)
			}
			t.Errorf("%s, warm: it was not polled again", attack.name)
		})
	}
	all.Wait()
	if peak := c.peak(); peak > memorySetting+memoryBeside {
		t.Errorf("the process took %d MiB", peak)
	}
	c.settle(80, before+20)
	t.Logf("%d origins, cold and warm; peak %d MiB", len(origins), c.peak())
}
