// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// ofOtherSite returns why a form is refused that a page of another site may have sent, or nil.
//
// Browsers say which site a request is from (W3C Fetch Metadata), but over plain HTTP only to localhost.
// There they name the origin of each form. A request with neither comes from a program.
func ofOtherSite(r *door.Request) *problem {
	refused := &problem{status: http.StatusForbidden, Text: "This form was sent by another site.", More: "Nothing was done. Go to the page itself and try again."}
	origin := r.Header.Get("Origin")
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case site == "same-origin", site == "none":
		return nil
	case site != "":
		return refused
	case r.Header["Origin"] == nil, r.OwnOrigin(origin):
		return nil
	}
	host := r.Host
	if r.Forwarded != "" {
		host += " and " + r.Forwarded
	}
	if origin != "null" {
		refused.More = fmt.Sprintf("Nothing was done. It came from %s, and was sent to %s. If that is one site, the proxy in front of it has to pass on Host.",
			feedurl.Short(origin, maxTitle), feedurl.Short(host, maxTitle))
	}
	return refused
}

const (
	// formTime is how long a client may take for a form that is refused.
	formTime = uploadWait + uploadTime
	// maxDrained is how much of it is read, in bytes.
	maxDrained = 32 << 20
)

// drain reads the rest of a form that is refused. If the connection were closed before, the client would be
// reset while it sends, and would not see the answer (RFC 9112 section 9.6).
func (v *visit) drain(form io.Reader, until time.Time) {
	sending := http.NewResponseController(v.w)
	_ = sending.SetReadDeadline(until)            // all of Caddy's servers can
	_, _ = io.CopyN(io.Discard, form, maxDrained) // the client may be gone
	_ = sending.SetReadDeadline(time.Time{})
}
