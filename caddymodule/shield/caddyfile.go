// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"strconv"
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
	s := new(Shield)
	if err := s.identify(h); err != nil {
		return nil, err
	}
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
	if page := strings.TrimRight(s.Status, "/") + "/feeds"; s.Status != "" && !config.Admits(config.Paths(matchers), page) {
		return nil, h.Errf("status: the shield gets no request for %s, because its matcher does not match it: write @feeds path /feed.xml %s*, and feed_shield @feeds", page, s.Status)
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
//		name <text>
//		host <name>
//		status <path>
//		defend [{
//			max_rate            <requests> <duration>
//			unconditional       <duration>
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
	if _, err := config.SomeArgs(d, 0, 0, ""); err != nil {
		return err
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
		"name":    {Read: config.TextLine(&s.Name, "a text that no other shield has")},
		"host":    {Read: config.TextLine(&s.Host, "the host of the site, such as blog.example.com")},
		"rfc9111": {Removed: "a shield stores feeds only. Delete the line; for other content, put an HTTP cache such as Varnish in front of the site"},
		"status":  {Read: config.TextLine(&s.Status, "the path of the pages for people, such as /feed/status")},
		"defend": {Read: func(d *caddyfile.Dispenser) error {
			if _, err := config.SomeArgs(d, 0, 0, ""); err != nil {
				return err
			}
			s.Defend = new(Defend)
			if err := s.Defend.lines().ReadBlock(d); err != nil {
				return err
			}
			if err := s.Defend.check(); err != nil {
				return d.Errf("defend: %v", err)
			}
			return nil
		}},
	}).ReadBlock(d)
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

// finish parses the tokens that need an HTTP site.
func (s *Shield) finish(h httpcaddyfile.Helper) error {
	if s.originLines != nil {
		routes, err := httpcaddyfile.ParseSegmentAsSubroute(h.WithDispenser(caddyfile.NewDispenser(s.originLines)))
		if err != nil {
			return err
		}
		s.Origin, _ = routes.(*caddyhttp.Subroute)
	}
	if s.Defend != nil {
		if err := s.Defend.finish(h); err != nil {
			return err
		}
	}
	if err := s.check(); err != nil {
		return h.WrapErr(err)
	}
	return s.claimName(h)
}

// identify records the addresses of the site, and derives a name from the first one and the
// matcher.
func (s *Shield) identify(h httpcaddyfile.Helper) error {
	site, err := config.SiteOf(h)
	if err != nil {
		return h.Errf("feed_shield: %v", err)
	}
	if directive, line := site.Before(h, "feed_shield", h.Line()); directive != "" {
		return h.Errf("feed_shield: it gets no request, because the %s at line %d answers all of them: put the shield into a handle block", directive, line)
	}
	sites := site.Addresses
	s.Sites, s.line = sites, h.File()+":"+strconv.Itoa(h.Line())
	matcher := ""
	if h.NextArg() {
		matcher = " " + h.Val()
	}
	h.Reset()
	h.Next()
	if len(sites) > 0 {
		s.derived = sites[0] + matcher
	}
	return nil
}

// claimName gives the shield its name, which no other shield may have.
func (s *Shield) claimName(h httpcaddyfile.Helper) error {
	if s.Name == "" {
		s.Name = s.derived
	}
	if s.Name == "" {
		return h.Err("feed_shield: a shield in a named route needs a line such as name blog")
	}
	key := "pollard.feed_shield " + s.Name
	if other, taken := h.State[key].(string); taken {
		return h.Errf("feed_shield: the one at %s has the name %q as well: give one of them another name, such as name blog", other, s.Name)
	}
	h.State[key] = s.line
	return nil
}

// Interface guard.
var _ caddyfile.Unmarshaler = (*Shield)(nil)
