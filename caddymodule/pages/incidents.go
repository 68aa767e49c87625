// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/internal/status"
)

// maxIncidents is how many incidents the feed of them has, the newest first.
const maxIncidents = 200

// incidentsBegin is the date of the first entry, which is older than any incident.
var incidentsBegin = time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)

// atomFeed is an Atom document (RFC 4287).
type atomFeed struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated string      `xml:"updated"`
	Author  string      `xml:"author>name"`
	Links   []atomLink  `xml:"link"`
	Entries []atomEntry `xml:"entry"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr,omitempty"`
	Href string `xml:"href,attr"`
}

type atomEntry struct {
	ID      string   `xml:"id"`
	Title   string   `xml:"title"`
	Updated string   `xml:"updated"`
	Link    atomLink `xml:"link"`
	Summary string   `xml:"summary"`
}

// incidents is a feed of what happened to feeds, for the readers in which people read them. It
// polls nothing.
func (p *Pages) incidents(v *visit) error {
	list, err := p.Source.Feeds(v.r.Context(), &v.at.Viewer, status.Query{Incident: true, Limit: maxIncidents})
	if err != nil {
		return err
	}
	site, err := url.Parse(v.at.Gateway)
	if err != nil {
		return err
	}
	now := time.Now()
	feeds := slices.DeleteFunc(list.Feeds, func(f status.Feed) bool { return f.Incident == nil })
	slices.SortStableFunc(feeds, func(a, b status.Feed) int {
		return b.Incident.Updated(now).Compare(a.Incident.Updated(now))
	})
	page := func(name string) string { return site.Scheme + "://" + site.Host + v.at.Below + name }
	out := atomFeed{
		ID: tag(site.Host), Title: "Incidents of feeds at " + site.Host, Author: "Pollard",
		Links: []atomLink{{Href: page(pageFeeds)}, {Rel: "self", Href: page(pageIncidents)}},
	}
	for _, f := range feeds {
		i := *f.Incident
		out.Entries = append(out.Entries, atomEntry{
			ID:    tag(f.ID, string(i.Kind), i.Began.UTC().Format(time.RFC3339)),
			Title: cmp.Or(f.Title, f.Address, f.URL.String()) + " " + i.Headline(now), Updated: i.Updated(now).UTC().Format(time.RFC3339),
			Link: atomLink{Href: page(pageFeeds) + "?id=" + f.ID}, Summary: i.Sentences(f, now),
		})
	}
	// A feed without entries looks broken to many readers.
	out.Entries = append(out.Entries, atomEntry{
		ID: tag(site.Host, "first"), Title: out.Title, Updated: incidentsBegin.Format(time.RFC3339), Link: atomLink{Href: page(pageFeeds)},
		Summary: "An entry comes here if a feed has failed for a day, is gone, has moved, or may lose entries between two polls. " +
			"It changes when that ends, and stays for 30 days after.",
	})
	out.Updated = out.Entries[0].Updated
	body, err := xml.Marshal(out)
	if err != nil {
		return err
	}
	return v.serveVersion("application/atom+xml", append([]byte(xml.Header), body...), out.Updated)
}

// tag returns a tag URI (RFC 4151) that names neither a URL nor a host, which may be secrets or change.
func tag(parts ...string) string {
	return fmt.Sprintf("tag:feedpollard.github.io,2026:%x", sha256.Sum256(fmt.Appendf(nil, "%q", parts)))[:72]
}

// serveVersion answers as feeds are served: with an ETag, a date, and 304. It may be kept for an hour.
func (v *visit) serveVersion(contentType string, body []byte, updated string) error {
	at, err := time.Parse(time.RFC3339, updated)
	if err != nil {
		return err
	}
	described := version.Version{ContentType: contentType, LastModified: at}
	described.Identify(body)
	response := version.NewResponse(&described, false)
	now := time.Now()
	v.w.Header().Set("Cache-Control", "private, max-age=3600")
	if response.NotModified(v.r.Header, now) {
		response.WriteNotModified(v.w, v.r.Header, now)
		return nil
	}
	response.Write(v.w, v.r.Request, &version.Representation{Tag: described.Tag, Coding: version.Identity, Size: int64(len(body)), Parts: [][]byte{body}}, now)
	return nil
}
