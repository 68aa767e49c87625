// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

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

// subscriptions answers with a subscription list of the feeds that the operator has named, which
// readers can follow: with ?asked, to be saved, also of those that the viewer has asked for, and with
// ?direct at the sites' own addresses. It has no address that may hold a secret.
func (p *Pages) subscriptions(v *visit) error {
	if v.at.Unlisted {
		return &problem{status: http.StatusNotFound, Text: "This gateway serves any client, so it lists no feeds."}
	}
	list, err := p.outlines(v, v.r.URL.Query().Has("asked"), v.r.URL.Query().Has("direct"))
	if err != nil || p.Source.Trouble(&v.at.Viewer).StoreAway {
		v.w.Header().Set("Retry-After", "60") // an empty list would end subscriptions
		return &problem{status: http.StatusServiceUnavailable, Text: "The list cannot be made now.", More: "Try again in a minute."}
	}
	text, err := opml.New("Feeds at "+v.at.root(), list)
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/x-opml; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "private, max-age=3600")
	h.Set("ETag", fmt.Sprintf(`"%016x"`, xxhash.Sum64(text)))
	if v.r.URL.Query().Has("asked") {
		h.Set("Content-Disposition", `attachment; filename="pollard.opml"`)
	}
	http.ServeContent(v.w, v.r.Request, "", time.Time{}, bytes.NewReader(text))
	return nil
}

func (p *Pages) outlines(v *visit, asked, direct bool) (list []opml.Outline, err error) {
	gateway, err := feedurl.ParseGateway(v.at.Gateway, "")
	if err != nil {
		return nil, err
	}
	var feeds []status.Feed
	if v.at.Chosen != nil {
		if feeds, err = v.at.Chosen(); err != nil {
			return nil, err
		}
	}
	chosen := make(map[string]status.Feed) // by URL
	for _, f := range slices.Backward(feeds) {
		chosen[string(f.URL)] = f // the first of several addresses
	}
	listed := make(map[string]bool)
	at := func(o *opml.Outline) bool { // gives a feed its address
		f, has := chosen[o.URL]
		if listed[o.URL] || direct && has || !has && !feedurl.Redacted(o.URL).Open() {
			return false
		}
		listed[o.URL] = true
		o.Text = cmp.Or(o.Text, f.Title, strings.TrimPrefix(o.URL, "https://"))
		switch {
		case has:
			o.URL = f.Address
		case !direct:
			o.URL, err = gateway.Address(o.URL)
		}
		return err == nil
	}
	if v.at.Named != nil {
		list = opml.Pruned(v.at.Named(), at)
	}
	var others []opml.Outline
	for _, f := range feeds {
		others = append(others, opml.Outline{Text: cmp.Or(f.Title, f.Address), URL: string(f.URL)})
	}
	for q := (status.Query{Sort: status.SortName, Limit: maxListed}); asked; asked = q.After != "" {
		part, err := p.Source.Feeds(v.r.Context(), &v.at.Viewer, q)
		if err != nil {
			return nil, err
		}
		for _, f := range part.Feeds {
			if f.State != status.StateUnread {
				others = append(others, opml.Outline{Text: f.Title, URL: string(f.URL)})
			}
		}
		q.After = part.Next
	}
	return append(list, opml.Pruned(others, at)...), err
}

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
	list, err := uploaded(v.r.Request, "opml")
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
	rewritten, changed, left, err := throughGateway(list, v.at)
	if err != nil {
		return &problem{status: http.StatusBadRequest, Text: "This is not a subscription list that can be read.", More: status.Capitalize(feedurl.Short(err.Error(), maxTitle)) + "."}
	}
	// A stranger may have written the list: it is saved, not shown, and if it is
	// shown after all, nothing in it may be run.
	h := v.w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	// The browser stays on the page, so the name says what was done.
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="pollard-%d-changed-%d-left.opml"`, changed, left))
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
// gateway, and how many addresses it has changed and left. Its error is shown to the person who brought the list.
func throughGateway(list []byte, at Place) (rewritten []byte, changed, left int, err error) {
	gateway, err := feedurl.ParseGateway(at.Gateway, "")
	root, err2 := feedurl.ParseGateway(at.root(), "")
	if err := errors.Join(err, err2); err != nil {
		return nil, 0, 0, err
	}
	all := 0
	rewritten, changed, err = opml.Rewrite(list, func(url string) (string, error) {
		all++
		if own, err := root.Address(url); err == nil && own == url {
			return url, nil // with another token, or none
		}
		if address, err := gateway.Address(url); err == nil {
			return address, nil
		}
		return url, nil
	})
	return rewritten, changed, all - changed, err
}
