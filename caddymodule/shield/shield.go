// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package shield is the handler feed_shield, which stands before a site's feeds.
package shield

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/httpcache"
	"github.com/feedpollard/pollard/policy"
)

func init() {
	caddy.RegisterModule(new(Shield))
}

// Shield stands before a site's feeds and answers their readers, so that the site
// is asked once in a while and not by each of them. What follows it in the route
// (`reverse_proxy`, `php_fastcgi`, `file_server`, `respond`) is the origin: it sees
// Pollard's own clean requests, at most one per interval and feed, conditional
// where it gives validators.
//
// What is not for everybody passes through untouched: other methods than GET and
// HEAD, requests with credentials, answers that are `private`, `no-store` or
// redirects, and whatever is no feed. A shield that cannot help stands aside. Once a
// feed is stored, errors of the origin are not seen by readers any more; an answer
// that is `private` or a redirect takes it back.
//
// A poll has no reader: no cookie, no credentials, and `0.0.0.0` for an address. So
// whatever decides who may read a feed belongs before the shield, as `basic_auth`
// or `abort` are. Handlers behind it, such as `respond`, are part of the origin.
// What `vars`, `map` and `request_header` set before it holds for polls, too.
//
// A shield polls when a reader asks and the feed is due, never on its own.
type Shield struct {
	// How often the site is asked. What the app `pollard` says for feeds of others
	// does not hold here. The defaults are those of a site of one's own:
	//
	// - `min_interval`, `default_interval` and `unvalidated_interval` are `1m`, so that
	//   a new entry is seen a minute later;
	// - what feed and headers say explicitly counts (`max-age`, `ttl`, `skipHours`, ...),
	//   up to `max_interval`, `24h`; the rhythm of the entries does not;
	// - after failures the pause grows to ten minutes, or to the feed's own interval
	//   where that is longer; `Retry-After` counts.
	//
	// `POST /pollard/refresh?url=` at Caddy's admin endpoint, for example from a
	// publish hook, has the next request fetch the feed at once, whatever these say.
	config.Policy

	// The host under which the site's feeds are kept, and that the site is asked
	// for. It is needed only where the site has no host in its address (`:8080`)
	// and the origin cares for the host that it is asked for. Default: the host of
	// the site's address, or the address at which the server listens. What a request
	// says counts only where the configuration has that name.
	Host string `json:"host,omitempty"`

	// Whether to be a plain shared cache by RFC 9111 instead: HTTP freshness alone
	// decides, for any content type, without floor, feed hints and back-off, and
	// stored in memory only. Default: `false`.
	RFC9111 bool `json:"rfc9111,omitempty"`

	// What is refused of readers. Default: nothing is.
	Defend *Defend `json:"defend,omitempty"`

	engine   *poller.Engine
	site     *site
	position atomic.Pointer[position] // in the routes of the server that asked last
}

// CaddyModule returns the Caddy module information.
func (*Shield) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.feed_shield",
		New: func() caddy.Module { return new(Shield) },
	}
}

// DefaultRules are the rules for a site of one's own: nobody's patience needs to be
// spared but the site's, and its owner wants new entries seen. They are documented
// at [Shield].
func DefaultRules() policy.Rules {
	r := policy.DefaultRules()
	r.MinInterval, r.DefaultInterval, r.UnvalidatedInterval = time.Minute, time.Minute, time.Minute
	r.MaxBackOff, r.NoRhythm = 10*time.Minute, true
	return r
}

// Provision resolves the rules and gets the engine.
func (s *Shield) Provision(ctx caddy.Context) error {
	app, err := ctx.App("pollard")
	if err != nil {
		return fmt.Errorf("getting the pollard app: %w", err)
	}
	s.engine = app.(*poller.App).Engine()
	if err := s.Check(); err != nil {
		return err
	}
	rules, err := s.Policy.Over(DefaultRules())
	if err != nil {
		return err
	}
	if s.Defend != nil {
		if err := s.Defend.Provision(ctx); err != nil {
			return fmt.Errorf("defend: %w", err)
		}
	}
	s.site = newSite(rules, app.(*poller.App).Upstream())
	return nil
}

// Check reports what cannot be meant.
func (s *Shield) Check() error {
	if _, err := s.Policy.Over(DefaultRules()); err != nil {
		return err
	}
	if s.RFC9111 && s.Policy != (config.Policy{}) {
		return errors.New("rfc9111: HTTP freshness alone decides, so there can be no policy lines beside it")
	}
	if s.RFC9111 && s.Defend != nil {
		return errors.New("rfc9111: a plain cache knows nothing of readers, so there can be no defend beside it")
	}
	if s.Host != "" {
		u, err := cache.Canonical("http://" + s.Host + "/")
		if err != nil || u != "http://"+strings.ToLower(s.Host)+"/" || strings.ContainsAny(s.Host, "/?#@*") {
			return fmt.Errorf("host: %q is no host: expected one such as blog.example.com", s.Host)
		}
	}
	return nil
}

// ServeHTTP answers a request for a feed, or lets it pass.
func (s *Shield) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if s.RFC9111 {
		return s.serveShared(w, r, next)
	}
	if personal(r) || onErrand(r) {
		return s.pass(w, r, next)
	}
	key := s.keyOf(r)
	if key == "" || len(key) > maxKey {
		return s.pass(w, r, next)
	}
	c, err := s.engine.Opened(r.Context())
	if err != nil {
		return s.pass(w, r, next) // better a site without a shield than none
	}
	feed, waited, err := s.feed(c, key, r, next)
	if left := r.Context().Err(); err != nil && left != nil {
		s.engine.ShieldRequests().Count(poller.ResultUnavailable, 0)
		return caddyhttp.Error(statusClientClosed, left) // the site need not be asked for whoever has gone
	}
	if err != nil {
		return s.pass(w, r, next)
	}
	return s.answer(w, r, next, feed, waited, key)
}

// pass lets a request through to the site.
func (s *Shield) pass(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !onErrand(r) {
		s.engine.ShieldRequests().Count(poller.ResultPassed, 0)
	}
	return next.ServeHTTP(w, r)
}

// onErrand reports whether a request is no reader's but a poll of another shield.
func onErrand(r *http.Request) bool { return r.Context().Value(errandKey{}) != nil }

// statusClientClosed is what Caddy's own handlers log where a client has left.
const statusClientClosed = 499

// maxKey is the longest key of a feed or of a variant, in bytes.
const maxKey = 4096

// personal reports whether a request is its reader's own affair.
func personal(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead ||
		r.Header["Authorization"] != nil || r.Header["Upgrade"] != nil || r.ContentLength != 0
}

// feed is the feed that a request asks for: the plain one, or a variant where the
// site tells its readers apart.
func (s *Shield) feed(c *cache.Cache, key string, r *http.Request, next caddyhttp.Handler) (*cache.Feed, cache.Waited, error) {
	feed, waited, err := s.await(c, key, nil, r, next)
	if err != nil {
		return nil, waited, err
	}
	fields := feed.Vary()
	if len(fields) == 0 {
		return feed, waited, nil
	}
	variant, sent, err := varied(key, fields, r.Header)
	switch {
	case err != nil:
		return nil, waited, err
	case len(sent) == 0:
		return feed, waited, nil
	case len(variant) > maxKey || !s.engine.Variants.Admit(key, variant, time.Now()):
		return nil, waited, errNoVersion
	}
	return s.await(c, variant, sent, r, next)
}

// await is the feed of a key, after its first poll. The request shows the way for
// the poll that is due.
func (s *Shield) await(c *cache.Cache, key string, sent http.Header, r *http.Request, next caddyhttp.Handler) (*cache.Feed, cache.Waited, error) {
	feed, err := c.Feed(key)
	if err != nil {
		return nil, cache.Waited{}, err
	}
	if feed.Due() {
		feed.From(s.errand(r, next, sent))
	}
	waited, some := feed.Await(r.Context())
	if !some {
		return nil, waited, errNoVersion
	}
	return feed, waited, nil
}

var errNoVersion = errors.New("nothing to serve")

// answer serves the feed, if the defences let its reader have it.
func (s *Shield) answer(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, feed *cache.Feed, waited cache.Waited, key string) error {
	unobserved := s.engine.Unobserved()
	if unobserved && s.Defend == nil {
		sent, err := feed.ServeAfter(waited, w, r)
		if err != nil {
			return s.pass(w, r, next) // it has been withdrawn in this moment
		}
		s.engine.ShieldRequests().Served(sent)
		return nil
	}
	note := s.engine.Observe(r, key, feed)
	if s.Defend != nil {
		if no := s.Defend.judge(s.engine.Gate, r, &note); no != nil {
			no.Write(w, r)
			s.engine.ShieldRequests().Refused(no.Status)
			if !unobserved {
				s.engine.Ledger.Note(note)
			}
			return nil
		}
	}
	sent, err := feed.ServeAfter(waited, w, r)
	if err != nil {
		return s.pass(w, r, next)
	}
	s.engine.ShieldRequests().Served(sent)
	note.Status, note.Bytes = sent.Status, sent.Bytes
	if s.Defend != nil {
		s.engine.Gate.Answered(s.Defend.defence, note)
	}
	if !unobserved {
		s.engine.Ledger.Note(note)
	}
	return nil
}

// serveShared answers as a shared cache does.
func (s *Shield) serveShared(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) (err error) {
	key := s.keyOf(r)
	responses, opening := s.engine.SharedCache()
	if opening != nil || key == "" || r.Header["Upgrade"] != nil || r.Method == http.MethodConnect {
		return s.pass(w, r, next)
	}
	shield, target, _ := strings.Cut(key, ":")
	u, err := url.Parse(target)
	if err != nil {
		return s.pass(w, r, next)
	}
	m := &poller.Meter{ResponseWriter: w}
	if !onErrand(r) {
		// A site that breaks off makes the cache panic, as net/http demands.
		defer func() { s.engine.ShieldRequests().CountShared(m, err) }()
	}
	return responses.Serve(m, r, httpcache.Target{
		Key: key, URL: u,
		KeyOf:   func(u *url.URL) string { return shield + ":" + u.String() },
		Request: func() *http.Request { return httpcache.Anonymous(r, u) },
		Shared:  &shared{routeOf(r, next, s.position.Load())},
		Own:     next.ServeHTTP,
	})
}

// Interface guards.
var (
	_ caddy.Provisioner           = (*Shield)(nil)
	_ caddyhttp.MiddlewareHandler = (*Shield)(nil)
)
