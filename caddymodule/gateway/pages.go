// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
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

func (g *Gateway) makePages(ctx caddy.Context, app *poller.App) {
	g.source = pages.NewSource(app.Engine(), "", g.Readers, app.Upstream(), app.Rules())
	g.pages = &pages.Pages{
		Source:      g.source,
		Discover:    g.discover,
		RewriteOPML: rewriteOPML,
		Version:     poller.Version(),
		Log:         slog.New(ctx.Slogger().Handler()),
	}
}

func (g *Gateway) hasPages() bool { return g.Pages == nil || *g.Pages }

// pageRequest is a request for a page.
type pageRequest struct {
	name string
	by   urlRequest // for its token
	root bool       // at the root, where the site may have its own page
}

// parsePage finds the page that a request is for. It reports false for other requests; the
// path of a configured feed is not a page.
func (g *Gateway) parsePage(r *http.Request) (p pageRequest, ok bool) {
	if !g.hasPages() {
		return p, false
	}
	rest := r.URL.Path
	if after, hasToken := strings.CutPrefix(rest, "/~"); hasToken && g.access.tokens != nil {
		token, tail, _ := strings.Cut(after, "/")
		p.by, rest = urlRequest{token: token, hasToken: true}, "/"+tail
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
	return p, ok && g.paths[r.URL.Path] == ""
}

// servePage serves a page. At the root, the page of the site comes first, if it has one.
func (g *Gateway) servePage(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, p pageRequest) error {
	if p.root && !p.by.hasToken {
		if answered, err := answeredBy(next, w, r); answered || err != nil {
			return err
		}
	}
	if p.by.hasToken {
		var done func()
		w, done = g.hideToken(w, r)
		defer done()
	}
	at := g.placeOf(r, p.by)
	if !p.root && p.name == "" {
		at.Home = at.Below // the front page is the site's
	}
	g.pages.ServeHTTP(w, r, at, p.name)
	return nil
}

// placeOf returns where the pages are for a request, and whether its client may see them.
func (g *Gateway) placeOf(r *http.Request, by urlRequest) pages.Place {
	base := basePath(r) + "/"
	if by.hasToken {
		base += "~" + url.PathEscape(by.token) + "/"
	}
	at := pages.Place{
		Home: base, Below: base + strings.TrimPrefix(pagesBelow, "/"), Gateway: siteAddress(r) + base,
		Token: by.hasToken, Member: g.access.admit(by, g.clientOf(r)) == nil, Readers: g.Readers,
	}
	if at.Member {
		mark := g.access.mark(by)
		at.Source, at.Unlisted = g.source.For(g.viewer(mark, siteAddress(r)+basePath(r))), mark == 0
	}
	return at
}

// discover finds the feeds of a site, or the feed at an address. The address is polled like a
// feed by URL, and no earlier.
func (g *Gateway) discover(r *http.Request, address string) (pages.Site, error) {
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
	page, _ := g.parsePage(r)
	from := g.clientOf(r)
	if refusal := g.access.authorize(page.by, from, u); refusal != nil {
		found.Problem = sentence(refusal.Reason)
		return found, nil
	}
	if checkFeed(u) != nil {
		found.Problem = "This is not the address of a feed."
		return found, nil
	}
	feed, err := g.feedFor(r, page.by, from, u)
	if refusal, ok := errors.AsType[*poller.Refusal](err); ok {
		found.Problem = sentence(refusal.Reason)
		return found, nil
	}
	if err != nil {
		return found, err
	}
	_, served := feed.Await(r.Context())
	if from := feed.From(); served && from != "" {
		if err := g.access.checkFrom(from); err != nil {
			found.Problem = sentence(err.Error())
			return found, nil
		}
	}
	if served {
		found.Feeds = []pages.Found{{URL: u.String()}}
		return found, nil
	}
	why := feed.Unavailable()
	switch {
	case why == nil: // the first version came a moment ago
		found.Feeds = []pages.Found{{URL: u.String()}}
	case why.Site != nil:
		found.Title, found.Feeds = why.Site.Title, foundOn(why.Site)
	case why.RedirectTo != "":
		found.Feeds = []pages.Found{{URL: why.RedirectTo}}
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

// serveSite answers a request by URL for a web page with a page that lists the feeds found there.
// It reports false for any other error.
func (g *Gateway) serveSite(w http.ResponseWriter, r *http.Request, req request, err error) bool {
	u, ok := errors.AsType[*cache.Unavailable](err)
	if !ok || u.Site == nil || !g.hasPages() || !req.byURL {
		return false
	}
	found := pages.Site{URL: feedurl.Shown(req.by.target), Title: u.Site.Title, Feeds: foundOn(u.Site)}
	g.pages.ServeSite(w, r, g.placeOf(r, req.by), found)
	g.engine.GatewayRequests().Count(poller.ResultMoved, 0)
	poller.Report(r, poller.ResultMoved, req.feed(), "")
	return true
}

// rewriteOPML replaces the feeds of a list with their addresses at a gateway. Other URLs stay as
// they are.
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

// errNoFeed refuses files that are never feeds. Readers request an icon from the host of a feed,
// which here is the gateway; polling a site for it would be useless.
var errNoFeed error = &poller.Refusal{Status: http.StatusNotFound, Reason: "this is not the address of a feed"}

// checkFeed refuses the URLs of pictures and of robots.txt.
func checkFeed(u feedurl.URL) error {
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
