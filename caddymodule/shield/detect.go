// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"bytes"
	"io"
	"mime"
	"regexp"
	"strings"

	"github.com/feedpollard/pollard/internal/markup"
)

// detection is whether a body is a feed, as far as its first bytes show.
type detection int

const (
	unknown detection = iota
	isFeed
	notFeed
)

// prefixSize is how many bytes of a body decide whether it is a feed.
const prefixSize = 1024

// detect classifies a body by its first bytes; complete means that these are all. A feed is
// XML with one of a few root elements, perhaps behind a warning or a script, or JSON with one of a few
// members near its beginning. A
// wrong result costs time only: package document reads what is stored.
func detect(prefix []byte, complete bool) detection {
	complete = complete || len(prefix) >= prefixSize
	text := bytes.TrimLeft(prefix, "\ufeff \t\r\n") // some sites write several byte order marks
	switch {
	case len(text) == 0, len(text) < 3 && text[0] >= 0xef: // perhaps half of a byte order mark
		return notFeedIf(complete)
	case bytes.HasPrefix(prefix, []byte("\xfe\xff")), bytes.HasPrefix(prefix, []byte("\xff\xfe")):
		return isFeed // UTF-16, which hardly anything but feeds uses
	case text[0] == '{':
		for _, member := range []string{`"version"`, `"items"`, `"feed_url"`, `"home_page_url"`} {
			if bytes.Contains(text, []byte(member)) {
				return isFeed
			}
		}
		return notFeedIf(complete)
	case text[0] != '<':
		return detectBehind(text, complete)
	}
	return detectXML(text, complete)
}

// detectBehind looks for a feed behind something else.
func detectBehind(text []byte, complete bool) detection {
	if markup.Start(text) >= 0 {
		return isFeed
	}
	return notFeedIf(complete)
}

func notFeedIf(complete bool) detection {
	if complete {
		return notFeed
	}
	return unknown
}

var (
	// prolog matches what comes before the root element of a feed.
	prolog      = regexp.MustCompile(`(?is)^(?:\s|<\?.*?\?>|<!--.*?-->|<!doctype\s+[^h>\[][^>\[]*(?:\[.*?\]\s*)?>)+`)
	htmlDoctype = regexp.MustCompile(`(?i)^<!doctype\s+html`)
)

// detectXML classifies by the root element.
func detectXML(text []byte, complete bool) detection {
	text = text[len(prolog.Find(text)):]
	end := bytes.IndexAny(text, " \t\r\n/>")
	switch {
	case htmlDoctype.Match(text):
		return notFeed
	case bytes.HasPrefix(text, []byte("<?")), bytes.HasPrefix(text, []byte("<!")):
		if complete {
			return isFeed // only prolog so far, which may be long
		}
		return unknown
	case end < 0 && !complete:
		return unknown
	case len(text) == 0 || text[0] != '<':
		return detectBehind(text, complete)
	case end < 0:
		end = len(text)
	}
	name := text[1:end]
	if i := bytes.IndexByte(name, ':'); i >= 0 { // a namespace prefix
		name = name[i+1:]
	}
	switch strings.ToLower(string(name)) {
	case "rss", "feed", "rdf", "channel":
		return isFeed
	case "html", "head", "body":
		return notFeed
	}
	return detectBehind(text, complete)
}

// neverFeed reports whether no feed has this media type, not even a mislabelled one.
func neverFeed(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	kind, subtype, _ := strings.Cut(media, "/")
	switch kind {
	case "image", "audio", "video", "font", "multipart":
		return true
	}
	switch media {
	case "text/css", "text/javascript", "text/event-stream", "text/csv", "text/markdown":
		return true
	}
	return kind == "application" && (strings.HasPrefix(subtype, "grpc") || strings.HasSuffix(subtype, "ndjson") ||
		subtype == "javascript" || subtype == "pdf" || subtype == "zip" || subtype == "wasm" || subtype == "x-ndjson")
}

// feedType reports whether a media type may be a feed's.
func feedType(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (strings.HasSuffix(media, "xml") && media != "application/xhtml+xml" || media == "application/feed+json")
}

// detector detects a feed in a body that comes in parts.
type detector struct {
	prefix []byte
	result detection
}

func (d *detector) add(part []byte, complete bool) detection {
	if d.result == unknown {
		d.prefix = append(d.prefix, part[:min(len(part), prefixSize)]...)
		if d.result = detect(d.prefix, complete); d.result != unknown {
			d.prefix = nil
		}
	}
	return d.result
}

// detectingBody is the body of a poll's response. Reading fails with errNotFeed as soon as the
// body is not a feed: a stream may never end.
type detectingBody struct {
	io.ReadCloser
	detector
}

func (b *detectingBody) Read(p []byte) (int, error) {
	if b.result == notFeed {
		return 0, errNotFeed
	}
	n, err := b.ReadCloser.Read(p)
	if n == 0 && err == nil {
		return 0, nil
	}
	if b.add(p[:n], err != nil) == notFeed {
		return 0, errNotFeed
	}
	return n, err
}

func (b *detectingBody) Close() error {
	drain(b.ReadCloser)
	return nil
}
