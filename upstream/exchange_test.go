// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// An HTTP/2 server refuses the stream, which net/http takes as leave to try again.
func TestRefusedStreamIsNotRepeated(t *testing.T) {
	certified := httptest.NewUnstartedServer(nil)
	certified.EnableHTTP2 = true
	certified.StartTLS()
	defer certified.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var streams, connections atomic.Int32
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go refuseStreams(conn, &streams)
		}
	}()
	c := New(WithTLS(certified.Client().Transport.(*http.Transport).TLSClientConfig.Clone()))
	defer c.Close()
	c.Apply(Settings{Private: loopback})
	a := c.Poll(t.Context(), ask("https://"+l.Addr().String()+"/"))
	if a.Failure != policy.FailureProtocol || a.Status != 0 {
		t.Errorf("failure %q, status %d (%v)", a.Failure, a.Status, a.Err)
	}
	if streams.Load() != 1 || connections.Load() != 1 {
		t.Errorf("%d requests on %d connections, want one", streams.Load(), connections.Load())
	}
}

func refuseStreams(conn net.Conn, streams *atomic.Int32) {
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	framer := http2.NewFramer(conn, conn)
	framer.WriteSettings()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		if headers, ok := frame.(*http2.HeadersFrame); ok {
			streams.Add(1)
			framer.WriteRSTStream(headers.StreamID, http2.ErrCodeRefusedStream)
		}
	}
}

// A poll that is late by the time its connection stands is not sent.
func TestStartByHoldsForTheRequestItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.say("example.com:80", ok(feedBody))
		c := New(WithDial(func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(10 * time.Second)
			return n.dial(ctx, network, address)
		}))
		defer c.Close()
		a := ask("http://example.com/")
		a.StartBy = time.Now().Add(9 * time.Second)
		if got := c.Poll(t.Context(), a); got.Failure != policy.FailureNotStarted || !got.Asked.IsZero() {
			t.Errorf("late: failure %q, asked %v", got.Failure, got.Asked)
		}
		if got := len(n.requests()); got != 0 {
			t.Errorf("late: %d requests", got)
		}
		a.StartBy = time.Now().Add(11 * time.Second)
		if got := c.Poll(t.Context(), a); got.Failure != "" {
			t.Errorf("in time: %v", got.Err)
		}
	})
}

func TestTimeout(t *testing.T) {
	drip := func(_ request, w io.Writer) {
		io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
		for {
			if _, err := io.WriteString(w, "x"); err != nil {
				return
			}
			time.Sleep(time.Second)
		}
	}
	for _, tt := range []struct {
		name   string
		answer func(request, io.Writer)
	}{
		{"silence", func(request, io.Writer) { time.Sleep(time.Hour) }},
		{"body dripping", drip},
		{"over redirects", func(r request, w io.Writer) {
			time.Sleep(20 * time.Second)
			io.WriteString(w, answerText(302, "", "Location: "+r.path()+"x"))
		}},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var n memnet
			n.serve("example.com:80", tt.answer)
			c := n.client(t, Settings{Hosts: unpaced})
			started := time.Now()
			a := c.Poll(t.Context(), ask("http://example.com/"))
			if took := time.Since(started); a.Failure != policy.FailureTimeout || took != 30*time.Second || a.At.Sub(started) != took {
				t.Errorf("failure %q (%v) after %v, want a timeout after 30s", a.Failure, a.Err, took)
			}
			if a.Body != nil {
				t.Error("there is a body")
			}
			time.Sleep(2 * time.Hour)
		})
	}
}

func TestTimeoutOfHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.say("example.com:443", "") // waits for the end of a header, which no TLS client sends
		started := time.Now()
		a := n.client(t, Settings{}).Poll(t.Context(), ask("https://example.com/"))
		if took := time.Since(started); a.Failure != policy.FailureTimeout || took != 30*time.Second || !a.Asked.Equal(started) {
			t.Errorf("failure %q (%v) after %v", a.Failure, a.Err, took)
		}
	})
}

// The time that a poll waits for slots is not counted.
func TestTimeoutExcludesSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.serve("example.com:80", func(r request, w io.Writer) {
			time.Sleep(20 * time.Second)
			if r.path() == "/" {
				io.WriteString(w, answerText(302, "", "Location: /b"))
				return
			}
			io.WriteString(w, ok(feedBody))
		})
		a := ask("http://example.com/")
		a.Timeout = 41 * time.Second
		c := n.client(t, Settings{Hosts: []HostRule{{Pattern: "*", Spacing: time.Minute}}})
		c.Poll(t.Context(), ask("http://example.com/0"))
		started := time.Now()
		got := c.Poll(patient(t), a)
		if took := time.Since(started); got.Failure != "" || took != 120*time.Second {
			t.Errorf("%v after %v, want success after 120 s", got.Err, took)
		}
	})
}

func TestCancelledPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.serve("example.com:80", func(request, io.Writer) { time.Sleep(time.Hour) })
		c := n.client(t, Settings{})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		a := c.Poll(ctx, ask("http://example.com/"))
		if a.Failure != policy.FailureTimeout || a.Asked.IsZero() || time.Since(a.Asked) != 5*time.Second {
			t.Errorf("failure %q (%v)", a.Failure, a.Err)
		}
		if a := c.Poll(ctx, ask("http://example.com/")); a.Failure != policy.FailureNotStarted || len(n.requests()) != 1 {
			t.Errorf("cancelled before: failure %q, %d requests", a.Failure, len(n.requests()))
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.serve("example.com:80", func(request, io.Writer) { time.Sleep(time.Minute) })
		c := New(WithDial(n.dial))
		answers := make(chan policy.Answer, 3)
		for range 3 { // one in flight, two waiting
			go func() { answers <- c.Poll(t.Context(), ask("http://example.com/")) }()
		}
		time.Sleep(3 * time.Second)
		c.Close()
		synctest.Wait()
		if len(answers) != 3 {
			t.Fatalf("%d polls ended with Close, want 3", len(answers))
		}
		failures := map[policy.Failure]int{}
		for range 3 {
			a := <-answers
			failures[a.Failure]++
			if !strings.Contains(a.Err.Error(), ErrClosed.Error()) {
				t.Errorf("error: %v", a.Err)
			}
		}
		if failures[policy.FailureNotStarted] != 2 || failures[policy.FailureTimeout] != 1 {
			t.Errorf("failures: %v", failures)
		}
		if a := c.Poll(t.Context(), ask("http://example.com/")); a.Failure != policy.FailureNotStarted || !errors.Is(a.Err, ErrClosed) {
			t.Errorf("after Close: %q, %v", a.Failure, a.Err)
		}
		time.Sleep(time.Hour)
		if got := len(n.requests()); got != 1 {
			t.Errorf("%d requests, want 1", got)
		}
	})
}

type rounds func(*http.Request) (*http.Response, error)

func (f rounds) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A transport that does not watch Content-Length does not get a cut body accepted as a whole one.
func TestTransportThatCutsBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(WithTransport(rounds(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: 100, Body: io.NopCloser(strings.NewReader(feedBody))}, nil
		})))
		defer c.Close()
		if a := c.Poll(t.Context(), ask("http://example.com/")); a.Failure != policy.FailureTruncated || string(a.Body) != feedBody {
			t.Errorf("failure %q: %v", a.Failure, a.Err)
		}
	})
}

// Without pacing, neither other polls of a host nor their answers hold one back.
func TestWithoutPacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := New(WithoutPacing(), WithTransport(rounds(func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"3600"}}, Body: http.NoBody}, nil
		})))
		defer c.Close()
		var polls sync.WaitGroup
		for i := range 50 {
			polls.Go(func() {
				a := c.Poll(t.Context(), ask(fmt.Sprintf("https://example.com/%d", i)))
				if a.Failure != policy.FailureRateLimited || !a.NotBefore.IsZero() || a.Header.Get("Retry-After") == "" {
					t.Errorf("failure %q, not before %v", a.Failure, a.NotBefore)
				}
			})
		}
		polls.Wait()
		if took := time.Since(began); took != time.Second {
			t.Errorf("fifty polls took %v", took)
		}
	})
}

type panicking struct{ io.Reader }

func (panicking) Read([]byte) (int, error) { panic("reading") }
func (panicking) Close() error             { return nil }

// Whatever panics in a poll, it ends as a failure, and the host can be asked again.
func TestPanicIsAFailure(t *testing.T) {
	for name, answer := range map[string]rounds{
		"round tripper": func(*http.Request) (*http.Response, error) { panic("/etc/secret") },
		"body": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: -1, Body: panicking{}}, nil
		},
	} {
		bubble(t, name, func(t *testing.T) {
			c := New(WithTransport(answer))
			defer c.Close()
			a := ask("http://u:hunter2@example.com/a")
			for range 2 {
				got := c.Poll(t.Context(), a)
				if got.Failure != policy.FailureInternal || got.Body != nil || got.Asked.IsZero() || got.At.IsZero() {
					t.Errorf("answer = %+v", got)
				}
				if got.Err.Error() != "example.com: the gateway failed at the answer; its log says more" {
					t.Errorf("error: %v", got.Err)
				}
				if !strings.Contains(got.Detail, "panic: ") || !strings.Contains(got.Detail, "exchange_test.go") || strings.ContainsAny(got.Detail, "\n\r") || strings.Contains(got.Detail, "hunter2") {
					t.Errorf("detail: %s", got.Detail)
				}
			}
			if c.Acquire(feedurl.MustParse("http://example.com/")) == nil {
				t.Error("the place is not given back")
			}
		})
	}
}

// A handshake is resumed where the server lets it: every poll has a connection of its own.
func TestTLSSessionsAreResumed(t *testing.T) {
	resumed := make(chan bool, 3)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resumed <- r.TLS.DidResume
		io.WriteString(w, feedBody)
	}))
	defer s.Close()
	given := s.Client().Transport.(*http.Transport).TLSClientConfig
	c := New(WithTLS(given))
	defer c.Close()
	c.Apply(Settings{Private: loopback, Hosts: unpaced})
	for i := range 3 {
		if a := c.Poll(t.Context(), ask(s.URL)); a.Failure != "" {
			t.Fatal(a.Err)
		}
		if got := <-resumed; got != (i > 0) {
			t.Errorf("poll %d: resumed %v", i, got)
		}
	}
	if given.ClientSessionCache != nil {
		t.Error("the configuration that was given has been changed")
	}
}
