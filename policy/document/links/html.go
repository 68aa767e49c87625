// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
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
		tag := span{at, at + len(z.Raw())}
		at = tag.end
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
		for _, a := range attributes(text, tag) {
			for _, url := range urlsOf(text, element, strings.ToLower(string(text[a.name.start:a.name.end])), a.value) {
				visit(url)
			}
		}
	}
}

// attribute is the name and the value of an attribute, without quotes.
type attribute struct{ name, value span }

// attributes finds the attributes of a start tag of HTML or XML.
func attributes(text []byte, tag span) []attribute {
	var list []attribute
	at, end := tag.start+1, tag.end-1
	for at < end && !isSpace(text[at]) && text[at] != '/' {
		at++
	}
	for at < end {
		if isSpace(text[at]) || text[at] == '/' {
			at++
			continue
		}
		var a attribute
		a, at = readAttribute(text[:end], at)
		list = append(list, a)
	}
	return list
}

// readAttribute reads the attribute at an offset and returns where it ends.
func readAttribute(text []byte, at int) (a attribute, end int) {
	a.name.start = at
	for at++; at < len(text) && !isSpace(text[at]) && text[at] != '/' && text[at] != '='; {
		at++
	}
	a.name.end = at
	after := skipSpace(text, at)
	if after == len(text) || text[after] != '=' {
		return a, at
	}
	at = skipSpace(text, after+1)
	if at < len(text) && (text[at] == '"' || text[at] == '\'') {
		if length := bytes.IndexByte(text[at+1:], text[at]); length >= 0 {
			a.value = span{at + 1, at + 1 + length}
			return a, a.value.end + 1
		}
	}
	a.value.start = at
	for at < len(text) && !isSpace(text[at]) {
		at++
	}
	a.value.end = at
	return a, at
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && isSpace(text[at]) {
		at++
	}
	return at
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
	for at := value.start; at < value.end; {
		for at < value.end && (isSpace(text[at]) || text[at] == ',') {
			at++
		}
		url := span{at, at}
		for at < value.end && !isSpace(text[at]) {
			at++
		}
		url.end = at
		for url.end > url.start && text[url.end-1] == ',' {
			url.end--
		}
		if url.end > url.start {
			urls = append(urls, url)
		}
		if url.end < at {
			continue // a comma after the URL: it has no descriptor
		}
		for depth := 0; at < value.end && (text[at] != ',' || depth > 0); at++ {
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
