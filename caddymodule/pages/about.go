// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"net/http"
	"net/mail"
	"strings"
)

// ContactLink returns a link to the contact, or "" if it is neither a URL nor an address.
func (p Poller) ContactLink() string {
	if link := webLink(p.Contact); link != "" {
		return link
	}
	if a, err := mail.ParseAddress(strings.TrimPrefix(p.Contact, "mailto:")); err == nil {
		return "mailto:" + a.Address
	}
	return ""
}

// about describes the poller for publishers. Anyone may see it, so it says nothing about any
// feed or host.
func (p *Pages) about(v *visit) error {
	return p.render(v, http.StatusOK, "about", "About", v.source.Poller())
}
