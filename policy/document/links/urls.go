// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"cmp"
	"encoding/xml"
	"strings"

	"github.com/feedpollard/pollard/internal/markup"
	"github.com/feedpollard/pollard/internal/namespace"
)

// place is where an element or an attribute stands.
type place struct {
	space namespace.Vocabulary
	in    string // name of the element around it; empty: a channel, a feed or an entry
	name  string
}

// anywhere stands for each element around another one.
const anywhere = "*"

// tasks are what is done with the texts of elements.
var tasks = map[place]task{
	{namespace.RSS, "", "link"}:                urlTask,
	{namespace.RSS, "", "comments"}:            urlTask,
	{namespace.RSS, "", "guid"}:                guidTask,
	{namespace.RSS, "", "description"}:         htmlTask,
	{namespace.RSS, "image", "link"}:           urlTask,
	{namespace.RSS, "image", "url"}:            urlTask,
	{namespace.RSS, "textinput", "link"}:       urlTask,
	{namespace.RSS, "textinput", "url"}:        urlTask,
	{namespace.Atom, anywhere, "icon"}:         urlTask,
	{namespace.Atom, anywhere, "logo"}:         urlTask,
	{namespace.Atom, anywhere, "uri"}:          urlTask,
	{namespace.Atom, "author", "url"}:          urlTask, // Atom 0.3's name of uri
	{namespace.Atom, "contributor", "url"}:     urlTask,
	{namespace.Atom, anywhere, "title"}:        textTask,
	{namespace.Atom, anywhere, "subtitle"}:     textTask,
	{namespace.Atom, anywhere, "tagline"}:      textTask,
	{namespace.Atom, anywhere, "summary"}:      textTask,
	{namespace.Atom, anywhere, "content"}:      textTask,
	{namespace.Atom, anywhere, "rights"}:       textTask,
	{namespace.Atom, anywhere, "copyright"}:    textTask,
	{namespace.Atom, anywhere, "info"}:         textTask,
	{namespace.FeedBurner, "", "origlink"}:     addressTask,
	{namespace.Content, anywhere, "encoded"}:   htmlTask,
	{namespace.ITunes, anywhere, "summary"}:    htmlTask,
	{namespace.Media, anywhere, "description"}: htmlTask,
	{namespace.Media, anywhere, "text"}:        htmlTask,
}

// away are the children of a channel or a feed that name its own address or a push service.
var away = map[place]bool{
	{namespace.ITunes, "", "new-feed-url"}: true,
	{namespace.Podcasting, "", "podping"}:  true,
	{namespace.RSS, "", "cloud"}:           true,
}

// urlNames are the attributes outside of HTML that are URLs. Atom's links, enclosures, Media RSS and
// podcasts all use the same few.
var urlNames = map[string]bool{"href": true, "src": true, "url": true}

// urlAttributes are those that are URLs of one element alone.
var urlAttributes = map[place]bool{
	{namespace.Atom, "generator", "uri"}:            true,
	{namespace.Podcasting, "source", "uri"}:         true,
	{namespace.Podcasting, "remoteitem", "feedUrl"}: true,
}

// isURL reports whether an attribute outside of HTML is a URL, by its name.
func isURL(e *element, name string) bool {
	return urlNames[name] || urlAttributes[place{e.space, e.name, name}]
}

// taskOf returns what is done with the text of an element.
func taskOf(e *element, attributes []xml.Attr) task {
	if e.html {
		return noTask
	}
	in := e.parent
	if e.level == inFeed || e.level == inEntry {
		in = ""
	}
	switch t := cmp.Or(tasks[place{e.space, in, e.name}], tasks[place{e.space, anywhere, e.name}]); t {
	case guidTask:
		switch strings.ToLower(strings.TrimSpace(markup.Attribute(attributes, "isPermaLink"))) {
		case "true":
			return guidTask
		case "false":
			return noTask
		}
		return addressTask
	case textTask:
		// Atom 0.3 has media types and a mode instead of the three types of 1.0.
		kind := strings.ToLower(strings.TrimSpace(markup.Attribute(attributes, "type")))
		if kind == "html" || kind == "text/html" || strings.TrimSpace(markup.Attribute(attributes, "mode")) == "escaped" {
			return htmlTask
		}
		return noTask
	default:
		return t
	}
}
