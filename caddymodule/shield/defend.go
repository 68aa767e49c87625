// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/internal/readers"
)

// Defend says which requests a shield refuses. Without rules, `unconditional` is `4h`. It
// never refuses a 304, and sends no 429 to the first request of a reader outside a `fleet`. A browser's
// navigation, or a request with another page as Referer, comes from a person: the persons at
// one address get 12 whole feeds in the time of `unconditional`, whatever the rules say.
//
// `Retry-After` is exact, and further requests do not extend it. It stops careless
// readers, not malicious ones: a client that changes its User-Agent and address is a new
// reader each time.
type Defend struct {
	// The most requests of one reader in a time, not counting 304s. Further requests get
	// a 429. Default: no limit.
	MaxRate *MaxRate `json:"max_rate,omitempty"`

	// The time in which a reader that sends no conditional requests gets the whole feed at
	// most twice. Further requests get a 429. Default: `4h` without other rules, else no limit.
	Unconditional caddy.Duration `json:"unconditional,omitempty"`

	// A crawler that polls from many addresses, by the beginning of its User-Agent and, if
	// it is known, its address ranges. All its machines together get the whole feed of a
	// path four times in the time of `unconditional`, and those of one network (/24 in
	// IPv4, /48 in IPv6) once. Further unconditional requests get a 429. `Retry-After` is
	// the time until the next of the four is free; another machine may take it.
	//
	// Write one line per crawler. Matching is case-sensitive; the longest beginning wins.
	// `exempt` and persons are checked before. With ranges, other addresses with that User-Agent are
	// ordinary readers. Without, anyone can send that User-Agent and use up the four from
	// four networks. Never name an app that people run: all of them would be one reader.
	Fleet []*Fleet `json:"fleet,omitempty"`

	// Whether unconditional requests get a 429 in the feed's own `skipHours`. Default:
	// `false`.
	SkipHours bool `json:"skip_hours,omitempty"`

	// Whether readers that do not accept compression get a 406. Some large podcast
	// directories accept none: run `pollard feeds replay` on your access log first.
	// Default: `false`.
	RequireCompression bool `json:"require_compression,omitempty"`

	// Whether readers without a User-Agent get a 403. Default: `false`.
	RequireUserAgent bool `json:"require_user_agent,omitempty"`

	// The readers to which rules do not apply: a matcher, address ranges (CIDR), or the
	// beginning of a User-Agent, and the rules. Without rules, none applies. A User-Agent
	// can be sent by anyone.
	Exempt []*Exempt `json:"exempt,omitempty"`

	limits readers.Limits
}

// Exempt names readers to which rules of defend do not apply.
type Exempt struct {
	// Address ranges (CIDR), or single addresses.
	Networks []string `json:"networks,omitempty"`

	// The beginning of a User-Agent.
	UserAgent string `json:"user_agent,omitempty"`

	// Matchers of requests.
	MatcherSetsRaw caddyhttp.RawMatcherSets `json:"match,omitempty" caddy:"namespace=http.matchers"`

	// The rules that do not apply, such as `unconditional`. Default: all.
	Rules []string `json:"rules,omitempty"`

	matcher  caddyfile.Token // as the Caddyfile has it
	networks []netip.Prefix
	matchers caddyhttp.MatcherSets
}

// MaxRate is a number of requests in a length of time.
type MaxRate struct {
	Requests int            `json:"requests"`
	Per      caddy.Duration `json:"per"`
}

// rules remove one rule from the limits.
var rules = map[string]func(*readers.Limits){
	readers.RuleMaxRate:       func(d *readers.Limits) { d.MaxRate = readers.Rate{} },
	readers.RuleUnconditional: func(d *readers.Limits) { d.Unconditional, d.Fleet = 0, "" },
	readers.RuleSkipHours:     func(d *readers.Limits) { d.SkipHours = false },
	readers.RuleCompression:   func(d *readers.Limits) { d.RequireCompression = false },
	readers.RuleUserAgent:     func(d *readers.Limits) { d.RequireUserAgent = false },
}

// check reports invalid settings.
func (f *Defend) check() error {
	if f.Unconditional < 0 {
		return fmt.Errorf("unconditional: %s is negative", config.FormatDuration(f.Unconditional))
	}
	if r := f.MaxRate; r != nil && (r.Requests < 1 || r.Per <= 0) {
		return errors.New("max_rate: expected a number of requests and a duration, such as 12 1h")
	}
	for _, e := range f.Exempt {
		if err := e.check(); err != nil {
			return fmt.Errorf("exempt: %w", err)
		}
	}
	return f.checkFleets()
}

func (e *Exempt) check() error {
	if len(e.Networks) == 0 && e.UserAgent == "" && len(e.MatcherSetsRaw) == 0 && e.matcher.Text == "" {
		return errors.New("expected a matcher, an address range, or the beginning of a User-Agent")
	}
	if err := mistypedRange(e.UserAgent); err != nil {
		return err
	}
	for _, rule := range e.Rules {
		if rules[rule] == nil {
			return fmt.Errorf("%q is not a rule: expected one of %s", rule, strings.Join(slices.Sorted(maps.Keys(rules)), ", "))
		}
	}
	return nil
}

// mistypedRange reports an address range that is invalid, and so would count as a User-Agent.
func mistypedRange(text string) error {
	address, _, ranged := strings.Cut(text, "/")
	if _, err := netip.ParseAddr(address); err != nil || !ranged {
		return nil
	}
	_, err := config.ParseCIDR(text)
	return err
}

// Provision resolves the settings.
func (f *Defend) Provision(ctx caddy.Context) error {
	if err := f.check(); err != nil {
		return err
	}
	f.limits = readers.Limits{
		Unconditional: time.Duration(f.Unconditional), SkipHours: f.SkipHours,
		RequireCompression: f.RequireCompression, RequireUserAgent: f.RequireUserAgent,
	}
	if f.MaxRate != nil {
		f.limits.MaxRate = readers.Rate{Requests: f.MaxRate.Requests, Per: time.Duration(f.MaxRate.Per)}
	}
	if f.limits == (readers.Limits{}) {
		f.limits.Unconditional = readers.DefaultUnconditional
	}
	for _, fleet := range f.Fleet {
		var err error
		if fleet.networks, err = config.ParseCIDRs(fleet.Networks); err != nil {
			return fmt.Errorf("fleet %s: %w", fleet.UserAgent, err)
		}
	}
	for _, e := range f.Exempt {
		var err error
		if e.networks, err = config.ParseCIDRs(e.Networks); err != nil {
			return fmt.Errorf("exempt: %w", err)
		}
		loaded, err := ctx.LoadModule(e, "MatcherSetsRaw")
		if err != nil {
			return fmt.Errorf("loading exempt matchers: %w", err)
		}
		if err := e.matchers.FromInterface(loaded); err != nil {
			return fmt.Errorf("loading exempt matchers: %w", err)
		}
	}
	return nil
}

// refuse returns the refusal of a request, or nil, and completes observed with it.
func (f *Defend) refuse(limiter *readers.Limiter, r *door.Request, observed *readers.Request) *door.Refusal {
	limits := f.limitsFor(r.Request, r.Client)
	if limits.Fleet != "" {
		limits.Fleet += " " + pageOf(observed.Feed)
	}
	v := limiter.Check(limits, *observed)
	if v.Status == 0 {
		return nil
	}
	observed.Status, observed.Early = v.Status, v.Early
	refusal := &door.Refusal{Status: v.Status, Reason: v.Reason, Rule: v.Rule}
	if v.Status == http.StatusTooManyRequests {
		refusal.RetryAfter = time.Duration(v.RetryAfter(observed.Time)) * time.Second
	}
	if r.Method != http.MethodHead {
		observed.Bytes = int64(len(refusal.Reason) + 1)
	}
	return refusal
}

// limitsFor returns the rules that apply to a request.
func (f *Defend) limitsFor(r *http.Request, client door.Client) readers.Limits {
	defence := f.limits
	defence.Fleet = f.fleetOf(r.UserAgent(), client)
	for _, e := range f.Exempt {
		switch {
		case !e.matches(r, client):
		case len(e.Rules) == 0:
			return readers.Limits{}
		default:
			for _, rule := range e.Rules {
				rules[rule](&defence)
			}
		}
	}
	return defence
}

func (e *Exempt) matches(r *http.Request, client door.Client) bool {
	if e.UserAgent != "" && strings.HasPrefix(r.UserAgent(), e.UserAgent) {
		return true
	}
	if client.In(e.networks) {
		return true
	}
	matched, err := e.matchers.AnyMatchWithError(r)
	return len(e.matchers) > 0 && err == nil && matched
}

// ReplayedLimits implements [poller.Shield].
func (s *Shield) ReplayedLimits(r *http.Request) readers.Limits {
	f := s.Defend
	if f == nil {
		return readers.Limits{}
	}
	client, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return f.limits
	}
	if slices.ContainsFunc(f.Exempt, func(e *Exempt) bool { return len(e.matchers) > 0 }) {
		r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil)
		caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, client.Addr().String())
	}
	return f.limitsFor(r, door.Client{Address: client.Addr()})
}

// lines are the Caddyfile lines of defend.
func (f *Defend) lines() config.Lines {
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
				return d.Errf("max_rate: %q is not a number of 1 or more", args[0])
			}
			per, err := config.ParseDuration(args[1])
			if err != nil {
				return d.Errf("max_rate: %v", err)
			}
			f.MaxRate = &MaxRate{Requests: n, Per: per}
			return nil
		}},
		"fleet":  {Repeat: true, Read: f.readFleet},
		"exempt": {Repeat: true, Read: f.readExempt},
	}
}

// readExempt reads who is exempt, and the names of rules after it.
func (f *Defend) readExempt(d *caddyfile.Dispenser) error {
	words, err := config.SomeArgs(d, 1, -1, "a matcher, address ranges, or the beginning of a User-Agent, and rules")
	if err != nil {
		return err
	}
	who := len(words)
	for who > 0 && rules[words[who-1]] != nil {
		who--
	}
	e := &Exempt{Rules: words[who:]}
	f.Exempt = append(f.Exempt, e)
	switch words = words[:who]; {
	case who == 0:
		return d.Errf("exempt: expected a matcher, an address range, or the beginning of a User-Agent before %s", e.Rules[0])
	case words[0] == "*" && len(e.Rules) == 0:
		return d.Err("exempt *: all readers would be exempt: leave the block out")
	case strings.HasPrefix(words[0], "@"), strings.HasPrefix(words[0], "/"), words[0] == "*":
		if who > 1 {
			return d.Errf("exempt: %q is not a rule: expected one of %s", words[1], strings.Join(slices.Sorted(maps.Keys(rules)), ", "))
		}
		e.matcher = d.Token()
		e.matcher.Text = words[0]
		return nil
	}
	if _, err := config.ParseCIDRs(words); err == nil {
		e.Networks = words
	} else {
		if rule := config.Nearest(words[who-1], slices.Collect(maps.Keys(rules))); who > 1 && rule != "" {
			config.Warn(d, "exempt: %q counts as a part of the User-Agent, as it is not a rule: did you mean %s?", words[who-1], rule)
		}
		if slices.ContainsFunc(words, func(word string) bool { _, err := config.ParseCIDR(word); return err == nil }) {
			config.Warn(d, "exempt: %q counts as the beginning of a User-Agent, address included: write addresses and User-Agents on lines of their own", strings.Join(words, " "))
		}
		e.UserAgent = strings.Join(words, " ")
	}
	if err := e.check(); err != nil {
		return d.Errf("defend: exempt: %v", err)
	}
	return nil
}

// finish parses the matchers, which need an HTTP site.
func (f *Defend) finish(h httpcaddyfile.Helper) error {
	for _, e := range f.Exempt {
		if e.matcher.Text == "" {
			continue
		}
		line := h.WithDispenser(caddyfile.NewDispenser([]caddyfile.Token{e.matcher, e.matcher}))
		line.Next()
		matchers, _, err := line.MatcherToken()
		if err != nil {
			return line.WrapErr(err)
		}
		e.MatcherSetsRaw = caddyhttp.RawMatcherSets{matchers}
	}
	return nil
}
