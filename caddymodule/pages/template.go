// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/hex"
	"hash/fnv"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
)

var (
	//go:embed templates
	templateFiles embed.FS
	//go:embed static
	staticFiles embed.FS
)

type page struct {
	Place
	Title   string
	Section string // the name of the page
	Version string
	Shield  bool            // the pages are those of a shield
	Notices []status.Reason // trouble, which heads the page
	Content any
}

// Link is the address of a page by its name, with a query if it has one.
func (at Place) Link(name string) string {
	if name == pageHome {
		return at.Home
	}
	return at.Below + name
}

// Asset is the address of a file, which changes with its content.
func (at Place) Asset(name string) string { return at.Below + name + "?" + assets[name].tag }

// FeedLink is the address of a feed's page. A URL that hides something is not in it.
func (at Place) FeedLink(f status.Feed) string { return at.feedAddress(f.URL, f.ID) }

// RecordLink is the address of the page of a feed that may have no record yet.
// Empty: the URL must not be in it.
func (at Place) RecordLink(u string) string {
	if !feedurl.Redacted(u).Open() {
		return ""
	}
	return at.feedAddress(feedurl.Redacted(u), "")
}

func (at Place) feedAddress(u feedurl.Redacted, id string) string {
	if u != "" && u.Open() {
		return at.Below + pageFeeds + "?url=" + url.QueryEscape(string(u))
	}
	return at.Below + pageFeeds + "?id=" + url.QueryEscape(id)
}

// Address is the address of a feed through the gateway, as a reader wants it.
// Empty: there is none that could be shown.
func (at Place) Address(u feedurl.Redacted) string {
	if at.Gateway == "" || !u.Open() {
		return ""
	}
	return at.Gateway + string(u)
}

// Found is the address of a feed that was found, through the gateway.
func (at Place) Found(f Found) string { return cmp.Or(f.Address, at.Gateway+f.URL) }

// templates by name, each within the layout.
var templates = func() map[string]*template.Template {
	layout := template.Must(template.New("layout.html").Funcs(template.FuncMap{
		"num": humanize.Comma, "size": status.Size, "percent": status.Percent, "counted": status.Count, "length": status.Short, "took": func(s status.Seconds) string { return status.Short(time.Duration(s)) },
		"in":     func(t time.Time) string { return status.Until(t, time.Now()) },
		"ago":    func(t time.Time) string { return status.Ago(t, time.Now()) },
		"plural": status.Plural, "meaning": status.HintMeaning, "short": status.HintShort, "given": status.Given, "bars": bars, "uptime": status.Uptime, "last": status.Last, "often": status.Frequency,
		"bare": func(u feedurl.Redacted) string {
			return strings.TrimPrefix(strings.TrimPrefix(u.String(), "https://"), "http://")
		},
		"shown": func(u string) feedurl.Redacted { return feedurl.Redacted(u) },
		"path": func(address string) string {
			u, err := url.Parse(address)
			if err != nil {
				return address
			}
			return u.Path
		},
		"pushed":   func(p *status.Push) string { return p.Sentence(time.Now()) },
		"next":     func(f status.Feed) string { return f.Next(time.Now()) },
		"int64":    func(n int) int64 { return int64(n) },
		"seconds":  func(n int64) time.Duration { return time.Duration(n) * time.Second },
		"feedType": feedType,
		"rfc3339":  func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"utc":      func(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") },
	}).ParseFS(templateFiles, "templates/layout.html"))
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		panic(err) // the pattern is valid
	}
	byName := make(map[string]*template.Template)
	for _, file := range files {
		if name := strings.TrimSuffix(path.Base(file), ".html"); name != "layout" {
			byName[name] = template.Must(template.Must(layout.Clone()).ParseFS(templateFiles, file))
		}
	}
	return byName
}()

// feedType is the attribute type of a link to a feed. Not all readers that look for
// links read HTML as it should be read: the plus must not be escaped.
func feedType(name string) template.HTMLAttr {
	switch name {
	case "application/rss+xml", "application/rdf+xml", "application/feed+json":
		return template.HTMLAttr(`type="` + name + `"`)
	}
	return `type="application/atom+xml"`
}

// file is a file of ours that pages use.
type file struct {
	body        []byte
	contentType string
	tag         string // of the content
}

var assets = func() map[string]file {
	files := map[string]file{}
	for name, contentType := range map[string]string{
		pageStyle: "text/css; charset=utf-8", pageScript: "text/javascript; charset=utf-8", pageIcon: "image/vnd.microsoft.icon",
	} {
		body, err := staticFiles.ReadFile("static/" + name)
		if err != nil {
			panic(err) // they are embedded
		}
		sum := fnv.New64a()
		sum.Write(body)
		files[name] = file{body, contentType, hex.EncodeToString(sum.Sum(nil))}
	}
	return files
}()

func (p *Pages) asset(v *visit) error {
	f := assets[v.name]
	h := v.w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("ETag", `"`+f.tag+`"`)
	h.Set("Cache-Control", "public, max-age=86400")
	if v.r.URL.RawQuery == f.tag { // this content never changes at this address
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(v.w, v.r.Request, "", time.Time{}, bytes.NewReader(f.body))
	return nil
}
