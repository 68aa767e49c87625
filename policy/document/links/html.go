// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"bytes"
	"strings"
)

// span is text[start:end].
type span struct{ start, end int }

// scanHTML calls visit with each URL in the attributes of a piece of HTML, white space
// around it left out. It follows the tokenizer of the HTML standard (section 13.2.5)
// as far as tags, comments and texts that hold no tags go; a tag or comment without an
// end hides what follows, as it does in a browser.
func scanHTML(text []byte, visit func(tag string, url span)) {
	for at := 0; ; {
		open := bytes.IndexByte(text[at:], '<')
		if open < 0 {
			return
		}
		at += open
		rest := text[at:]
		switch {
		case bytes.HasPrefix(rest, []byte("<!--")):
			end := bytes.Index(rest[len("<!"):], []byte("-->")) // <!--> is a whole comment
			if end < 0 {
				return
			}
			at += len("<!") + end + len("-->")
		case len(rest) > 1 && isLetter(rest[1]):
			name, end := scanTag(text, at+1, visit)
			if end < 0 {
				return
			}
			at = end
			if hidesTags(name) {
				if end = closing(text, at, name); end < 0 {
					return
				}
				at = end
			}
		default:
			at++ // an end tag has no attributes that count
		}
	}
}

// scanTag reads a start tag from its name on. It returns where the tag ends, negative
// where it does not.
func scanTag(text []byte, at int, visit func(tag string, url span)) (name string, end int) {
	start := at
	for at < len(text) && !isSpace(text[at]) && text[at] != '/' && text[at] != '>' {
		at++
	}
	name = strings.ToLower(string(text[start:min(at, start+maxName)]))
	var urls []span
	for at < len(text) {
		switch c := text[at]; {
		case c == '>':
			for _, url := range urls {
				visit(name, url)
			}
			return name, at + 1
		case isSpace(c) || c == '/':
			at++
		default:
			var attribute, value span
			attribute, value, at = scanAttribute(text, at)
			if at < 0 {
				return name, -1
			}
			if value.end > value.start {
				urls = appendURLs(urls, text, name, attribute, value)
			}
		}
	}
	return name, -1
}

// maxName is longer than any name of a tag or attribute that counts, in bytes.
const maxName = 16

// scanAttribute reads an attribute. It returns where the attribute ends, negative
// where its quotes do not.
func scanAttribute(text []byte, at int) (name, value span, end int) {
	name.start = at
	for at++; at < len(text) && !isSpace(text[at]) && strings.IndexByte("/>=", text[at]) < 0; {
		at++
	}
	name.end = at
	after := at
	for after < len(text) && isSpace(text[after]) {
		after++
	}
	if after == len(text) || text[after] != '=' {
		return name, value, at
	}
	for after++; after < len(text) && isSpace(text[after]); {
		after++
	}
	if after == len(text) {
		return name, value, after
	}
	if quote := text[after]; quote == '"' || quote == '\'' {
		length := bytes.IndexByte(text[after+1:], quote)
		if length < 0 {
			return name, value, -1
		}
		return name, span{after + 1, after + 1 + length}, after + 1 + length + 1
	}
	value.start = after
	for after < len(text) && !isSpace(text[after]) && text[after] != '>' {
		after++
	}
	value.end = after
	return name, value, after
}

// appendURLs takes the URLs out of an attribute.
func appendURLs(urls []span, text []byte, tag string, attribute, value span) []span {
	if attribute.end-attribute.start > maxName || tag == "base" {
		return urls
	}
	name := strings.ToLower(string(text[attribute.start:attribute.end]))
	if name == "srcset" || name == "imagesrcset" {
		return appendCandidates(urls, text, value)
	}
	if isURLAttribute(name, tag) {
		if url := trimmed(text, value); url.end > url.start {
			urls = append(urls, url)
		}
	}
	return urls
}

// isURLAttribute reports whether an attribute of HTML has a URL for its value.
func isURLAttribute(name, tag string) bool {
	switch name {
	case "href", "src", "poster", "cite", "action", "formaction", "background":
		return true
	case "data":
		return tag == "object"
	}
	return false
}

// appendCandidates takes the URLs out of a srcset: "a.jpg 1x, b.jpg 2x".
func appendCandidates(urls []span, text []byte, value span) []span {
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
			continue // a comma behind the URL: there is no descriptor
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

// hidesTags reports whether an element has no tags within but its own end tag.
func hidesTags(name string) bool {
	switch name {
	case "script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "plaintext":
		return true
	}
	return false
}

// closing finds the end tag of an element; negative where there is none.
func closing(text []byte, at int, name string) int {
	for {
		next := bytes.Index(text[at:], []byte("</"))
		if next < 0 {
			return -1
		}
		at += next + len("</")
		if end := at + len(name); end <= len(text) && strings.EqualFold(string(text[at:end]), name) {
			return end
		}
	}
}

// trimmed leaves out white space around.
func trimmed(text []byte, s span) span {
	for s.start < s.end && isSpace(text[s.start]) {
		s.start++
	}
	for s.end > s.start && isSpace(text[s.end-1]) {
		s.end--
	}
	return s
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
