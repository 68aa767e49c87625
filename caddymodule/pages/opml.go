// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"errors"
	"io"
	"net/http"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/opml"
	"github.com/feedpollard/pollard/internal/status"
)

// rewriteOPML answers a subscription list with the same list through the gateway. Nothing
// of it is kept.
func (p *Pages) rewriteOPML(v *visit) error {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, opml.MaxSize)
	list, err := uploaded(v.r, "opml")
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &problem{http.StatusRequestEntityTooLarge, "This list is too large.", "Expected at most 16 MiB."}
	}
	if err != nil || len(list) == 0 {
		return &problem{http.StatusBadRequest, "There is no subscription list in this form.", "Choose the OPML file that your feed reader has exported."}
	}
	rewritten, err := p.RewriteOPML(list, v.at.Gateway)
	if err != nil {
		return &problem{http.StatusBadRequest, "This is not a subscription list that can be read.", status.Capitalize(feedurl.Short(err.Error(), maxTitle)) + "."}
	}
	// A stranger may have written the list: it is saved, not shown, and if it is
	// shown after all, nothing in it may be run.
	h := v.w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Content-Disposition", `attachment; filename="pollard.opml"`)
	v.send(http.StatusOK, "text/x-opml; charset=utf-8", rewritten)
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
