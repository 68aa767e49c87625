// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// memnet is an in-memory network of raw origins. It blocks on pipes only, so that
// it works in a synctest bubble.
type memnet struct {
	mu      sync.Mutex
	origins map[string]func(request, io.Writer) // by host:port
	log     []request
}

// request is one request as it arrived, to the byte.
type request struct {
	at      time.Time
	address string // that was dialled
	head    string // up to and including the empty line
}

func (r request) line() string { line, _, _ := strings.Cut(r.head, "\r\n"); return line }

func (r request) path() string { return strings.Fields(r.head)[1] }

// field is a header field, byte for byte; ok is false if there is none.
func (r request) field(name string) (value string, ok bool) {
	for line := range strings.SplitSeq(r.head, "\r\n") {
		if n, v, found := strings.Cut(line, ": "); found && strings.EqualFold(n, name) {
			return v, true
		}
	}
	return "", false
}

// serve makes an origin answer by a function that writes to the connection.
func (n *memnet) serve(address string, answer func(request, io.Writer)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.origins == nil {
		n.origins = make(map[string]func(request, io.Writer))
	}
	n.origins[address] = answer
}

// say makes an origin give one raw answer to everything.
func (n *memnet) say(address, raw string) {
	n.serve(address, func(_ request, w io.Writer) { io.WriteString(w, raw) })
}

func (n *memnet) requests() []request {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]request(nil), n.log...)
}

func (n *memnet) dial(_ context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	answer := n.origins[address]
	n.mu.Unlock()
	if answer == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		in := bufio.NewReader(server)
		var head strings.Builder
		for !strings.HasSuffix(head.String(), "\r\n\r\n") {
			line, err := in.ReadString('\n')
			if head.WriteString(line); err != nil {
				return
			}
		}
		r := request{time.Now(), address, head.String()}
		n.mu.Lock()
		n.log = append(n.log, r)
		n.mu.Unlock()
		go io.Copy(io.Discard, in) // a pipe has no buffer for what comes after
		answer(r, server)
	}()
	return client, nil
}

// client polls over the network, closed with the test.
func (n *memnet) client(t *testing.T, settings Settings) *Client {
	t.Helper()
	c := New(WithDial(n.dial))
	c.Apply(settings)
	t.Cleanup(c.Close)
	return c
}

// bubble runs a part of a test in fake time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

const feedBody = "<rss version=\"2.0\"><channel><title>t</title></channel></rss>"

// ok is a complete answer with a body.
func ok(body string, fields ...string) string { return answerText(200, body, fields...) }

func answerText(status int, body string, fields ...string) string {
	head := fmt.Sprintf("HTTP/1.1 %d Status\r\nContent-Length: %d\r\n", status, len(body))
	if status == 304 {
		head = "HTTP/1.1 304 Not Modified\r\n"
	}
	for _, f := range fields {
		head += f + "\r\n"
	}
	return head + "\r\n" + body
}

// patient is a context in which polls wait for their slots as long as it takes.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// ask is a poll that any test may make.
func ask(url string) policy.Ask {
	return policy.Ask{URL: feedurl.MustParse(url), Timeout: 30 * time.Second, MaxBody: 1 << 20}
}
