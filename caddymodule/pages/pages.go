// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package pages serves what people see of a gateway or a shield in a browser: its
// feeds and why each of them waits, its readers, what origins were spared, and, for
// publishers, who polls them.
//
// Pages are rendered on the server and work without script. They load nothing from
// another origin, and their Content-Security-Policy forbids it. Foreign text (titles,
// User-Agents, URLs, errors) is shown as text. GET changes no state, and a form of
// another site is refused.
//
// They show what a [Source] returns. The caller decides where they are and who may see
// them ([Place]).
package pages

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/opml"
	"github.com/feedpollard/pollard/internal/status"
)

// Pages serves the pages of one gateway or shield. It is safe for concurrent use,
// and must not be changed once it serves.
type Pages struct {
	Source Source

	// Discover finds the feeds of a site for the home page. Nil: these are not the pages of
	// a gateway.
	Discover func(r *door.Request, address string) (Site, error)

	// Publisher describes what the publisher of a shield's feeds should know first. Nil: these are
	// not the pages of a shield.
	Publisher func(ctx context.Context) Publisher

	// Poller is shown to publishers.
	Poller Poller

	// Version is that of the running program.
	Version string

	// Log receives errors of the source. Nil: they are dropped.
	Log *slog.Logger
}

func (p *Pages) shield() bool { return p.Publisher != nil }

// Place is where the pages are for one request, and what its sender may see.
type Place struct {
	// Home is the path of the home page as a browser has to write it, with the
	// prefix that holds the sender's token, if there is one: "/", "/~secret/".
	Home string

	// Below is what the paths of all others begin with: "/-/", "/~secret/-/", "/status/".
	Below string

	// Gateway is what a feed's URL is written behind to ask for it through the
	// gateway: "https://feeds.home.arpa/", "https://feeds.home.arpa/~secret/". Empty:
	// feeds cannot be asked for by URL, as with a shield.
	Gateway string

	// Token says that the paths above hold a token.
	Token bool

	// Member may see all pages. Others see what is public.
	Member bool

	// Sender says in sentences who the sender is to the configuration, and why that makes a member
	// of it or not.
	Sender string

	Viewer Viewer

	// Chosen returns the feeds for which the operator has chosen addresses, with URL, Address, Title
	// and State only. Nil: there are none to show.
	Chosen func() ([]status.Feed, error)

	// Named returns the other feeds that the operator has named, in their folders. Nil: there are none.
	Named func() []opml.Outline

	// Unlisted says that lists of feeds and pages of feeds are not served.
	Unlisted bool
}

// root is Gateway without the sender's token.
func (at Place) root() string {
	if !at.Token {
		return at.Gateway
	}
	return at.Gateway[:strings.LastIndex(at.Gateway, "/~")+1]
}

// Listed reports whether the sender may see lists of feeds.
func (at Place) Listed() bool { return at.Member && !at.Unlisted }

// The names of pages.
const (
	pageHome      = ""
	pageFeeds     = "feeds"
	pageRefresh   = "refresh"
	pageReaders   = "readers"
	pageSavings   = "savings"
	pageAbout     = "about"
	pageOPML      = "opml"
	pageIncidents = "incidents"
	pageStyle     = "pollard.css"
	pageScript    = "pollard.js"
	pageIcon      = "favicon.ico"
)

// route is how a page is served.
type route struct {
	get, post func(*Pages, *visit) error // get serves HEAD too; nil: the method is refused

	gateway bool // only gateways have the page
	shield  bool // only shields have it
	public  bool // anyone may see it
	listed  bool // it is about feeds
	json    bool // it is to be had as JSON too
}

var routes = map[string]route{
	pageHome:      {get: (*Pages).home, json: true},
	pageFeeds:     {get: (*Pages).feeds, listed: true, json: true},
	pageRefresh:   {post: (*Pages).refresh, listed: true},
	pageReaders:   {get: (*Pages).readers, shield: true, listed: true, json: true},
	pageSavings:   {get: (*Pages).savings, listed: true, json: true},
	pageAbout:     {get: (*Pages).about, public: true},
	pageOPML:      {get: (*Pages).subscriptions, post: (*Pages).rewriteOPML, gateway: true},
	pageIncidents: {get: (*Pages).incidents, gateway: true, listed: true},
	pageStyle:     {get: (*Pages).asset, public: true},
	pageScript:    {get: (*Pages).asset, public: true},
	pageIcon:      {get: (*Pages).asset, public: true},
}

// Has reports whether there is a page or file of a name.
func Has(name string) bool { _, ok := routes[name]; return ok }

// Names returns the names of all pages and files, in order.
func Names() []string { return slices.Sorted(maps.Keys(routes)) }

type visit struct {
	w    http.ResponseWriter
	r    door.Request
	at   Place
	name string

	hasJSON bool
}

// ServeHTTP serves the page of a name: "" is the home page, the others are what
// stands behind [Place.Below] in a path. "favicon.ico" may be served at the root too.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r door.Request, at Place, name string) {
	v, form, until := p.visit(w, r, at, name), r.Body, time.Now().Add(formTime)
	if err := p.serve(v); err != nil {
		if r.Method == http.MethodPost {
			v.drain(form, until)
		}
		p.refuse(v, err)
	}
}

func (p *Pages) visit(w http.ResponseWriter, r door.Request, at Place, name string) *visit {
	v := &visit{w: w, r: r, at: at, name: name, hasJSON: routes[name].json}
	v.setHeaders()
	return v
}

func (p *Pages) serve(v *visit) error {
	to, ok := routes[v.name]
	serve, allow := to.get, "GET, HEAD"
	switch {
	case to.get == nil:
		serve, allow = to.post, "POST"
	case to.post != nil:
		allow += ", POST"
		if v.r.Method == http.MethodPost {
			serve = to.post
		}
	}
	switch {
	case !ok, to.gateway && p.shield(), to.shield && !p.shield(), v.name == pageIncidents && v.at.Unlisted:
		return &problem{status: http.StatusNotFound, Text: "There is no such page."}
	case v.at.Member && v.at.Unlisted && to.listed:
		return &problem{status: http.StatusForbidden, Text: "This gateway serves any client, so it lists no feeds.",
			More: "A line token in its configuration gives the holder of the token a list."}
	case !v.at.Member && !to.public && p.shield():
		return &problem{status: http.StatusForbidden, Text: "This page is only for private addresses, and for users who have logged in at this site.", More: v.at.Sender}
	case !v.at.Member && !to.public:
		return &problem{status: http.StatusForbidden, Text: "This page is only for users of this gateway.", More: v.at.Sender}
	case !slices.Contains(strings.Split(allow, ", "), v.r.Method):
		v.w.Header().Set("Allow", allow)
		return &problem{status: http.StatusMethodNotAllowed, Text: "This page does not accept that method.", More: "Expected " + allow + "."}
	}
	if v.r.Method == http.MethodPost {
		if problem := ofOtherSite(&v.r); problem != nil {
			return problem
		}
	}
	return serve(p, v)
}

// ServeSite answers a request by URL for a web page: a page of ours
// that names the site's feeds at their addresses here, for people and for readers
// that look for link elements.
func (p *Pages) ServeSite(w http.ResponseWriter, r door.Request, at Place, site Site) {
	v := p.visit(w, r, at, "site")
	if err := p.render(v, http.StatusOK, "site", "Feeds of "+site.name(), site); err != nil {
		p.refuse(v, err)
	}
}

// WantsPage reports whether a browser asks for a page to show in a window.
func WantsPage(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Accept"), "text/html") && isPage(r)
}

// ServeProblem answers a browser with an error page in place of a feed. The text says why, and the
// field Retry-After that is set in w when to try again. If site
// is the URL of a page without a feed that its host has answered for, the home page of the host is offered.
func (p *Pages) ServeProblem(w http.ResponseWriter, r door.Request, at Place, code int, text, site string) {
	v := p.visit(w, r, at, "problem")
	w.Header().Set("Cache-Control", "no-store") // the next response may be the feed
	shown := &problem{status: code, Text: "This feed cannot be shown.", More: strings.ReplaceAll(text, "`", ""), Site: Site{URL: feedurl.Redacted(site), Elsewhere: site != ""}}
	if code == http.StatusNotFound || code == http.StatusBadRequest || code == http.StatusGone {
		shown.Text = "There is no feed at this address."
	}
	if code == http.StatusGone {
		shown.More += " " + status.LookElsewhere
	}
	if wait, err := strconv.ParseUint(w.Header().Get("Retry-After"), 10, 32); err == nil && code != http.StatusForbidden { // time alone mends no 403
		shown.Retry = time.Now().Add(time.Duration(wait) * time.Second)
	}
	p.refuse(v, shown)
}

// contentSecurityPolicy allows pages what they use. Styles, scripts and images are files of ours,
// so that nothing written in a page itself is ever applied or run.
const contentSecurityPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (v *visit) setHeaders() {
	h := v.w.Header()
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	// Paths may hold a token, so other pages get the origin alone. With no-referrer, the Origin of each form would
	// be null (Fetch, "append a request Origin header"), as that of a form of another site may be.
	h.Set("Referrer-Policy", "strict-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-cache")
	if v.name != pageAbout {
		h.Set("X-Robots-Tag", "noindex")
	}
}

type problem struct {
	status int
	Text   string    // a sentence
	More   string    // what to do, or nothing
	Retry  time.Time // zero: the same would come again, or it is not known
	Site   Site      // that has no feeds
}

func (e *problem) Error() string { return e.Text }

func (p *Pages) refuse(v *visit, err error) {
	shown, ok := errors.AsType[*problem](err)
	if !ok {
		// The error may name files and hosts: it is for the log alone.
		shown = &problem{status: http.StatusInternalServerError, Text: "This page cannot be made now.", More: "Feeds are served all the same. The log says more."}
		if v.r.Context().Err() != nil {
			shown.status = door.StatusClientClosed
		} else if p.Log != nil {
			p.Log.Error("making a page", "page", v.name, "error", err)
		}
	}
	if v.wantsJSON() && v.r.Method != http.MethodPost {
		_ = v.json(shown.status, map[string]string{"error": shown.Text}) // strings always encode
		return
	}
	if err := p.render(v, shown.status, "problem", shown.Text, shown); err != nil {
		http.Error(v.w, shown.Text, shown.status)
	}
}

// send writes a whole answer.
func (v *visit) send(code int, contentType string, body []byte) {
	h := v.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	v.w.WriteHeader(code)
	if v.r.Method != http.MethodHead {
		_, _ = v.w.Write(body) // the client may be gone
	}
}

// render makes the whole page before the first byte of it is sent: what fails in
// the middle becomes an error page, not half a page.
func (p *Pages) render(v *visit, code int, name, title string, content any) error {
	var body bytes.Buffer
	shown := page{Place: v.at, Title: title, Section: v.name, Version: strings.TrimPrefix(p.Version, "v"), Shield: p.shield(), Content: content}
	if v.at.Member {
		shown.Notices = p.Source.Trouble(&v.at.Viewer).Notices(time.Now(), time.UTC)
	}
	err := templates[name].Execute(&body, shown)
	if err != nil {
		return err
	}
	v.send(code, "text/html; charset=utf-8", body.Bytes())
	return nil
}
