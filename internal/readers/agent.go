// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Agent is the parsed User-Agent of a reader. [ParseAgent] never returns the zero Agent.
type Agent struct {
	UserAgent   string // as sent, cut at 256 bytes, without control characters; "-" if it is missing
	Family      string // the product's name without version, at most 64 bytes; "-" if it is missing
	Kind        Kind
	FeedID      string // the aggregator's own name for the feed; may be empty
	Subscribers int64  // the subscribers that the aggregator declares; 0 if it declares none
}

// Kind classifies User-Agents: it decides whether several addresses with the same
// User-Agent are likely to be several readers.
type Kind string

// The kinds of reader.
const (
	KindNone    Kind = "none"    // no User-Agent
	KindBrowser Kind = "browser" // the form of a person's browser, without another product's name
	KindDevice  Kind = "device"  // names an operating system: runs on a person's device, or is self-hosted
	KindLibrary Kind = "library" // the default name of an HTTP library that many programs use
	KindService Kind = "service" // any other: usually the machines of one operator
)

const (
	// nameless stands for a missing User-Agent, as in access logs.
	nameless = "-"
	// maxAgent is how much of a User-Agent is read, in bytes.
	maxAgent = 256
	// maxName is the longest family and feed ID kept, in bytes.
	maxName = 64
	// maxSubscribers is the largest number accepted, about that of all people.
	maxSubscribers = 10_000_000_000
)

var (
	// declared matches numbers of subscribers, as "12 subscribers", "12 readers",
	// "12 users" or "subscribers=12".
	declared = regexp.MustCompile(`(?i)(?:^|[ ;,(:=+-])(\d+) +(?:feed )?(?:subscriber|readers|users)|subscribers *[:=] *(\d+)`)
	// feedID matches the aggregator's ID of the feed, as "feed-id=5", "feed-id:5" or "id=5".
	feedID = regexp.MustCompile(`(?i)(?:^|[ ;,(])(?:feed[-_]?)?id *[:=] *([\w.-]{1,64})`)
	// compatible matches the name that robots and readers write after "compatible;".
	compatible = regexp.MustCompile(`(?i)[(;] *compatible *;([^()]*)`)
	// versionNumber matches a version number, like 2.1, v3 or 1.0-beta.
	versionNumber = regexp.MustCompile(`^[vV/]*\d[\d.,;\-_abcehlprt]*$`)
)

// ParseAgent parses a User-Agent. It accepts any text: if it finds no product's name, the
// text is the family.
func ParseAgent(text string) Agent {
	text = printable(text[:min(len(text), maxAgent)])
	if text == "" || text == nameless {
		return Agent{UserAgent: nameless, Family: nameless, Kind: KindNone}
	}
	a := Agent{UserAgent: text, Subscribers: subscribers(text)}
	if id := feedID.FindStringSubmatch(text); id != nil {
		a.FeedID = id[1]
	}
	family, browser := family(text)
	a.Family, a.Kind = cmp.Or(family, shortName(text)), kind(text, family, browser)
	return a
}

// printable returns a copy of text, trimmed and without control characters and broken
// UTF-8. It is a copy because text may be part of a larger request.
func printable(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return strings.Clone(strings.TrimSpace(clean))
}

// subscribers returns the number of subscribers that a User-Agent declares, or 0.
func subscribers(text string) int64 {
	for _, found := range declared.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.ParseInt(cmp.Or(found[1], found[2]), 10, 64); err == nil && n <= maxSubscribers {
			return n
		}
	}
	return 0
}

// kind classifies a User-Agent with its family.
func kind(text, family string, browser bool) Kind {
	lower := strings.ToLower(text)
	contains := func(words []string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(lower, word) })
	}
	switch {
	case slices.Contains(libraries, strings.ToLower(family)):
		return KindLibrary
	case browser && strings.HasPrefix(text, "Mozilla/5.0 (") && contains(browserPlatforms) && !contains(readerWords):
		return KindBrowser
	case contains(platforms):
		return KindDevice
	}
	return KindService
}

// libraries are HTTP libraries' default names, in lower case.
var libraries = strings.Fields(`aiohttp apache-httpclient axios curl dalvik dart faraday go-http-client got guzzlehttp httpie java
	java-http-client ktor-client libcurl libwww-perl lwp node node-fetch node.js okhttp php postmanruntime python python-httpx
	python-requests python-urllib python-urllib3 reqwest rest-client ruby undici universalfeedparser ureq wget`)

// browserPlatforms are the platforms of browsers, in lower case, as the first comment of
// a User-Agent begins.
var browserPlatforms = []string{"(windows nt", "(macintosh", "(x11;", "(iphone", "(ipad", "(linux; android", "(android"}

// readerWords occur in the User-Agents of programs that imitate a browser, in lower case.
var readerWords = strings.Fields("feed rss podcast reader bot crawl spider fetch http: https: compatible subscriber headless")

// platforms are operating systems and devices, in lower case.
var platforms = []string{
	"darwin", "cfnetwork", "iphone", "ipad", " ios", "(ios", "android", "macintosh", "mac os", "macos",
	"windows", "x11", "linux", "freebsd", "watchos",
}

// browsers are the tokens and names of browsers. Those that also send another one's token
// come first.
var browsers = [...][2]string{
	{"Edg", "Edge"}, {"EdgA", "Edge"}, {"EdgiOS", "Edge"}, {"Edge", "Edge"},
	{"OPR", "Opera"}, {"Vivaldi", "Vivaldi"}, {"YaBrowser", "Yandex Browser"},
	{"SamsungBrowser", "Samsung Internet"}, {"FxiOS", "Firefox"}, {"CriOS", "Chrome"},
	{"Firefox", "Firefox"}, {"Chrome", "Chrome"}, {"Safari", "Safari"},
}

// engines are words that browsers have in common. They do not name a program.
var engines = strings.Fields("Mozilla AppleWebKit Gecko like KHTML, Version Mobile Ubuntu Chromium")

// family returns the name of the program of a User-Agent, or "" if it has none. browser
// reports that it is a browser's.
func family(text string) (name string, browser bool) {
	outside, comments := split(text)
	words := strings.Fields(outside)
	switch {
	case strings.HasPrefix(text, "Mozilla/"):
		return browserToken(text, words, comments)
	case strings.Contains(outside, "; Inoreader/"):
		return "Inoreader", false // it sends another reader's name before its own
	case len(words) > 1 && strings.HasPrefix(words[0], "Python/"):
		words = words[1:] // "Python/3.9 aiohttp/3.8" names its language first
	}
	return firstName(words, comments), false
}

// browserToken returns the name of a browser, or of a program that imitates one.
func browserToken(text string, words, comments []string) (name string, browser bool) {
	if found := compatible.FindStringSubmatch(text); found != nil {
		if name := firstName(nil, strings.Split(found[1], ";")); name != "" {
			return name, false
		}
	}
	versions := map[string]string{} // of products
	for i, word := range words {
		product, number, _ := strings.Cut(word, "/")
		versions[product] = number
		if strings.Trim(product, "-") == "" || slices.Contains(engines, product) || versionNumber.MatchString(word) ||
			slices.ContainsFunc(browsers[:], func(b [2]string) bool { return b[0] == product }) {
			continue
		}
		if name := ownName(words[i:]); name != "" {
			return name, false
		}
	}
	for _, b := range browsers {
		if number, ok := versions[b[0]]; ok {
			// A browser always has a version; a copy of its User-Agent may not.
			return b[1], number != "" && '0' <= number[0] && number[0] <= '9'
		}
	}
	return cmp.Or(firstName(nil, comments), "Mozilla"), false
}

// split separates the products of a User-Agent from its comments (RFC 9110 section
// 10.1.5). It returns the outermost comments, without their parentheses.
func split(text string) (outside string, comments []string) {
	var b strings.Builder
	depth, from := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			if depth++; depth == 1 {
				b.WriteString(text[from:i] + " ")
				from = i + 1
			}
		case ')':
			if depth--; depth == 0 {
				comments = append(comments, text[from:i])
				from = i + 1
			}
			depth = max(depth, 0)
		}
	}
	if depth > 0 {
		return b.String(), append(comments, text[from:])
	}
	return b.String() + text[from:], comments
}

// firstName returns the name at the beginning of a list of words, or else the first one
// in comments.
func firstName(words, comments []string) string {
	name := ownName(words)
	for _, comment := range comments {
		name = cmp.Or(name, ownName(strings.Fields(comment)))
	}
	return name
}

// ownName returns the name at the beginning of a list of words: all words up to a
// version, a URL or a number of subscribers. A URL at the beginning names its host.
func ownName(words []string) string {
	var name []string
	for i, word := range words {
		if site, ok := site(word); ok {
			if len(name) == 0 {
				return shortName(site)
			}
			break
		}
		if counts := i+1 < len(words) && subscribers(word+" "+words[i+1]) > 0; counts || feedID.MatchString(word) {
			break
		}
		if versionNumber.MatchString(word) {
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
	return shortName(joined)
}

// site returns the host of a word that is a URL.
func site(word string) (string, bool) {
	scheme, rest, ok := strings.Cut(strings.TrimLeft(word, "+<"), "://")
	host, _, _ := strings.Cut(rest, "/")
	return strings.TrimRight(host, ">;,)"), ok && len(scheme) <= len("https")
}

// shortName shortens a name to at most maxName bytes of whole characters.
func shortName(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.TrimSpace(strings.ToValidUTF8(name[:maxName], ""))
}

func shortened(text string) string { return text[:min(len(text), maxAgent)] }
