// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"fmt"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// NamesPrivate reports whether a feed is one that a handler's configuration names,
// and whose host is not public: an address, or a name that the public DNS does not
// have. What such a feed is asked for is the operator's word alone. A public name that
// turns out to be at a private address is not one of them: its owner might have moved
// it there.
func (a *App) NamesPrivate(feed string) bool {
	if _, named := a.feeds[feed]; !named {
		return false
	}
	u, err := feedurl.Parse(feed)
	if err != nil {
		return false
	}
	if ip := u.Addr(); ip.IsValid() {
		return !ip.IsGlobalUnicast() || ip.IsPrivate()
	}
	return u.IsPrivate()
}

// AddRedirectRule adds what a gateway says of where the feeds may lead that are asked
// for through it.
func (a *App) AddRedirectRule(leads func(u feedurl.URL) error) {
	a.redirects = append(a.redirects, leads)
}

// allow tells why a feed that nobody has written down may not lead to a URL: one of
// the gateways through which it may be asked for does not let anybody ask for that.
func (a *App) allow(key, url string) error {
	from, err := feedurl.Parse(key)
	if err != nil {
		return nil // a shield's
	}
	to, err := feedurl.Parse(url)
	if err != nil {
		return err
	}
	for _, leads := range a.redirects {
		if leads(from) != nil {
			continue
		}
		if err := leads(to); err != nil {
			return fmt.Errorf("it redirects to where it may not: %w", err)
		}
	}
	return nil
}
