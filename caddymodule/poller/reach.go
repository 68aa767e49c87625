// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"fmt"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// NamesPrivate reports whether a handler's configuration names this feed at a host that
// is not public: an address, or a name that the public DNS does not have. Such a feed may
// be polled without private_upstreams, because only the operator can name it. A public
// name with a private address does not count: its owner may have changed the address.
func (a *App) NamesPrivate(u feedurl.URL) bool {
	if _, named := a.feeds[u.String()]; !named {
		return false
	}
	if ip := u.Addr(); ip.IsValid() {
		return !ip.IsGlobalUnicast() || ip.IsPrivate()
	}
	return u.IsPrivate()
}

// AddRedirectRule adds a gateway's rule for redirects of the feeds that are requested
// through it. leads returns an error if such a feed may not redirect to u.
func (a *App) AddRedirectRule(leads func(u feedurl.URL) error) {
	a.redirects = append(a.redirects, leads)
}

// allow returns an error if a feed that is not configured may not redirect to a URL,
// because a gateway that serves the feed does not serve that URL.
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
