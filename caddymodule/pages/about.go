// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"net/http"
	"net/mail"
	"strings"
	"time"

	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// Poller describes who polls, and how often.
type Poller struct {
	Contact     string // a URL or mail address; may be empty
	UserAgent   string // as sent
	MinInterval time.Duration
	MaxInterval time.Duration
	Spacing     time.Duration // between two polls of a host
	Concurrency int           // polls of a host at a time
}

// NewPoller describes the poller with these settings. The rules are those of most feeds.
func NewPoller(u upstream.Settings, rules policy.Rules) Poller {
	spacing, concurrency := u.Pace("")
	return Poller{u.Contact, u.Agent(0), rules.MinInterval, rules.MaxInterval, spacing, concurrency}
}

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
	return p.render(v, http.StatusOK, "about", "About", p.Poller)
}
