// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/config"
)

func init() {
	httpcaddyfile.RegisterDirective("feed_shield", parseShield)
	// Directives that decide who may read a feed, respond included, run before it.
	httpcaddyfile.RegisterDirectiveOrder("feed_shield", httpcaddyfile.Before, "reverse_proxy")
}

// parseShield parses the directive feed_shield, with its matcher.
func parseShield(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // directive name
	site := config.SiteOf(h)
	s := new(Shield)
	matchers, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, err
	}
	if err := s.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	if err := s.finish(h); err != nil {
		return nil, err
	}
	for _, line := range []struct{ name, path, asked, pattern string }{
		{"status", s.Status, strings.TrimRight(s.Status, "/") + "/feeds", s.Status + "*"}, {"ping", s.Ping, s.Ping, s.Ping},
	} {
		if paths := config.Paths(matchers); line.path != "" && !config.Admits(paths, line.asked) {
			return nil, h.Errf("%s: the shield gets no request for %s, because its matcher does not match it: write @feeds path %s %s, and feed_shield @feeds",
				line.name, line.asked, strings.Join(paths, " "), line.pattern)
		}
	}
	h.Reset()
	h.Next() // again, for the line of warnings
	config.WarnOfSite(h, site)
	for _, level := range site.Levels {
		for _, other := range level.Before {
			if other.Directive() == "request_header" {
				config.Warn(h.Dispenser, "feed_shield: polls do not have what request_header at line %d sets: write it into the origin block", other[0].Line)
			}
		}
	}
	return h.NewRoute(matchers, s), nil
}

// UnmarshalCaddyfile parses the directive feed_shield. Syntax:
//
//	feed_shield [<matcher>] {
//		origin {
//			<directives>...
//		}
//		<policy lines>
//		query ignore | keep <parameter>...
//		vary ignore <field>...
//		ping <path>
//		status <path>
//		defend [{
//			max_rate            <requests> <duration>
//			unconditional       <duration>
//			fleet               <beginning of a User-Agent> [<cidr>...]
//			skip_hours
//			require_compression
//			require_user_agent
//			exempt              <matcher> | <cidr>... | <beginning of a User-Agent>  [<rule>...]
//		}]
//	}
//
// The policy lines are those of the global option pollard. Only an HTTP site can parse the
// directives of the origin and the matchers of exempt lines, so their tokens are kept for finish.
func (s *Shield) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // directive name
	if d.NextArg() {
		return d.Errf("feed_shield: unexpected %q: a matcher is one path that begins with a slash, or a name: for other paths write @feeds path *.xml /rss, and feed_shield @feeds", d.Val())
	}
	return s.Policy.Lines().With(config.Lines{
		"origin": {Read: func(d *caddyfile.Dispenser) error {
			s.originLines = d.NextSegment()
			if len(s.originLines) > 1 && s.originLines[1].Text != "{" {
				return d.Errf("origin: unexpected %q: expected a block of directives, such as reverse_proxy localhost:8080", s.originLines[1].Text)
			}
			return nil
		}},
		"query":   {Read: s.readQuery},
		"vary":    {Read: s.readVary},
		"name":    {Removed: "a shield is known by its origin block. Delete the line"},
		"host":    {Removed: "polls are for the host that readers use. Delete the line; if the site must answer for one host alone, write that as its address"},
		"rfc9111": {Removed: "a shield stores feeds only. Delete the line; for other content, put an HTTP cache such as Varnish in front of the site"},
		"ping":    {Read: pathLine(&s.Ping, "ping", "the path for publish pings, such as /feed/ping")},
		"status":  {Read: pathLine(&s.Status, "status", "the path of the pages for people, such as /feed/status")},
		"defend": {Read: func(d *caddyfile.Dispenser) error {
			if args := d.RemainingArgs(); len(args) > 0 {
				return d.Errf("defend: unexpected %q: write its rules into a block, such as defend { unconditional 4h }, which it means without one", args[0])
			}
			s.Defend = new(Defend)
			return s.Defend.lines().ReadBlock(d)
		}},
	}).With(config.OfSite("feed_shield")).With(config.BelongTo("into the block of origin", "reverse_proxy", "file_server", "php_fastcgi", "respond", "root")).ReadBlock(d)
}

// pathLine reads a line with a path below the shield.
func pathLine(to *string, line, expected string) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		if err := config.TextLine(to, expected)(d); err != nil {
			return err
		}
		if err := checkPath(line, *to); err != nil {
			return d.Err(err.Error())
		}
		return nil
	}
}

func (s *Shield) readQuery(d *caddyfile.Dispenser) error {
	args, err := config.SomeArgs(d, 1, -1, "ignore, or keep and names of parameters")
	if err != nil {
		return err
	}
	switch {
	case args[0] == "ignore" && len(args) == 1:
		s.Query = &Query{Ignore: true}
	case args[0] == "keep" && len(args) == 1:
		return d.Errf("query keep: expected names of parameters")
	case args[0] == "keep":
		s.Query = &Query{Keep: args[1:]}
	default:
		return d.Errf("query: %q is not known: expected ignore, or keep and names of parameters", strings.Join(args, " "))
	}
	return nil
}

func (s *Shield) readVary(d *caddyfile.Dispenser) error {
	args, err := config.SomeArgs(d, 2, -1, "ignore and names of header fields, such as ignore User-Agent")
	if err != nil {
		return err
	}
	if args[0] != "ignore" {
		return d.Errf("vary: %q is not known: expected ignore and names of header fields", args[0])
	}
	if s.Vary.Ignore = args[1:]; checkVaryIgnore(s.Vary.Ignore) != nil {
		return d.Err(checkVaryIgnore(s.Vary.Ignore).Error())
	}
	return nil
}

// finish parses the tokens that need an HTTP site.
func (s *Shield) finish(h httpcaddyfile.Helper) error {
	if s.originLines != nil {
		routes, err := httpcaddyfile.ParseSegmentAsSubroute(h.WithDispenser(caddyfile.NewDispenser(s.originLines)))
		if err != nil {
			return err
		}
		s.Origin, _ = routes.(*caddyhttp.Subroute)
		if _, err := s.block(); err != nil {
			return h.WrapErr(err)
		}
	}
	if s.Defend != nil {
		if err := s.Defend.finish(h); err != nil {
			return err
		}
	}
	if err := s.check(); err != nil {
		return h.WrapErr(err)
	}
	return nil
}

// Interface guard.
var _ caddyfile.Unmarshaler = (*Shield)(nil)
