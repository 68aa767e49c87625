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

	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/caddymodule/refusal"
	"github.com/feedpollard/pollard/feedurl"
)

// access decides who may ask by URL, and for what. Feeds at configured paths are
// no concern of it: they are for everyone who reaches the handler.
type access struct {
	clients  clientRanges
	tokens   map[string][sha256.Size]byte // hashes of the secrets, by name
	allow    feedurl.HostTable[string]    // the patterns as written
	deny     feedurl.HostTable[string]
	listed   map[string]bool // feeds of the subscription list, by canonical URL
	opml     string          // where it is; "": there is none
	hasAllow bool
}

// admit returns why a request may not have the feed of a canonical URL, nil
// where it may. Each reason names the line of the configuration that forbids it.
func (a *access) admit(by asked, client netip.Addr, canonical string) *refusal.Refusal {
	if by.signed {
		if a.holder(by.secret) == "" {
			return forbidden("the token in this URL is not known: add a `token` line for it")
		}
	} else if !a.clients.cover(client) {
		return forbidden("clients %s does not cover %s: add it to `clients` or give it a `token`",
			a.clients.text, addressText(client))
	}
	u, err := feedurl.Parse(canonical)
	if err != nil {
		return forbidden("%v", err)
	}
	host := u.Name()
	if pattern, denied := a.deny.Find(host); denied {
		return forbidden("deny %s covers %s: remove it from `deny`", pattern, host)
	}
	_, allowed := a.allow.Find(host)
	switch {
	case allowed, a.listed[canonical], !a.hasAllow && a.opml == "":
		return nil
	case a.opml == "":
		return forbidden("allow does not cover %s: add it to `allow`", host)
	case !a.hasAllow:
		return forbidden("opml %s does not list this feed of %s: add the feed to it", a.opml, host)
	}
	return forbidden("opml %s does not list this feed, and allow does not cover %s: add it to either", a.opml, host)
}

func forbidden(format string, args ...any) *refusal.Refusal {
	return &refusal.Refusal{Status: http.StatusForbidden, Reason: fmt.Sprintf(format, args...)}
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
	text    string // as configured
	any     bool
	private bool
	ranges  []netip.Prefix
}

func (c *clientRanges) cover(client netip.Addr) bool {
	if c.any {
		return true
	}
	if c.private && (client.IsPrivate() || client.IsLoopback() || client.IsLinkLocalUnicast()) {
		return true
	}
	return slices.ContainsFunc(c.ranges, func(p netip.Prefix) bool { return p.Contains(client) })
}

// parseClients reads `private`, `any` and CIDRs; none of them means private.
func parseClients(words []string) (clientRanges, error) {
	c := clientRanges{text: strings.Join(words, " ")}
	if len(words) == 0 {
		c.text, c.private = "private", true
	}
	for _, word := range words {
		switch word {
		case "any":
			c.any = true
		case "private":
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

// checkSecret reports why a secret cannot stand in a URL as /~<secret>/. It does
// not repeat the secret.
func checkSecret(secret string) error {
	if secret == "" {
		return fmt.Errorf("the secret is empty")
	}
	for i := range len(secret) {
		if c := secret[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`/?#%\`, c) >= 0 {
			return fmt.Errorf("the secret may hold letters, digits and signs that need no escape in a URL path, and no / ? # %% \\")
		}
	}
	return nil
}

// newAccess resolves what a gateway says of access.
func newAccess(g *Gateway, repl *caddy.Replacer) (a *access, skipped int, err error) {
	a = &access{opml: g.OPML, hasAllow: len(g.Allow) > 0}
	if a.clients, err = parseClients(g.Clients); err != nil {
		return nil, 0, fmt.Errorf("clients: %w", err)
	}
	for name, table := range map[string]struct {
		patterns []string
		into     *feedurl.HostTable[string]
	}{"allow": {g.Allow, &a.allow}, "deny": {g.Deny, &a.deny}} {
		for _, pattern := range table.patterns {
			if err := table.into.Add(pattern, pattern); err != nil && !errors.Is(err, feedurl.ErrDuplicate) {
				return nil, 0, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for name, value := range g.Tokens {
		secret, err := repl.ReplaceOrErr(value, true, true)
		if err != nil {
			return nil, 0, fmt.Errorf("token %s: %w", name, err)
		}
		secret = strings.TrimSpace(secret) // a file's last line end
		if err := checkSecret(secret); err != nil {
			return nil, 0, fmt.Errorf("token %s: %w", name, err)
		}
		if a.tokens == nil {
			a.tokens = make(map[string][sha256.Size]byte)
		}
		a.tokens[name] = sha256.Sum256([]byte(secret))
	}
	if g.OPML == "" {
		return a, 0, nil
	}
	feeds, skipped, err := readOPMLFile(g.OPML)
	if err != nil {
		return nil, 0, fmt.Errorf("opml: %w: expected a subscription list that a feed reader has exported", err)
	}
	a.listed = make(map[string]bool, len(feeds))
	for _, feed := range feeds {
		a.listed[feed] = true
	}
	return a, skipped, nil
}
