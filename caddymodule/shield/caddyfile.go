// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/config"
)

func init() {
	httpcaddyfile.RegisterHandlerDirective("feed_shield", parseShield)
	// After auth, rewrite and encode; before all that makes content.
	httpcaddyfile.RegisterDirectiveOrder("feed_shield", httpcaddyfile.Before, "respond")
}

// parseShield reads the directive feed_shield. Syntax:
//
//	feed_shield [<matcher>] {
//		<policy lines>
//		host <name>
//		rfc9111
//		defend {
//			max_rate            <requests> <duration>
//			unconditional       <duration>
//			skip_hours
//			require_compression
//			require_user_agent
//			exempt              <matcher> | <cidr>... | <beginning of a User-Agent>
//		}
//	}
//
// The policy lines are those of the global option pollard.
func parseShield(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	s, d := new(Shield), h.Dispenser
	d.Next() // directive name
	if _, err := config.SomeArgs(d, 0, 0, ""); err != nil {
		return nil, err
	}
	err := s.Policy.Lines().With(config.Lines{
		"host":    {Read: config.TextLine(&s.Host, "the host of the site, such as blog.example.com")},
		"rfc9111": {Read: config.FlagLine(&s.RFC9111)},
		"defend": {Read: func(d *caddyfile.Dispenser) error {
			if _, err := config.SomeArgs(d, 0, 0, ""); err != nil {
				return err
			}
			s.Defend = new(Defend)
			return s.Defend.lines(h).ReadBlock(d)
		}},
	}).ReadBlock(d)
	if err != nil {
		return nil, err
	}
	if err := s.Check(); err != nil {
		return nil, d.WrapErr(err)
	}
	if s.Defend != nil {
		if err := s.Defend.check(); err != nil {
			return nil, d.Errf("defend: %v", err)
		}
	}
	return s, nil
}

// lines are the Caddyfile lines of a defence.
func (f *Defend) lines(h httpcaddyfile.Helper) config.Lines {
	return config.Lines{
		"unconditional":       {Read: config.DurationLine(&f.Unconditional)},
		"skip_hours":          {Read: config.FlagLine(&f.SkipHours)},
		"require_compression": {Read: config.FlagLine(&f.RequireCompression)},
		"require_user_agent":  {Read: config.FlagLine(&f.RequireUserAgent)},
		"max_rate": {Read: func(d *caddyfile.Dispenser) error {
			args, err := config.SomeArgs(d, 2, 2, "a number of requests and a duration, such as 12 1h")
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(args[0])
			if err != nil || n < 1 {
				return d.Errf("max_rate: %q is no number from 1", args[0])
			}
			per, err := config.ParseDuration(args[1])
			if err != nil {
				return d.Errf("max_rate: %v", err)
			}
			f.MaxRate = &MaxRate{Requests: n, Per: per}
			return nil
		}},
		"exempt": {Repeat: true, Read: func(d *caddyfile.Dispenser) error {
			set, matches, err := h.MatcherToken()
			switch {
			case err != nil:
				return d.WrapErr(err)
			case matches && set == nil:
				return d.Err("exempt *: all readers would be exempt: leave the block out")
			case matches:
				f.ExemptMatchers = append(f.ExemptMatchers, set)
				_, err := config.SomeArgs(d, 0, 0, "")
				return err
			}
			// MatcherToken has stepped on the argument that is no matcher.
			words := append([]string{d.Val()}, d.RemainingArgs()...)
			text := strings.Join(words, " ")
			if text == "exempt" {
				return d.Err("exempt: expected a matcher, an address range, or how a User-Agent begins")
			}
			if _, err := config.ParseCIDRs(words); err == nil {
				f.Exempt = append(f.Exempt, words...)
				return nil
			}
			f.Exempt = append(f.Exempt, text)
			return nil
		}},
	}
}

// Interface guard.
var _ caddy.Module = (*Shield)(nil)
