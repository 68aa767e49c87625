// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// access decides who may ask by URL, and for what. Feeds at configured paths are
// no concern of it: they are for everyone who reaches the handler.
type access struct {
	clients  clientRanges
	tokens   map[string][sha256.Size]byte // hashes of the secrets, by name
	allow    feedurl.HostTable[string]    // the patterns as written
	deny     feedurl.HostTable[string]
	list     *subscriptions // the subscription list; nil: there is none
	hasAllow bool
	// private reports whether a feed is one that the configuration names though its host
	// is not public.
	private func(u feedurl.URL) bool
}

// sender is who sends a request.
type sender struct {
	address netip.Addr // as Caddy sees it, trusted proxies considered
	// relayed says that the request claims to be passed on by a proxy, and that Caddy
	// has not been told to trust that one: the address may be the proxy's.
	relayed bool
}

func senderOf(r *http.Request) sender {
	s := sender{address: poller.Client(r)}
	if r.Header["X-Forwarded-For"] != nil || r.Header["Forwarded"] != nil || r.Header["X-Real-Ip"] != nil {
		trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
		s.relayed = !trusted
	}
	return s
}

// admit returns why a request may not have the feed of a URL, nil
// where it may. Each reason names the line of the configuration that forbids it, and
// nothing of what stands in that line: the reader may be anybody.
func (a *access) admit(by asked, from sender, u feedurl.URL) *poller.Refusal {
	if by.signed {
		if a.holder(by.secret) == "" {
			return forbidden("the token in this URL is not known: the gateway needs a `token` line for it")
		}
	} else if err := a.clients.cover(from); err != nil {
		return forbidden("%v", err)
	}
	if err := a.leads(u); err != nil {
		return forbidden("%v", err)
	}
	return nil
}

// leads tells why a feed that is asked for by URL may not be at a URL, whether it was
// asked for there or a redirect leads there.
func (a *access) leads(u feedurl.URL) error {
	host := u.Name()
	if _, denied := a.deny.Find(host); denied {
		return fmt.Errorf("the gateway's `deny` lines cover %s", host)
	}
	_, allowed := a.allow.Find(host)
	switch {
	case allowed, a.list.has(u.String()):
		return nil
	case !a.hasAllow && a.list == nil:
		if a.private != nil && a.private(u) {
			// Who has written a private feed down has not offered it to all by that.
			return fmt.Errorf("%s is not public: the gateway needs an `allow` line for it", host)
		}
		return nil
	case a.list == nil:
		return fmt.Errorf("the gateway's `allow` lines do not cover %s", host)
	case !a.hasAllow:
		return errors.New("the gateway's `opml` does not list this feed")
	}
	return fmt.Errorf("the gateway's `opml` does not list this feed, and its `allow` lines do not cover %s", host)
}

func forbidden(format string, args ...any) *poller.Refusal {
	return &poller.Refusal{Status: http.StatusForbidden, Reason: fmt.Sprintf(format, args...)}
}

// holder is the name of the token that a secret is of; empty: of none. Time tells
// nothing: all are compared, as hashes of one length.
func (a *access) holder(secret string) (found string) {
	sum := sha256.Sum256([]byte(secret))
	for name, token := range a.tokens {
		if subtle.ConstantTimeCompare(sum[:], token[:]) == 1 {
			found = name
		}
	}
	return found
}

func addressText(client netip.Addr) string {
	if !client.IsValid() {
		return "a client without an IP address"
	}
	return client.String()
}

// clientRanges are the addresses that may ask by URL.
type clientRanges struct {
	any     bool
	private bool
	ranges  []netip.Prefix
}

// cover tells why a sender may not ask; nil: it may.
func (c *clientRanges) cover(from sender) error {
	client := from.address
	if c.any || slices.ContainsFunc(c.ranges, func(p netip.Prefix) bool { return p.Contains(client) }) {
		return nil
	}
	if !c.private || !client.IsPrivate() && !client.IsLoopback() && !client.IsLinkLocalUnicast() {
		return fmt.Errorf("the gateway's `clients` line does not cover %s: it needs that address there, or a `token` for you", addressText(client))
	}
	if from.relayed {
		// Behind a proxy all of the Internet comes from that proxy's private address.
		return fmt.Errorf("this request was passed on by a proxy at %s that the gateway has not been told of: its Caddyfile needs `trusted_proxies` in the global option `servers`", client)
	}
	return nil
}

// parseClients reads private, any and CIDRs; none of them means private.
func parseClients(words []string) (c clientRanges, err error) {
	c.private = len(words) == 0
	for _, word := range words {
		switch word {
		case "any":
			c.any = true
		case "private", "private_ranges": // as Caddy calls them
			c.private = true
		default:
			p, err := config.ParseCIDR(word)
			if err != nil {
				return c, fmt.Errorf("%w, or one of private, any", err)
			}
			c.ranges = append(c.ranges, p)
		}
	}
	if c.any && len(words) > 1 {
		return c, fmt.Errorf("%q leaves nothing for the others to say", "any")
	}
	return c, nil
}

// minSecret is how many characters a secret has at least (NIST SP 800-63B section
// 5.1.1.1, of what people choose).
const minSecret = 8

// checkSecret reports why a secret cannot stand in a URL as /~<secret>/. It does
// not repeat the secret.
func checkSecret(secret string) error {
	if len(secret) < minSecret {
		return fmt.Errorf("the secret has %d characters, and can be guessed: expected at least %d, such as `openssl rand -hex 16` prints", len(secret), minSecret)
	}
	for i := range len(secret) {
		if c := secret[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`/?#%\`, c) >= 0 {
			return fmt.Errorf("the secret may hold letters, digits and signs that need no escape in a URL path, and no / ? # %% \\")
		}
	}
	return nil
}

// newAccess resolves what a gateway says of access.
func newAccess(g *Gateway, repl *caddy.Replacer) (*access, error) {
	a := new(access)
	words, err := config.Words(repl, g.Clients)
	if err == nil {
		a.clients, err = parseClients(words)
	}
	if err != nil {
		return nil, fmt.Errorf("clients: %w", err)
	}
	for _, table := range []struct {
		name     string
		patterns []string
		into     *feedurl.HostTable[string]
	}{{"allow", g.Allow, &a.allow}, {"deny", g.Deny, &a.deny}} {
		patterns, err := config.Words(repl, table.patterns)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", table.name, err)
		}
		for _, pattern := range patterns {
			if err := table.into.Add(pattern, pattern); err != nil && !errors.Is(err, feedurl.ErrDuplicate) {
				return nil, fmt.Errorf("%s: %w", table.name, err)
			}
		}
		a.hasAllow = a.hasAllow || table.name == "allow" && len(patterns) > 0
	}
	for name, value := range g.Tokens {
		secret, err := repl.ReplaceOrErr(value, true, true)
		if err != nil {
			return nil, fmt.Errorf("token %s: %w", name, err)
		}
		secret = strings.TrimSpace(secret) // a file's last line end
		if err := checkSecret(secret); err != nil {
			return nil, fmt.Errorf("token %s: %w", name, err)
		}
		if a.tokens == nil {
			a.tokens = make(map[string][sha256.Size]byte)
		}
		a.tokens[name] = sha256.Sum256([]byte(secret))
	}
	if g.OPML == "" {
		return a, nil
	}
	path, err := repl.ReplaceOrErr(g.OPML, true, true)
	if err != nil {
		return nil, fmt.Errorf("opml: %w", err)
	}
	if a.list, err = readSubscriptions(path, g.log); err != nil {
		return nil, fmt.Errorf("opml: %w: expected a subscription list that a feed reader has exported", err)
	}
	return a, nil
}
