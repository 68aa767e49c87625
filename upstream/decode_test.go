// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/zstd"

	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/policy"
)

var encoded = origintest.Encode

func TestDecoding(t *testing.T) {
	long := feedBody + strings.Repeat("<!-- something to compress -->", 5000)
	noise := feedBody + "<!--" + string(noise(300_000)) + "-->"
	plain := encoded(long, "gzip")
	for _, tt := range []struct {
		name, label, body string
		want              string // decoded; "": a failure
		failure           policy.Failure
	}{
		{"identity", "", long, long, ""},
		{"identity, named", "identity", long, long, ""},
		{"empty label", " , ,", long, long, ""},
		{"gzip", "gzip", plain, long, ""},
		{"x-gzip in capitals", "X-GZIP", plain, long, ""},
		{"br", "br", encoded(long, "br"), long, ""},
		{"zstd", "zstd", encoded(long, "zstd"), long, ""},
		{"deflate with zlib", "deflate", encoded(long, "zlib"), long, ""},
		{"deflate without", "deflate", encoded(long, "flate"), long, ""},
		{"incompressible", "gzip", encoded(noise, "gzip"), noise, ""},
		{"two codings", "gzip, br", encoded(long, "gzip", "br"), long, ""},
		{"three codings", "zstd,gzip,br", encoded(long, "zstd", "gzip", "br"), long, ""},
		{"codings with identity between", "gzip, identity, br", encoded(long, "gzip", "br"), long, ""},
		{"four codings", "gzip,gzip,gzip,gzip", encoded(long, "gzip", "gzip", "gzip", "gzip"), "", policy.FailureProtocol},
		{"wrong order", "br, gzip", encoded(long, "gzip", "br"), "", policy.FailureProtocol},
		{"gzip twice, named once", "gzip", encoded(long, "gzip", "gzip"), long, ""},
		{"gzip not named", "", plain, long, ""},
		{"gzip twice, not named", "", encoded(long, "gzip", "gzip"), long, ""},
		{"gzip twice, named twice", "gzip, x-gzip", encoded(long, "gzip", "gzip"), long, ""},
		{"two codings in two fields", "gzip\r\nContent-Encoding: br", encoded(long, "gzip", "br"), long, ""},
		{"gzip once, named twice", "gzip, gzip", plain, long, ""},
		{"gzip, named utf-8", "utf-8", plain, long, ""},
		{"gzip, named none", "none", plain, long, ""},
		{"gzip within br, named br", "br", encoded(long, "gzip", "br"), long, ""},
		{"gzip with several members", "gzip", plain + encoded("<!-- more -->", "gzip"), long + "<!-- more -->", ""},
		{"gzip with padding", "gzip", plain + "\x00\x00\x00garbage", long, ""},
		{"gzip with a line of a script behind it", "gzip", plain + "<!-- 0.1 s -->\n", long, ""},
		{"gzip not named, with junk behind it", "", plain + "\r\n\r\n", long, ""},
		{"zstd with several frames", "zstd", encoded(long, "zstd") + encoded("<!-- more -->", "zstd"), long + "<!-- more -->", ""},
		{"named gzip, but plain", "gzip", long, long, ""},
		{"named gzip, but plain with a mark and blanks", "gzip", "\xef\xbb\xbf\r\n " + long, "\xef\xbb\xbf\r\n " + long, ""},
		{"named gzip, but UTF-16", "gzip", "\xff\xfe<\x00r\x00", "\xff\xfe<\x00r\x00", ""},
		{"named gzip, but JSON", "gzip", `{"version":"https://jsonfeed.org/version/1.1"}`, `{"version":"https://jsonfeed.org/version/1.1"}`, ""},
		{"named zstd, but plain", "zstd", long, long, ""},
		{"named gzip, but something else", "gzip", "\x89PNG\r\n\x1a\n" + long, "", policy.FailureProtocol},
		{"named zstd, but gzip", "zstd", plain, "", policy.FailureProtocol},
		{"named br, but plain", "br", long, "", policy.FailureProtocol},
		{"unknown", "compress", "\x1f\x9d\x90" + long, "", policy.FailureProtocol},
		{"unknown, over br", "br, compress", encoded(long, "br"), "", policy.FailureProtocol},
		{"a label that means nothing", "UTF-8", long, long, ""},
		{"none", "none", "\xef\xbb\xbf" + long, "\xef\xbb\xbf" + long, ""},
		{"aws-chunked", "aws-chunked", long, long, ""},
		{"aws-chunked, over gzip", "gzip, aws-chunked", plain, long, ""},
		{"no token", "gz\"ip", plain, long, ""},
		{"gzip with a wrong checksum", "gzip", plain[:len(plain)-8] + "\x00\x00\x00\x00" + plain[len(plain)-4:], "", policy.FailureProtocol},
		{"gzip with a flipped bit", "gzip", plain[:40] + string(plain[40]^0xff) + plain[41:], "", policy.FailureProtocol},
		{"gzip broken off", "gzip", plain[:len(plain)/2], "part", policy.FailureTruncated},
		{"gzip without its checksum", "gzip", plain[:len(plain)-8], long, policy.FailureTruncated},
		{"gzip without its last byte", "gzip", plain[:len(plain)-1], long, policy.FailureTruncated},
		{"gzip broken off in its header", "gzip", plain[:5], "", policy.FailureTruncated},
		{"br broken off", "br", cut(encoded(long, "br")), "part", policy.FailureTruncated},
		{"zstd broken off", "zstd", cut(encoded(long, "zstd")), "", policy.FailureTruncated},
		{"deflate broken off", "deflate", cut(encoded(long, "zlib")), "part", policy.FailureTruncated},
		{"second member broken off", "gzip", plain + cut(plain), "part", policy.FailureTruncated},
		{"empty", "", "", "", policy.FailureNotFeed},
		{"empty, named gzip", "gzip", "", "", policy.FailureNotFeed},
		{"empty, named br", "br", "", "", policy.FailureNotFeed},
		{"nothing in gzip", "gzip", encoded("", "gzip"), "", policy.FailureNotFeed},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var n memnet
			n.say("example.com:80", ok(tt.body, "Content-Encoding: "+tt.label))
			a := n.client(t, Settings{}).Poll(t.Context(), ask("http://example.com/"))
			whole := string(a.Body) == tt.want || tt.want == "part" && strings.HasPrefix(long+long, string(a.Body))
			if a.Failure != tt.failure || !whole {
				t.Errorf("failure %q (%v), %d bytes; want %q, %d bytes", a.Failure, a.Err, len(a.Body), tt.failure, len(tt.want))
			}
			if a.Failure == "" && a.Wire != int64(len(tt.body)) {
				t.Errorf("wire = %d, want %d", a.Wire, len(tt.body))
			}
			if a.Failure != "" && strings.Contains(a.Err.Error(), "\n") {
				t.Errorf("error of several lines: %q", a.Err)
			}
		})
	}
}

func cut(s string) string { return s[:len(s)/2] }

// noise is text that no coding makes shorter by much.
func noise(n int) []byte {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = 'a' + byte(x>>24)%26
	}
	return b
}

func TestSizeCap(t *testing.T) {
	const limit = 100_000
	exact := strings.Repeat("<", limit)
	bomb := strings.Repeat("\x00", 10<<20)
	empties := strings.Repeat(encoded("", "gzip"), 20_000) // much work for no output
	for _, tt := range []struct {
		name, label, body string
		failure           policy.Failure
	}{
		{"exactly", "", exact, ""},
		{"exactly, gzip", "gzip", encoded(exact, "gzip"), ""},
		{"one more", "", exact + "<", policy.FailureOversize},
		{"one more, gzip", "gzip", encoded(exact+"<", "gzip"), policy.FailureOversize},
		{"one more, br", "br", encoded(exact+"<", "br"), policy.FailureOversize},
		{"one more, zstd", "zstd", encoded(exact+"<", "zstd"), policy.FailureOversize},
		{"gzip bomb", "gzip", encoded(bomb, "gzip"), policy.FailureOversize},
		{"br bomb", "br", encoded(bomb, "br"), policy.FailureOversize},
		{"zstd bomb", "zstd", encoded(bomb, "zstd"), policy.FailureOversize},
		{"bomb in a bomb", "gzip, gzip", encoded(bomb, "gzip", "gzip"), policy.FailureOversize},
		{"bomb in a bomb, not named", "", encoded(bomb, "gzip", "gzip"), policy.FailureOversize},
		{"bomb of nothing", "gzip, gzip", encoded(empties, "gzip"), policy.FailureOversize},
		{"more on the wire than decoded", "gzip", encoded(feedBody, "gzip") + strings.Repeat("\x00", 2*limit), policy.FailureOversize},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			for _, chunked := range []bool{false, true} {
				var n memnet
				var written atomic.Int64
				n.serve("example.com:80", func(_ request, w io.Writer) {
					if !chunked {
						io.WriteString(w, ok(tt.body, "Content-Encoding: "+tt.label))
						return
					}
					io.WriteString(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: "+tt.label+"\r\n\r\n")
					for part := range slices.Chunk([]byte(tt.body), 1000) {
						if _, err := fmt.Fprintf(w, "%x\r\n%s\r\n", len(part), part); err != nil {
							return
						}
						written.Add(int64(len(part)))
					}
					io.WriteString(w, "0\r\n\r\n")
				})
				q := ask("http://example.com/")
				q.MaxBody = limit
				a := n.client(t, Settings{}).Poll(t.Context(), q)
				if a.Failure != tt.failure {
					t.Errorf("chunked %v: failure %q (%v), want %q", chunked, a.Failure, a.Err, tt.failure)
				}
				if a.Failure != "" && (a.Body != nil || a.Wire > 2*limit || written.Load() > 2*limit) {
					t.Errorf("chunked %v: read %d of %d bytes, body %d", chunked, a.Wire, written.Load(), len(a.Body))
				}
			}
		})
	}
}

// wideZstd encodes a text with a window of so many bytes. The frame does not say how short the text is.
func wideZstd(t *testing.T, text string, window int) string {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for part := range slices.Chunk([]byte(text), 8<<10) {
		w.Write(part)
		w.Flush()
	}
	w.Close()
	return b.String()
}

// A zstd frame may ask for any amount of memory; more than RFC 9659 allows is refused.
func TestZstdWindowIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.say("example.com:80", ok(wideZstd(t, strings.Repeat(feedBody, 20), 2*maxWindow), "Content-Encoding: zstd"))
		if a := n.client(t, Settings{}).Poll(t.Context(), ask("http://example.com/")); a.Failure != policy.FailureProtocol {
			t.Errorf("failure %q: %v", a.Failure, a.Err)
		}
	})
}

func FuzzContentEncoding(f *testing.F) {
	for _, label := range []string{"", "gzip", "gzip, br", " x-gzip ,,identity", "gzip,gzip,gzip,gzip", "GZIP\t,\tzstd", "a\"b,", "deflate;q=1"} {
		f.Add(label, []byte(encoded(feedBody, "gzip")))
	}
	f.Add("br", []byte(encoded(feedBody, "br")))
	f.Add("zstd", []byte(encoded(feedBody, "zstd")))
	f.Add("deflate", []byte(encoded(feedBody, "flate")))
	f.Fuzz(func(t *testing.T, label string, body []byte) {
		const limit = 64 << 10
		resp := &http.Response{
			Header: http.Header{"Content-Encoding": {label}}, ContentLength: -1,
			Body: io.NopCloser(bytes.NewReader(body)),
		}
		got, count, failure, err := New().readBody(resp, limit, func(int64) error { return nil })
		if (err == nil) != (failure == "") || (err == nil) != (len(got) > 0) {
			t.Errorf("body of %d, failure %q, error %v", len(got), failure, err)
		}
		if int64(len(got)) > limit || count > int64(len(body)) {
			t.Errorf("%d bytes from %d of %d", len(got), count, len(body))
		}
	})
}

// However many polls wait for room for a large body, or for the rest of a body, each holds little more
// than what it has received. Decoders of brotli and zstd take megabytes after the first bytes.
func TestWaitingPollsHoldLittle(t *testing.T) {
	const polls = 8
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	text := strings.Repeat("a", 4*policy.SmallBody)
	for coding, packed := range map[string]string{"": text, "gzip": encoded(text, "gzip"), "br": encoded(text, "br"), "zstd": wideZstd(t, text, maxWindow)} {
		for waitsFor, arrived := range map[string]int{"room": len(packed), "the rest": min(len(packed), policy.SmallBody) / 2} {
			t.Run(waitsFor+" "+coding, func(t *testing.T) {
				c := New()
				defer c.Close()
				var waiting, ended sync.WaitGroup
				goOn := make(chan struct{})
				wait := func() { waiting.Done(); <-goOn }
				waiting.Add(polls)
				before := heap()
				for range polls {
					ended.Go(func() {
						body, room := io.Reader(strings.NewReader(packed)), func(int64) error { wait(); return nil }
						if arrived < len(packed) {
							body = io.MultiReader(strings.NewReader(packed[:arrived]), readerFunc(func([]byte) (int, error) { wait(); return 0, io.EOF }), strings.NewReader(packed[arrived:]))
							room = func(int64) error { return nil }
						}
						resp := &http.Response{Header: http.Header{"Content-Encoding": {coding}}, ContentLength: -1, Body: io.NopCloser(body)}
						got, _, _, err := c.readBody(resp, 8*policy.SmallBody, room)
						if err != nil || len(got) != len(text) {
							t.Errorf("a body of %d bytes: %v", len(got), err)
						}
					})
				}
				waiting.Wait()
				if each, most := (heap()-before)/polls, int64(min(arrived, policy.SmallBody)*3/2+32<<10); each > most {
					t.Errorf("each poll holds %d KiB of %d that have arrived", each>>10, arrived>>10)
				}
				close(goOn)
				ended.Wait()
			})
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
