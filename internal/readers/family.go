// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"net/url"
	"slices"
	"strings"
)

// split separates the products of a User-Agent from its comments (RFC 9110 section
// 10.1.5). It returns the outermost comments, without their parentheses.
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

// family returns the name of the program of a User-Agent. brand says that it is a browser.
func family(outside string, comments []string) (name string, brand bool) {
	words := strings.Fields(outside)
	if len(words) > 0 && strings.HasPrefix(words[0], "Mozilla/") {
		return mozilla(words, comments)
	}
	switch name = ownName(words); {
	case name == "Python" && len(words) > 1:
		name = ownName(words[1:]) // "Python/3.9 aiohttp/3.8" names its language first
	case strings.Contains(outside, "; Inoreader/"):
		name = "Inoreader" // it sends another reader's name before its own
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

// ownName returns the name at the beginning of a list of words: all words up to a
// version, a URL or a number of subscribers.
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
	// Apps on Apple's systems write spaces in their names as %20.
	if plain, err := url.PathUnescape(joined); err == nil {
		joined = printable(plain)
	}
	return cut(joined)
}

// site returns the host of a word that is a URL.
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

// mozilla returns the name of a program whose User-Agent begins with Mozilla: a browser,
// or a program that imitates one.
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
				// A browser always has a version; a copy of its User-Agent may not.
				return b.name, version != "" && version[0] >= '0' && version[0] <= '9'
			}
		}
	}
	if name := commentName(comments); name != "" {
		return name, false
	}
	return "Mozilla", false
}

// compatible returns the name after "compatible;" in a comment, as robots and readers
// write it.
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

// commentName returns the first name in the comments of a User-Agent that has none
// outside of them.
func commentName(comments []string) string {
	for _, comment := range comments {
		if name := ownName(strings.Fields(comment)); name != "" {
			return name
		}
	}
	return ""
}

// cut shortens a name to at most maxName bytes of whole characters.
func cut(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.TrimSpace(strings.ToValidUTF8(name[:maxName], ""))
}
