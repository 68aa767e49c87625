// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy/document/site"
	"github.com/feedpollard/pollard/upstream"
)

// access decides which clients may request feeds by URL, and which feeds. It does not concern
// configured feeds: every client that reaches the handler may read them.
type access struct {
	clients  clientRanges
	tokens   []token
	allow    feedurl.HostTable[string] // the patterns as written
	deny     feedurl.HostTable[string]
	list     *subscriptions // nil without opml
	hasAllow bool
	// private reports whether the configuration names a feed although its host is not public.
	private func(u feedurl.URL) bool
}

// token is a secret, by its hash.
type token struct {
	name  string
	sum   [sha256.Size]byte
	asker poller.Asker
}

// client is the sender of a request by URL or for a page.
type client struct {
	door.Client
	hasToken bool         // the request has a token, so the address does not admit it
	token    *token       // nil: none, or an unknown one
	asker    poller.Asker // the clients with this token, or those that the line clients admits; 0: strangers
	// Without a token:
	named bool   // the operator has named the address
	site  string // see [door.Request.SiteToWrite]
}

func (g *Gateway) clientOf(r *door.Request, by urlRequest) client {
	from := client{Client: r.Client, hasToken: by.hasToken}
	if by.hasToken {
		if from.token = g.access.tokenOf(by.token); from.token != nil {
			from.asker = from.token.asker
		}
		return from
	}
	from.asker = g.access.clients.asker
	if from.named = g.access.clients.name(from); !g.access.clients.any {
		from.site = r.SiteToWrite()
	}
	return from
}

// authorize returns why a request may not have the feed of a URL, or nil if it may. The reason
// names the line of the configuration that forbids it, but not the contents of that line: the
// client may be anyone.
func (a *access) authorize(from client, u feedurl.URL) *door.Refusal {
	if refusal := a.admit(from); refusal != nil {
		return refusal
	}
	if err := a.checkURL(u, false); err != nil {
		return forbidden("%v", err)
	}
	return nil
}

// admit returns why a request may not have feeds by URL and see pages, or nil if it may.
func (a *access) admit(from client) *door.Refusal {
	switch {
	case from.token != nil:
	case from.hasToken:
		return forbidden("the token in this URL is not known: the gateway needs a `token` line for it")
	case !from.named && !a.clients.any:
		return a.clients.refusal(from)
	case from.site != "":
		return forbidden("a stranger may own the name that this request was sent to, and send it from your browser: "+
			"the Caddyfile needs %s as the address of the gateway's site, or request the feed with a `token`", from.site)
	}
	return nil
}

// describe says as what a client came, and why it is admitted or refused.
func (a *access) describe(from client, refusal *door.Refusal) string {
	switch {
	case from.token != nil:
		return "You come with a token, which this gateway knows."
	case refusal != nil && from.hasToken:
		return sentence(refusal.Reason)
	case refusal != nil && a.tokens != nil:
		return from.Sentence() + " " + sentence(refusal.Reason) + " If you have a token, use the address with it."
	case refusal != nil:
		return from.Sentence() + " " + sentence(refusal.Reason)
	case a.clients.any:
		return from.Sentence() + " This gateway serves any client."
	case a.clients.private && from.Private():
		return from.Sentence() + " Private addresses may use this gateway."
	}
	return from.Sentence() + " The gateway's clients line names it."
}

// checkURL reports why a feed by URL may not be at u: the requested URL, or one that redirects
// have led to. named says that they began at a URL that the configuration names: where that leads
// is the operator's choice as well, so neither allow nor opml need cover it.
func (a *access) checkURL(u feedurl.URL, named bool) error {
	host := u.Name()
	if _, denied := a.deny.Find(host); denied {
		return fmt.Errorf("the gateway's `deny` lines cover %s", host)
	}
	_, allowed := a.allow.Find(host)
	switch {
	case allowed, a.list.has(u.String()):
		return nil
	case named, !a.hasAllow && a.list == nil:
		if a.private != nil && a.private(u) {
			// Of a private host that the configuration names, only the configured feed is polled.
			// In the words of a poll: a stranger cannot tell that it is configured.
			return errors.New(upstream.PrivateAddress(u))
		}
		return nil
	case a.list == nil:
		return fmt.Errorf("the gateway's `allow` lines do not cover %s: add that host to them", host)
	case !a.hasAllow:
		return errors.New("the gateway's `opml` does not list this feed: add it to that list")
	}
	return fmt.Errorf("the gateway's `opml` does not list this feed, and its `allow` lines do not cover %s: add the feed or the host", host)
}

// listed returns the URLs of the subscription list that `deny` does not cover.
func (a *access) listed() []string {
	if a.list == nil {
		return nil
	}
	a.list.has("") // reads a changed list
	return slices.DeleteFunc(slices.Collect(maps.Keys(*a.list.feeds.Load())), func(url string) bool {
		return a.checkURL(feedurl.MustParse(url), true) != nil
	})
}

// checkFrom reports why a version may not be served by URL because of the URL from which it came.
// named says that the configuration names the requested one.
func (a *access) checkFrom(from string, named bool) error {
	u, err := feedurl.Parse(from)
	if err == nil {
		err = a.checkURL(u, named)
	}
	if err != nil {
		return forbidden("the feed redirects to a URL that the gateway does not serve: %v", err)
	}
	return nil
}

// shows reports whether the title and the feeds of a page may be shown to a client that asked for its URL.
// named says that the configuration names that.
func (a *access) shows(page *site.Page, named bool) bool {
	return page != nil && (page.From == "" || a.checkFrom(page.From, named) == nil)
}

func forbidden(format string, args ...any) *door.Refusal {
	return &door.Refusal{Status: http.StatusForbidden, Rule: door.RuleAccess, Reason: fmt.Sprintf(format, args...)}
}

// tokenOf returns the token with a secret, or nil. It takes the same time for all secrets.
func (a *access) tokenOf(secret string) (found *token) {
	sum := sha256.Sum256([]byte(secret))
	for i := range a.tokens {
		if subtle.ConstantTimeCompare(sum[:], a.tokens[i].sum[:]) == 1 {
			found = &a.tokens[i]
		}
	}
	return found
}

// clientRanges are the addresses that may request feeds by URL.
type clientRanges struct {
	any     bool // all, by that word or by ranges of so many addresses that they come to the same
	private bool
	ranges  []netip.Prefix
	asker   poller.Asker // those that they admit; 0 with any
}

// open reports whether everyone may be admitted: by any, or by a public range that is shorter than /8 of IPv4, or /16 of
// IPv6. Then they are strangers to each other.
func (c *clientRanges) open() bool {
	return c.any || slices.ContainsFunc(c.ranges, func(p netip.Prefix) bool {
		return p.Addr().Is4() && p.Bits() < 8 || p.Addr().Is6() && p.Bits() < 16
	})
}

// name reports whether the ranges name the address of a client.
func (c *clientRanges) name(from client) bool {
	return c.private && from.Private() || from.In(c.ranges)
}

// refusal says why a client is not admitted whose address is not named.
func (c *clientRanges) refusal(from client) *door.Refusal {
	if doubt := from.Doubt(); doubt != "" {
		return forbidden("%s", doubt)
	}
	return forbidden("the gateway's `clients` line does not cover %s: it needs that address there, or a `token` for you", from)
}

// parseClients parses private, any and CIDRs. No words mean private.
func parseClients(words []string) (c clientRanges, err error) {
	c.private = len(words) == 0
	for _, word := range words {
		switch word {
		case "any":
			c.any, c.private = true, true
		case "private", "private_ranges": // Caddy's name
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
		return c, fmt.Errorf("%q includes all others: write it alone", "any")
	}
	if !c.open() {
		c.asker = c.askerOf()
	}
	return c, nil
}

// minSecret is the least number of characters of a secret (NIST SP 800-63B section 5.1.1.1, of
// secrets that people choose).
const minSecret = 8

// checkSecret reports why a secret cannot stand in a URL as /~<secret>/. The error does not
// contain the secret.
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

// askerOf returns the clients that ranges admit. Gateways with the same words have the same ones,
// whatever their order.
func (c *clientRanges) askerOf() poller.Asker {
	words := make([]string, 0, len(c.ranges)+1)
	for _, p := range c.ranges {
		words = append(words, p.Masked().String())
	}
	if c.private {
		words = append(words, "private")
	}
	slices.Sort(words)
	return poller.AskerOf("clients " + strings.Join(slices.Compact(words), " "))
}

// ownerOf returns the owner that a new feed counts for which a client asks for.
func (a *access) ownerOf(e *poller.Engine, from client, canonical string) store.Owner {
	if a.list.has(canonical) {
		return store.Operator
	}
	return e.OwnerOf(from.asker)
}

// newAccess resolves the lines of a gateway about access.
func newAccess(g *Gateway, repl *caddy.Replacer) (*access, error) {
	a := new(access)
	words, err := config.Words(repl, g.Clients)
	if err == nil {
		a.clients, err = parseClients(words)
	}
	if err != nil {
		return nil, fmt.Errorf("clients: %w", err)
	}
	if a.hasAllow, err = addPatterns(&a.allow, repl, g.Allow); err != nil {
		return nil, fmt.Errorf("allow: %w", err)
	}
	if _, err := addPatterns(&a.deny, repl, g.Deny); err != nil {
		return nil, fmt.Errorf("deny: %w", err)
	}
	for name, value := range g.Tokens {
		secret, err := config.Replace(repl, value)
		if err != nil {
			return nil, fmt.Errorf("token %s: %w", name, err)
		}
		secret = strings.TrimSpace(secret) // a file ends with a line break
		if err := checkSecret(secret); err != nil {
			return nil, fmt.Errorf("token %s: %w", name, err)
		}
		if other := a.tokenOf(secret); other != nil {
			return nil, fmt.Errorf("the tokens %s and %s have the same secret: give each person another one", min(name, other.name), max(name, other.name))
		}
		a.tokens = append(a.tokens, token{name, sha256.Sum256([]byte(secret)), poller.AskerOf("token " + secret)})
	}
	if g.OPML == "" {
		return a, nil
	}
	path, err := config.Replace(repl, g.OPML)
	if err != nil {
		return nil, fmt.Errorf("opml: %w", err)
	}
	if a.list, err = readSubscriptions(path, g.log); err != nil {
		return nil, fmt.Errorf("opml: %w: expected a subscription list that a feed reader has exported", err)
	}
	return a, nil
}

// addPatterns adds host patterns to a table, and reports whether there were any.
func addPatterns(table *feedurl.HostTable[string], repl *caddy.Replacer, lines []string) (any bool, err error) {
	patterns, err := config.Words(repl, lines)
	if err != nil {
		return false, err
	}
	for _, pattern := range patterns {
		if err := table.Add(pattern, pattern); err != nil && !errors.Is(err, feedurl.ErrDuplicate) {
			return false, err
		}
	}
	return len(patterns) > 0, nil
}
