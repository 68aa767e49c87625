// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/internal/feedurl"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("pollard", parseApp)
}

func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	if existing != nil {
		d.Next()
		return nil, d.Err("pollard is configured already: write one block with all lines")
	}
	a := new(App)
	if err := a.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: "pollard", Value: caddyconfig.JSON(a, nil)}, nil
}

// UnmarshalCaddyfile reads the global option pollard. Syntax:
//
//	pollard {
//		store sqlite [<directory>] | postgres <url>
//		memory <size>
//		contact <URL or e-mail address>
//		user_agent <text>
//		idle_after <duration>
//		prefetch
//		private_upstreams <cidr>... | private_ranges
//		spacing <duration> | 0
//		concurrency <number>
//		polls <number>
//		disk <size>
//		proxy <url> | off
//		websub <url>
//		<policy lines>
//		host <pattern> {
//			<policy lines>
//			spacing <duration> | 0
//			concurrency <number>
//			proxy <url> | off
//		}
//	}
//
// The policy lines, also for a host and for a feed, are
//
//	min_interval         <duration>
//	default_interval     <duration>
//	unvalidated_interval <duration>
//	max_interval         <duration>
//	jitter               <percentage> | 0
//	timeout              <duration>
//	max_body             <size>
func (a *App) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // option name
	if _, err := config.SomeArgs(d, 0, 0, ""); err != nil {
		return err
	}
	err := a.Policy.Lines().With(paceLines(&a.Spacing, &a.Concurrency, &a.Proxy)).With(config.Lines{
		"store":      {Read: a.readStore},
		"memory":     {Read: config.SizeLine(&a.Memory)},
		"contact":    {Read: a.readContact},
		"polls":      {Read: config.ParsedLine(&a.Polls, config.Replaced(parseCount), "a number from 1")},
		"disk":       {Read: config.SizeLine(&a.Disk)},
		"websub":     {Read: a.readWebSub},
		"idle_after": {Read: config.DurationLine(&a.IdleAfter)},
		"prefetch":   {Read: config.FlagLine(&a.Prefetch)},
		"readers":    {Removed: "only shields have statistics of readers: remove the line"},
		"host":       {Read: a.readHost, Repeat: true},
		"user_agent": {Read: func(d *caddyfile.Dispenser) error {
			words, err := config.SomeArgs(d, 1, -1, "the text of the User-Agent")
			if a.UserAgent = strings.Join(words, " "); err == nil && a.UserAgent == "" {
				config.Warn(d, "user_agent: it is empty, so polls have Pollard's own: delete the line, or write a text")
			}
			return err
		}},
		"private_upstreams": {Repeat: true, Read: func(d *caddyfile.Dispenser) error {
			ranges, err := config.SomeArgs(d, 1, -1, "address ranges such as 192.168.0.0/16")
			if err != nil {
				return err
			}
			known := slices.DeleteFunc(slices.Clone(ranges), config.HasPlaceholder)
			if _, err := config.ParseCIDRs(known); err != nil {
				return d.Errf("private_upstreams: %v, or private_ranges for all private ones", err)
			}
			a.PrivateUpstreams = append(a.PrivateUpstreams, ranges...)
			return nil
		}},
	}).With(config.BelongTo("in a feed_gateway", "token", "feed", "opml", "allow", "deny", "clients", "cors", "pages")).ReadBlock(d)
	if err != nil {
		return err
	}
	if err := a.check(); err != nil {
		return d.Errf("pollard: %v", err)
	}
	return nil
}

func (a *App) readWebSub(d *caddyfile.Dispenser) error {
	if err := config.ParsedLine(&a.WebSub, parseWebSub, webSubExpected)(d); err != nil {
		return err
	}
	if u, err := feedurl.Parse(a.WebSub); err == nil && u.IsPrivate() {
		config.Warn(d, "websub: hubs on the internet cannot reach %s, which is in a private network: write a URL that they reach, or delete the line", u.Name())
	}
	return nil
}

// exampleContact matches a contact that was left as an example has it.
var exampleContact = regexp.MustCompile(`(?i)^(https?://|[^/]*@)([^/]*\.)?example\.(com|net|org)([:/]|$)`)

func (a *App) readContact(d *caddyfile.Dispenser) error {
	err := config.ParsedLine(&a.Contact, checked(checkContact), "the URL of a page about this gateway, or an e-mail address")(d)
	if err == nil && exampleContact.MatchString(a.Contact) {
		config.Warn(d, "contact: publishers cannot reach you at %s: write the URL of a page of yours, or your e-mail address", a.Contact)
	}
	return err
}

// readStore reads the line store. The store's module reads what follows its name.
func (a *App) readStore(d *caddyfile.Dispenser) error {
	if !d.NextArg() {
		return d.Err("store: expected sqlite [<directory>], or postgres <url>")
	}
	name := d.Val()
	if name == "bolt" {
		return d.Err("store: bolt was removed: write `store sqlite`. Feeds are then polled again, at the pace of their hosts; " +
			"to keep what is stored, write it with `pollard feeds export` of the earlier version and read it with `pollard feeds import`")
	}
	if _, err := caddy.GetModule("pollard.stores." + name); err != nil {
		return d.Errf("store: unknown engine %q: expected sqlite [<directory>], or postgres <url>", name)
	}
	store, err := caddyfile.UnmarshalModule(d, "pollard.stores."+name)
	if err != nil {
		return err
	}
	a.StoreRaw = caddyconfig.JSONModuleObject(store, "engine", name, nil)
	return nil
}

func (a *App) readHost(d *caddyfile.Dispenser) error {
	pattern, err := config.OneArg(d, "a host such as example.com or *.example.com")
	if err != nil {
		return err
	}
	normal, err := feedurl.ParsePattern(pattern)
	if err != nil {
		return d.Errf("host: %v", err)
	}
	for _, other := range a.Hosts {
		if known, err := feedurl.ParsePattern(other.Pattern); err == nil && known == normal {
			return d.Errf("host %s is given twice", pattern)
		}
	}
	h := Host{Pattern: pattern}
	if err := h.Policy.Lines().With(paceLines(&h.Spacing, &h.Concurrency, &h.Proxy)).ReadBlock(d); err != nil {
		return err
	}
	if err := h.check(); err != nil {
		return d.WrapErr(err)
	}
	if h == (Host{Pattern: pattern}) {
		return d.Errf("host %s has no lines, so it changes nothing: write some into its block, such as host %[1]s { spacing 1m }", pattern)
	}
	a.Hosts = append(a.Hosts, h)
	return nil
}

// paceLines returns the lines for all hosts, or for some, that say how they are reached.
func paceLines(spacing **caddy.Duration, concurrency *int, proxy *string) config.Lines {
	return config.Lines{
		"spacing":     {Read: config.ParsedLine(spacing, config.Pointer(config.Replaced(parseSpacing)), "a duration such as 2s, or 0")},
		"concurrency": {Read: config.ParsedLine(concurrency, config.Replaced(parseCount), "a number from 1")},
		"proxy": {Read: func(d *caddyfile.Dispenser) error {
			if err := config.ParsedLine(proxy, checked(checkProxy), "the URL of a proxy such as socks5h://127.0.0.1:9050, or off")(d); err != nil {
				return err
			}
			if u, err := url.Parse(*proxy); err == nil && u.Port() != "" {
				if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
					config.Warn(d, "proxy: %s is no port, so no poll gets through: expected 1 to 65535", u.Port())
				}
			}
			return nil
		}},
	}
}

func checked(check func(string) error) func(string) (string, error) {
	return func(text string) (string, error) { return text, check(text) }
}

// parseSpacing parses a duration, or 0 for none.
func parseSpacing(text string) (caddy.Duration, error) {
	if text == "0" || text == "0s" {
		return 0, nil
	}
	return config.ParseDuration(text)
}

func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a number of 1 or more", text)
	}
	return n, nil
}

// Interface guard.
var _ caddyfile.Unmarshaler = (*App)(nil)
