// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"

	"github.com/feedpollard/pollard/internal/markup"
)

// findURLs calls visit with each URL in the attributes of a piece of HTML, without the
// white space around it.
func findURLs(text []byte, visit func(url span)) {
	if bytes.IndexByte(text, '<') < 0 || bytes.IndexByte(text, '=') < 0 {
		return // no tag with an attribute
	}
	z := html.NewTokenizer(bytes.NewReader(text))
	for at := 0; ; {
		token := z.Next()
		if token == html.ErrorToken {
			return // the end, or a tag without one: browsers ignore it as well
		}
		tag := span{Start: at, End: at + len(z.Raw())}
		at = tag.End
		if token != html.StartTagToken && token != html.SelfClosingTagToken {
			continue
		}
		name, more := z.TagName()
		if string(name) == "noscript" {
			z.NextIsNotRawText() // readers do not run scripts
		}
		if !more {
			continue
		}
		element := string(name)
		for _, a := range markup.Attributes(text, tag) {
			for _, url := range urlsOf(text, element, strings.ToLower(string(text[a.Name.Start:a.Name.End])), a.Value) {
				visit(url)
			}
		}
	}
}

// urlsOf finds the URLs in the value of an attribute of HTML.
func urlsOf(text []byte, element, name string, value span) []span {
	switch name {
	case "srcset", "imagesrcset":
		return candidates(text, value)
	case "href", "src", "poster", "cite", "action", "formaction", "background", "data":
		if element != "base" && (name != "data" || element == "object") {
			return []span{trimmed(text, value)}
		}
	}
	return nil
}

// candidates finds the URLs in a srcset: "a.jpg 1x, b.jpg 2x" (HTML section 4.8.4.2.1).
func candidates(text []byte, value span) (urls []span) {
	for at := value.Start; at < value.End; {
		for at < value.End && (markup.IsHTMLSpace(text[at]) || text[at] == ',') {
			at++
		}
		url := span{Start: at, End: at}
		for at < value.End && !markup.IsHTMLSpace(text[at]) {
			at++
		}
		url.End = at
		for url.End > url.Start && text[url.End-1] == ',' {
			url.End--
		}
		if url.End > url.Start {
			urls = append(urls, url)
		}
		if url.End < at {
			continue // a comma after the URL: it has no descriptor
		}
		for depth := 0; at < value.End && (text[at] != ',' || depth > 0); at++ {
			switch text[at] {
			case '(':
				depth++
			case ')':
				depth--
			}
		}
	}
	return urls
}
