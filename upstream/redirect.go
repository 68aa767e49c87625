// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/feedpollard/pollard/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// maxHops is how many redirects a poll follows.
const maxHops = 10

// isRedirect reports whether a status leads to another URL (RFC 9110 section
// 15.4). 300 offers a choice that nobody is there to make, and 305 and 306 are
// deprecated: these are failures like any other.
func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow tells where a redirect leads, if it may be followed.
func (p *poll) follow(from feedurl.URL, status int, header http.Header) (to feedurl.URL, ok bool) {
	to, err := p.resolve(from, header.Get("Location"))
	if err == nil {
		err = p.mayFollow(from, to)
	}
	if err != nil {
		p.fail(policy.FailureRedirect, fmt.Errorf("%s: redirect with status %d %w", from.HostPort(), status, err))
		return feedurl.URL{}, false
	}
	p.answer.Moves = append(p.answer.Moves, policy.Move{From: from.String(), To: to.String(), Status: status})
	if p.ask.Hop != nil {
		if err := p.ask.Hop(to.String()); err != nil {
			p.fail(policy.FailureDelegated, err)
			return feedurl.URL{}, false
		}
	}
	return to, true
}

// resolve reads a Location (RFC 9110 section 10.2.2) against the URL that sent it.
func (p *poll) resolve(from feedurl.URL, location string) (feedurl.URL, error) {
	if location == "" {
		return feedurl.URL{}, errors.New("without a Location")
	}
	base, err := url.Parse(from.String())
	if err != nil {
		base = &url.URL{Scheme: from.Scheme(), Path: "/"} // lone percent signs
	}
	base.User, base.Host = nil, from.HostPort()
	ref, err := url.Parse(location)
	if err != nil {
		return feedurl.URL{}, errors.New("to something that is no URL")
	}
	u := base.ResolveReference(ref)
	// Credentials are the operator's to give, not an origin's.
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	to, err := feedurl.Parse(u.String())
	if err != nil {
		return feedurl.URL{}, fmt.Errorf("leads astray: %w", err)
	}
	// They are sent to the origin that they were given for, and when a chain of
	// redirects has left it once, not even there again.
	if p.user != nil && to.Origin() == p.origin {
		to = to.WithUser(p.user)
	}
	return to, nil
}

// mayFollow refuses what no redirect may do. Its errors follow "redirect ...".
func (p *poll) mayFollow(from, to feedurl.URL) error {
	switch {
	case from.Scheme() == "https" && to.Scheme() == "http":
		return fmt.Errorf("from https to http, to %s", to.HostPort())
	case p.visited[to.WithUser(nil)]:
		return fmt.Errorf("goes round in circles, to %s", to.Redacted())
	case len(p.answer.Moves) >= maxHops:
		return fmt.Errorf("is one too many: %d were followed", maxHops)
	}
	return nil
}
