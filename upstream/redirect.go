// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// How many redirects a poll follows: in all, and to other hosts than the one before. A feed
// without a version may be invented, so that a chain of hosts multiplies its requests.
const (
	maxHops      = 10
	maxOthers    = 5
	maxOthersNew = 3
)

// maxPublicURL is the longest URL that a stranger's feed may redirect to, in bytes: it is remembered.
const maxPublicURL = 2048

// isRedirect reports whether a status leads to another URL (RFC 9110 section
// 15.4). 300 needs a person to choose, and 305 and 306 are deprecated: they are failures.
func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow follows the redirect of the last response, if it may. It reports whether there is
// another request to send.
func (p *poll) follow(ctx context.Context) bool {
	status := p.answer.Status
	to, err := p.resolve(p.answer.Header.Get("Location"))
	if err != nil {
		p.fail(policy.FailureRedirect, fmt.Errorf("redirect with status %d %w", status, err))
		return false
	}
	// Hop may claim the URL, so that it must not be called for one that is refused.
	if err := p.mayFollow(to); err != nil {
		p.fail(policy.FailureRedirect, plain(fmt.Sprintf("redirect with status %d %v", status, err), errors.New(to.Redacted())))
		return false
	}
	if err := p.client.guardOf(to, p.public).checkHost(to); err != nil {
		p.fail(policy.FailureAddress, err)
		return false
	}
	if nameOf(to) != nameOf(p.url) {
		p.others++
	}
	p.answer.Moves = append(p.answer.Moves, policy.Move{From: p.url.String(), To: to.String(), Status: status})
	began := time.Now()
	defer func() { p.hopWait -= time.Since(began) }()
	waiting, cancel := context.WithTimeout(ctx, p.hopWait)
	defer cancel()
	if p.ask.Hop != nil {
		if err := p.ask.Hop(waiting, to, p.client.Host(to)); err != nil {
			p.fail(policy.FailureHeld, err)
			return false
		}
	}
	h, err := p.client.enter(waiting, to)
	switch {
	case err == nil:
		p.url, p.host = to, h
		return true
	case ctx.Err() != nil:
		p.failed(ctx, phaseConnecting, err)
	default:
		p.fail(policy.FailureHeld, fmt.Errorf("redirects to %s: %w", to.HostPort(), errLate))
	}
	return false
}

// resolve reads a Location (RFC 9110 section 10.2.2) against the URL that sent it.
func (p *poll) resolve(location string) (feedurl.URL, error) {
	from := p.url
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
		return feedurl.URL{}, errors.New("to something that is not a URL")
	}
	u := base.ResolveReference(ref)
	// Credentials come from the operator, never from an origin.
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	to, err := feedurl.Parse(u.String())
	if err != nil {
		return feedurl.URL{}, fmt.Errorf("leads astray: %w", err)
	}
	// They are sent only to their origin, and not any more once a redirect has left it.
	if p.user != nil && to.Origin() == p.origin {
		to = to.WithUser(p.user)
	}
	return to, nil
}

// mayFollow returns an error, to follow "redirect ...", if a redirect is forbidden.
func (p *poll) mayFollow(to feedurl.URL) error {
	switch {
	case p.url.Scheme() == "https" && to.Scheme() == "http":
		return fmt.Errorf("from https to http, to %s", to.HostPort())
	case p.visited[to.WithUser(nil)]:
		return fmt.Errorf("goes round in circles, to %s", to.HostPort())
	case p.ask.Standing == policy.StandingStranger && len(to.String()) > maxPublicURL:
		return fmt.Errorf("to a URL of more than %d bytes", maxPublicURL)
	case len(p.answer.Moves) >= maxHops:
		return fmt.Errorf("is one too many: %d were followed", maxHops)
	}
	most := maxOthers
	if p.ask.Standing != policy.StandingKnown {
		most = maxOthersNew
	}
	if nameOf(to) != nameOf(p.url) && p.others >= most {
		return fmt.Errorf("is one too many: %d to other hosts were followed", most)
	}
	return nil
}
