// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"net/url"
	"slices"
	"strings"
)

// split takes the comments out of a User-Agent (RFC 9110 section 10.1.5):
// products outside, comments without their parentheses, outermost ones only.
func split(text string) (outside string, comments []string) {
	var b strings.Builder
	depth, from := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			if depth++; depth == 1 {
				b.WriteString(text[from:i])
				b.WriteByte(' ')
				from = i + 1
			}
		case ')':
			if depth == 0 {
				continue
			}
			if depth--; depth == 0 {
				comments = append(comments, text[from:i])
				from = i + 1
			}
		}
	}
	if depth > 0 {
		comments = append(comments, text[from:])
	} else {
		b.WriteString(text[from:])
	}
	return b.String(), comments
}

// family names the program that a User-Agent belongs to. brand says that it is
// nothing but a browser's.
func family(outside string, comments []string) (name string, brand bool) {
	words := strings.Fields(outside)
	if len(words) > 0 && strings.HasPrefix(words[0], "Mozilla/") {
		return mozilla(words, comments)
	}
	switch name = ownName(words); {
	case name == "Python" && len(words) > 1:
		name = ownName(words[1:]) // "Python/3.9 aiohttp/3.8" names its language first
	case strings.Contains(outside, "; Inoreader/"):
		name = "Inoreader" // it calls itself like another reader before its own name
	}
	if name == "" {
		name = commentName(comments)
	}
	if name == "" {
		name = cut(strings.Join(words, " "))
	}
	if name == "" {
		name = nameless
	}
	return name, false
}

// ownName is the name with which a list of words begins: all up to a version, a
// URL or a figure.
func ownName(words []string) string {
	var name []string
	for i, word := range words {
		if site, ok := site(word); ok {
			if len(name) == 0 {
				return cut(site)
			}
			break
		}
		if counts := i+1 < len(words) && subscribers(word+" "+words[i+1]) > 0; counts || feedID(word) != "" {
			break
		}
		if isVersion(word) {
			if len(name) > 0 {
				break
			}
			continue
		}
		head, _, versioned := strings.Cut(word, "/")
		bare := strings.Trim(head, ",;:[]|\"'+-")
		if bare != "" {
			name = append(name, bare)
		}
		if len(name) > 0 && (versioned || bare == "" || strings.HasSuffix(head, ";") || strings.HasSuffix(head, ",")) {
			break
		}
	}
	joined := strings.Join(name, " ")
	// Apps on Apple's systems write the blanks in their names as %20.
	if plain, err := url.PathUnescape(joined); err == nil {
		joined = printable(plain)
	}
	return cut(joined)
}

// site is the host of a word that is a URL.
func site(word string) (string, bool) {
	word = strings.TrimLeft(word, "+<")
	_, rest, ok := strings.Cut(word, "://")
	if !ok || len(word)-len(rest) > len("https://") {
		return "", false
	}
	host, _, _ := strings.Cut(rest, "/")
	return strings.TrimRight(host, ">;,)"), true
}

// isVersion reports whether a word is a version number, like 2.1, v3 or 1.0-beta.
func isVersion(word string) bool {
	word = strings.TrimLeft(word, "vV/")
	return word != "" && '0' <= word[0] && word[0] <= '9' && strings.Trim(word, "0123456789.,;-_abcehlprt") == ""
}

// mozilla names a program that dresses as a browser, or the browser that it is.
func mozilla(words, comments []string) (name string, brand bool) {
	if name := compatible(comments); name != "" {
		return name, false
	}
	for i, word := range words {
		product, _, _ := strings.Cut(word, "/")
		if strings.Trim(product, "-") == "" || engines[product] || isVersion(word) || slices.ContainsFunc(brands, func(b browser) bool { return b.token == product }) {
			continue
		}
		if name := ownName(words[i:]); name != "" {
			return name, false
		}
	}
	for _, b := range brands {
		for _, word := range words {
			product, version, _ := strings.Cut(word, "/")
			if product == b.token {
				// A browser says its version; an empty one is somebody's copy of the form.
				return b.name, version != "" && version[0] >= '0' && version[0] <= '9'
			}
		}
	}
	if name := commentName(comments); name != "" {
		return name, false
	}
	return "Mozilla", false
}

// compatible is the name after "compatible;" in a comment, which is how robots
// and readers sign.
func compatible(comments []string) string {
	for _, comment := range comments {
		segments := strings.Split(comment, ";")
		at := slices.IndexFunc(segments, func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), "compatible") })
		if at < 0 {
			continue
		}
		for _, segment := range segments[at+1:] {
			words := strings.Fields(segment)
			if len(words) == 0 {
				continue
			}
			if words[0] == "MSIE" {
				return "Internet Explorer"
			}
			if _, isURL := site(words[0]); isURL {
				continue
			}
			if name := ownName(words); name != "" {
				return name
			}
		}
	}
	return ""
}

// commentName is the name in the first comment that has one, for a User-Agent
// that has none outside of comments.
func commentName(comments []string) string {
	for _, comment := range comments {
		if name := ownName(strings.Fields(comment)); name != "" {
			return name
		}
	}
	return ""
}

// cut shortens a name to maxName bytes, between characters.
func cut(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.TrimSpace(strings.ToValidUTF8(name[:maxName], ""))
}
