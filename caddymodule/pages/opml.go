// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/opml"
	"github.com/feedpollard/pollard/internal/status"
)

const (
	maxUpload = 4 << 20 // bytes of a list: some 20,000 feeds
	// uploadTime is how long a client may take to send a list, and uploadWait how long it waits for
	// others.
	uploadTime = 10 * time.Second
	uploadWait = 10 * time.Second
)

// uploads holds a value for each list that is being sent or rewritten: memory for two is enough.
var uploads = make(chan struct{}, 2)

// rewriteOPML answers a subscription list with the same list through the gateway. Nothing
// of it is kept.
func (p *Pages) rewriteOPML(v *visit) error {
	ctx, cancel := context.WithTimeout(v.r.Context(), uploadWait)
	defer cancel()
	select {
	case uploads <- struct{}{}:
		defer func() { <-uploads }()
	case <-ctx.Done():
		v.w.Header().Set("Retry-After", "10")
		return &problem{status: http.StatusServiceUnavailable, Text: "Other lists are being rewritten.", More: "Try again in some seconds."}
	}
	sending := http.NewResponseController(v.w)
	_ = sending.SetReadDeadline(time.Now().Add(uploadTime)) // all of Caddy's servers can
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxUpload)
	list, err := uploaded(v.r, "opml")
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &problem{status: http.StatusRequestEntityTooLarge, Text: "This list is too large.", More: "Expected at most 4 MiB."}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &problem{status: http.StatusRequestTimeout, Text: "The list has not arrived within ten seconds.", More: "Try again over a faster connection."}
	}
	_ = sending.SetReadDeadline(time.Time{})
	if err != nil || len(list) == 0 {
		return &problem{status: http.StatusBadRequest, Text: "There is no subscription list in this form.", More: "Choose the OPML file that your feed reader has exported."}
	}
	rewritten, err := throughGateway(list, v.at.Gateway)
	if err != nil {
		return &problem{status: http.StatusBadRequest, Text: "This is not a subscription list that can be read.", More: status.Capitalize(feedurl.Short(err.Error(), maxTitle)) + "."}
	}
	// A stranger may have written the list: it is saved, not shown, and if it is
	// shown after all, nothing in it may be run.
	h := v.w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Content-Disposition", `attachment; filename="pollard.opml"`)
	v.send(http.StatusOK, "text/x-opml", rewritten) // it says itself in which encoding it is
	return nil
}

// uploaded reads the first file of a form's field, without a temporary file.
func uploaded(r *http.Request, field string) ([]byte, error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, err
	}
	for {
		part, err := parts.NextPart()
		if err != nil {
			return nil, err
		}
		if part.FormName() == field {
			return io.ReadAll(part)
		}
	}
}

// throughGateway returns a subscription list in which all feeds are asked for through the
// gateway. Its error is shown to the person who brought the list.
func throughGateway(list []byte, prefix string) ([]byte, error) {
	gateway, err := feedurl.ParseGateway(prefix, "")
	if err != nil {
		return nil, err
	}
	rewritten, _, err := opml.Rewrite(list, func(url string) (string, error) {
		if address, err := gateway.Address(url); err == nil {
			return address, nil
		}
		return url, nil
	})
	return rewritten, err
}
