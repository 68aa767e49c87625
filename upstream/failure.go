// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// failureOf makes a failure of an error that left no usable answer, with a text of
// one line for readers: what was wrong, without anything that the origin said or
// that they need not know of the machine. The phase is that of the hop; asked is true
// if any request of the poll has left.
func failureOf(ctx context.Context, at phase, asked bool, err error) (policy.Failure, error) {
	cause := context.Cause(ctx)
	late := cause == errTimeout || isTimeout(err)
	address, refused := errors.AsType[*AddressError](err)
	unknown := has[*net.DNSError](err)
	if proxy, ok := errors.AsType[*proxyError](err); ok {
		return proxy.failure()
	}
	switch {
	case refused:
		// Readers do not learn the address of a name of the local network.
		return policy.FailureAddress, plain("its address is "+address.Reason, address)
	case errors.Is(err, errLate):
		return policy.FailureNotStarted, errLate
	case late && (at == phaseLookup || unknown):
		return policy.FailureDNS, plain("looking up the address: no answer in time", err)
	case late && at == phaseConnecting:
		return policy.FailureConnect, plain("connecting: no answer in time", err)
	case late:
		return policy.FailureTimeout, plain(errTimeout.Error(), err)
	case cause != nil && !asked:
		return policy.FailureNotStarted, cause
	case cause != nil:
		return policy.FailureTimeout, fmt.Errorf("broken off: %w", cause)
	case unknown:
		return policy.FailureDNS, plain("looking up the address"+reason(err), err)
	case has[tls.RecordHeaderError](err):
		return policy.FailureTLS, plain("the server does not speak TLS on this port: try http://", err)
	case notYetValid(err): // the clock here may be wrong, as of a machine that was just booted: it is tried again soon
		return policy.FailureNotStarted, plain("the certificate is not yet valid by the clock of this machine"+reason(err), err)
	case at == phaseHandshake && isClosed(err):
		return policy.FailureConnect, plain("connection closed in the TLS handshake"+reason(err), err)
	case at == phaseHandshake || has[*tls.CertificateVerificationError](err):
		return policy.FailureTLS, plain("the TLS handshake failed"+cmp.Or(unknownAuthority(err), reason(err)), err)
	case at == phaseConnecting || at == phaseLookup:
		return policy.FailureConnect, plain("connecting"+reason(err), err)
	case isBrokenOff(err):
		return policy.FailureConnect, plain("connection closed without an answer"+reason(err), err)
	}
	return policy.FailureProtocol, plain("no valid HTTP answer"+cmp.Or(reason(err), mistake(err)), err)
}

// notYetValid reports whether a certificate is valid later only.
func notYetValid(err error) bool {
	invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
	return ok && invalid.Reason == x509.Expired && invalid.Cert != nil && time.Now().Before(invalid.Cert.NotBefore)
}

// unknownAuthority says what to do about a certificate that no known authority has signed, after a colon. It is
// empty if the error is another one.
func unknownAuthority(err error) string {
	failed, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok || !has[x509.UnknownAuthorityError](err) || len(failed.UnverifiedCertificates) == 0 {
		return ""
	}
	chain := failed.UnverifiedCertificates
	last := chain[len(chain)-1]
	if len(chain) == 1 && len(last.IssuingCertificateURL) > 0 && !bytes.Equal(last.RawIssuer, last.RawSubject) {
		// Browsers fetch what is missing, or have it from another site.
		return ": the site does not send the certificates between its own and that of the authority (an incomplete chain): only the site can mend that"
	}
	return ": no authority that this machine knows has signed the certificate: " + ownAuthority(os.Getenv("SSL_CERT_FILE"))
}

// ownAuthority says how to trust an authority of one's own, or why the file that is to do that does not. Readers see the
// text, so it does not name the file. Package crypto/x509 says nothing of a file that it cannot use.
func ownAuthority(file string) string {
	const recipe = `; see "An authority of your own" in docs/recipes.md`
	if file == "" {
		return "if it is your own authority, name the file with its certificate in the environment variable SSL_CERT_FILE" + recipe
	}
	text, err := os.ReadFile(file)
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	switch {
	case err != nil:
		return fmt.Sprintf("the file that SSL_CERT_FILE names cannot be read (%v)%s", err, recipe)
	case !x509.NewCertPool().AppendCertsFromPEM(text):
		return "the file that SSL_CERT_FILE names has no certificate in PEM" + recipe
	}
	return "the authority in the file that SSL_CERT_FILE names is another one, or the file is newer than this process" + recipe
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

func isBrokenOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || has[*net.OpError](err)
}

// isClosed reports whether a connection has ended without a word, such as an alert of TLS.
func isClosed(err error) bool {
	operation, ok := errors.AsType[*net.OpError](err)
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || ok && (operation.Op == "read" || operation.Op == "write")
}

func has[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// reason returns what readers may know of an error, after a colon; empty if that is
// nothing. A text that is not known to be harmless may quote an origin, name a file
// or an address of this machine.
func reason(err error) string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		switch inner.(type) {
		case syscall.Errno, proxyStatus, tls.AlertError, tls.RecordHeaderError,
			x509.HostnameError, x509.UnknownAuthorityError, x509.CertificateInvalidError:
			return ": " + feedurl.OneLine(inner.Error())
		}
	}
	name, ok := errors.AsType[*net.DNSError](err)
	switch {
	case ok && name.IsNotFound:
		return ": no such host"
	case ok && name.Err != "server misbehaving": // of package net: the name server has answered
		return ": no name server answers (is this machine online?)"
	}
	return ""
}

// plain wraps an error with another text.
func plain(text string, err error) error { return &plainError{text, err} }

type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.err }

// failureOfStatus makes a failure of a status that is neither 200 nor a redirect,
// or of a 304 that was not asked for.
func failureOfStatus(status int) (policy.Failure, error) {
	failure := policy.FailureStatus
	switch status {
	case http.StatusNotModified:
		return policy.FailureUnasked, errors.New("status 304, but the request was not conditional")
	case http.StatusTooManyRequests:
		failure = policy.FailureRateLimited
	case http.StatusGone:
		failure = policy.FailureGone
	case http.StatusNotFound:
		failure = policy.FailureNotFound
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden,
		http.StatusProxyAuthRequired, http.StatusUnavailableForLegalReasons:
		failure = policy.FailureForbidden
	}
	if status < 200 {
		failure = policy.FailureProtocol // RFC 9110 section 15.2: an interim answer is not an answer
	}
	text := strings.TrimSpace(fmt.Sprintf("status %d %s", status, http.StatusText(status)))
	if remedy := remedies[status]; remedy != "" {
		text += ": " + remedy
	}
	return failure, errors.New(text)
}

// remedies say what a person can do about a status, if it is not plain.
var remedies = map[int]string{
	http.StatusUnauthorized: "the site wants to know who asks: a name and a password go into the feed's URL, as in " + feedurl.Example +
		`; for a token or a cookie see "A private feed" in docs/recipes.md, which also says what is often wrong with them`,
	http.StatusForbidden: "the site refuses this program: ask it to let feed readers through; " +
		`if the feed needs a token or a cookie of yours, see "A private feed" in docs/recipes.md, which also says what is often wrong with them`,
	http.StatusNotAcceptable: "the site gives the feed only to requests with another Accept, such as one with text/html: ask it to give feeds to all, " +
		"or see docs/recipes.md for how to send another one",
}
