// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// drip is an origin's body that comes in pieces, a second apart, and may break off.
type drip struct {
	pieces []string
	err    error // at the end; nil: io.EOF
	late   bool  // the end comes another second after the last piece
	ctx    context.Context
	closed bool
}

func (d *drip) Read(p []byte) (int, error) {
	if len(d.pieces) == 0 {
		if d.late {
			time.Sleep(time.Second)
		}
		if d.err != nil {
			return 0, d.err
		}
		return 0, io.EOF
	}
	select {
	case <-time.After(time.Second):
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
	n := copy(p, d.pieces[0])
	if d.pieces[0] = d.pieces[0][n:]; d.pieces[0] == "" {
		d.pieces = d.pieces[1:]
	}
	return n, nil
}

func (d *drip) Close() error { d.closed = true; return nil }

// drips makes an origin of a body in pieces. Length -1 is a length not told.
func drips(length int64, d *drip, lines ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		d.ctx = r.Context()
		header := headerOf(lines...)
		if length >= 0 {
			header.Set("Content-Length", strconv.FormatInt(length, 10))
		}
		return &http.Response{StatusCode: 200, Header: header, ContentLength: length, Body: d}, nil
	}
}

// listener is a reader who notes when bytes have reached him.
type listener struct {
	*httptest.ResponseRecorder
	start   time.Time
	flushed []string // "<seconds>:<body so far>"
}

func listen() *listener {
	return &listener{ResponseRecorder: httptest.NewRecorder(), start: time.Now()}
}

func (l *listener) Flush() {
	l.flushed = append(l.flushed, fmt.Sprintf("%.0f:%s", time.Since(l.start).Seconds(), l.Body))
}

// hear sends a request for a listener, and returns what net/http would recover.
func (b *bench) hear(l *listener, r *http.Request) (aborted any) {
	defer func() { aborted = recover() }()
	if err := b.send(l, r); err != nil {
		b.t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
	return nil
}

func TestStreaming(t *testing.T) {
	for name, c := range map[string]struct {
		length int64
		lines  []string
		stored bool
	}{
		"stored":                    {3, []string{"Cache-Control: max-age=60"}, true},
		"stored, of unknown length": {-1, []string{"Cache-Control: max-age=60"}, true},
		"not stored":                {3, []string{"Cache-Control: no-store"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bench) {
				b.origin(drips(c.length, &drip{pieces: []string{"a", "b", "c"}}, c.lines...))
				l := listen()
				b.hear(l, request("GET", "/"))
				if l.Body.String() != "abc" || time.Since(l.start) != 3*time.Second {
					t.Errorf("got %q after %v", l.Body, time.Since(l.start))
				}
				if got := strings.Join(l.flushed, " "); !strings.HasPrefix(got, "1:a 2:ab") {
					t.Errorf("bytes came late: %q", got)
				}
				b.requests()
				b.run([]step{{origin: says(200, "new"), asked: !c.stored, body: map[bool]string{true: "abc", false: "new"}[c.stored]}})
			})
		})
	}
}

// TestJoiningAStream has a second reader come in the middle of a body.
func TestJoiningAStream(t *testing.T) {
	for name, length := range map[string]int64{"of known length": 3, "of unknown length": -1} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bench) {
				b.origin(drips(length, &drip{pieces: []string{"a", "b", "c"}}, "Cache-Control: max-age=60", "Set-Cookie: a=b"))
				first, second := listen(), listen()
				go b.hear(first, request("GET", "/"))
				time.Sleep(1500 * time.Millisecond)
				b.hear(second, request("GET", "/"))
				time.Sleep(time.Second)
				synctest.Wait()
				for _, l := range []*listener{first, second} {
					if l.Body.String() != "abc" {
						t.Errorf("got %q", l.Body)
					}
				}
				if len(b.requests()) != 1 {
					t.Error("the origin was asked twice")
				}
				if second.Header().Get("Set-Cookie") != "" || second.Header().Get("Age") == "" {
					t.Errorf("the second reader got what is the first one's: %v", second.Header())
				}
			})
		})
	}
}

// TestStoredBeforeTheLastByte checks that who has an answer whole can ask again at once.
func TestStoredBeforeTheLastByte(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.origin(drips(3, &drip{pieces: []string{"a", "b", "c"}, late: true}, "ETag: \"e\""))
		l := &eager{listener: listen()}
		l.whole = func() {
			b.requests()
			b.run([]step{{origin: says(304, ""), asked: true, sees: []string{"If-None-Match: \"e\""}, body: "abc"}})
		}
		if err := b.send(l, request("GET", "/")); err != nil {
			t.Error(err)
		}
	})
}

// eager is a reader who does something as soon as he has three bytes.
type eager struct {
	*listener
	whole func()
}

func (e *eager) Write(p []byte) (int, error) {
	n, err := e.listener.Write(p)
	if e.Body.Len() == 3 {
		e.whole()
	}
	return n, err
}

func TestTruncatedBodies(t *testing.T) {
	cut := errors.New("connection reset")
	for name, c := range map[string]struct {
		length int64
		drip   *drip
	}{
		"broken off":                  {-1, &drip{pieces: []string{"a"}, err: cut}},
		"shorter than told":           {3, &drip{pieces: []string{"a"}}},
		"broken off, of known length": {3, &drip{pieces: []string{"a"}, err: cut}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bench) {
				b.origin(drips(c.length, c.drip, "Cache-Control: max-age=60"))
				if aborted := b.hear(listen(), request("GET", "/")); aborted != http.ErrAbortHandler {
					t.Errorf("the reader was not told: %v", aborted)
				}
				if !c.drip.closed {
					t.Error("the body was not closed")
				}
				b.requests()
				b.run([]step{{origin: says(200, "b"), asked: true, body: "b"}})
			})
		})
	}
	t.Run("before the first byte it is a failure", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *bench) {
			b.run([]step{
				{origin: says(200, "old", "Cache-Control: max-age=60"), asked: true, body: "old"},
				{after: time.Minute, origin: drips(3, &drip{err: cut}, "Cache-Control: max-age=60"), asked: true, body: "old"},
			})
		})
	})
	t.Run("not stored, and broken off", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *bench) {
			b.origin(drips(-1, &drip{pieces: []string{"a"}, err: cut}, "Cache-Control: no-store"))
			if aborted := b.hear(listen(), request("GET", "/")); aborted != http.ErrAbortHandler {
				t.Errorf("the reader was not told: %v", aborted)
			}
		})
	})
}

// TestLargeBodies checks that what is too large streams through, and is not stored.
func TestLargeBodies(t *testing.T) {
	large := strings.Repeat("x", 1000)
	for name, length := range map[string]int64{"of known length": 3000, "of unknown length": -1} {
		t.Run(name, func(t *testing.T) {
			bubbleOf(t, 20_000, func(t *testing.T, b *bench) {
				d := &drip{pieces: []string{large, large, large}}
				b.origin(drips(length, d, "Cache-Control: max-age=60"))
				l := listen()
				b.hear(l, request("GET", "/"))
				if l.Body.Len() != 3000 || !d.closed {
					t.Errorf("got %d bytes, closed: %t", l.Body.Len(), d.closed)
				}
				if len(l.flushed) == 0 || !strings.HasPrefix(l.flushed[0], "1:") {
					t.Error("the body was held back")
				}
				if v := b.cache.store.get("site " + home + "/"); v != nil && len(v.entries) > 0 {
					t.Error("the body was stored")
				}
				if n := b.cache.capturing.Load(); n != 0 {
					t.Errorf("%d bytes are reserved for nothing", n)
				}
			})
		})
	}
	t.Run("for a crowd", func(t *testing.T) {
		bubbleOf(t, 20_000, func(t *testing.T, b *bench) {
			b.origin(func(r *http.Request) (*http.Response, error) {
				return drips(-1, &drip{pieces: []string{large, large, large}}, "Cache-Control: max-age=60")(r)
			})
			if got := b.crowd(repeat(5)...); got[large+large+large] != 5 {
				t.Errorf("%d bodies came whole, want 5", got[large+large+large])
			}
		})
	})
}

// TestCapturingIsBounded has more on its way at once than the cache may hold.
func TestCapturingIsBounded(t *testing.T) {
	bubbleOf(t, 8000, func(t *testing.T, b *bench) {
		b.origin(func(r *http.Request) (*http.Response, error) {
			return drips(1000, &drip{pieces: []string{strings.Repeat("x", 999), "x"}}, "Cache-Control: max-age=60")(r)
		})
		var all []*http.Request
		for i := range 20 {
			all = append(all, request("GET", "/"+strconv.Itoa(i)))
		}
		captured := make(chan int64, 1)
		time.AfterFunc(1500*time.Millisecond, func() { captured <- b.cache.capturing.Load() })
		if got := b.crowd(all...); got[strings.Repeat("x", 1000)] != 20 {
			t.Error("not all got what they asked for")
		}
		if most := <-captured; most != 2000 || b.cache.capturing.Load() != 0 {
			t.Errorf("%d bytes were captured at once, and %d are still", most, b.cache.capturing.Load())
		}
	})
}

// TestReaderLeavesInTheBody checks that a body without its reader is fetched to the
// end where it can be stored, and dropped else.
func TestReaderLeavesInTheBody(t *testing.T) {
	for name, stored := range map[string]bool{"Cache-Control: max-age=60": true, "Cache-Control: no-store": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bench) {
				d := &drip{pieces: []string{"a", "b", "c"}}
				b.origin(drips(3, d, name))
				ctx, cancel := context.WithCancel(context.Background())
				time.AfterFunc(1500*time.Millisecond, cancel)
				if stored {
					b.hear(listen(), within(ctx, request("GET", "/")))
				} else {
					r := within(ctx, request("GET", "/"))
					_ = b.send(&hangup{listen(), ctx}, r)
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if !d.closed {
					t.Error("the body was not closed")
				}
				b.requests()
				b.run([]step{{origin: says(200, "new"), asked: !stored, body: map[bool]string{true: "abc", false: "new"}[stored]}})
			})
		})
	}
}

// hangup is a reader to whom nothing can be written after he left.
type hangup struct {
	*listener
	ctx context.Context
}

func (h *hangup) Write(p []byte) (int, error) {
	if h.ctx.Err() != nil {
		return 0, errors.New("broken pipe")
	}
	return h.listener.Write(p)
}

func TestRequestsPassThrough(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.origin(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			answer, err := says(201, r.Method+" "+string(body), "X-A: 1", "Cache-Control: max-age=60")(r)
			answer.Trailer = http.Header{"X-End": {"1"}}
			return answer, err
		})
		r := request("PUT", "/", "Content-Type: text/x", "If-Match: \"e\"")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("body")), 4
		answer := b.serve(r)
		if got := text(answer); got != "PUT body" || answer.StatusCode != 201 || answer.Header.Get("X-A") != "1" {
			t.Errorf("got %d %q %v", answer.StatusCode, got, answer.Header)
		}
		if answer.Trailer.Get("X-End") != "1" {
			t.Error("the trailer was lost")
		}
		out := b.requests()[0]
		if out.Header.Get("Content-Type") != "text/x" || out.Header.Get("If-Match") == "" || out.ContentLength != 4 || out.RequestURI != "" {
			t.Errorf("the origin got %v", out)
		}

		// A GET with a body is another question than one without.
		for _, body := range []string{"p", "q"} {
			r = request("GET", "/")
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), 1
			if got := text(b.serve(r)); got != "GET "+body {
				t.Errorf("got %q", got)
			}
		}
	})
}

// TestInterimResponses checks RFC 9110 section 15.2: 1xx are passed on, and not stored.
func TestInterimResponses(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.origin(func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			for _, status := range []int{100, 102, 103} {
				_ = trace.Got1xxResponse(status, textproto.MIMEHeader{"Link": {"<a>"}, "Connection": {"x"}})
			}
			return says(200, "a", "Cache-Control: max-age=60")(r)
		})
		for _, want := range []string{"102 <a>, 103 <a>, 200 ", "200 "} {
			w := &statuses{ResponseRecorder: httptest.NewRecorder()}
			w.Header().Set("Server", "Caddy")
			if err := b.send(w, request("GET", "/")); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(w.seen, ", "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if w.Header().Get("Server") != "Caddy" {
				t.Error("a field of the server was lost")
			}
		}
	})
}

// statuses notes every status line, with its Link.
type statuses struct {
	*httptest.ResponseRecorder
	seen []string
}

func (s *statuses) WriteHeader(status int) {
	if s.Header().Get("Connection") != "" {
		s.seen = append(s.seen, "with a Connection")
	}
	s.seen = append(s.seen, strconv.Itoa(status)+" "+s.Header().Get("Link"))
	if status >= 200 {
		s.ResponseRecorder.WriteHeader(status)
	}
}

// TestHandlersAboveMayChangeFields changes an answer's header in place, as handlers do.
func TestHandlersAboveMayChangeFields(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.run([]step{{origin: says(200, "a", "Cache-Control: max-age=60", "X-A: 1"), asked: true, body: "a"}})
		answer := b.serve(request("GET", "/"))
		answer.Header["X-A"][0] = "2"
		w := httptest.NewRecorder()
		_ = b.send(w, request("GET", "/"))
		w.Header()["X-A"][0] = "3"
		b.run([]step{{body: "a", has: []string{"X-A: 1"}}})
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(64 << 20)
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t: t, cache: c}
		b.origin(slow(time.Hour, says(200, "a")))
		ended := make(chan error)
		go func() {
			_, err := b.try(request("GET", "/"))
			ended <- err
		}()
		synctest.Wait()
		c.Close()
		c.Close()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		b.origin(says(200, "a", "Cache-Control: max-age=60"))
		for range 2 {
			if got := text(b.serve(request("GET", "/"))); got != "a" {
				t.Errorf("got %q after Close", got)
			}
		}
		b.serve(request("POST", "/"))
	})
}

func TestWholeIsNoLargerThanItNeeds(t *testing.T) {
	b := newCapture()
	for range 100 {
		b.append(bytes.Repeat([]byte("x"), 100))
	}
	if got := b.whole(); len(got) != 10_000 || cap(got) > 10_000*9/8+64 {
		t.Errorf("length %d, capacity %d", len(got), cap(got))
	}
}

// What an origin sends beyond the length that it has announced is for nobody but the
// reader who caused the fetch, and nobody takes that one's bytes away.
func TestBodyBeyondItsLength(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		pieces := []string{"hello"}
		for range 50 {
			pieces = append(pieces, " and more")
		}
		rest := strings.Repeat(" and more", 50)
		b.origin(drips(5, &drip{pieces: pieces}, "Cache-Control: max-age=60"))
		var readers sync.WaitGroup
		for i := range 5 {
			readers.Go(func() {
				time.Sleep(time.Duration(i) * 400 * time.Millisecond) // some before the first byte
				w := httptest.NewRecorder()
				defer func() {
					aborted := recover() != nil
					if got := w.Body.String(); i == 0 && (aborted || got != "hello"+rest) || i > 0 && (!aborted || got != "hello") {
						t.Errorf("reader %d got %d bytes, %.20q, aborted: %t", i, len(got), got, aborted)
					}
				}()
				if err := b.send(w, request("GET", "/")); err != nil {
					t.Errorf("reader %d: %v", i, err)
				}
			})
		}
		readers.Wait()
		if n := len(b.requests()); n != 1 {
			t.Errorf("the origin was asked %d times", n)
		}
	})
}
