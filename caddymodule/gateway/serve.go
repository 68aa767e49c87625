// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/readers"
)

// Header values that never change are assigned as they are: on a hit, time goes
// to nothing that can be prepared.
var (
	anyOrigin      = []string{"*"}
	exposedHeaders = []string{"Age, Cache-Status, ETag, Retry-After"}
)

// noReferrer keeps the URL of a feed, in which a token may be, from where its links lead.
var noReferrer = []string{"no-referrer"}

// ServeHTTP serves the feed that a request asks for by path or by URL. Other requests
// it passes on.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if page, ok := g.readPage(r); ok {
		return g.servePage(w, r, next, page)
	}
	asks := g.understand(r)
	if !asks.own() {
		return g.passOn(w, r, next, noSuchPath(r.URL.EscapedPath()))
	}
	if g.CORS {
		h := w.Header()
		h["Access-Control-Allow-Origin"] = anyOrigin
		h["Access-Control-Expose-Headers"] = exposedHeaders
	}
	if asks.by.signed {
		var done func()
		w, done = g.hideToken(w, r)
		defer done()
	}
	if asks.place == nil && !asks.byURL {
		return g.refuse(w, r, errNoSuchPath, asks)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return g.answerOther(w, r, asks)
	}
	feed, tally, holder, err := g.find(r, asks)
	if err == nil {
		var sent cache.Sent
		if sent, err = g.serve(w, r, feed, tally, holder); err == nil {
			g.engine.GatewayRequests().Served(sent)
			poller.Report(r, poller.ResultOf(sent), feed.Key(), "")
			return nil
		}
		if u, ok := errors.AsType[*cache.Unavailable](err); ok && u.Elsewhere != "" {
			w.Header()["Referrer-Policy"] = noReferrer
			if err = g.elsewhere(w, r, u); err == nil {
				poller.Report(r, poller.ResultMoved, feed.Key(), "")
				return nil
			}
		} else if ok && u.Queued {
			return g.queued(w, r, asks, u)
		}
		if g.serveSite(w, r, asks, err) {
			return nil
		}
	}
	if no, refused := errors.AsType[*poller.Refusal](err); refused && no.Status == http.StatusForbidden && asks.by.bare {
		// A name with a dot in it need not be a host: /v1.x/users may be somebody else's.
		return g.passOn(w, r, next, err)
	}
	return g.refuse(w, r, err, asks)
}

// asks is what a request asks for.
type asks struct {
	place *place // a configured feed; nil: none
	by    asked
	byURL bool
	url   *feedurl.URL // of by, where that was asked for before; nil: it has to be parsed
}

// own reports whether the gateway answers by itself. What stands behind a token is nobody
// else's, whatever it is: a token is a password, which other handlers would log.
func (a *asks) own() bool { return a.place != nil || a.byURL || a.by.signed }

// feed is the feed that is asked for, for people.
func (a *asks) feed() string {
	if a.place != nil {
		return a.place.url
	}
	return a.by.target
}

func (g *Gateway) understand(r *http.Request) (a asks) {
	if a.place = g.places[r.URL.Path]; a.place != nil {
		return a
	}
	original := poller.OriginalURL(r)
	if k := g.parsed.find(r.URL, original); k != nil {
		return asks{by: k.by, byURL: true, url: &k.url}
	}
	a.by, a.byURL = readByURL(r.URL, original)
	if !a.byURL && g.access.tokens == nil {
		return asks{} // /~user/ is somebody's home page then
	}
	return a
}

// passOn lets the next handler answer. Where there is none, which Caddy would tell
// readers by an empty 200, it answers with why the gateway does not.
func (g *Gateway) passOn(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, why error) error {
	if err := next.ServeHTTP(w, r); err != nil {
		return err
	}
	if nobody, _ := caddyhttp.GetVar(r.Context(), "unhandled").(bool); !nobody {
		return nil
	}
	caddyhttp.SetVar(r.Context(), "unhandled", false)
	return g.refuse(w, r, why, asks{})
}

// refuse answers with an error: through handle_errors where the site has any.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, err error, a asks) error {
	e := poller.RefusalOf(err)
	result := g.engine.GatewayRequests().Refused(e.Status)
	poller.Report(r, result, a.feed(), e.Reason)
	if a.own() {
		w.Header()["Referrer-Policy"] = noReferrer
	}
	if e.Status == http.StatusInternalServerError {
		return caddyhttp.Error(e.Status, err)
	}
	if c := g.log.Check(zap.DebugLevel, "refused"); c != nil {
		c.Write(zap.Int("status", e.Status), zap.String("reason", e.Reason), zap.String("feed", feedurl.Redact(a.feed())))
	}
	if a.by.signed {
		e.Write(w, r) // an error would be logged with the request's URL, and the token in it
		return nil
	}
	return e.Answer(w, r, g.server)
}

// serve serves a feed, and notes who asked for it.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, feed *cache.Feed, tally *readers.Tally, holder string) (cache.Sent, error) {
	client := poller.Client(r)
	tally.Note(r.UserAgent(), client)
	if g.engine.Unobserved() {
		return feed.Serve(w, r)
	}
	note := g.engine.Observe(r, client, feed.Key(), feed)
	note.Token = holder
	sent, err := feed.Serve(w, r)
	if err != nil {
		return cache.Sent{}, err
	}
	note.Status, note.Bytes = sent.Status, sent.Bytes
	g.engine.Ledger.Note(note)
	return sent, nil
}

// find returns the feed that a request asks for, and the name of the token that it
// holds, if it has one.
func (g *Gateway) find(r *http.Request, a asks) (*cache.Feed, *readers.Tally, string, error) {
	if p := a.place; p != nil {
		feed, err := g.feed(r.Context(), p.url)
		return feed, g.engine.Census.Tally(p.url), "", err
	}
	u := a.url
	if u == nil {
		parsed, err := feedurl.Parse(a.by.target)
		if err != nil {
			return nil, nil, "", err
		}
		u = &parsed
	}
	if no := g.access.admit(a.by, senderOf(r), *u); no != nil {
		return nil, nil, "", no
	}
	if strings.EqualFold(u.HostPort(), r.Host) && g.answers(*u) {
		return nil, nil, "", &poller.Refusal{Status: http.StatusBadRequest, Reason: "not a feed URL: it leads back to this gateway"}
	}
	canonical := u.String()
	if a.url == nil {
		if err := checkFeed(canonical); err != nil {
			return nil, nil, "", err
		}
		if !a.by.signed {
			g.parsed.add(r.URL, poller.OriginalURL(r), a.by, *u)
		}
	}
	feed, err := g.feed(r.Context(), canonical)
	if err != nil {
		return nil, nil, "", err
	}
	if feed.New() {
		if no := g.admitNew(a.by, senderOf(r), canonical); no != nil {
			return nil, nil, "", no
		}
	}
	if feed.Key() != canonical { // it has become an alias of a feed that is not for everybody, perhaps
		end, err := feedurl.Parse(feed.Key())
		if err != nil {
			return nil, nil, "", forbidden("%v", err)
		}
		if no := g.access.admit(a.by, senderOf(r), end); no != nil {
			return nil, nil, "", no
		}
	}
	holder := ""
	if a.by.signed {
		holder = g.access.holder(a.by.secret)
	}
	return feed, g.engine.Census.Tally(canonical), holder, nil
}

// answers reports whether a URL, of this gateway's host, is one that it answers itself.
func (g *Gateway) answers(u feedurl.URL) bool {
	request := u.RequestURL()
	if g.places[request.Path] != nil {
		return true
	}
	_, byURL := readByURL(request, nil)
	return byURL
}

const noFeedHere = "no such path: no feed is configured here, and it is not of the form /https://host/path"

var errNoSuchPath error = &poller.Refusal{Status: http.StatusNotFound, Reason: noFeedHere}

// noSuchPath tells of a path at which there is nothing. It is an escaped one: a site may
// show the text on a page of its own, by handle_errors.
func noSuchPath(path string) error {
	prefix, url, found := strings.Cut(path, "/http")
	if !found || !strings.Contains(url, ":/") {
		return errNoSuchPath
	}
	return &poller.Refusal{
		Status: http.StatusNotFound,
		Reason: fmt.Sprintf("%s; for feeds by URL below %s/, the gateway has to be in handle_path %[2]s/*", noFeedHere, prefix),
	}
}

// feed returns the handle of a feed, waiting for an engine that is starting.
func (g *Gateway) feed(ctx context.Context, canonical string) (*cache.Feed, error) {
	c, err := g.engine.Opened(ctx)
	if err != nil {
		return nil, err
	}
	feed, err := c.Feed(ctx, canonical)
	if err != nil {
		return nil, err
	}
	return feed.Resolve(ctx), nil
}

// answerOther answers the methods that ask for no feed.
func (g *Gateway) answerOther(w http.ResponseWriter, r *http.Request, a asks) error {
	h := w.Header()
	allowed := "GET, HEAD"
	if g.CORS {
		allowed = "GET, HEAD, OPTIONS"
	}
	h.Set("Allow", allowed)
	if g.CORS && r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", "GET, HEAD")
		// Conditional requests of a script need leave for their headers (Fetch, "CORS-safelisted request-header").
		h.Set("Access-Control-Allow-Headers", "If-None-Match, If-Modified-Since, Cache-Control, A-IM")
		h.Set("Access-Control-Max-Age", "86400")
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return g.refuse(w, r, &poller.Refusal{Status: http.StatusMethodNotAllowed, Reason: "a feed can be read with GET or HEAD only"}, a)
}
