// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"errors"
	"net/netip"
	"net/url"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
)

// Source is what pages show to a viewer. Its methods may be called concurrently. Errors other than
// those named here are logged, not shown.
type Source interface {
	// Trouble is what keeps the poller from its work. It does not wait for the store.
	Trouble(v *Viewer) status.Trouble

	// Feeds lists feeds; see [status.Select].
	Feeds(ctx context.Context, v *Viewer, q status.Query) (status.FeedList, error)

	// Feed returns the status of a feed and the body of its version, if that is small
	// enough to be parsed, or [ErrUnknown].
	Feed(ctx context.Context, v *Viewer, which Which) (status.Feed, []byte, error)

	// Refresh polls a feed now, if its rules allow a poll by hand, and waits for the
	// result. It fails with [ErrUnknown] or [*cache.TooEarly].
	Refresh(ctx context.Context, v *Viewer, which Which) (status.Result, error)

	// Readers returns the families of readers.
	Readers(ctx context.Context, v *Viewer) (status.Readers, error)

	// Savings returns the traffic that origins were spared, with at most limit origins.
	Savings(ctx context.Context, v *Viewer, limit int) (status.Savings, error)
}

// Viewer is who looks at pages, as far as it decides what is shown.
type Viewer struct {
	// Shown decides which feeds are shown. Nil: none.
	Shown cache.Shown
	// Named reports whether the configuration of the gateway names a feed: only of these it is shown
	// how many ask. Nil: of all.
	Named func(key string) bool
	// OnlyNamed says that sums are of these feeds too: with a token, one would learn from others how much
	// another reads.
	OnlyNamed bool
	// MayReach reports whether the viewer may get what a URL gives by the feed of a key, which
	// redirects there or names it. Of other URLs only the host is shown. Nil: of all.
	MayReach func(key string, u feedurl.URL) bool
	// Address returns the address at the gateway that its operator has chosen for the feed of
	// a key, or "". Nil: there are none.
	Address func(key string) string
}

func (v *Viewer) shown(key, from string, askers []store.Owner) bool {
	return v.Shown != nil && v.Shown(key, from, askers)
}

// shownKey reports whether the feed of a key is shown, whichever client asked for it.
func (v *Viewer) shownKey(key string) bool { return v.shown(key, "", nil) }

// ErrUnknown reports that a feed is not known, or not shown by these pages.
var ErrUnknown = errors.New("pages: unknown feed")

// Which names a feed by its URL, or by its ID if the URL must not be shown.
type Which struct{ URL, ID string }

// Publisher is what the publisher of a shield's feeds should know first.
type Publisher struct {
	// Notices say what of the site keeps the shield from its work, and how to mend it.
	Notices []string `json:"notices,omitempty"`
	// Passed counts the requests for feeds that went to the site, by the header field that made them
	// differ from a poll, or by method or body.
	Passed map[string]int64 `json:"passed,omitempty"`
	// Proxies are those of [status.Trouble].
	Proxies []netip.Addr `json:"untrusted_proxies,omitempty"`
}

// Site is a web page, and the feeds that it names.
type Site struct {
	URL     feedurl.Redacted `json:"url"`
	Title   string           `json:"title,omitempty"`
	Feeds   []Found          `json:"feeds,omitempty"`
	Problem string           `json:"problem,omitempty"` // why there are none: a sentence

	Elsewhere bool `json:"-"` // the site has answered, so that its home page may name feeds
}

func (s Site) name() string {
	if s.Title != "" {
		return s.Title
	}
	return s.URL.String()
}

// HomePage is the home page of the host of a site without feeds, or "" if the site is one or does not answer.
func (s Site) HomePage() string {
	u, err := url.Parse(string(s.URL))
	if err != nil || u.Host == "" || !s.Elsewhere || len(s.Feeds) > 0 || !s.URL.Open() || (u.Path == "" || u.Path == "/") && u.RawQuery == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host + "/"
}

// Found is a feed that a site names, or that was asked for itself.
type Found struct {
	URL     string `json:"url"`               // canonical, and shown with credentials: the viewer has just typed them
	Address string `json:"address,omitempty"` // at the gateway, if its operator has chosen one
	Title   string `json:"title,omitempty"`
	Type    string `json:"type,omitempty"` // media type as the site names it: application/atom+xml
}
