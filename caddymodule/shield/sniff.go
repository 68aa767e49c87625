// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"
)

// verdict is what the beginning of a body is taken for.
type verdict int

const (
	undecided verdict = iota
	isFeed
	isOther
)

// enough is how many bytes of a body settle what it is.
const enough = 1024

// judge tells what a body is by its beginning. A feed is XML with one of few roots,
// or JSON with one of few members near its beginning. A wrong guess does no harm but
// to speed: documents are read properly later on.
func judge(beginning []byte, all bool) verdict {
	all = all || len(beginning) >= enough
	text := bytes.TrimLeft(bytes.TrimPrefix(beginning, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case len(text) == 0, len(beginning) < 3 && beginning[0] >= 0xef: // half of a byte order mark, perhaps
		return pending(all)
	case bytes.HasPrefix(beginning, []byte("\xfe\xff")), bytes.HasPrefix(beginning, []byte("\xff\xfe")):
		return isFeed // UTF-16: hardly anything else is
	case text[0] == '{':
		for _, member := range []string{`"version"`, `"items"`, `"feed_url"`, `"home_page_url"`} {
			if bytes.Contains(text, []byte(member)) {
				return isFeed
			}
		}
		return pending(all)
	case text[0] != '<':
		return isOther
	}
	return judgeXML(text, all)
}

// pending is the verdict where nothing speaks for a feed.
func pending(all bool) verdict {
	if all {
		return isOther
	}
	return undecided
}

// judgeXML finds the root element.
func judgeXML(text []byte, all bool) verdict {
	for {
		text = bytes.TrimLeft(text, " \t\r\n")
		end := ""
		switch {
		case len(text) < 4:
			return pending(all)
		case bytes.HasPrefix(text, []byte("<!--")):
			end = "-->"
		case bytes.HasPrefix(text, []byte("<?")):
			end = "?>"
		case hasPrefixFold(text, "<!doctype"):
			if root := bytes.TrimLeft(text[len("<!doctype"):], " \t\r\n"); hasPrefixFold(root, "html") {
				return isOther
			}
			end = ">"
		case bytes.HasPrefix(text, []byte("<!")):
			return pending(all)
		default:
			return judgeRoot(text, all)
		}
		i := bytes.Index(text, []byte(end))
		if i < 0 {
			return prolog(all)
		}
		text = text[i+len(end):]
	}
}

// prolog is the verdict on a beginning that is nothing but prolog: it may be long.
func prolog(all bool) verdict {
	if all {
		return isFeed
	}
	return undecided
}

func judgeRoot(text []byte, all bool) verdict {
	if text[0] != '<' {
		return isOther
	}
	name := text[1:]
	if i := bytes.IndexAny(name, " \t\r\n/>"); i >= 0 {
		name = name[:i]
	} else if !all && len(name) < 64 {
		return undecided
	}
	if i := bytes.IndexByte(name, ':'); i >= 0 { // the prefix of a namespace
		name = name[i+1:]
	}
	switch strings.ToLower(string(name)) {
	case "rss", "feed", "rdf", "channel":
		return isFeed
	}
	return isOther
}

func hasPrefixFold(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(string(text[:len(prefix)]), prefix)
}

// neverFeed reports whether a media type is of something else, however feeds may be
// mislabelled.
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

// sniffed is the body of a poll's answer, which breaks off where it begins like
// something that is no feed: a page may go on for as long as its reader stays.
type sniffed struct {
	io.ReadCloser
	coded bool   // nothing can be told of compressed bytes
	entry *entry // what is known of the feed; nil: nothing
	begun []byte
	done  bool
	err   error // for good
}

func (s *sniffed) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.ReadCloser.Read(p)
	if s.done || n == 0 && err == nil {
		return n, err
	}
	if s.coded {
		s.settle(isFeed)
		return n, err
	}
	s.begun = append(s.begun, p[:min(n, enough)]...)
	if v := judge(s.begun, err != nil); v != undecided {
		s.settle(v)
	}
	if s.err != nil {
		return 0, s.err
	}
	return n, err
}

// Close implements [io.Closer].
func (s *sniffed) Close() error {
	if s.err != nil {
		finish(s.ReadCloser)
		return nil
	}
	return s.ReadCloser.Close()
}

func (s *sniffed) settle(v verdict) {
	s.done, s.begun = true, nil
	switch {
	case v == isOther:
		s.err = errNotFeed
	case s.entry != nil:
		s.entry.promising.Store(true)
	}
}

// likely reports whether a request looks as if it were for a feed. Whatever does not
// goes to the site as it is, and only what comes back may tell that it was one.
func likely(r *http.Request) bool {
	if named(r) {
		return true
	}
	name, query := strings.ToLower(r.URL.Path), strings.ToLower(r.URL.RawQuery)
	for _, word := range []string{"feed", "rss", "atom"} {
		if hasWord(name, word) || hasWord(query, word) {
			return true
		}
	}
	return false
}

// named reports whether a request is for a feed by the name of the file, or by what its
// reader accepts.
func named(r *http.Request) bool {
	file := path.Base(strings.ToLower(r.URL.Path))
	switch path.Ext(file) {
	case ".xml", ".rss", ".atom", ".rdf":
		return true
	}
	switch file {
	case "feed", "feeds", "feed.json", "rss", "rss2", "atom":
		return true
	}
	for _, accept := range r.Header["Accept"] {
		for _, media := range []string{"application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json"} {
			if strings.Contains(accept, media) {
				return true
			}
		}
	}
	return false
}

// hasWord reports whether a text has a word in it, also with digits or an s behind.
func hasWord(text, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(word)
		for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == 's') {
			end++
		}
		if (i == 0 || !isLetter(text[i-1])) && (end == len(text) || !isLetter(text[end])) {
			return true
		}
		from = i + 1
	}
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' }
