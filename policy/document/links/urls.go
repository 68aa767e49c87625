// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"encoding/xml"
	"strings"

	"github.com/feedpollard/pollard/internal/markup"
	"github.com/feedpollard/pollard/internal/namespace"
)

// isURL reports whether an attribute outside of HTML is a URL, by its name. Atom's
// links, enclosures, Media RSS and podcasts all use the same few.
func isURL(e *element, name string) bool {
	switch name {
	case "href", "src", "url":
		return true
	case "uri":
		return e.space == namespace.Atom && e.name == "generator" || e.space == namespace.Podcasting && e.name == "source"
	case "feedUrl":
		return e.space == namespace.Podcasting && e.name == "remoteitem"
	}
	return false
}

// taskOf returns what is done with the text of an element.
func taskOf(e *element, attributes []xml.Attr) task {
	ofFeed := e.level == inFeed || e.level == inEntry
	switch {
	case e.html:
	case e.space == namespace.RSS && ofFeed:
		switch e.name {
		case "link", "comments":
			return urlTask
		case "description":
			return htmlTask
		case "guid":
			switch permalink := strings.TrimSpace(markup.Attribute(attributes, "isPermaLink")); {
			case strings.EqualFold(permalink, "true"):
				return guidTask
			case !strings.EqualFold(permalink, "false"):
				return addressTask
			}
		}
	case e.space == namespace.RSS && (e.parent == "image" || e.parent == "textinput"):
		if e.name == "link" || e.name == "url" {
			return urlTask
		}
	case e.space == namespace.Atom:
		return atomTask(e, attributes)
	case e.space == namespace.FeedBurner && e.name == "origlink" && e.level == inEntry:
		return addressTask
	case e.space == namespace.Content && e.name == "encoded",
		e.space == namespace.ITunes && e.name == "summary",
		e.space == namespace.Media && (e.name == "description" || e.name == "text"):
		return htmlTask
	}
	return noTask
}

func atomTask(e *element, attributes []xml.Attr) task {
	switch e.name {
	case "icon", "logo", "uri":
		return urlTask
	case "url": // Atom 0.3's name of uri
		if e.parent == "author" || e.parent == "contributor" {
			return urlTask
		}
	case "title", "subtitle", "tagline", "summary", "content", "rights", "copyright", "info":
		// Atom 0.3 has media types and a mode instead of the three types of 1.0.
		kind := strings.ToLower(strings.TrimSpace(markup.Attribute(attributes, "type")))
		if kind == "html" || kind == "text/html" || strings.TrimSpace(markup.Attribute(attributes, "mode")) == "escaped" {
			return htmlTask
		}
	}
	return noTask
}
