// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"

	"github.com/feedpollard/pollard/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// classify makes a failure of an error that left no usable answer, with a text of
// one line for people: which host, and what was wrong. The phase is that of the
// hop; asked tells whether any request of the poll has left.
func classify(ctx context.Context, t feedurl.URL, at phase, asked bool, err error) (policy.Failure, error) {
	var address *AddressError
	var name *net.DNSError
	cause := context.Cause(ctx)
	switch {
	case errors.As(err, &address):
		if address.Address == t.Name() {
			return policy.FailureAddress, address
		}
		return policy.FailureAddress, fmt.Errorf("%s: %w", t.HostPort(), address)
	case errors.Is(err, errLate):
		return policy.FailureNotStarted, fmt.Errorf("%s: %w", t.HostPort(), errLate)
	case cause == errTimeout:
		return policy.FailureTimeout, fmt.Errorf("%s: %w", t.HostPort(), errTimeout)
	case cause != nil && !asked:
		return policy.FailureNotStarted, fmt.Errorf("%s: %w", t.HostPort(), cause)
	case cause != nil:
		return policy.FailureTimeout, fmt.Errorf("%s: broken off: %w", t.HostPort(), cause)
	case errors.As(err, &name):
		return policy.FailureDNS, fmt.Errorf("%s: looking up the address: %s", t.HostPort(), feedurl.OneLine(name.Err))
	case isTimeout(err):
		return policy.FailureTimeout, fmt.Errorf("%s: %w", t.HostPort(), reason(err))
	case at == phaseHandshake || isTLS(err):
		return policy.FailureTLS, fmt.Errorf("%s: TLS: %w", t.HostPort(), reason(err))
	case at == phaseConnecting:
		return policy.FailureConnect, fmt.Errorf("%s: connecting: %w", t.HostPort(), reason(err))
	case isBrokenOff(err):
		return policy.FailureConnect, fmt.Errorf("%s: connection closed without an answer: %w", t.HostPort(), reason(err))
	}
	return policy.FailureProtocol, fmt.Errorf("%s: no valid HTTP answer: %w", t.HostPort(), reason(err))
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func isTLS(err error) bool {
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	return errors.As(err, &verification) || errors.As(err, &record) || errors.As(err, &unknown)
}

func isBrokenOff(err error) bool {
	var operation *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.As(err, &operation)
}

// reason is the inner part of a network error, without addresses and on one line.
// It goes on wrapping the whole.
func reason(err error) error {
	inner := err
	var operation *net.OpError
	if errors.As(err, &operation) {
		inner = operation.Err
	}
	text := feedurl.OneLine(inner.Error())
	if len(text) > 200 {
		text = text[:200] + "..."
	}
	return &plainError{text, err}
}

// plainError is an error told in other words.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.err }

// classifyStatus makes a failure of a status that is neither 200 nor a redirect,
// or none of a 304 that was asked for.
func classifyStatus(t feedurl.URL, status int, conditional bool) (policy.Failure, error) {
	failure := policy.FailureStatus
	switch {
	case status == http.StatusNotModified && conditional:
		return policy.FailureNone, nil
	case status == http.StatusNotModified:
		return policy.FailureUnasked, fmt.Errorf("%s: status 304, but the request was not conditional", t.HostPort())
	case status == http.StatusTooManyRequests:
		failure = policy.FailureRateLimited
	case status == http.StatusGone:
		failure = policy.FailureGone
	case status == http.StatusNotFound:
		failure = policy.FailureNotFound
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden,
		status == http.StatusProxyAuthRequired, status == http.StatusUnavailableForLegalReasons:
		failure = policy.FailureForbidden
	case status < 200:
		failure = policy.FailureProtocol // RFC 9110 section 15.2: an interim answer is no answer
	}
	if text := http.StatusText(status); text != "" {
		return failure, fmt.Errorf("%s: status %d %s", t.HostPort(), status, text)
	}
	return failure, fmt.Errorf("%s: status %d", t.HostPort(), status)
}
