// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/readers"
)

// Defend says which requests a shield refuses. It never refuses a 304, a person's
// browser, or the first request of a reader. `Retry-After` is exact, and further requests
// do not extend it. It stops careless readers, not malicious ones: a client that changes
// its User-Agent and address is a new reader each time.
type Defend struct {
	// The most requests of one reader in a time, not counting 304s. Further requests get
	// a 429. Default: no limit.
	MaxRate *MaxRate `json:"max_rate,omitempty"`

	// The least time between two whole feeds for a reader that sends no conditional
	// requests. An earlier request gets a 429. Default: no limit.
	Unconditional caddy.Duration `json:"unconditional,omitempty"`

	// Whether unconditional requests get a 429 in the feed's own `skipHours`. Requests of
	// a person who followed a link do not. Default: `false`.
	SkipHours bool `json:"skip_hours,omitempty"`

	// Whether readers that do not accept compression get a 406. Some large podcast
	// directories accept none: run `pollard feeds replay` on your access log first.
	// Default: `false`.
	RequireCompression bool `json:"require_compression,omitempty"`

	// Whether readers without a User-Agent get a 403. Default: `false`.
	RequireUserAgent bool `json:"require_user_agent,omitempty"`

	// The readers that are never refused: address ranges (CIDR), or the beginning of a
	// User-Agent.
	Exempt []string `json:"exempt,omitempty"`

	// Matchers of requests that are never refused.
	ExemptMatchers caddyhttp.RawMatcherSets `json:"exempt_matchers,omitempty" caddy:"namespace=http.matchers"`

	exemptTokens []caddyfile.Token // matchers, as the Caddyfile has them

	defence  readers.Defence
	networks []netip.Prefix
	agents   []string
	matchers caddyhttp.MatcherSets
}

// MaxRate is a number of requests in a length of time.
type MaxRate struct {
	Requests int            `json:"requests"`
	Per      caddy.Duration `json:"per"`
}

// check reports invalid settings.
func (f *Defend) check() error {
	if f.Unconditional < 0 {
		return fmt.Errorf("unconditional: %s is negative", config.FormatDuration(f.Unconditional))
	}
	if f.MaxRate == nil && f.Unconditional == 0 && !f.SkipHours && !f.RequireCompression && !f.RequireUserAgent {
		return errors.New("it refuses nothing: expected lines such as unconditional 4h")
	}
	if r := f.MaxRate; r != nil && (r.Requests < 1 || r.Per <= 0) {
		return errors.New("max_rate: expected a number of requests and a duration, such as 12 1h")
	}
	for _, text := range f.Exempt {
		// A mistyped address range is not meant as a User-Agent.
		address, _, ranged := strings.Cut(text, "/")
		if _, err := netip.ParseAddr(address); err == nil && ranged {
			if _, err := config.ParseCIDR(text); err != nil {
				return fmt.Errorf("exempt: %w", err)
			}
		}
		if text == "" {
			return errors.New("exempt: an empty text would exempt all readers")
		}
	}
	return nil
}

// Provision resolves the settings.
func (f *Defend) Provision(ctx caddy.Context) error {
	if err := f.check(); err != nil {
		return err
	}
	f.defence = readers.Defence{
		Unconditional: time.Duration(f.Unconditional), SkipHours: f.SkipHours,
		RequireCompression: f.RequireCompression, RequireUserAgent: f.RequireUserAgent,
	}
	if f.MaxRate != nil {
		f.defence.MaxRate = readers.Rate{Requests: f.MaxRate.Requests, Per: time.Duration(f.MaxRate.Per)}
	}
	for _, text := range f.Exempt {
		if network, err := config.ParseCIDR(text); err == nil {
			f.networks = append(f.networks, network)
		} else {
			f.agents = append(f.agents, text)
		}
	}
	if f.ExemptMatchers != nil {
		loaded, err := ctx.LoadModule(f, "ExemptMatchers")
		if err != nil {
			return fmt.Errorf("loading exempt matchers: %w", err)
		}
		if err := f.matchers.FromInterface(loaded); err != nil {
			return fmt.Errorf("loading exempt matchers: %w", err)
		}
	}
	return nil
}

// refuse returns the refusal of a request, or nil, and completes observed with it.
func (f *Defend) refuse(limiter *readers.Limiter, r *http.Request, observed *readers.Request) *poller.Refusal {
	if f.exempts(r, observed.Client) {
		return nil
	}
	v := limiter.Judge(f.defence, *observed)
	if v.Status == 0 {
		return nil
	}
	observed.Status, observed.Early = v.Status, v.Early
	refusal := &poller.Refusal{Status: v.Status, Reason: v.Reason}
	if v.Status == http.StatusTooManyRequests {
		refusal.RetryAfter = time.Duration(v.RetryAfter(observed.Time)) * time.Second
	}
	if r.Method != http.MethodHead {
		observed.Bytes = int64(len(refusal.Reason) + 1)
	}
	return refusal
}

func (f *Defend) exempts(r *http.Request, client netip.Addr) bool {
	for _, network := range f.networks {
		if network.Contains(client) {
			return true
		}
	}
	agent := r.UserAgent()
	for _, beginning := range f.agents {
		if strings.HasPrefix(agent, beginning) {
			return true
		}
	}
	if len(f.matchers) == 0 {
		return false
	}
	exempt, err := f.matchers.AnyMatchWithError(r)
	return err == nil && exempt
}

// Defence returns the rules in the form of package readers.
func (f *Defend) Defence() readers.Defence { return f.defence }

// ExemptsReplayed is like exempts, for a request from a log, which has no server context.
func (f *Defend) ExemptsReplayed(r *http.Request) bool {
	client, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	if len(f.matchers) > 0 {
		r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil)
		caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, client.Addr().String())
	}
	return f.exempts(r, client.Addr())
}
