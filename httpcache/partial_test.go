// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const digits = "0123456789"

// partial answers with a range of digits.
func partial(first, last int, lines ...string) func(*http.Request) (*http.Response, error) {
	return says(206, digits[first:last+1], append(lines, fmt.Sprintf("Content-Range: bytes %d-%d/10", first, last))...)
}

// rangeOf is the reader's field.
func rangeOf(text string) []string { return []string{"Range: bytes=" + text} }

func TestPartialContent(t *testing.T) {
	fresh := []string{"Cache-Control: max-age=60", "ETag: \"e\"", "Content-Type: text/x"}
	first := step{send: rangeOf("2-6"), origin: partial(2, 6, fresh...), shared: true, sees: rangeOf("2-6"), status: 206, body: "23456", has: []string{"Content-Range: bytes 2-6/10"}}
	scenes(t, map[string][]step{
		// RFC 9111 sections 3.3 and 3.4.
		"reused for what it has": {
			first,
			{after: time.Second, send: rangeOf("2-6"), status: 206, body: "23456", has: []string{"Content-Range: bytes 2-6/10", "Content-Length: 5", "Age: 1", "Content-Type: text/x", "Cache-Status: Pollard; hit; ttl=59"}},
			{send: rangeOf("3-4"), status: 206, body: "34", has: []string{"Content-Range: bytes 3-4/10", "Content-Length: 2"}},
			{send: rangeOf("5-"), origin: partial(5, 9, fresh...), shared: true, status: 206, body: "56789"},
		},
		"not for what it lacks": {
			first,
			{send: rangeOf("1-3"), origin: partial(1, 3, fresh...), shared: true, sees: rangeOf("1-3"), status: 206, body: "123"},
			{send: rangeOf("12-"), origin: says(416, ""), shared: true, status: 416},
		},
		"never as the whole": {
			first,
			{origin: says(200, digits), shared: true, sees: []string{"-Range"}, body: digits},
		},
		"nor to a HEAD": {first, {method: "HEAD", send: rangeOf("2-6"), origin: says(200, digits), own: true}},
		"nor when it is stale": {
			first,
			{after: time.Minute, send: rangeOf("2-6"), origin: partial(2, 6, fresh...), shared: true, status: 206, body: "23456"},
		},
		"conditions": {
			first,
			{send: append(rangeOf("3-4"), "If-None-Match: \"e\""), status: 304, has: []string{"-Content-Range"}},
			{send: append(rangeOf("3-4"), "If-Range: \"e\""), status: 206, body: "34"},
			{send: append(rangeOf("3-4"), "If-Range: \"x\""), origin: says(200, digits), shared: true, sees: []string{"If-Range: \"x\""}, body: digits},
		},
		"combined": {
			first,
			{send: rangeOf("5-8"), origin: partial(5, 8, fresh...), shared: true, status: 206, body: "5678"},
			{send: rangeOf("3-8"), status: 206, body: "345678", has: []string{"Content-Range: bytes 3-8/10"}},
			{send: rangeOf("2-6"), status: 206, body: "23456"},
			{send: rangeOf("0-0"), origin: partial(0, 0, fresh...), shared: true, status: 206, body: "0"},
			{send: rangeOf("0-0"), status: 206, body: "0"},
			{send: rangeOf("2-8"), status: 206, body: "2345678"},
			{send: rangeOf("0-2"), origin: partial(0, 2, fresh...), shared: true, status: 206, body: "012"},
			{send: rangeOf("-1"), origin: partial(9, 9, fresh...), shared: true, status: 206, body: "9"},
			{body: digits, has: []string{"Content-Length: 10", "-Content-Range"}}, // it is whole now
			{send: rangeOf("-2"), status: 206, body: "89"},
		},
		"combined, and asked for in part again": {
			first,
			{send: rangeOf("5-8"), origin: partial(5, 8, fresh...), shared: true, status: 206, body: "5678"},
			{after: time.Minute, send: rangeOf("2-3"), origin: partial(2, 3, fresh...), shared: true, status: 206, body: "23"},
			{send: rangeOf("2-3"), status: 206, body: "23"},
			{send: rangeOf("2-8"), status: 206, body: "2345678"},
		},
		// RFC 9110 section 15.3.7.3.
		"not combined with another version": {
			first,
			{send: rangeOf("7-8"), origin: partial(7, 8, "Cache-Control: max-age=60", "ETag: \"f\""), shared: true, status: 206, body: "78"},
			{send: rangeOf("2-6"), origin: partial(2, 6), shared: true, status: 206, body: "23456"},
		},
		"nor with what has no strong validator": {
			{send: rangeOf("2-6"), origin: partial(2, 6, "Cache-Control: max-age=60", "ETag: W/\"e\""), shared: true, status: 206, body: "23456"},
			{send: rangeOf("7-8"), origin: partial(7, 8, "Cache-Control: max-age=60", "ETag: W/\"e\""), shared: true, status: 206, body: "78"},
			{send: rangeOf("2-8"), origin: partial(2, 8), shared: true, status: 206, body: "2345678"},
		},
		"nor with what is not as long as it says": {
			{send: rangeOf("2-6"), origin: says(206, "2345", append(fresh, "Content-Range: bytes 2-6/10")...), shared: true, status: 206, body: "2345"},
			{send: rangeOf("2-6"), status: 206, body: "2345", has: []string{"Content-Range: bytes 2-6/10"}}, // as the origin has it
			{send: rangeOf("6-8"), origin: partial(6, 8, fresh...), shared: true, status: 206, body: "678"},
			{send: rangeOf("5-8"), origin: partial(5, 8), shared: true, status: 206, body: "5678"},
		},
		"a size that is not told": {
			{send: rangeOf("2-6"), origin: says(206, "23456", "Cache-Control: max-age=60", "Content-Range: bytes 2-6/*"), shared: true, status: 206, body: "23456"},
			{send: rangeOf("2-6"), status: 206, body: "23456", has: []string{"Content-Range: bytes 2-6/*"}},
			{send: rangeOf("2-5"), origin: partial(2, 5), shared: true, status: 206, body: "2345"},
		},
		"not of a reader's own": {
			{send: append(rangeOf("2-6"), "Cookie: a=b"), origin: partial(2, 6, fresh...), shared: true, sees: []string{"-Cookie"}, status: 206, body: "23456"},
			{send: append(rangeOf("2-6"), "Cookie: c=d"), status: 206, body: "23456"},
		},

		// A part that the rest can be asked for.
		"completed": {
			{send: rangeOf("0-3"), origin: partial(0, 3, fresh...), shared: true, status: 206, body: "0123"},
			{origin: partial(4, 9, "Cache-Control: max-age=60", "ETag: \"e\"", "X-A: 1"), shared: true, sees: []string{"Range: bytes=4-", "If-Range: \"e\""}, body: digits, has: []string{"Content-Length: 10", "-Content-Range", "Content-Type: text/x", "X-A: 1", "Cache-Status: Pollard; fwd=partial; fwd-status=200; ttl=60; stored"}},
			{body: digits, has: []string{"X-A: 1"}},
		},
		"completed, when it is stale": {
			{send: rangeOf("0-3"), origin: partial(0, 3, fresh...), shared: true, status: 206, body: "0123"},
			{after: time.Hour, origin: partial(4, 9, fresh...), shared: true, body: digits},
			{body: digits},
		},
		"changed meanwhile": {
			{send: rangeOf("0-3"), origin: partial(0, 3, fresh...), shared: true, status: 206, body: "0123"},
			{origin: says(200, "new", "Cache-Control: max-age=60"), shared: true, sees: []string{"Range: bytes=4-"}, body: "new"},
			{body: "new"},
		},
		"not completed without a strong validator": {
			{send: rangeOf("0-3"), origin: partial(0, 3, "Cache-Control: max-age=60"), shared: true, status: 206, body: "0123"},
			{origin: says(200, digits), shared: true, sees: []string{"-Range", "-If-Range"}, body: digits},
		},
	})
}

// Of a representation of which readers ask for single bytes, so many parts are kept that
// looking through them costs nothing.
func TestPartsAreBounded(t *testing.T) {
	var steps []step
	one := func(n int) step {
		at := strconv.Itoa(n)
		return step{
			send: rangeOf(at + "-" + at), shared: true, status: 206, body: "x",
			origin: says(206, "x", "Cache-Control: max-age=60", `ETag: "e"`, "Content-Range: bytes "+at+"-"+at+"/1000"),
		}
	}
	for n := range 70 {
		steps = append(steps, one(2*n))
	}
	stored := step{send: rangeOf("138-138"), status: 206, body: "x"}
	scenes(t, map[string][]step{"single bytes": append(steps, stored, one(0))})
}

// An origin that sends a rest which does not fit is asked for all.
func TestRestThatDoesNotFit(t *testing.T) {
	for name, rest := range map[string]func(*http.Request) (*http.Response, error){
		"another version":  partial(4, 9, "ETag: \"f\""),
		"another place":    partial(5, 9, "ETag: \"e\""),
		"another size":     says(206, "456789", "ETag: \"e\"", "Content-Range: bytes 4-9/11"),
		"too short":        says(206, "45", "ETag: \"e\"", "Content-Range: bytes 4-5/10"),
		"no range":         says(206, "456789", "ETag: \"e\""),
		"nothing is there": says(416, ""),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bench) {
				b.run([]step{{send: rangeOf("0-3"), origin: partial(0, 3, "Cache-Control: max-age=60", "ETag: \"e\""), shared: true, status: 206, body: "0123"}})
				b.origin(func(r *http.Request) (*http.Response, error) {
					if r.Header.Get("Range") != "" {
						return rest(r)
					}
					return says(200, "all", "Cache-Control: max-age=60")(r)
				})
				if got := text(b.serve(request("GET", "/"))); got != "all" {
					t.Errorf("got %q", got)
				}
				if n := len(b.requests()); n != 2 {
					t.Errorf("the origin was asked %d times, want 2", n)
				}
				b.run([]step{{body: "all"}})
			})
		})
	}
	t.Run("broken off", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *bench) {
			b.run([]step{{send: rangeOf("0-3"), origin: partial(0, 3, "Cache-Control: max-age=60", "ETag: \"e\""), shared: true, status: 206, body: "0123"}})
			b.origin(drips(6, &drip{pieces: []string{"45"}, err: errors.New("cut")}, "ETag: \"e\"", "Content-Range: bytes 4-9/10"))
			b.mu.Lock()
			whole := b.answer
			b.answer = func(r *http.Request) (*http.Response, error) {
				answer, err := whole(r)
				answer.StatusCode = 206
				return answer, err
			}
			b.mu.Unlock()
			if aborted := b.hear(listen(), request("GET", "/")); aborted != http.ErrAbortHandler {
				t.Errorf("the reader was not told: %v", aborted)
			}
			b.requests()
			b.run([]step{{send: rangeOf("0-3"), status: 206, body: "0123"}}) // is still there
		})
	})
}

func TestMultipleRanges(t *testing.T) {
	for name, first := range map[string]step{
		"of all":   {origin: says(200, digits, "Cache-Control: max-age=60", "ETag: \"e\"", "Content-Type: text/x"), shared: true, body: digits},
		"of parts": {send: rangeOf("0-7"), origin: partial(0, 7, "Cache-Control: max-age=60", "ETag: \"e\"", "Content-Type: text/x"), shared: true, status: 206, body: "01234567"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bench) {
				b.run([]step{first})
				answer := b.serve(request("GET", "/", rangeOf("0-1, 4-6,7-7")...))
				kind, params, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
				if err != nil || kind != "multipart/byteranges" || answer.StatusCode != 206 || len(b.requests()) > 0 {
					t.Fatalf("%d %s %v, %v", answer.StatusCode, kind, answer.Header["Cache-Status"], err)
				}
				var got []string
				for parts := multipart.NewReader(answer.Body, params["boundary"]); ; {
					p, err := parts.NextPart()
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					body, _ := io.ReadAll(p)
					got = append(got, p.Header.Get("Content-Range")+" "+p.Header.Get("Content-Type")+" "+string(body))
				}
				if want := []string{"bytes 0-1/10 text/x 01", "bytes 4-6/10 text/x 456", "bytes 7-7/10 text/x 7"}; !slices.Equal(got, want) {
					t.Errorf("got %q", got)
				}
			})
		})
	}
}

func TestContentRange(t *testing.T) {
	for text, want := range map[string]bool{
		"bytes 0-0/1": true, "bytes 2-6/10": true, "bytes 2-6/*": true,
		"": false, "bytes 6-2/10": false, "bytes 2-10/10": false, "bytes */10": false, "lines 2-6/10": false, "bytes 2-6": false,
		"bytes -6/10": false, "bytes +2-6/10": false, "bytes 2-6/9999999999999999999": false, "bytes 2-6/-1": false,
	} {
		if _, _, _, ok := contentRange(http.Header{"Content-Range": {text}}); ok != want {
			t.Errorf("%q: %t", text, ok)
		}
	}
	if _, _, _, ok := contentRange(http.Header{"Content-Range": {"bytes 0-0/1", "bytes 0-0/2"}}); ok {
		t.Error("two fields are one")
	}
}

// FuzzRanges checks that what a part is said to cover is answered as the whole would be.
func FuzzRanges(f *testing.F) {
	for _, seed := range []string{"bytes=0-0", "bytes=-5", "bytes=3-", "bytes=2-4,6-7", "bytes=0-5, 1-6", "bytes=,", "bytes=-0", "bytes=5-2", "bytes=0-99999999999999999999", "bytes= 2-3"} {
		f.Add(seed, 1, 8)
	}
	f.Fuzz(func(t *testing.T, field string, first, length int) {
		first = max(0, first) % 10
		length = min(max(1, length), 10-first)
		e := &entry{status: 206, header: http.Header{}, part: &part{size: 10, spans: []span{{int64(first), []byte(digits[first : first+length])}}}}
		r := &http.Request{Method: "GET", Header: http.Header{"Range": {field}}}
		if !e.covers(r) {
			return
		}
		answer := func(content io.ReadSeeker) string {
			w := httptest.NewRecorder()
			http.ServeContent(w, r, "", time.Time{}, content)
			boundary := ""
			if _, params, err := mime.ParseMediaType(w.Header().Get("Content-Type")); err == nil {
				boundary = params["boundary"]
			}
			text := fmt.Sprint(w.Code, w.Header()["Content-Range"], w.Body.String())
			if boundary != "" {
				text = strings.ReplaceAll(text, boundary, "")
			}
			return text
		}
		got, want := answer(&sparse{part: e.part}), answer(strings.NewReader(digits))
		if !strings.HasPrefix(got, "206") || got != want {
			t.Errorf("%q of %d+%d: got %q, want %q", field, first, length, got, want)
		}
	})
}
