// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"bytes"
	"io"
	"mime"
	"strings"
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
// XML with one of a few root elements, or JSON with one of a few members near its beginning. A
// wrong result costs time only: package document reads what is stored.
func detect(prefix []byte, complete bool) detection {
	complete = complete || len(prefix) >= prefixSize
	text := bytes.TrimLeft(bytes.TrimPrefix(prefix, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case len(text) == 0, len(prefix) < 3 && prefix[0] >= 0xef: // perhaps half of a byte order mark
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
		return notFeed
	}
	return detectXML(text, complete)
}

func notFeedIf(complete bool) detection {
	if complete {
		return notFeed
	}
	return unknown
}

// detectXML classifies by the root element.
func detectXML(text []byte, complete bool) detection {
	for {
		text = bytes.TrimLeft(text, " \t\r\n")
		end := ""
		switch {
		case len(text) < 4:
			return notFeedIf(complete)
		case bytes.HasPrefix(text, []byte("<!--")):
			end = "-->"
		case bytes.HasPrefix(text, []byte("<?")):
			end = "?>"
		case hasPrefixFold(text, "<!doctype"):
			if root := bytes.TrimLeft(text[len("<!doctype"):], " \t\r\n"); hasPrefixFold(root, "html") {
				return notFeed
			}
			end = ">"
		case bytes.HasPrefix(text, []byte("<!")):
			return notFeedIf(complete)
		default:
			return detectRoot(text, complete)
		}
		i := bytes.Index(text, []byte(end))
		if i < 0 {
			if complete {
				return isFeed // only prolog so far, which may be long
			}
			return unknown
		}
		text = text[i+len(end):]
	}
}

func detectRoot(text []byte, complete bool) detection {
	if text[0] != '<' {
		return notFeed
	}
	name := text[1:]
	if i := bytes.IndexAny(name, " \t\r\n/>"); i >= 0 {
		name = name[:i]
	} else if !complete && len(name) < 64 {
		return unknown
	}
	if i := bytes.IndexByte(name, ':'); i >= 0 { // a namespace prefix
		name = name[i+1:]
	}
	switch strings.ToLower(string(name)) {
	case "rss", "feed", "rdf", "channel":
		return isFeed
	}
	return notFeed
}

func hasPrefixFold(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(string(text[:len(prefix)]), prefix)
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

// detectingBody is the body of a poll's response. Reading fails with errNotFeed as soon as the
// body is not a feed: a stream may never end.
type detectingBody struct {
	io.ReadCloser
	compressed bool   // its bytes show nothing
	entry      *entry // of the feed
	prefix     []byte
	done       bool
	err        error // of all further reads
}

func (b *detectingBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	if b.done || n == 0 && err == nil {
		return n, err
	}
	if b.compressed {
		b.end(isFeed)
		return n, err
	}
	b.prefix = append(b.prefix, p[:min(n, prefixSize)]...)
	if d := detect(b.prefix, err != nil); d != unknown {
		b.end(d)
	}
	if b.err != nil {
		return 0, b.err
	}
	return n, err
}

// Close implements [io.Closer].
func (b *detectingBody) Close() error {
	if b.err != nil {
		drain(b.ReadCloser)
		return nil
	}
	return b.ReadCloser.Close()
}

func (b *detectingBody) end(d detection) {
	b.done, b.prefix = true, nil
	if d == notFeed {
		b.err = errNotFeed
	} else {
		b.entry.looksLikeFeed.Store(true)
	}
}
