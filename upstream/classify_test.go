// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/policy"
)

func TestStatuses(t *testing.T) {
	for status, want := range map[int]policy.Failure{
		200: policy.FailureNone,
		201: policy.FailureStatus, 202: policy.FailureStatus, 203: policy.FailureStatus, 204: policy.FailureStatus,
		205: policy.FailureStatus, 206: policy.FailureStatus, 226: policy.FailureStatus, 299: policy.FailureStatus,
		300: policy.FailureStatus, 304: policy.FailureUnasked, 305: policy.FailureStatus, 306: policy.FailureStatus,
		400: policy.FailureStatus, 401: policy.FailureForbidden, 402: policy.FailureForbidden, 403: policy.FailureForbidden,
		404: policy.FailureNotFound, 405: policy.FailureStatus, 406: policy.FailureStatus, 407: policy.FailureForbidden,
		408: policy.FailureStatus, 410: policy.FailureGone, 412: policy.FailureStatus, 418: policy.FailureStatus,
		429: policy.FailureRateLimited, 451: policy.FailureForbidden, 499: policy.FailureStatus,
		500: policy.FailureStatus, 502: policy.FailureStatus, 503: policy.FailureStatus, 504: policy.FailureStatus,
		520: policy.FailureStatus, 999: policy.FailureStatus, 101: policy.FailureProtocol, 0: policy.FailureProtocol,
	} {
		synctest.Test(t, func(t *testing.T) {
			var n memnet
			n.say("example.com:80", strings.Replace(answerText(status, feedBody), "HTTP/1.1 0 ", "HTTP/1.1 000 ", 1))
			a := n.client(t, Settings{}).Poll(t.Context(), ask("http://example.com/"))
			if a.Failure != want || a.Status != status {
				t.Errorf("status %d: failure %q with status %d (%v), want %q", status, a.Failure, a.Status, a.Err, want)
			}
			if (a.Body != nil) != (status == 200) || (a.Err != nil) != (status != 200) || (a.Header == nil) {
				t.Errorf("status %d: answer = %+v", status, a)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, Err: syscall.ECONNREFUSED}
	for _, tt := range []struct {
		name, answer string
		dial         error
		want         policy.Failure
		text         string
	}{
		{name: "no address", dial: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "example.com", IsNotFound: true}}, want: policy.FailureDNS,
			text: "example.com: looking up the address: no such host"},
		{name: "refused", dial: refused, want: policy.FailureConnect, text: "example.com: connecting: connection refused"},
		{name: "unreachable", dial: &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, want: policy.FailureConnect, text: "example.com: connecting: no route to host"},
		{name: "timeout of the system", dial: &net.OpError{Op: "dial", Err: syscall.ETIMEDOUT}, want: policy.FailureConnect, text: "example.com: connecting: no answer in time"},
		{name: "forbidden", dial: &net.OpError{Op: "dial", Err: &AddressError{"10.0.0.5", "a private address"}}, want: policy.FailureAddress,
			text: "example.com: its address is a private address"},
		{name: "closed at once", answer: "", want: policy.FailureConnect, text: "connection closed without an answer"},
		{name: "closed in the header", answer: "HTTP/1.1 200 OK\r\nA: b\r\n", want: policy.FailureConnect, text: "connection closed without an answer"},
		{name: "other protocol", answer: "220 smtp.example.com ESMTP\r\n", want: policy.FailureProtocol, text: "no valid HTTP answer"},
		{name: "header without end", answer: "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: "+strings.Repeat("b", 1000)+"\r\n", 200) + "\r\n", want: policy.FailureProtocol,
			text: "no valid HTTP answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n memnet
				n.say("example.com:80", tt.answer)
				c := New(WithDial(func(ctx context.Context, network, address string) (net.Conn, error) {
					if tt.dial != nil {
						return nil, tt.dial
					}
					return n.dial(ctx, network, address)
				}))
				defer c.Close()
				a := c.Poll(t.Context(), ask("http://user:hunter2@example.com/path?token=hunter2"))
				if a.Failure != tt.want || a.Status != 0 || a.Body != nil {
					t.Fatalf("failure %q, status %d (%v); want %q", a.Failure, a.Status, a.Err, tt.want)
				}
				text := a.Err.Error()
				if !strings.Contains(text, tt.text) || !strings.Contains(text, "example.com") || strings.ContainsAny(text, "\r\n") || len(text) > 300 || strings.Contains(text, "hunter2") {
					t.Errorf("error = %q, want %q in it", text, tt.text)
				}
				if tt.dial != nil && !a.Asked.IsZero() {
					t.Error("it is said to have been asked")
				}
			})
		})
	}
}

func TestTLSFailures(t *testing.T) {
	certified := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, feedBody) }))
	certified.Config.ErrorLog = log.New(io.Discard, "", 0)
	certified.StartTLS()
	defer certified.Close()
	plain := httptest.NewServer(certified.Config.Handler)
	defer plain.Close()
	trusting := WithTLS(certified.Client().Transport.(*http.Transport).TLSClientConfig.Clone())
	for _, tt := range []struct {
		name    string
		url     string
		options []Option
		want    policy.Failure
	}{
		{"unknown authority", certified.URL, nil, policy.FailureTLS},
		{"trusted", certified.URL, []Option{trusting}, policy.FailureNone},
		{"wrong name", strings.Replace(certified.URL, "127.0.0.1", "localhost", 1), []Option{trusting}, policy.FailureTLS},
		{"no TLS", strings.Replace(plain.URL, "http", "https", 1), nil, policy.FailureTLS},
		{"TLS where there should be none", strings.Replace(certified.URL, "https", "http", 1), nil, policy.FailureStatus},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := New(tt.options...)
			defer c.Close()
			c.Apply(Settings{Private: loopback})
			if a := c.Poll(t.Context(), ask(tt.url)); a.Failure != tt.want || a.Asked.IsZero() {
				t.Errorf("failure %q (%v), asked %v; want %q", a.Failure, a.Err, a.Asked, tt.want)
			}
		})
	}
}

// Readers learn which host it is and what happened. The texts of an origin, and where
// things are on this machine, are for the log.
func TestErrorsKeepSecrets(t *testing.T) {
	const secret = "hunter2"
	dialling := func(err error) func(context.Context, string, string) (net.Conn, error) {
		return func(context.Context, string, string) (net.Conn, error) { return nil, err }
	}
	for _, tt := range []struct {
		name, answer string
		dial         func(context.Context, string, string) (net.Conn, error)
		want         string
		detail       string // "": the text is all there is
	}{
		{"file", "", dialling(&fs.PathError{Op: "open", Path: "/etc/hunter2", Err: syscall.EACCES}), "example.com: connecting: permission denied", "open /etc/hunter2"},
		{"resolver", "", dialling(&net.DNSError{Err: "read udp 192.168.1.5:1->192.168.1.1:53: hunter2", Name: "example.com"}), "example.com: looking up the address: no name server answers (is this machine online?)", "192.168.1.1"},
		{"failing name server", "", dialling(&net.DNSError{Err: "server misbehaving", Server: "192.168.1.1:53", Name: "example.com"}), "example.com: looking up the address", "192.168.1.1"},
		{"unknown", "", dialling(errors.New("hunter2")), "example.com: connecting", "hunter2"},
		{"banner", "hunter2 ready\r\n", nil, "example.com: no valid HTTP answer", "malformed HTTP status code"},
		{"loop", answerText(302, "", "Location: /0123456789abcdef-hunter2/feed?token=hunter2#"), nil,
			"example.com: redirect with status 302 goes round in circles, to example.com", "http://***@example.com/***-hunter2/feed?token=***"},
		{"status", answerText(500, "hunter2"), nil, "example.com: status 500 Internal Server Error", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n memnet
				n.say("example.com:80", tt.answer)
				c := New(WithDial(n.dial))
				defer c.Close()
				if tt.dial != nil {
					c.dial = tt.dial
				}
				a := c.Poll(t.Context(), ask("http://u:"+secret+"@example.com/0123456789abcdef-"+secret+"/feed?token="+secret))
				if got := errorText(a.Err); got != tt.want {
					t.Errorf("error %q, want %q", got, tt.want)
				}
				if (a.Detail == "") != (tt.detail == "") || a.Detail != "" && !strings.HasPrefix(a.Detail, "http://***@example.com/***-hunter2/feed?token=***: ") ||
					!strings.Contains(a.Detail, tt.detail) || strings.ContainsAny(a.Detail, "\r\n") {
					t.Errorf("detail %q, want %q in it", a.Detail, tt.detail)
				}
			})
		})
	}
}

// Whether anything has reached the origin can be told from the failure.
func TestNothingSent(t *testing.T) {
	hanging := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	resolving := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "i/o timeout", Name: "example.com", IsTimeout: true}}
	}
	for _, tt := range []struct {
		name string
		dial func(context.Context, string, string) (net.Conn, error)
		want policy.Failure
		text string
		took time.Duration
	}{
		{"hanging connection", hanging, policy.FailureConnect, "example.com: connecting: no answer in time", 30 * time.Second},
		{"hanging resolver", resolving, policy.FailureDNS, "example.com: looking up the address: no answer in time", 30 * time.Second},
		{"no descriptors", func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
		}, policy.FailureConnect, "example.com: connecting: too many open files", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := New(WithDial(tt.dial))
				defer c.Close()
				started := time.Now()
				a := c.Poll(t.Context(), ask("https://example.com/"))
				if a.Failure != tt.want || errorText(a.Err) != tt.text || !a.Asked.IsZero() || time.Since(started) != tt.took {
					t.Errorf("failure %q (%v), asked %v, after %v", a.Failure, a.Err, a.Asked, time.Since(started))
				}
			})
		})
	}
}
