// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"errors"
	"net/http"
	"net/mail"
	"strings"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// aboutContent is what the page for publishers shows.
type aboutContent struct {
	Poller
	Asked string // the host that was asked for, as written
	Host  *Host
	None  bool // there is no record of that host
}

// ContactLink is an address behind the contact that can be followed, if there is one.
func (c aboutContent) ContactLink() string {
	if link := webLink(c.Contact); link != "" {
		return link
	}
	if a, err := mail.ParseAddress(strings.TrimPrefix(c.Contact, "mailto:")); err == nil {
		return "mailto:" + a.Address
	}
	return ""
}

// about tells publishers who polls them. It is for everyone.
func (p *Pages) about(v *visit) error {
	poller, err := p.Source.Poller(v.r.Context())
	if err != nil {
		return err
	}
	c := aboutContent{Poller: poller, Asked: strings.TrimSpace(v.r.FormValue("host"))}
	if c.Asked == "" {
		return p.render(v, http.StatusOK, "about", "About", c)
	}
	if len(c.Asked) > 1024 {
		return &problem{http.StatusBadRequest, "That host name is too long.", ""}
	}
	name := c.Asked
	if u, err := feedurl.Parse(name); err == nil { // people paste whole addresses
		name = u.Name()
	}
	name, err = feedurl.ParseHost(name)
	if err != nil {
		c.None = true
		return p.render(v, http.StatusNotFound, "about", "About", c)
	}
	host, err := p.Source.Host(v.r.Context(), name)
	switch {
	case errors.Is(err, ErrUnknown):
		c.None = true
		return p.render(v, http.StatusNotFound, "about", "About", c)
	case err != nil:
		return err
	}
	c.Host = &host
	return p.render(v, http.StatusOK, "about", "About "+host.Name, c)
}
