// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"

	"github.com/feedpollard/pollard/internal/httpfield"
)

// interim is a 1xx answer, which is passed on and never stored (RFC 9110 section 15.2).
type interim struct {
	status int
	header http.Header
}

// traceInterim makes a context under which a round tripper reports 1xx answers to
// the transfer, as [http.Transport] does. What its reader does not fetch in time is dropped.
func (t *transfer) traceInterim(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
			if status == http.StatusContinue || status == http.StatusSwitchingProtocols {
				return nil // concern one connection only
			}
			select {
			case t.interim <- interim{status, http.Header(header).Clone()}:
			default:
			}
			return nil
		},
	})
}

// writeInterim passes a 1xx answer on, to readers who can know of it. Its fields do
// not stay for the final one.
func (x *exchange) writeInterim(i interim) {
	if !x.r.ProtoAtLeast(1, 1) {
		return
	}
	w := x.w
	header := w.Header()
	before := maps.Clone(header)
	httpfield.RemoveHopByHop(i.header)
	maps.Copy(header, i.header)
	w.WriteHeader(i.status)
	clear(header)
	maps.Copy(header, before)
}
