// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/pages"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/opml"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy/document/site"
)

const (
	pagesBelow = "/-/"
	pagesIcon  = "favicon.ico"
)

func (g *Gateway) makePages(ctx caddy.Context, app *poller.App) {
	g.pages = &pages.Pages{
		Source:   pages.NewSource(app.Engine(), ""),
		Discover: g.discover,
		Poller:   pages.NewPoller(app.Upstream(), app.Rules()),
		Version:  poller.Version(),
		Log:      slog.New(ctx.Slogger().Handler()),
	}
}

func (g *Gateway) hasPages() bool { return g.Pages == nil || *g.Pages }

type pageRequest struct {
	name string
	by   urlRequest // for its token
	root bool       // at the root, where the site may have its own page
}

// parsePage finds the page that a request is for. It reports false for other requests; the
// path of a configured feed is not a page.
func (g *Gateway) parsePage(u *url.URL) (p pageRequest, ok bool) {
	if !g.hasPages() {
		return p, false
	}
	rest := u.Path
	if after, hasToken := strings.CutPrefix(rest, "/~"); hasToken && g.access.tokens != nil {
		token, tail, _ := strings.Cut(after, "/")
		p.by, rest = urlRequest{token: token, hasToken: true}, "/"+tail
	}
	switch {
	case rest == "/":
		_, byURL := urlParameter(u.RawQuery)
		p.root = true
		ok = !byURL
	case rest == "/"+pagesIcon:
		p.name, p.root, ok = pagesIcon, true, true
	default:
		p.name, ok = strings.CutPrefix(rest, pagesBelow)
		ok = ok && pages.Has(p.name)
	}
	return p, ok && g.paths[u.Path] == ""
}

// servePage serves a page. At the root, the page of the site comes first, if it has one.
func (g *Gateway) servePage(w http.ResponseWriter, r *door.Request, next caddyhttp.Handler, p pageRequest) error {
	if p.root && !p.by.hasToken {
		if answered, err := answeredBy(next, w, r.Request); answered || err != nil {
			return err
		}
	}
	at := g.placeOf(r, p.by)
	if !p.root && p.name == "" {
		at.Home = at.Below // the front page is the site's
	}
	if at.Listed() {
		ctx, site := r.Context(), r.SiteAddress()+basePath(r)
		at.Chosen = func() ([]status.Feed, error) { return g.chosenAt(ctx, site) }
		at.Named = g.named
	}
	g.pages.ServeHTTP(w, *r, at, p.name)
	return nil
}

// placeOf returns where the pages are for a request, and whether its client may see them.
func (g *Gateway) placeOf(r *door.Request, by urlRequest) pages.Place {
	base := basePath(r) + "/"
	if by.hasToken {
		base += "~" + url.PathEscape(by.token) + "/"
	}
	from := g.clientOf(r, by)
	refusal := g.access.admit(from)
	at := pages.Place{
		Home: base, Below: base + strings.TrimPrefix(pagesBelow, "/"), Gateway: r.SiteAddress() + base,
		Token: by.hasToken, Member: refusal == nil, Sender: g.access.describe(from, refusal),
	}
	if at.Member {
		at.Viewer, at.Unlisted = g.viewer(from.asker, r.SiteAddress()+basePath(r)), from.asker == 0
		at.Viewer.OnlyNamed = from.hasToken
	}
	return at
}

// viewer returns what a client is shown. site is the address of the gateway.
func (g *Gateway) viewer(asker poller.Asker, site string) pages.Viewer {
	own := g.engine.OwnersOf(asker)
	return pages.Viewer{
		Shown: func(key, from string, askers []store.Owner) bool {
			asked := slices.ContainsFunc(askers, func(o store.Owner) bool { return slices.Contains(own, o) })
			return asker != 0 && g.visible(key, from, asked)
		},
		Named:    g.isNamed,
		MayReach: func(key string, u feedurl.URL) bool { return g.access.checkURL(u, g.isNamed(key)) == nil },
		Address: func(key string) string {
			if path := g.chosen[key]; path != "" {
				return site + path
			}
			return ""
		},
	}
}

func (g *Gateway) isNamed(key string) bool { return g.chosen[key] != "" || g.access.list.has(key) }

// visible reports whether a client is shown a feed. from is the URL that its version came from, and
// asked says whether the client's group has asked for it. The gateway must serve the feed to that
// client now, at a path or by URL. Either the configuration names the feed, or the client's group
// has asked for it. All lists of a gateway consist of such feeds.
func (g *Gateway) visible(key, from string, asked bool) bool {
	switch {
	case poller.IsShielded(key):
		return false
	case g.chosen[key] != "":
		return true
	case !asked && !g.isNamed(key):
		return false
	}
	u, err := feedurl.Parse(key)
	return err == nil && g.access.checkURL(u, false) == nil && (from == "" || g.access.checkFrom(from, g.isNamed(key)) == nil)
}

// chosenAt returns the feeds with addresses that the operator has chosen, at a site: their URLs, these
// addresses, and their titles and states as far as they are known.
func (g *Gateway) chosenAt(ctx context.Context, site string) ([]status.Feed, error) {
	c, err := g.engine.Opened(ctx)
	if err != nil {
		return nil, err
	}
	var ids []store.ID
	for key := range g.chosen {
		ids = append(ids, store.IDOf(key))
	}
	known, err := c.StatusesOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	byURL := make(map[feedurl.Redacted]status.Feed, len(known))
	for _, f := range known {
		byURL[f.URL] = f
	}
	list := make([]status.Feed, 0, len(g.paths))
	for _, path := range slices.Sorted(maps.Keys(g.paths)) {
		u := feedurl.Redacted(g.paths[path])
		list = append(list, status.Feed{URL: u, Title: byURL[u].Title, State: byURL[u].State, Address: site + (&url.URL{Path: path}).EscapedPath()})
	}
	return list, nil
}

// named returns the feeds of the line opml that the gateway serves, in their folders.
func (g *Gateway) named() []opml.Outline {
	return g.access.list.outlines(func(feed *opml.Outline) bool {
		u, err := feedurl.Parse(feed.URL)
		return err == nil && g.access.checkURL(u, false) == nil
	})
}

// discover finds the feeds of a site, or the feed at an address. The address is polled like a
// feed by URL, and no earlier.
func (g *Gateway) discover(r *door.Request, address string) (pages.Site, error) {
	u, problem := g.requested(r, address)
	if problem != "" {
		return pages.Site{URL: feedurl.Redacted(address), Problem: problem}, nil
	}
	found := pages.Site{URL: feedurl.Redacted(u.String())}
	page, _ := g.parsePage(r.URL)
	err := error(nil)
	if found.Title, found.Feeds, err = g.feedsAt(r, page.by, u); err != nil {
		refusal := door.RefusalOf(err)
		if refusal.Status == http.StatusInternalServerError {
			return found, err
		}
		found.Feeds, found.Problem, found.Elsewhere = nil, sentence(refusal.Reason), elsewhere(err)
	}
	return found, nil
}

// requested returns the URL that an address means which a person has typed or pasted: of a feed or
// a site, with or without a scheme, or at this gateway. Otherwise it returns what is wrong.
func (g *Gateway) requested(r *door.Request, address string) (u feedurl.URL, problem string) {
	const noSite, example = "This is not the address of a site: ", "write one such as https://blog.example/."
	if address = feedurl.Written(address); strings.HasPrefix(address, "/") {
		address = r.SiteAddress() + basePath(r) + address // a path of this gateway
	}
	const folded = 3 // addresses of this gateway, one in another
	for range folded {
		u, err := feedurl.Parse(address)
		if err != nil {
			if _, _, hasScheme := feedurl.CutScheme(address); !hasScheme {
				_, err = feedurl.Parse("https://" + address) // an odd port does not look like one
			}
			if _, why, odd := strings.Cut(fmt.Sprint(err), ": its port "); odd {
				return u, noSite + "its port " + why + "."
			}
			return u, noSite + example
		}
		feed, own := g.own(r, u)
		switch {
		case !own:
			return u, ""
		case feed == "":
			return u, "This is an address of this gateway itself: write that of the site or the feed."
		}
		address = feed
	}
	return u, noSite + example
}

// own returns the URL of the feed that an address of this gateway is for; it is empty for a page.
// It reports false for other addresses.
func (g *Gateway) own(r *door.Request, u feedurl.URL) (feed string, own bool) {
	if !u.IsAt(r.Host) && !u.IsAt(r.Forwarded) {
		return "", false
	}
	requested, base := u.RequestURL(), basePath(r)
	if requested.Path, own = strings.CutPrefix(requested.Path, base); !own {
		return "", false
	}
	requested.RawPath = strings.TrimPrefix(requested.RawPath, base)
	if feed = g.feedAt(requested); feed != "" {
		return feed, true
	}
	_, own = g.parsePage(requested)
	return "", own
}

// feedsAt returns the feed at a URL or, if it is a web page, its title and the feeds that it names.
func (g *Gateway) feedsAt(r *door.Request, by urlRequest, u feedurl.URL) (title string, found []pages.Found, err error) {
	from := g.clientOf(r, by)
	if !by.hasToken && r.OfOtherSite() {
		return "", nil, errOtherSite
	}
	if refusal := g.access.authorize(from, u); refusal != nil && g.chosen[u.String()] == "" {
		return "", nil, refusal
	}
	feed, err := g.feedFor(r, from, u)
	if err != nil {
		return "", nil, err
	}
	found = g.found(r, site.Feed{URL: u.String()})
	if _, served := feed.Await(r.Context()); served {
		found[0].Title = feed.Title()
		if from := feed.From(); from != "" {
			err = g.access.checkFrom(from, g.isNamed(u.String()))
		}
		return "", found, err
	}
	switch why := feed.Unavailable(); {
	case why == nil: // the first version came a moment ago
		return "", found, nil
	case g.access.shows(why.Site, g.isNamed(u.String())):
		return why.Site.Title, g.found(r, why.Site.Feeds...), nil
	case why.Moved != "":
		return "", g.found(r, site.Feed{URL: why.Moved}), nil
	default:
		return "", nil, why
	}
}

func sentence(reason string) string {
	return strings.ReplaceAll(status.Capitalize(feedurl.Message(reason)), "`", "") + "."
}

// found returns feeds that a site names, with the addresses here that the operator has chosen.
func (g *Gateway) found(r *door.Request, feeds ...site.Feed) (list []pages.Found) {
	for _, f := range feeds {
		found := pages.Found{URL: f.URL, Title: f.Title, Type: f.Type}
		if path := g.chosen[f.URL]; path != "" {
			found.Address = r.SiteAddress() + basePath(r) + path
		}
		list = append(list, found)
	}
	return list
}

// serveSite answers a request by URL for a web page with a page that lists the feeds found there.
// It reports false for any other error.
func (g *Gateway) serveSite(w http.ResponseWriter, r *door.Request, req request, err error) bool {
	u, ok := errors.AsType[*cache.Unavailable](err)
	if !ok || !g.access.shows(u.Site, req.named) || !g.hasPages() || !req.byURL {
		return false
	}
	found := pages.Site{URL: feedurl.Redacted(req.by.target), Title: u.Site.Title, Feeds: g.found(r, u.Site.Feeds...)}
	g.pages.ServeSite(w, *r, g.placeOf(r, req.by), found)
	g.requests.Report(r, poller.ResultMoved, req.feed(), "")
	return true
}

// naming adds the feeds that a web page names to the error of a feed that is one.
func (g *Gateway) naming(err error, req request) error {
	u, ok := errors.AsType[*cache.Unavailable](err)
	if !ok || req.byURL && !g.access.shows(u.Site, req.named) || u.Site == nil {
		return err
	}
	named := *u
	named.Reason += "; the page names " + status.SomeFeeds(u.Site.Redacted())
	return &named
}

// elsewhere reports whether another address of the site may give a feed, as this one does not: the
// site has answered.
func elsewhere(err error) bool {
	u, ok := errors.AsType[*cache.Unavailable](err)
	return ok && u.Answered || err == errNoFeed
}

// serveProblem answers a browser with a page in place of a line of text. It reports false for other
// clients, and if the site has a page for errors.
func (g *Gateway) serveProblem(w http.ResponseWriter, r *door.Request, req request, e *door.Refusal, elsewhere bool) bool {
	if !g.hasPages() || !pages.WantsPage(r.Request) || !req.by.hasToken && e.Handled(r) {
		return false
	}
	e.Header(w.Header())
	site := ""
	if elsewhere {
		site = req.by.target
	}
	g.pages.ServeProblem(w, *r, g.placeOf(r, req.by), e.Status, sentence(e.Reason), site)
	return true
}

// errNoFeed refuses files that are never feeds. Readers request an icon from the host of a feed,
// which here is the gateway; polling a site for it would be useless.
var errNoFeed error = &door.Refusal{Status: http.StatusNotFound, Reason: "this is not the address of a feed"}

// neverFeed reports whether a URL is that of a picture or of robots.txt.
func neverFeed(u feedurl.URL) bool {
	switch strings.ToLower(path.Ext(u.Path())) {
	case ".ico", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".avif":
		return true
	}
	return u.Path() == "/robots.txt"
}
