// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/feedurl"
)

func init() {
	httpcaddyfile.RegisterHandlerDirective("feed_gateway", parseGateway)
	// After auth, rewrite and encode; before all that makes content.
	httpcaddyfile.RegisterDirectiveOrder("feed_gateway", httpcaddyfile.Before, "respond")
}

func parseGateway(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	g := new(Gateway)
	return g, g.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile reads the directive feed_gateway. Syntax:
//
//	feed_gateway [<matcher>] {
//		feed <path> <url> [{
//			<policy lines>
//		}]
//		opml <file>
//		allow <host-pattern>...
//		deny <host-pattern>...
//		clients private | any | <cidr>...
//		token <name> <secret>
//		cors
//		pages off
//		rewrite off
//	}
//
// The policy lines are those of the global option pollard.
func (g *Gateway) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // directive name
	if _, err := config.SomeArgs(d, 0, 0, ""); err != nil {
		return err
	}
	return config.Lines{
		"feed":  {Read: g.readFeed, Repeat: true},
		"opml":  {Read: config.TextLine(&g.OPML, "an OPML file")},
		"allow": {Read: patternsLine(&g.Allow), Repeat: true},
		"deny":  {Read: patternsLine(&g.Deny), Repeat: true},
		"token": {Read: g.readToken, Repeat: true},
		"cors":  {Read: config.FlagLine(&g.CORS)},
		"clients": {Read: func(d *caddyfile.Dispenser) (err error) {
			if g.Clients, err = config.SomeArgs(d, 1, -1, "private, any, or address ranges such as 192.168.0.0/16"); err != nil {
				return err
			}
			if _, err := parseClients(g.Clients); err != nil {
				return d.Errf("clients: %v", err)
			}
			return nil
		}},
		"pages":   {Read: config.OffLine(&g.NoPages)},
		"rewrite": {Read: config.OffLine(&g.NoRewrite)},
	}.ReadBlock(d)
}

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
	for _, other := range g.Feeds {
		if known, err := other.path(); err == nil && known == path {
			return d.Errf("feed %s is given twice", f.Path)
		}
	}
	if err := f.Policy.Lines().ReadBlock(d); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return d.WrapErr(err)
	}
	g.Feeds = append(g.Feeds, f)
	return nil
}

func (g *Gateway) readToken(d *caddyfile.Dispenser) error {
	args, err := config.SomeArgs(d, 2, 2, "a name and a secret, such as {env.POLLARD_TOKEN}")
	if err != nil {
		return err
	}
	name, secret := args[0], args[1]
	if _, known := g.Tokens[name]; known {
		return d.Errf("token %s is given twice", name)
	}
	if !strings.Contains(secret, "{") {
		if err := checkSecret(secret); err != nil {
			return d.Errf("token %s: %v", name, err)
		}
	}
	if g.Tokens == nil {
		g.Tokens = make(map[string]string)
	}
	g.Tokens[name] = secret
	return nil
}

// patternsLine reads a line with host patterns, and adds them.
func patternsLine(to *[]string) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		patterns, err := config.SomeArgs(d, 1, -1, "hosts such as example.com or *.example.com")
		if err != nil {
			return err
		}
		for _, p := range patterns {
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
