// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// Host is a policy for the feeds of some hosts, with their pace.
type Host struct {
	// A host (`example.com`), all hosts below a domain (`*.example.com`), or all
	// hosts (`*`).
	Pattern string `json:"pattern"`

	// The rules for the host's feeds.
	config.Policy

	// The least time between the last poll of the host's site and one of the host; 0 for none. Default: `2s`.
	// The other hosts of the site wait while this one does, and for the same time after its poll.
	Spacing *caddy.Duration `json:"spacing,omitempty"`

	// The most polls of the host at the same time, and half of those of its site. Default: 1.
	Concurrency int `json:"concurrency,omitempty"`

	// The proxy for requests to the host, as the app's own `proxy` for all hosts, or `off`
	// for none. Hosts that the pattern names need not be known outside of the proxy:
	// `host *.onion { proxy socks5h://127.0.0.1:9050 }`.
	Proxy string `json:"proxy,omitempty"`

	rules policy.Rules // for its feeds
}

func (h *Host) check() error {
	if _, err := feedurl.ParsePattern(h.Pattern); err != nil {
		return fmt.Errorf("host: %w", err)
	}
	if err := h.Policy.Check(); err != nil {
		return fmt.Errorf("host %s: %w", h.Pattern, err)
	}
	if h.Spacing != nil && *h.Spacing < 0 {
		return fmt.Errorf("host %s: spacing: %s is negative", h.Pattern, config.FormatDuration(*h.Spacing))
	}
	if h.Concurrency < 0 {
		return fmt.Errorf("host %s: concurrency: %d is negative", h.Pattern, h.Concurrency)
	}
	if err := checkProxy(h.Proxy); err != nil {
		return fmt.Errorf("host %s: proxy: %w", h.Pattern, err)
	}
	return nil
}

// checkProxy returns an error if a text is not a proxy. Placeholders are replaced later.
func checkProxy(text string) error {
	if text == "" || config.HasPlaceholder(text) {
		return nil
	}
	_, err := upstream.ParseProxy(text)
	return err
}

// hostRules returns how hosts are reached. The app's own lines are a rule for *, which a host
// * overrides.
func (a *App) hostRules(repl *caddy.Replacer) ([]upstream.HostRule, error) {
	var failed error
	rule := func(pattern string, spacing *caddy.Duration, concurrency int, proxy string) upstream.HostRule {
		r := upstream.HostRule{Pattern: pattern, Concurrency: concurrency}
		if proxy != "" {
			text, err := config.Replace(repl, proxy)
			if err == nil {
				r.Proxy, err = upstream.ParseProxy(strings.TrimSpace(text)) // a file ends with a line break
			}
			if err != nil {
				failed = fmt.Errorf("proxy of host %s: %w", pattern, err)
			}
		}
		if spacing != nil {
			if r.Spacing = time.Duration(*spacing); r.Spacing == 0 {
				r.Spacing = -1 // no spacing; 0 means unset
			}
		}
		return r
	}
	all := rule("*", a.Spacing, a.Concurrency, a.Proxy)
	var rules []upstream.HostRule
	for _, h := range a.Hosts {
		own := rule(h.Pattern, h.Spacing, h.Concurrency, h.Proxy)
		if h.Pattern != "*" {
			rules = append(rules, own)
			continue
		}
		all.Spacing, all.Concurrency = cmp.Or(own.Spacing, all.Spacing), cmp.Or(own.Concurrency, all.Concurrency)
		all.Proxy = cmp.Or(own.Proxy, all.Proxy)
	}
	return append(rules, all), failed
}

// resolveRules computes the rules for all feeds and for those of hosts.
func (a *App) resolveRules() (err error) {
	if a.rules, err = a.Policy.Over(policy.DefaultRules()); err != nil {
		return err
	}
	a.hosts = feedurl.HostTable[*Host]{}
	for i := range a.Hosts {
		h := &a.Hosts[i]
		if err := h.check(); err != nil {
			return err
		}
		if err := a.hosts.Add(h.Pattern, h); err != nil {
			return fmt.Errorf("host %s is given twice", h.Pattern) // check has passed the pattern
		}
	}
	for i := range a.Hosts {
		h := &a.Hosts[i]
		normal, err := feedurl.ParsePattern(h.Pattern)
		if err != nil {
			return fmt.Errorf("host: %w", err)
		}
		h.rules = a.rules
		for _, covering := range a.hosts.Covering(normal) { // its own is the last, as the most specific
			if h.rules, err = covering.Over(h.rules); err != nil {
				return fmt.Errorf("host %s: %w", h.Pattern, err)
			}
		}
	}
	return nil
}

// Name registers a feed that a handler's configuration names, with its policy.
func (a *App) Name(feed feedurl.URL, p config.Policy) error {
	rules, err := p.Over(a.rulesForHost(feed))
	if err != nil {
		return err
	}
	if other, ok := a.feeds[feed.String()]; ok {
		rules = rules.Stricter(other)
	}
	a.feeds[feed.String()] = rules
	ip := feed.Addr()
	if ip.IsValid() && (!ip.IsGlobalUnicast() || ip.IsPrivate()) || !ip.IsValid() && feed.IsPrivate() {
		a.private[feed.String()] = slices.ContainsFunc(a.upstream.Private, func(p netip.Prefix) bool { return p.Contains(ip) })
	}
	return nil
}

// RulesFor returns the rules for the feed at a URL.
func (a *App) RulesFor(feed feedurl.URL) policy.Rules {
	if rules, ok := a.feeds[feed.String()]; ok {
		return rules
	}
	return a.rulesForHost(feed)
}

func (a *App) rulesForHost(feed feedurl.URL) policy.Rules {
	if h, ok := a.hosts.Find(feed.Name()); ok {
		return h.rules
	}
	return a.rules
}

// NamedOnly reports whether a feed at a private address is polled only because the configuration names
// it, and private_upstreams does not cover that address.
func (a *App) NamedOnly(u feedurl.URL) bool {
	covered, named := a.private[u.String()]
	return named && !covered
}

// NamesPrivate reports whether a handler's configuration names this feed at a host that
// is not public: an address, or a name that the public DNS does not have. Such a feed may
// be polled without private_upstreams, because only the operator can name it. A public
// name with a private address does not count: its owner may have changed the address.
func (a *App) NamesPrivate(u feedurl.URL) bool {
	_, named := a.private[u.String()]
	return named
}

// namesOrigin reports whether a handler's configuration names a feed with the scheme, name and port of
// a URL.
func (a *App) namesOrigin(u feedurl.URL) bool {
	return slices.ContainsFunc(a.names, func(n Names) bool { return n.NamesAt(u.Origin()) })
}
