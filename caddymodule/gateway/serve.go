// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/pages"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/readers"
)

// ServeHTTP serves the feed that a request is for, by path or by URL. Other requests go to the
// next handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, received *http.Request, next caddyhttp.Handler) error {
	in := door.Read(received)
	r := &in
	if g.serveHub(w, r) {
		return nil
	}
	if g.mayHaveToken(r) {
		var done func()
		w, done = g.hideToken(w, r)
		defer done()
	}
	req := g.parse(r)
	isFeed := req.configured != "" || req.byURL
	if !isFeed {
		if page, ok := g.parsePage(r.URL); ok {
			return g.servePage(w, r, next, page)
		}
		if !req.by.hasToken { // other handlers would log the token
			return g.passOn(w, r, next, noSuchPath(r.URL.EscapedPath()))
		}
	}
	if g.CORS {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Expose-Headers", "Age, Cache-Status, ETag, Retry-After")
	} else if req.byURL {
		w.Header()["Cross-Origin-Resource-Policy"] = []string{"same-origin"} // no page learns whether a feed is known
	}
	if !isFeed {
		return g.refuse(w, r, noSuchPath(""), req)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return g.answerMethod(w, r, req)
	}
	return g.serveFeed(w, r, req)
}

// serveHub answers a hub at a callback. It reports false for other requests: hubs are neither
// `clients` nor have tokens, so this comes before all checks.
func (g *Gateway) serveHub(w http.ResponseWriter, r *door.Request) bool {
	token, ok := strings.CutPrefix(r.URL.Path, cache.CallbackPath)
	if !ok || token == "" {
		return false
	}
	c, err := g.engine.Opened(r.Context())
	if err != nil {
		door.RefusalOf(err).Write(w, r.Request)
		return true
	}
	skip := caddyhttp.GetVar(r.Context(), caddyhttp.LogSkipVar)
	sent, done := g.hideToken(w, r)
	if !c.ServeHub(sent, r.Request, token) {
		caddyhttp.SetVar(r.Context(), caddyhttp.LogSkipVar, skip)
		return false
	}
	done()
	return true
}

// request is what a request asks the gateway for.
type request struct {
	configured string // the canonical URL of a configured feed, or ""
	byURL      bool
	by         urlRequest
	alias      bool          // the feed has become an alias of the one that answers; known once that is found
	named      bool          // the configuration names the URL of a request by URL; known then, too
	waited     time.Duration // for the first poll of a feed that redirects to another one
}

// feed returns the URL of the requested feed, for people.
func (q *request) feed() string {
	if q.configured != "" {
		return q.configured
	}
	return q.by.target
}

// oddTilde matches a path with a token in an odd spelling, such as /./~token and /%257Etoken.
var oddTilde = regexp.MustCompile(`^/(?:~|%(?:25)*7[Ee])`)

func (g *Gateway) parse(r *door.Request) (q request) {
	if q.configured = g.paths[r.URL.Path]; q.configured != "" {
		return q
	}
	q.by, q.byURL = parseByURL(r.URL, r.Sent)
	switch {
	case q.byURL:
	case g.access.tokens == nil:
		return request{} // without tokens, /~user/ may be a home page
	case oddTilde.MatchString(path.Clean("/" + r.URL.Path)):
		q.by.hasToken = true
	}
	return q
}

func (g *Gateway) serveFeed(w http.ResponseWriter, r *door.Request, req request) error {
	feed, err := g.find(r, &req)
	if err != nil {
		return g.refuse(w, r, err, req)
	}
	o := cache.ServeOptions{Pointed: req.alias, Spent: req.waited} // the version of a configured feed may come from anywhere
	if req.byURL {
		o.May = g.mayServe
		if req.named {
			o.May = g.mayServeNamed
		}
		if !g.access.clients.any {
			w.Header()["Cache-Control"] = []string{"private"} // the answer depends on the client
		}
	}
	var began time.Time // of the wait for a first poll
	if !feed.Served() {
		began = time.Now()
	}
	sent, err := serve(w, r.Request, feed, o)
	if err == nil {
		g.requests.Sent(r, feed.Key(), sent)
		g.engine.Answered(readers.Request{
			Feed: feed.Key(), UserAgent: r.UserAgent(), Client: r.Client.Address, Status: sent.Status, Bytes: sent.Bytes,
		})
		return nil
	}
	u, ok := errors.AsType[*cache.Unavailable](err)
	if ok && u.Moved != "" && feed.Resolve(r.Context()) != feed { // as its first poll has found out
		if !began.IsZero() {
			req.waited += time.Since(began)
		}
		return g.serveFeed(w, r, req)
	}
	if ok && u.Queued && r.Context().Err() == nil {
		return g.servePending(w, r, req, u)
	}
	if g.serveSite(w, r, req, err) {
		return nil
	}
	return g.refuse(w, r, g.naming(err, req), req)
}

func (g *Gateway) find(r *door.Request, req *request) (*cache.Feed, error) {
	if req.configured != "" {
		if g.leadsBack(r, req.configured) {
			return nil, &door.Refusal{Status: http.StatusLoopDetected, Reason: "the URL of this feed is an address of this gateway, which polls itself: write the URL that the feed has at its site"}
		}
		requested, feed, err := g.feed(r.Context(), req.configured)
		req.alias = feed != requested
		if err == nil && !r.MayBeOfOtherSite() {
			requested.Ask(0, false) // it is the operator's while it is configured
		}
		return feed, err
	}
	if !g.CORS && !req.by.hasToken && r.OfOtherSite() {
		return nil, errOtherSite // before all that differs by feed
	}
	u, err := g.urlOf(r.Context(), req.by.target)
	if err != nil {
		return nil, err
	}
	from := g.clientOf(r, req.by)
	if refusal := g.access.authorize(from, u); refusal != nil {
		return nil, refusal
	}
	if _, own := g.own(r, u); own {
		return nil, &door.Refusal{Status: http.StatusBadRequest, Reason: "not a feed URL: it leads back to this gateway"}
	}
	req.named = g.isNamed(u.String())
	feed, err := g.feedFor(r, from, u)
	req.alias = err == nil && feed.Key() != u.String()
	return feed, err
}

// urlOf returns the URL of a feed as a reader has written it. That of a feed in memory is parsed already.
func (g *Gateway) urlOf(ctx context.Context, target string) (feedurl.URL, error) {
	if c, err := g.engine.Opened(ctx); err == nil {
		if f := c.InMemory(target); f != nil && f.URL().String() == target {
			return f.URL(), nil
		}
	}
	return feedurl.Parse(target)
}

// leadsBack reports whether the URL of a configured feed leads to itself at this gateway, under the name
// of the request, as in a poll of such a feed.
func (g *Gateway) leadsBack(r *door.Request, configured string) bool {
	if _, rest, _ := strings.Cut(configured, "://"); !strings.HasPrefix(rest, r.Host) {
		return false // most requests end here
	}
	at := configured
	for range len(g.paths) { // one may lead to another
		u, err := feedurl.Parse(at)
		if err != nil {
			return false
		}
		if at, _ = g.own(r, u); at == configured {
			return true
		}
	}
	return false
}

// feedFor returns the feed at a URL that the client may request. A feed that is not known yet is
// added, if this request may add one.
func (g *Gateway) feedFor(r *door.Request, from client, u feedurl.URL) (*cache.Feed, error) {
	requested, feed, err := g.feed(r.Context(), u.String())
	if err != nil {
		return nil, err
	}
	asks := from.hasToken || !r.MayBeOfOtherSite()
	if feed.New() {
		owner := g.access.ownerOf(g.engine, from, u.String())
		if neverFeed(u) {
			return nil, errNoFeed
		}
		if !asks {
			return nil, errOtherSite
		}
		if owner == store.Any && len(u.String()) > maxPublicURL {
			return nil, &door.Refusal{
				Status: http.StatusBadRequest, Reason: fmt.Sprintf("the URL of a new feed is %d bytes at most; use an address with a `token`", maxPublicURL),
			}
		}
		if owner == store.Any && g.engine.Crowded() {
			return nil, &door.Refusal{
				Status: http.StatusServiceUnavailable, RetryAfter: time.Hour,
				Reason: "this gateway has no room for new feeds; feeds that it already has are still served",
			}
		}
		if wait := g.engine.NewFeeds.Take(owner, from.Address, time.Now()); wait > 0 {
			return nil, &door.Refusal{
				Status: http.StatusTooManyRequests, RetryAfter: wait,
				Reason: "too many new feeds have been requested; feeds that the gateway already has are still served",
			}
		}
	}
	if feed.Key() != u.String() { // an alias of a feed to which access may differ
		if err := g.access.checkFrom(feed.Key(), g.isNamed(u.String())); err != nil {
			return nil, err
		}
	}
	if asks {
		// A reader may look for the icon of a site at its home page.
		home := u.Path() == "/" && u.Query() == ""
		requested.Ask(g.engine.OwnerOf(from.asker), !home && r.Header.Get("Sec-Fetch-Mode") != "navigate")
	}
	return feed, nil
}

// maxPublicURL is the longest URL of a feed that a stranger may add, in bytes: records of strangers'
// feeds are small.
const maxPublicURL = 2048

// errOtherSite refuses a feed by URL to a request that a page of another site has sent, and a new one to
// a request that it may have sent.
var errOtherSite error = forbidden("a page of another site sent this request, or a browser did before you asked for the feed: " +
	"give the address to your reader, open it in a window of its own, or use an address with a `token`")

// noSuchPath returns the error for a path without a feed. The path is escaped, as handle_errors may
// show the text on a page, or empty, as it may contain a token.
func noSuchPath(path string) error {
	reason := "no such path: no feed is configured here, and it is not of the form /https://host/path"
	if host, _, found := strings.Cut(strings.TrimPrefix(path, "/"), "/"); found && feedurl.LooksLikeHost(host) {
		reason += ": for the feed of a site, write /https:/" + path
	}
	if prefix, url, found := strings.Cut(path, "/http"); found && strings.Contains(url, ":/") {
		reason += fmt.Sprintf("; for feeds by URL below %s/, the gateway has to be in handle_path %[1]s/*", prefix)
	}
	return &door.Refusal{Status: http.StatusNotFound, Reason: reason}
}

// feed returns a feed. It waits for an engine that is starting.
func (g *Gateway) feed(ctx context.Context, canonical string) (requested, feed *cache.Feed, err error) {
	c, err := g.engine.Opened(ctx)
	if err != nil {
		return nil, nil, err
	}
	if requested, err = c.Feed(ctx, canonical); err != nil {
		return nil, nil, err
	}
	return requested, requested.Resolve(ctx), nil
}

// serve serves a feed. A browser that shows it gets its charset, too.
func serve(w http.ResponseWriter, r *http.Request, feed *cache.Feed, o cache.ServeOptions) (cache.Sent, error) {
	if !pages.WantsPage(r) {
		return feed.Serve(w, r, o)
	}
	shown := &charsetWriter{ResponseWriter: w}
	defer shown.sendHeader(nil)
	r = r.Clone(r.Context())
	r.Header.Del("Accept-Encoding") // so that its first bytes are text
	return feed.Serve(shown, r, o)
}

// answerMethod answers methods other than GET and HEAD.
func (g *Gateway) answerMethod(w http.ResponseWriter, r *door.Request, req request) error {
	h := w.Header()
	allowed := "GET, HEAD"
	if g.CORS {
		allowed = "GET, HEAD, OPTIONS"
	}
	h.Set("Allow", allowed)
	if g.CORS && r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", "GET, HEAD")
		// Scripts may not send these fields without permission (Fetch, "CORS-safelisted request-header").
		h.Set("Access-Control-Allow-Headers", "If-None-Match, If-Modified-Since, Cache-Control, A-IM")
		h.Set("Access-Control-Max-Age", "86400")
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return g.refuse(w, r, &door.Refusal{Status: http.StatusMethodNotAllowed, Reason: "a feed can be read with GET or HEAD only"}, req)
}

// passOn lets the next handler answer. If none writes a response, for which Caddy would send an
// empty 200, it answers with the error.
func (g *Gateway) passOn(w http.ResponseWriter, r *door.Request, next caddyhttp.Handler, err error) error {
	if answered, err := answeredBy(next, w, r.Request); answered || err != nil {
		return err
	}
	return g.refuse(w, r, err, request{})
}

// answeredBy reports whether the next handlers have written a response.
func answeredBy(next caddyhttp.Handler, w http.ResponseWriter, r *http.Request) (bool, error) {
	recorder := caddyhttp.NewResponseRecorder(w, nil, nil)
	err := next.ServeHTTP(recorder, r)
	return recorder.Status() != 0, err
}

// refuse answers with an error, through handle_errors if the site has it.
func (g *Gateway) refuse(w http.ResponseWriter, r *door.Request, err error, req request) error {
	e := *door.RefusalOf(err)
	if r.Context().Err() != nil {
		e = door.Refusal{Status: door.StatusClientClosed, Reason: "the client left before the answer"}
	}
	feed, hidden := req.feed(), g.mayHaveToken(r)
	if hidden {
		feed, e.Reason = withoutToken(feed), withoutToken(e.Reason)
	}
	g.requests.Refused(r, feed, &e)
	if req.configured != "" || req.byURL || req.by.hasToken {
		w.Header().Set("Referrer-Policy", "no-referrer") // the URL may contain a token
	}
	if e.Status == http.StatusInternalServerError {
		g.log.Error("serving a feed", zap.String("feed", feedurl.Redact(feed)), zap.Error(err))
	} else if c := g.log.Check(zap.DebugLevel, "refused"); c != nil {
		c.Write(zap.Int("status", e.Status), zap.String("reason", e.Reason), zap.String("feed", feedurl.Redact(feed)))
	}
	if g.serveProblem(w, r, req, &e, elsewhere(err)) {
		return nil
	}
	if hidden || req.by.hasToken {
		e.Write(w, r.Request) // Caddy would log an error with the request's URL, token included
		return nil
	}
	return e.Answer(w, r)
}
