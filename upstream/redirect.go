// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

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
func (p *poll) follow(from target, status int, header http.Header) (to target, ok bool) {
	to, err := p.resolve(from, header.Get("Location"))
	if err == nil {
		err = p.mayFollow(from, to)
	}
	if err != nil {
		p.fail(policy.FailureRedirect, fmt.Errorf("%s: redirect with status %d %w", from.host, status, err))
		return target{}, false
	}
	p.answer.Moves = append(p.answer.Moves, policy.Move{From: from.url, To: to.url, Status: status})
	if p.ask.Hop != nil {
		if err := p.ask.Hop(to.url); err != nil {
			p.fail(policy.FailureDelegated, err)
			return target{}, false
		}
	}
	return to, true
}

// resolve reads a Location (RFC 9110 section 10.2.2) against the URL that sent it.
func (p *poll) resolve(from target, location string) (target, error) {
	if location == "" {
		return target{}, errors.New("without a Location")
	}
	base, err := url.Parse(from.url)
	if err != nil {
		base = &url.URL{Scheme: from.scheme, Path: "/"} // lone percent signs
	}
	base.User, base.Host = nil, from.host
	ref, err := url.Parse(location)
	if err != nil {
		return target{}, errors.New("to something that is no URL")
	}
	u := base.ResolveReference(ref)
	// Credentials are the operator's to give, not an origin's.
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	to, err := parseTarget(u.String())
	if err != nil {
		return target{}, fmt.Errorf("leads astray: %w", err)
	}
	to.url = to.scheme + "://" + to.host + to.path + to.query
	// They are sent to the origin that they were given for, and when a chain of
	// redirects has left it once, not even there again.
	if p.user != nil && to.origin() == p.origin {
		to.user = p.user
		to.url = to.scheme + "://" + p.user.String() + "@" + to.host + to.path + to.query
	}
	return to, nil
}

// mayFollow refuses what no redirect may do. Its errors follow "redirect ...".
func (p *poll) mayFollow(from, to target) error {
	switch {
	case from.scheme == "https" && to.scheme == "http":
		return fmt.Errorf("from https to http, to %s", to.host)
	case p.visited[to.key()]:
		return fmt.Errorf("goes round in circles, to %s", policy.Redact(to.url))
	case len(p.answer.Moves) >= maxHops:
		return fmt.Errorf("is one too many: %d were followed", maxHops)
	}
	return nil
}
