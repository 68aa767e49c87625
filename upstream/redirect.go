// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// maxHops is how many redirects a poll follows.
const maxHops = 5

// leastHopWait is how long a redirect waits for the site that it leads to, at least: otherwise for two spacings.
const leastHopWait = 10 * time.Second

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
	cookies := p.setCookies()
	if err := p.mayFollow(to); err != nil {
		p.fail(policy.FailureRedirect, plain(fmt.Sprintf("redirect with status %d %v", status, err), errors.New(to.Redacted())))
		return false
	}
	g := p.client.guardOf(to, p.public)
	if err := g.checkHost(to); err != nil {
		p.fail(policy.FailureAddress, err)
		return false
	}
	ends := p.ask.EndAtMove && len(p.answer.Moves) == 0 && !cookies && p.moved(to)
	if ends { // the feed there is polled for itself, without anything that says where the redirect came from
		if address, ok := errors.AsType[*AddressError](p.client.resolve(ctx, g, to)); ok {
			p.fail(policy.FailureAddress, plain("its address is "+address.Reason, address))
			return false
		}
	}
	p.answer.Moves = append(p.answer.Moves, policy.Move{From: p.url.String(), To: to.String(), Status: status})
	if ends {
		p.answer.Failure = policy.FailureMoved
		return false
	}
	return p.hop(ctx, to)
}

// moved reports whether the feed is at another URL from now on. Otherwise the redirect is followed each time: it
// needs a cookie, is not safe enough to be remembered, or leads to what belongs to someone else.
func (p *poll) moved(to feedurl.URL) bool {
	switch status := p.answer.Status; {
	case status != http.StatusMovedPermanently && status != http.StatusPermanentRedirect:
		return false
	case p.url.Scheme() == "https" && to.Scheme() == "http":
		return false
	}
	return to.Origin() == p.url.Origin() || !secret(to)
}

// secret reports whether a URL has a part that only some may know.
func secret(u feedurl.URL) bool { return u.Redacted() != u.String() }

// hop takes the place of a request to where a redirect leads, when its site may be asked. The place at the one before
// is given back first: redirects to each other's host would wait for each other.
func (p *poll) hop(ctx context.Context, to feedurl.URL) bool {
	p.client.hosts.leave(p.host)
	p.host = nil
	host, began := p.client.Host(to), time.Now()
	defer func() { p.hopWait -= time.Since(began) }()
	within, cancel := context.WithTimeout(ctx, min(max(leastHopWait, 2*host.Spacing), p.hopWait))
	defer cancel()
	if p.ask.Hop != nil {
		if wait, err := p.ask.Hop(within, to, host); err != nil {
			p.answer.HeldFor = wait
			p.fail(policy.FailureHeld, err)
			return false
		}
	}
	h, err := p.client.enter(within, to)
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

// addCookies adds the cookies that redirects of this poll have set for a URL.
func (p *poll) addCookies(r *http.Request, t feedurl.URL) {
	if p.cookies == nil {
		return
	}
	for _, c := range p.cookies.Cookies(cookieURL(t)) {
		r.AddCookie(c)
	}
}

// setCookies keeps the cookies of a redirect until the end of the poll: some sites come to their feed only with one.
// It reports whether there are any.
func (p *poll) setCookies() bool {
	set := (&http.Response{Header: p.answer.Header}).Cookies()
	if len(set) == 0 {
		return false
	}
	if p.cookies == nil {
		p.cookies, _ = cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List}) // it never fails
	}
	p.cookies.SetCookies(cookieURL(p.url), set)
	clear(p.visited) // the same URL may answer something else now
	return true
}

func cookieURL(u feedurl.URL) *url.URL {
	return &url.URL{Scheme: u.Scheme(), Host: u.HostPort(), Path: u.Path()}
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
	case p.url.Scheme() == "https" && to.Scheme() == "http" && (secret(p.ask.URL) || secret(to)):
		return fmt.Errorf("from https to http, to %s: the URL has a secret, which others could read on its way", to.HostPort())
	case p.visited[to.WithUser(nil)]:
		return fmt.Errorf("goes round in circles, to %s", to.HostPort())
	case p.ask.Stranger && len(to.String()) > maxPublicURL:
		return fmt.Errorf("to a URL of more than %d bytes", maxPublicURL)
	case len(p.answer.Moves) >= maxHops:
		return fmt.Errorf("is one too many: %d were followed", maxHops)
	}
	return nil
}
