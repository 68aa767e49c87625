// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// Each answer has a Location; only redirects are followed.
func TestStatuses(t *testing.T) {
	for status, want := range map[int]policy.Failure{
		200: policy.FailureNone,
		201: policy.FailureStatus, 202: policy.FailureStatus, 203: policy.FailureNone, 204: policy.FailureStatus,
		205: policy.FailureStatus, 206: policy.FailureStatus, 226: policy.FailureStatus, 299: policy.FailureStatus,
		301: policy.FailureNone, 302: policy.FailureNone, 303: policy.FailureNone, 307: policy.FailureNone, 308: policy.FailureNone,
		300: policy.FailureStatus, 304: policy.FailureUnasked, 305: policy.FailureStatus, 306: policy.FailureStatus, 399: policy.FailureStatus,
		400: policy.FailureStatus, 401: policy.FailureForbidden, 402: policy.FailureForbidden, 403: policy.FailureForbidden,
		404: policy.FailureNotFound, 405: policy.FailureStatus, 406: policy.FailureStatus, 407: policy.FailureForbidden,
		408: policy.FailureStatus, 410: policy.FailureGone, 412: policy.FailureStatus, 418: policy.FailureStatus,
		429: policy.FailureRateLimited, 451: policy.FailureForbidden, 499: policy.FailureStatus,
		500: policy.FailureStatus, 502: policy.FailureStatus, 503: policy.FailureStatus, 504: policy.FailureStatus,
		520: policy.FailureStatus, 999: policy.FailureStatus, 101: policy.FailureProtocol, 0: policy.FailureProtocol,
	} {
		bubble(t, strconv.Itoa(status), func(t *testing.T) {
			var n memnet
			n.say("example.com:80", strings.Replace(answerText(status, feedBody, "Location: http://b.example/"), "HTTP/1.1 0 ", "HTTP/1.1 000 ", 1))
			n.say("b.example:80", ok(feedBody))
			a := n.client(t, Settings{}).Poll(t.Context(), ask("http://example.com/"))
			url, last, moves := "http://example.com/", status, []policy.Move(nil)
			if status == 203 {
				last = 200
			} else if want == "" && status != 200 {
				url, last, moves = "http://b.example/", 200, []policy.Move{{From: url, To: "http://b.example/", Status: status}}
			}
			if a.Failure != want || a.URL != url || a.Status != last || !slices.Equal(a.Moves, moves) || len(n.requests()) != 1+len(moves) {
				t.Errorf("failure %q (%v) with status %d of %s after %v, want %q", a.Failure, a.Err, a.Status, a.URL, a.Moves, want)
			}
			if (a.Body != nil) != (last == 200) || (a.Err != nil) != (last != 200) || a.Header == nil {
				t.Errorf("answer = %+v", a)
			}
		})
	}
}

// Readers learn which host it is and what happened. The texts of an origin, and where things are on this
// machine, are for the log. Whether anything has reached the origin can be told from the failure. Nothing is
// sent a second time.
func TestFailures(t *testing.T) {
	const redacted = "http://***@example.com/***-hunter2/feed?token=***"
	dialling := func(err error) dialFunc {
		return func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, Err: err}
		}
	}
	hanging := func(err error) dialFunc {
		return func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, cmp.Or(err, ctx.Err())
		}
	}
	for _, tt := range []struct {
		name, answer string
		dial         dialFunc
		want         policy.Failure
		text         string // after the name of the host
		detail       string // is in the log; "": the text is all there is
	}{
		{"no address", "", dialling(&net.DNSError{Err: "no such host", Name: "example.com", IsNotFound: true}), policy.FailureDNS, "looking up the address: no such host", "no such host"},
		{"resolver", "", dialling(&net.DNSError{Err: "read udp 192.168.1.5:1->192.168.1.1:53: hunter2", Name: "example.com"}), policy.FailureDNS, "looking up the address: no name server answers (is this machine online?)", "192.168.1.1"},
		{"failing name server", "", dialling(&net.DNSError{Err: "server misbehaving", Server: "192.168.1.1:53", Name: "example.com"}), policy.FailureDNS, "looking up the address", "192.168.1.1"},
		{"hanging resolver", "", hanging(&net.DNSError{Err: "i/o timeout", Name: "example.com", IsTimeout: true}), policy.FailureDNS, "looking up the address: no answer in time", "i/o timeout"},
		{"refused", "", dialling(syscall.ECONNREFUSED), policy.FailureConnect, "connecting: connection refused", "192.0.2.1"},
		{"unreachable", "", dialling(syscall.EHOSTUNREACH), policy.FailureConnect, "connecting: no route to host", "192.0.2.1"},
		{"timeout of the system", "", dialling(syscall.ETIMEDOUT), policy.FailureConnect, "connecting: no answer in time", "192.0.2.1"},
		{"hanging connection", "", hanging(nil), policy.FailureConnect, "connecting: no answer in time", "context"},
		{"no descriptors", "", dialling(os.NewSyscallError("socket", syscall.EMFILE)), policy.FailureConnect, "connecting: too many open files", "socket"},
		{"file", "", dialling(&fs.PathError{Op: "open", Path: "/etc/hunter2", Err: syscall.EACCES}), policy.FailureConnect, "connecting: permission denied", "open /etc/hunter2"},
		{"unknown", "", dialling(errors.New("hunter2")), policy.FailureConnect, "connecting", "hunter2"},
		{"forbidden", "", dialling(&AddressError{"10.0.0.5", "a private address"}), policy.FailureAddress, "its address is a private address", "10.0.0.5"},
		{"closed at once", "", nil, policy.FailureConnect, "connection closed without an answer", "EOF"},
		{"closed in the header", "HTTP/1.1 200 OK\r\nA: b\r\n", nil, policy.FailureConnect, "connection closed without an answer", "unexpected EOF"},
		{"other protocol", "220 hunter2 ESMTP\r\n", nil, policy.FailureProtocol, "no valid HTTP answer: it does not begin with a line such as HTTP/1.1 200 OK", "malformed HTTP"},
		{"header without end", "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: "+strings.Repeat("b", 1000)+"\r\n", 200) + "\r\n", nil, policy.FailureProtocol, "no valid HTTP answer: its header is larger than 128 KiB", "headers"},
		{"loop", answerText(302, "", "Location: /0123456789abcdef-hunter2/feed?token=hunter2#"), nil, policy.FailureRedirect, "redirect with status 302 goes round in circles, to example.com", redacted},
		{"status", answerText(500, "hunter2"), nil, policy.FailureStatus, "status 500 Internal Server Error", ""},
		{"refused at once", "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n", nil, policy.FailureStatus, "status 408 Request Timeout", ""},
		{"come back at once", answerText(503, "", "Retry-After: 0"), nil, policy.FailureStatus, "status 503 Service Unavailable", ""},
		{"another connection", answerText(421, ""), nil, policy.FailureStatus, "status 421 Misdirected Request", ""},
		{"too early", answerText(425, ""), nil, policy.FailureStatus, "status 425 Too Early", ""},
		{"cut body", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + feedBody, nil, policy.FailureTruncated, fmt.Sprintf("the body broke off after %d bytes", len(feedBody)), "unexpected EOF"},
		{"chunked without an end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n<rss>\r\n", nil, policy.FailureTruncated, "the body broke off after 5 bytes", "unexpected EOF"},
		{"broken chunk length", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n<rss>\r\n0\r\n\r\n", nil, policy.FailureTruncated, "the body broke off after 0 bytes: its chunks are broken", "invalid byte"},
		{"complete gzip, cut message", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n" + encoded(feedBody, "gzip"), nil, policy.FailureTruncated,
			fmt.Sprintf("the body broke off after %d bytes", len(encoded(feedBody, "gzip"))), "unexpected EOF"},
		{"no body", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", nil, policy.FailureNotFeed, "status 200 without a body", ""},
		{"no length, to the end", "HTTP/1.1 200 OK\r\n\r\n" + feedBody, nil, policy.FailureNone, "", ""},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var n memnet
			n.say("example.com:80", tt.answer)
			c := n.client(t, Settings{})
			if tt.dial != nil {
				c.dial = tt.dial
			}
			a := c.Poll(t.Context(), ask("http://u:hunter2@example.com/0123456789abcdef-hunter2/feed?token=hunter2"))
			want, sent := "example.com: "+tt.text, tt.dial == nil
			if tt.want == "" {
				want = ""
			}
			if a.Failure != tt.want || errorText(a.Err) != want || (a.Body != nil) != (want == "" || tt.want == policy.FailureTruncated) || a.Asked.IsZero() == sent || (len(n.requests()) == 1) != sent {
				t.Errorf("failure %q: %v, asked %v, %d requests; want %q: %s", a.Failure, a.Err, a.Asked, len(n.requests()), tt.want, want)
			}
			if (a.Detail == "") != (tt.detail == "") || a.Detail != "" && !strings.HasPrefix(a.Detail, redacted+": ") ||
				!strings.Contains(a.Detail, tt.detail) || strings.ContainsAny(a.Detail, "\r\n") {
				t.Errorf("detail %q, want %q in it", a.Detail, tt.detail)
			}
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
	closing, err := net.Listen("tcp", "127.0.0.1:0") // a load balancer without a server behind it
	if err != nil {
		t.Fatal(err)
	}
	defer closing.Close()
	go func() {
		for conn, err := closing.Accept(); err == nil; conn, err = closing.Accept() {
			conn.Close()
		}
	}()
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
		{"closed at once", "https://" + closing.Addr().String(), nil, policy.FailureConnect},
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

// The beginning of the page of a failure is read, decoded, in two seconds at most: it says who blocks the feed.
func TestPageOfAFailure(t *testing.T) {
	long := strings.Repeat("a page ", 1<<20)
	for _, tt := range []struct {
		name, answer, want string
		took               time.Duration
	}{
		{"plain", answerText(403, "<title>No</title>"), "<title>No</title>", 0},
		{"compressed", answerText(503, encoded("<title>No</title>", "gzip"), "Content-Encoding: gzip"), "<title>No</title>", 0},
		{"long", answerText(500, long), long[:maxPageWire], 0},
		{"compressed and very long", answerText(500, encoded(long, "gzip"), "Content-Encoding: gzip"), "", 0},
		{"broken", answerText(500, "<title>No</title>", "Content-Encoding: br"), "", 0},
		{"broken off", "HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\n<title>No</title>", "<title>No</title>", 0},
		{"slow", "HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\n<title>No</title>", "<title>No</title>", maxPageTime},
		{"none", answerText(404, ""), "", 0},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var n memnet
			n.serve("example.com:80", func(_ request, w io.Writer) {
				io.WriteString(w, tt.answer)
				time.Sleep(2 * tt.took)
			})
			begun := time.Now()
			a := n.client(t, Settings{}).Poll(t.Context(), ask("http://example.com/"))
			if took := time.Since(begun); a.Body != nil || len(a.Page) > maxPage || tt.want != "" && string(a.Page) != tt.want || a.Failure == policy.FailureTimeout || took != tt.took {
				t.Errorf("page %.40q of %d bytes, %s after %v: %v", a.Page, len(a.Page), a.Failure, took, a.Err)
			}
			time.Sleep(2 * tt.took) // until the origin has ended
		})
	}
}

// A person learns whether a site leaves out certificates that only it can send, or has signed with an authority of
// its own, which this machine can be told to trust.
func TestUnknownAuthorities(t *testing.T) {
	root, rootKey := certificate(t, "Root", nil, nil, "")
	middle, middleKey := certificate(t, "Middle", root, rootKey, "")
	whole, wholeKey := certificate(t, "site", middle, middleKey, "http://ca.example/middle.der")
	own, ownKey := certificate(t, "site", root, rootKey, "")
	const incomplete, unknown = "an incomplete chain", "SSL_CERT_FILE"
	for _, tt := range []struct {
		name  string
		chain [][]byte
		key   *ecdsa.PrivateKey
		want  string
	}{
		{"without the one between", [][]byte{whole.Raw}, wholeKey, incomplete},
		{"all that there are", [][]byte{whole.Raw, middle.Raw}, wholeKey, unknown},
		{"an own authority", [][]byte{own.Raw}, ownKey, unknown},
		{"signed by itself", [][]byte{root.Raw}, rootKey, unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := pollTLS(t, tt.chain, tt.key)
			if a.Failure != policy.FailureTLS || !strings.Contains(errorText(a.Err), tt.want) {
				t.Errorf("failure %q: %v, want %q in it", a.Failure, a.Err, tt.want)
			}
		})
	}
}

// A certificate that is not yet valid says that a clock is wrong, perhaps that of a machine that was just booted: the poll counts as
// one that sent nothing, and is tried again soon. One that has expired is the site's failure.
func TestCertificateNotYetValid(t *testing.T) {
	for from, want := range map[time.Duration]policy.Failure{time.Hour: policy.FailureNotStarted, -3 * time.Hour: policy.FailureTLS} {
		now := time.Now()
		c, key := signed(t, &x509.Certificate{
			SerialNumber: big.NewInt(1), NotBefore: now.Add(from), NotAfter: now.Add(from + 2*time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}, nil, nil)
		a := pollTLS(t, [][]byte{c.Raw}, key)
		if a.Failure != want || a.Unsent() != (from > 0) || from > 0 && !strings.Contains(errorText(a.Err), "not yet valid by the clock of this machine: x509") {
			t.Errorf("valid in %v: %q, unsent %v: %v", from, a.Failure, a.Unsent(), a.Err)
		}
	}
}

// pollTLS polls a server on loopback that has a certificate.
func pollTLS(t *testing.T, chain [][]byte, key *ecdsa.PrivateKey) policy.Answer {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: chain, PrivateKey: key}}}
	s.StartTLS()
	defer s.Close()
	c := New()
	defer c.Close()
	c.Apply(Settings{Private: loopback})
	return c.Poll(t.Context(), ask(s.URL))
}

// What is wrong with the file of SSL_CERT_FILE is said, without its name, which readers would see.
func TestOwnAuthority(t *testing.T) {
	root, _ := certificate(t, "Root", nil, nil, "")
	dir := t.TempDir()
	for name, text := range map[string][]byte{"der": root.Raw, "pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{
		"": "name the file with its certificate", filepath.Join(dir, "missing"): "(no such file or directory)",
		filepath.Join(dir, "der"): "has no certificate in PEM", filepath.Join(dir, "pem"): "is another one",
	} {
		if got := ownAuthority(file); !strings.Contains(got, want) || !strings.Contains(got, "docs/recipes.md") || strings.Contains(got, dir) {
			t.Errorf("%s: %s", file, got)
		}
	}
}

// certificate returns a certificate for 127.0.0.1 that a parent has signed; nil: itself.
func certificate(t *testing.T, name string, parent *x509.Certificate, parentKey *ecdsa.PrivateKey, issuerURL string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: name != "site", BasicConstraintsValid: true,
	}
	if issuerURL != "" {
		template.IssuingCertificateURL = []string{issuerURL}
	}
	return signed(t, template, parent, parentKey)
}

// signed returns the certificate of a template that a parent has signed; nil: itself.
func signed(t *testing.T, template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c, key
}
