// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// phase is how far an exchange came.
type phase int32

const (
	phaseConnecting phase = iota
	phaseLookup           // of the host's addresses
	phaseHandshake        // TLS
	phaseWaiting          // for the right moment: no request was sent yet
	phaseSent
)

// exchange is one request and its response, over a connection of its own.
type exchange struct {
	client *Client
	guard  *guard
	phase  atomic.Int32
	// send is called on the established connection, just before the request is sent.
	// If it returns an error, the request is not sent.
	send func() error
}

// do sends the request once and returns the response, whose body must be closed. An
// [http.Transport] repeats a GET on its own if a reused connection was closed or an
// HTTP/2 server refuses the stream: that would be a second poll without a claim. An
// [http.ClientConn] does not repeat requests.
func (x *exchange) do(r *http.Request, t feedurl.URL) (*http.Response, error) {
	if x.client.rounds != nil {
		if err := x.start(); err != nil {
			return nil, err
		}
		return x.client.rounds.RoundTrip(r)
	}
	ctx := context.WithValue(r.Context(), guardKey{}, x.guard)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() {
			if x.guard.tunnel {
				x.enter(phaseHandshake)
			}
		},
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err == nil && x.guard.tunnel {
				x.enter(phaseWaiting)
			}
		},
	})
	conn, err := x.connect(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := x.start(); err != nil {
		conn.Close()
		return nil, err
	}
	if r.URL.Opaque != "" && x.guard.proxy != nil && !x.guard.tunnel {
		r.URL.Opaque = "//" + r.URL.Host + r.URL.Opaque // RFC 9112 section 3.2.2: a proxy needs the host
	}
	resp, err := conn.RoundTrip(r)
	if err != nil {
		conn.Close()
		return nil, err
	}
	resp.Body = &lastBody{resp.Body, conn}
	if x.guard.proxy != nil && !x.guard.tunnel {
		if err := proxyResponse(resp); err != nil {
			resp.Body.Close()
			return nil, err
		}
	}
	return resp, nil
}

func (x *exchange) start() error {
	x.enter(phaseWaiting)
	if err := x.send(); err != nil {
		return err
	}
	x.enter(phaseSent)
	return nil
}

func (x *exchange) enter(at phase) { x.phase.Store(int32(at)) }

// lastBody is the body of the only response of its connection.
type lastBody struct {
	io.ReadCloser
	conn *http.ClientConn
}

// Close closes the connection first, so that it does not wait for the rest of the body.
func (b *lastBody) Close() error {
	err := b.conn.Close()
	b.ReadCloser.Close()
	return err
}
