// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

func init() {
	httpcaddyfile.RegisterDirective("feed_gateway", parseGateway)
	// Directives that decide who may read a feed, respond included, run before it.
	httpcaddyfile.RegisterDirectiveOrder("feed_gateway", httpcaddyfile.Before, "reverse_proxy")
}

func parseGateway(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // directive name
	site := config.SiteOf(h)
	matchers, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, err
	}
	g := &Gateway{rulesAround: rulesAround(h)}
	if err := g.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	if err := g.checkReach(config.Paths(matchers)); err != nil {
		return nil, h.Errf("feed_gateway: %v", err)
	}
	h.Reset()
	h.Next() // again, for the line of warnings
	config.WarnOfSite(h, site)
	g.warnOfSite(h, site)
	return h.NewRoute(matchers, g), nil
}

// rulesAround returns the rules that the global option gives feeds, or nil if they are not known yet, as a placeholder has
// no value here.
func rulesAround(h httpcaddyfile.Helper) func(feedurl.URL) policy.Rules {
	option, _ := h.Option("pollard").(httpcaddyfile.App) // empty without the option: all defaults
	app, err := poller.Resolve(option.Value)
	if err != nil {
		return nil
	}
	return app.RulesFor
}

// warnOfSite warns of what the directives around the gateway make of it.
func (g *Gateway) warnOfSite(h httpcaddyfile.Helper, site config.Site) {
	for i, level := range site.Levels {
		if pattern := config.Matcher(level.Own); level.Own.Directive() == "handle" && strings.HasPrefix(pattern, "/") {
			paths := config.Paths(caddy.ModuleMap{"path": caddyconfig.JSON([]string{pattern}, nil)})
			if err := g.checkReach(paths); err != nil {
				config.Warn(h.Dispenser, "feed_gateway in handle %s: %v", pattern, err)
			}
		}
		for _, other := range level.Before {
			if other.Directive() == level.Own.Directive() && other[0].Line < h.Line() && i == len(site.Levels)-1 && config.Matcher(other)+config.Matcher(level.Own) == "" {
				config.Warn(h.Dispenser, "feed_gateway: the one at line %d answers feeds by URL and has the pages, so most lines of this one have no effect: write all lines into one", other[0].Line)
			}
		}
	}
	for _, f := range g.Feeds {
		if f.Path == "/" {
			config.Warn(h.Dispenser, "feed /: it takes the place of the gateway's home page, which is at %s then: choose another path", pagesBelow)
		}
		if u, err := feedurl.ParseWritten(f.URL); err == nil && g.leadsToFeed(u.RequestURL()) && slices.ContainsFunc(site.Addresses, func(a string) bool { return leadsTo(a, u) }) {
			config.Warn(h.Dispenser, "feed %s: its URL is an address of this gateway, which would poll itself: write the URL that the feed has at its site", f.Path)
		}
		if at := openSite(site, f.URL); at != "" && h.Option("default_bind") == nil {
			config.Warn(h.Dispenser, "feed %s: the site %s is open to others: it answers at every address of this machine to all who send its name as Host: write bind 127.0.0.1 into it", f.Path, at)
		}
	}
}

// openSite returns the address of a site at loopback to which the URL of a feed leads, and which looks as if only this machine
// could reach it; empty if there is none.
func openSite(site config.Site, written string) string {
	u, err := feedurl.ParseWritten(written)
	if err != nil {
		return ""
	}
	ip, err := netip.ParseAddr(u.Name())
	if u.Name() != "localhost" && (err != nil || !ip.IsLoopback()) {
		return ""
	}
	i := slices.IndexFunc(site.Unbound, func(address string) bool {
		return strings.Contains(address, u.Name()) && !slices.Contains(site.Addresses, address) && leadsTo(address, u)
	})
	if i < 0 {
		return ""
	}
	return site.Unbound[i]
}

// leadsToFeed reports whether the gateway has a feed at a path or by URL.
func (g *Gateway) leadsToFeed(u *url.URL) bool {
	_, byURL := parseByURL(u, nil)
	_, chosen := g.paths[u.Path]
	return byURL || chosen
}

// leadsTo reports whether a URL leads to the site at an address of the Caddyfile.
func leadsTo(address string, u feedurl.URL) bool {
	a, err := httpcaddyfile.ParseAddress(address)
	if err != nil {
		return false
	}
	host, port := u.Name(), cmp.Or(a.Port, map[string]string{"http": "80"}[a.Scheme], "443")
	if a.Host == "" || a.Host == "*" { // it is for any host, and this machine's is known
		ip, err := netip.ParseAddr(host)
		return u.Port() == port && (host == "localhost" || err == nil && ip.IsLoopback())
	}
	name, err := feedurl.ParseHost(a.Host)
	return err == nil && name == host && (u.Port() == port || a.Port == "" && a.Scheme == "")
}

// checkReach reports feeds and addresses that the matcher of the directive excludes.
func (g *Gateway) checkReach(paths caddyhttp.MatchPath) error {
	for _, f := range g.Feeds {
		if path, err := f.path(); err == nil && !config.HasPlaceholder(path) && !config.Admits(paths, path) {
			return fmt.Errorf("feed %s: the gateway gets no request for it, because its matcher does not match it", f.Path)
		}
	}
	below := func(pattern string) bool { // neither a URL nor a page begins with it
		if g.hasPages() && strings.HasPrefix(pattern, pagesBelow) {
			return false
		}
		segment, _, more := strings.Cut(strings.TrimPrefix(pattern, "/"), "/")
		_, byURL := parseByURL(&url.URL{Path: "/" + segment + "/https://example.com/"}, nil)
		return more && !strings.Contains(segment, "*") && !byURL
	}
	if len(g.Feeds) == 0 && len(paths) > 0 && !slices.ContainsFunc(paths, func(p string) bool { return !below(p) }) {
		return fmt.Errorf("feeds by URL are at /https://host/path, which the matcher %s does not match: put the gateway, without a matcher, into handle_path %s", paths[0], paths[0])
	}
	return nil
}

// UnmarshalCaddyfile parses the directive feed_gateway. Syntax:
//
//	feed_gateway [<matcher>] {
//		feed <path> <url> [{
//			<policy lines>
//		}]
//		opml <file>
//		allow <host-pattern>...
//		deny <host-pattern>...
//		clients private | private_ranges | any | <cidr>...
//		token <name> <secret>
//		cors
//		pages off
//	}
//
// The policy lines are those of the global option pollard.
func (g *Gateway) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // directive name
	if _, err := config.SomeArgs(d, 0, 0, ""); err != nil {
		return err
	}
	g.paths = make(map[string]string)
	return config.Lines{
		"feed":  {Read: g.readFeed, Repeat: true},
		"opml":  {Read: g.readOPML},
		"allow": {Read: patternsLine(&g.Allow), Repeat: true},
		"deny":  {Read: patternsLine(&g.Deny), Repeat: true},
		"token": {Read: g.readToken, Repeat: true},
		"cors":  {Read: config.FlagLine(&g.CORS)},
		"clients": {Read: func(d *caddyfile.Dispenser) (err error) {
			if g.Clients, err = config.SomeArgs(d, 1, -1, "private, any, or address ranges such as 192.168.0.0/16"); err != nil {
				return err
			}
			if slices.ContainsFunc(g.Clients, config.HasPlaceholder) {
				return nil
			}
			c, err := parseClients(g.Clients)
			if err != nil {
				return d.Errf("clients: %v", err)
			}
			for _, p := range c.ranges {
				if a := p.Addr(); p.IsSingleIP() && a.AsSlice()[a.BitLen()/8-1] == 0 {
					config.Warn(d, "clients: %s is one address, and looks like the first of a range: write %[1]s/24, or how long the range is", a)
				}
			}
			return nil
		}},
		"readers": {Unused: noReaders},
		"pages":   {Read: config.ParsedLine(&g.Pages, config.ParseOff, "off")},
		"rewrite": {Removed: "a gateway always makes links absolute, and a shield never changes a byte. Delete the line"},
	}.With(policyLines).With(config.OfSite("feed_gateway")).ReadBlock(d)
}

// policyLines are lines that people write into a gateway by mistake.
var policyLines = new(config.Policy).Lines().Belong("in the global option pollard, or in the block of a feed line").
	With(config.BelongTo("in the global option pollard", "prefetch", "contact", "user_agent", "store", "private_upstreams", "proxy", "host", "websub"))

func (g *Gateway) readFeed(d *caddyfile.Dispenser) error {
	args, err := config.SomeArgs(d, 2, 2, "a path and the URL of the feed")
	if err != nil {
		return err
	}
	f := Feed{Path: args[0], URL: args[1]}
	if err := f.check(); err != nil {
		return d.WrapErr(err)
	}
	path, err := f.path()
	if err != nil {
		return d.WrapErr(err)
	}
	if _, taken := g.paths[path]; taken {
		return d.Errf("feed %s is given twice", f.Path)
	}
	if err := f.Policy.Lines().ReadBlock(d); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return d.WrapErr(err)
	}
	if u, err := feedurl.ParseWritten(f.URL); err == nil && g.rulesAround != nil {
		if _, err := f.Policy.Over(g.rulesAround(u)); err != nil {
			return d.Errf("feed %s: %v", f.Path, err)
		}
	}
	g.Feeds, g.paths[path] = append(g.Feeds, f), f.URL
	return nil
}

// readOPML parses the line opml. A path is relative to the Caddyfile: a service may have any
// working directory.
func (g *Gateway) readOPML(d *caddyfile.Dispenser) (err error) {
	if g.OPML, err = config.OneArg(d, "an OPML file"); err != nil {
		return err
	}
	if strings.HasPrefix(g.OPML, "http://") || strings.HasPrefix(g.OPML, "https://") {
		return d.Errf("opml: %q is not a file: download the list, and name that file", g.OPML)
	}
	if !filepath.IsAbs(g.OPML) && !strings.HasPrefix(g.OPML, "{") {
		g.OPML = filepath.Join(filepath.Dir(d.File()), g.OPML)
	}
	if _, err := os.Stat(g.OPML); errors.Is(err, fs.ErrNotExist) && !config.HasPlaceholder(g.OPML) {
		config.Warn(d, "opml: there is no file %s here: export a list from a feed reader, and put it there", g.OPML)
	}
	return nil
}

func (g *Gateway) readToken(d *caddyfile.Dispenser) error {
	args, err := config.SomeArgs(d, 2, 2, "a name and a secret, such as {env.POLLARD_TOKEN}")
	if err != nil {
		return err
	}
	name, secret := args[0], args[1]
	if _, ok := g.Tokens[name]; ok {
		return d.Errf("token %s is given twice", name)
	}
	if name == "" {
		config.Warn(d, "token: its name is empty, so it admits nobody: write token <name> <secret>")
	}
	if standIn.MatchString(inForce(secret)) {
		config.Warn(d, "token %s: its secret looks like a placeholder, which others can guess: write what `openssl rand -hex 16` prints, or {env.NAME} for a secret of the environment", name)
	}
	if !config.HasPlaceholder(secret) {
		if err := checkSecret(secret); err != nil {
			return d.Errf("token %s: %v", name, err)
		}
	}
	for other, taken := range g.Tokens {
		if taken == secret || inForce(taken) != "" && inForce(taken) == inForce(secret) {
			return d.Errf("token %s: it has the secret of %s: give each person another one", name, other)
		}
	}
	if g.Tokens == nil {
		g.Tokens = make(map[string]string)
	}
	g.Tokens[name] = secret
	return nil
}

// standIn matches a secret that stands for another one, as of a shell or an example: $TOKEN, <secret>, changeme, ALICE_TOKEN.
var standIn = regexp.MustCompile(`^(\$.*|<.*>|(?i:changeme)|[A-Z]*_[A-Z_]*)$`)

// inForce returns a secret with the placeholders replaced that are known here.
func inForce(secret string) string {
	return strings.TrimSpace(caddy.NewReplacer().ReplaceKnown(secret, ""))
}

// patternsLine returns a function that adds the host patterns of a line.
func patternsLine(to *[]string) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		patterns, err := config.SomeArgs(d, 1, -1, "hosts such as example.com or *.example.com")
		if err != nil {
			return err
		}
		for _, p := range patterns {
			if config.HasPlaceholder(p) {
				continue
			}
			if _, err := feedurl.ParsePattern(p); err != nil {
				return d.Errf("%s: %v", name, err)
			}
		}
		*to = append(*to, patterns...)
		return nil
	}
}

// Interface guard.
var _ caddyfile.Unmarshaler = (*Gateway)(nil)
