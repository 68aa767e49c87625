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
func (a *App) NamesPrivate(u feedurl.URL) bool {
	if _, named := a.feeds[u.String()]; !named {
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

// allow returns why a feed that is not configured may not lead to a URL: one of the
// gateways through which it may be requested does not serve that URL.
func (a *App) allow(from, to feedurl.URL) error {
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
