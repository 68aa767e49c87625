// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package namespace knows the XML namespaces whose elements mean something to a feed.
package namespace

import "strings"

// Vocabulary is a namespace whose elements mean something here.
type Vocabulary byte

const (
	Other       Vocabulary = iota // none of those below
	None                          // no namespace: RSS 0.91 to 2.0
	RSS                           // the namespaces of RSS 0.90 and 1.0, and those that people put on 2.0
	Atom                          // Atom 0.3 (RFC 4287's forerunner) and 1.0
	RDF                           // RDF, around RSS 0.90 and 1.0
	Syndication                   // RSS 1.0 module: when a feed is updated
	Slash                         // RSS 1.0 module: numbers of comments
	Threading                     // Atom threading (RFC 4685): the same
	DublinCore                    // elements and terms
	ITunes                        // podcasts
	Podcasting                    // Podcasting 2.0
	Media                         // Media RSS
	XML                           // xml:base and the like
	Content                       // RSS 1.0 module: full texts
	XHTML                         // HTML within XML
	FeedBurner                    // a service that counts readers: where a link led before
)

// names maps namespace names, as [Of] shortens them.
var names = map[string]Vocabulary{
	"":                                    None,
	"purl.org/rss/1.0":                    RSS,
	"my.netscape.com/rdf/simple/0.9":      RSS,
	"channel.netscape.com/rdf/simple/0.9": RSS,
	"my.netscape.com/publish/formats/rss-0.91.dtd":                        RSS,
	"backend.userland.com/rss2":                                           RSS,
	"backend.userland.com/rss2.1":                                         RSS,
	"backend.userland.com/rss":                                            RSS,
	"blogs.law.harvard.edu/tech/rss":                                      RSS,
	"cyber.law.harvard.edu/rss":                                           RSS,
	"www.rssboard.org/rss-specification":                                  RSS,
	"www.w3.org/2005/atom":                                                Atom,
	"purl.org/atom/ns":                                                    Atom,
	"www.w3.org/1999/02/22-rdf-syntax-ns":                                 RDF,
	"purl.org/rss/1.0/modules/syndication":                                Syndication,
	"purl.org/rss/1.0/modules/slash":                                      Slash,
	"purl.org/syndication/thread/1.0":                                     Threading,
	"purl.org/dc/elements/1.0":                                            DublinCore,
	"purl.org/dc/elements/1.1":                                            DublinCore,
	"purl.org/dc/terms":                                                   DublinCore,
	"www.itunes.com/dtds/podcast-1.0.dtd":                                 ITunes,
	"podcastindex.org/namespace/1.0":                                      Podcasting,
	"github.com/podcastindex-org/podcast-namespace/blob/main/docs/1.0.md": Podcasting,
	"search.yahoo.com/mrss":                                               Media,
	"purl.org/rss/1.0/modules/content":                                    Content,
	"www.w3.org/1999/xhtml":                                               XHTML,
	"rssnamespace.org/feedburner/ext/1.0":                                 FeedBurner,
	"www.w3.org/xml/1998/namespace":                                       XML,
}

// Of finds the vocabulary of a namespace name. Publishers replace http by
// https all over their sites, drop the last slash or sharp and change the case,
// so none of these distinguishes two vocabularies.
func Of(uri string) Vocabulary {
	if len(uri) > maxName {
		return Other // a document may repeat a long name at each element
	}
	uri = strings.ToLower(strings.TrimSpace(uri))
	uri = strings.TrimPrefix(strings.TrimPrefix(uri, "http://"), "https://")
	return names[strings.TrimRight(uri, "/#")]
}

// maxName is longer than the names of all vocabularies, in bytes.
const maxName = 200
