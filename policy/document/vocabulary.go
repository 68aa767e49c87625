// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import "strings"

// vocabulary is a namespace whose elements mean something here.
type vocabulary byte

const (
	foreign       vocabulary = iota // none of those below
	unqualified                     // no namespace: RSS 0.91 to 2.0
	rss                             // the namespaces of RSS 0.90 and 1.0, and those that people put on 2.0
	atom                            // Atom 0.3 (RFC 4287's forerunner) and 1.0
	rdf                             // RDF, around RSS 0.90 and 1.0
	syndication                     // RSS 1.0 module: when a feed is updated
	slash                           // RSS 1.0 module: numbers of comments
	threading                       // Atom threading (RFC 4685): the same
	dublinCore                      // elements and terms
	itunes                          // podcasts
	podcasting                      // Podcasting 2.0
	media                           // Media RSS
	xmlAttributes                   // xml:base
)

// vocabularies maps namespace names, as [namespace] shortens them.
var vocabularies = map[string]vocabulary{
	"":                                    unqualified,
	"purl.org/rss/1.0":                    rss,
	"my.netscape.com/rdf/simple/0.9":      rss,
	"channel.netscape.com/rdf/simple/0.9": rss,
	"my.netscape.com/publish/formats/rss-0.91.dtd":                        rss,
	"backend.userland.com/rss2":                                           rss,
	"backend.userland.com/rss2.1":                                         rss,
	"backend.userland.com/rss":                                            rss,
	"blogs.law.harvard.edu/tech/rss":                                      rss,
	"cyber.law.harvard.edu/rss":                                           rss,
	"www.rssboard.org/rss-specification":                                  rss,
	"www.w3.org/2005/atom":                                                atom,
	"purl.org/atom/ns":                                                    atom,
	"www.w3.org/1999/02/22-rdf-syntax-ns":                                 rdf,
	"purl.org/rss/1.0/modules/syndication":                                syndication,
	"purl.org/rss/1.0/modules/slash":                                      slash,
	"purl.org/syndication/thread/1.0":                                     threading,
	"purl.org/dc/elements/1.0":                                            dublinCore,
	"purl.org/dc/elements/1.1":                                            dublinCore,
	"purl.org/dc/terms":                                                   dublinCore,
	"www.itunes.com/dtds/podcast-1.0.dtd":                                 itunes,
	"podcastindex.org/namespace/1.0":                                      podcasting,
	"github.com/podcastindex-org/podcast-namespace/blob/main/docs/1.0.md": podcasting,
	"search.yahoo.com/mrss":                                               media,
	"www.w3.org/xml/1998/namespace":                                       xmlAttributes,
}

// namespace finds the vocabulary of a namespace name. Publishers replace http by
// https all over their sites, drop the last slash or sharp and change the case,
// so none of these tells two vocabularies apart.
func namespace(uri string) vocabulary {
	uri = strings.ToLower(strings.TrimSpace(uri))
	if rest, ok := strings.CutPrefix(uri, "http://"); ok {
		uri = rest
	} else if rest, ok := strings.CutPrefix(uri, "https://"); ok {
		uri = rest
	}
	return vocabularies[strings.TrimRight(uri, "/#")]
}
