// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/pages"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/opml"
	"github.com/feedpollard/pollard/policy/document/site"
)

const (
	pagesBelow = "/-/"
	pagesIcon  = "favicon.ico"
)

// makePages makes the pages for people.
func (g *Gateway) makePages(ctx caddy.Context, app *poller.App) {
	g.pages = &pages.Pages{
		Source:      pages.NewSource(app.Engine(), "", app.Upstream(), app.Rules()),
		Discover:    g.discover,
		RewriteOPML: rewriteOPML,
		Version:     poller.Version(),
		Log:         slog.New(ctx.Slogger().Handler()),
	}
}

// askedPage is a page that a request asks for.
type askedPage struct {
	name string
	by   asked // for its token
	root bool  // at the root, where the site may have a page of its own
}

// readPage finds the page that a request asks for. It reports false where it asks for
// something else: the paths of feeds go first.
func (g *Gateway) readPage(r *http.Request) (p askedPage, ok bool) {
	if g.NoPages {
		return p, false
	}
	rest := r.URL.Path
	if after, signed := strings.CutPrefix(rest, "/~"); signed && g.access.tokens != nil {
		secret, tail, _ := strings.Cut(after, "/")
		p.by, rest = asked{secret: secret, signed: true}, "/"+tail
	}
	switch {
	case rest == "/":
		_, byURL := urlParameter(r.URL.RawQuery)
		p.root = true
		ok = !byURL
	case rest == "/"+pagesIcon:
		p.name, p.root, ok = pagesIcon, true, true
	default:
		p.name, ok = strings.CutPrefix(rest, pagesBelow)
		ok = ok && pages.Has(p.name)
	}
	return p, ok && g.places[r.URL.Path] == nil
}

// servePage serves a page. At the root, the site's own goes first, if it has one.
func (g *Gateway) servePage(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, p askedPage) error {
	if p.root && !p.by.signed {
		if err := next.ServeHTTP(w, r); err != nil {
			return err
		}
		if nobody, _ := caddyhttp.GetVar(r.Context(), "unhandled").(bool); !nobody {
			return nil
		}
		caddyhttp.SetVar(r.Context(), "unhandled", false)
	}
	if p.by.signed {
		var done func()
		w, done = g.hideToken(w, r)
		defer done()
	}
	at := g.placeOf(r, p.by)
	if !p.root && p.name == "" {
		at.Home = at.Below // the front page is the site's
	}
	g.pages.ServeHTTP(w, g.withAdmission(r, p.by), at, p.name)
	return nil
}

// placeOf tells where the pages are for a request, and whether its sender may see them.
func (g *Gateway) placeOf(r *http.Request, by asked) pages.Place {
	base := basePath(r) + "/"
	if by.signed {
		base += "~" + url.PathEscape(by.secret) + "/"
	}
	return pages.Place{
		Home: base, Below: base + strings.TrimPrefix(pagesBelow, "/"), Gateway: siteAddress(r) + base,
		Token: by.signed, Member: g.member(r, by),
	}
}

// member reports whether the sender of a request may see the pages.
func (g *Gateway) member(r *http.Request, by asked) bool {
	if by.signed {
		return g.access.holder(by.secret) != ""
	}
	return g.access.clients.cover(senderOf(r)) == nil
}

// admission is the key of a context's value that tells why the sender of its request
// may not have the feed of a canonical URL.
type admission struct{}

func (g *Gateway) withAdmission(r *http.Request, by asked) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), admission{}, func(canonical string) error {
		u, err := feedurl.Parse(canonical)
		if err != nil {
			return err
		}
		if no := g.access.admit(by, senderOf(r), u); no != nil {
			return no
		}
		return nil
	}))
}

// discover finds the feeds of a site, or the one at an address itself. What it asks for
// is polled as any feed that is asked for by URL, and no sooner.
func (g *Gateway) discover(ctx context.Context, address string) (pages.Site, error) {
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	found := pages.Site{URL: feedurl.Shown(address)}
	u, err := feedurl.Parse(address)
	if err != nil {
		found.Problem = "This is not the address of a site."
		return found, nil
	}
	found.URL = feedurl.Shown(u.String())
	admit := ctx.Value(admission{}).(func(canonical string) error)
	if no := admit(u.String()); no != nil {
		found.Problem = sentence(no.Error())
		return found, nil
	}
	if checkFeed(u.String()) != nil {
		found.Problem = "This is not the address of a feed."
		return found, nil
	}
	feed, err := g.feed(ctx, u.String())
	if err != nil {
		return found, err
	}
	if no := admit(feed.Key()); no != nil { // as what it has become by a redirect
		found.Problem = sentence(no.Error())
		return found, nil
	}
	if _, served := feed.Await(ctx); served {
		found.Feeds = []pages.Found{{URL: u.String()}}
		return found, nil
	}
	why := feed.Unavailable()
	switch {
	case why == nil: // it has come in this moment
		found.Feeds = []pages.Found{{URL: u.String()}}
	case why.Site != nil:
		found.Title, found.Feeds = why.Site.Title, foundOn(why.Site)
	case why.Elsewhere != "":
		found.Feeds = []pages.Found{{URL: why.Elsewhere}}
	default:
		found.Problem = sentence(why.Reason)
	}
	return found, nil
}

func sentence(reason string) string {
	reason = poller.OneLine(reason)
	if reason == "" {
		return ""
	}
	return strings.ToUpper(reason[:1]) + reason[1:] + "."
}

func foundOn(page *site.Page) []pages.Found {
	var found []pages.Found
	for _, f := range page.Feeds {
		found = append(found, pages.Found(f))
	}
	return found
}

// serveSite answers a request by URL for what has turned out to be a site: with a page
// of ours that names its feeds. It reports false where an error is something else.
func (g *Gateway) serveSite(w http.ResponseWriter, r *http.Request, a asks, err error) bool {
	u, ok := errors.AsType[*cache.Unavailable](err)
	if !ok || u.Site == nil || g.NoPages || !a.byURL {
		return false
	}
	found := pages.Site{URL: feedurl.Shown(a.by.target), Title: u.Site.Title, Feeds: foundOn(u.Site)}
	g.pages.ServeSite(w, r, g.placeOf(r, a.by), found)
	g.engine.GatewayRequests().Count(poller.ResultMoved, 0)
	poller.Report(r, poller.ResultMoved, a.feed(), "")
	return true
}

// rewriteOPML makes the feeds of a list go through a gateway. What is no URL of a feed
// stays as it is.
func rewriteOPML(list []byte, prefix string) ([]byte, error) {
	gateway, err := feedurl.ParseGateway(prefix, "")
	if err != nil {
		return nil, err
	}
	rewritten, _, err := opml.Rewrite(list, func(url string) (string, error) {
		if address, err := gateway.Address(url); err == nil {
			return address, nil
		}
		return url, nil
	})
	return rewritten, err
}

// errNoFeed refuses what has never been a feed. Readers look for an icon at the address
// of a feed's host, which is the gateway's: no site need be asked for one.
var errNoFeed error = &poller.Refusal{Status: http.StatusNotFound, Reason: "this is not the address of a feed"}

// checkFeed refuses the canonical URL of a picture, or of a file that is the same thing
// on every site.
func checkFeed(canonical string) error {
	u, err := feedurl.Parse(canonical)
	if err != nil {
		return err
	}
	name := strings.ToLower(path.Base(u.Path()))
	switch path.Ext(name) {
	case ".ico", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".avif":
		return errNoFeed
	}
	if u.Path() == "/robots.txt" {
		return errNoFeed
	}
	return nil
}
