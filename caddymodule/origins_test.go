// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
)

// sites are three sites with one block of handlers: bare, as the origin of a shield,
// and as that of a shield which is a plain cache.
type sites struct {
	bare, feeds, plain string // their addresses
}

// serveSites runs a Caddy with the three sites until the end of the test. All are the
// host blog.test.
func serveSites(t *testing.T, block string) sites {
	t.Helper()
	s := sites{loopback.FreeAddress(t), loopback.FreeAddress(t), loopback.FreeAddress(t)}
	site := func(address, format string) string {
		return fmt.Sprintf("http://:%s {\n\tbind 127.0.0.1\n"+format+"\n}\n", address[strings.LastIndexByte(address, ':')+1:], block)
	}
	err := stage.LoadCaddyfile(fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	log {
		output discard
	}
	servers {
		protocols h1 h2c
	}
	pollard {
		store bolt %s
	}
}
`, storeDirectory(t)) + site(s.bare, "%s") +
		site(s.feeds, "feed_shield {\nname feeds\nhost blog.test\nmin_interval 1h\norigin {\n%s\n}\n}") +
		site(s.plain, "feed_shield {\nname plain\nhost blog.test\nrfc9111\norigin {\n%s\n}\n}"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// exchange is a request as it goes over the network, but for the fields that all of
// them have.
type exchange struct {
	request string // the request line without the version, and header lines
	body    string
	// program says that a program answers: whether the server has all of its answer when
	// it sends the header, and so tells its length, is chance.
	program bool
}

// mayBeShared reports whether a plain cache may answer with what it has got for another
// request, or for nobody in particular.
func (e exchange) mayBeShared() bool {
	return strings.HasPrefix(e.request, "GET ") || strings.HasPrefix(e.request, "HEAD ")
}

// compare makes each request at all three sites, twice at those with a shield, and
// fails where an answer is not what it is without a shield, byte for byte. One that a
// plain cache may share says the same.
func (s sites) compare(t *testing.T, exchanges []exchange) {
	t.Helper()
	for _, e := range exchanges {
		want := e.at(t, s.bare)
		if strings.HasPrefix(want.head, "HTTP/1.1 5") {
			t.Fatalf("%s: without a shield: %s", e.request, want)
		}
		for range 2 {
			if got := e.at(t, s.feeds); got != want {
				t.Errorf("%s: got\n%s\nwithout a shield\n%s", e.request, got, want)
			}
			got := e.at(t, s.plain)
			if want := want; e.mayBeShared() {
				if strings.Contains(e.request, "If-Match") {
					continue // RFC 9110 section 13.1.1: it is not for caches
				}
				if got, want = got.essence(), want.essence(); got != want {
					t.Errorf("plain cache: %s: got\n%s\nwithout a shield\n%s", e.request, got, want)
				}
			} else if got != want {
				t.Errorf("plain cache: %s: got\n%s\nwithout a shield\n%s", e.request, got, want)
			}
		}
	}
}

// answer is what a site answers. What differs from answer to answer is left out.
type answer struct {
	head     string // status line and header fields as they came
	body     string
	trailers string
}

func (a answer) String() string {
	return fmt.Sprintf("%s\n\n%.600s (%d bytes, %x)\n%s", a.head, a.body, len(a.body), crc32.ChecksumIEEE([]byte(a.body)), a.trailers)
}

// essence is what a plain cache must not change. Nobody in particular has the address 0.0.0.0.
func (a answer) essence() answer {
	var kept []string
	for i, line := range strings.Split(a.head, "\n") {
		name, _, _ := strings.Cut(line, ":")
		if i == 0 || slices.Contains([]string{"Content-Type", "Content-Encoding", "Content-Range", "Location", "Set-Cookie", "Www-Authenticate"}, name) {
			kept = append(kept, line)
		}
	}
	a.head, a.body = strings.Join(kept, "\n"), strings.ReplaceAll(a.body, "0.0.0.0", "127.0.0.1")
	return a
}

// at makes the request at a site.
func (e exchange) at(t *testing.T, address string) answer {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	line, fields, _ := strings.Cut(e.request, "\n")
	if fields != "" {
		fields = strings.ReplaceAll(fields, "\n", "\r\n") + "\r\n"
	}
	if e.body != "" && !strings.Contains(fields, "Transfer-Encoding") {
		fields += fmt.Sprintf("Content-Length: %d\r\n", len(e.body))
	}
	fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: blog.test\r\nConnection: close\r\n%s\r\n%s", line, fields, e.body)
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("%s: %v", e.request, err)
	}
	head, _, _ := bytes.Cut(all, []byte("\r\n\r\n"))
	for bytes.HasPrefix(head, []byte("HTTP/1.1 100")) {
		all = all[len(head)+4:]
		head, _, _ = bytes.Cut(all, []byte("\r\n\r\n"))
	}
	method, _, _ := strings.Cut(line, " ")
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(all)), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s: %v in %.500q", e.request, err, all)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v after %d bytes", e.request, err, len(body))
	}
	lines := slices.DeleteFunc(strings.Split(string(head), "\r\n"), func(line string) bool {
		if e.program && (strings.HasPrefix(line, "Content-Length:") || strings.HasPrefix(line, "Transfer-Encoding:")) {
			return true
		}
		return strings.HasPrefix(line, "Date:") || strings.HasPrefix(line, "Cache-Status: Pollard; fwd=method;")
	})
	a := answer{strings.Join(lines, "\n"), string(body), fmt.Sprint(resp.Trailer)}
	if boundary := multipart.FindStringSubmatch(a.head); boundary != nil {
		a.head = strings.ReplaceAll(a.head, boundary[1], "BOUNDARY")
		a.body = strings.ReplaceAll(a.body, boundary[1], "BOUNDARY")
	}
	return a
}

var multipart = regexp.MustCompile(`(?m)^Content-Type: multipart/byteranges; boundary=(\S+)$`)

// stored waits until the shield for feeds has one stored, and returns it.
func (s sites) stored(t *testing.T, path string) (body string) {
	t.Helper()
	want(t, path+" is stored", t.TempDir(), func() bool {
		resp, err := http.Get("http://" + s.feeds + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		body = string(text)
		return strings.HasPrefix(resp.Header.Get("Cache-Status"), "Pollard; hit")
	})
	return body
}
