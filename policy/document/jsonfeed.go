// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document/internal/markup"
)

// jsonReader reads a JSON Feed (jsonfeed.org/version/1.1) member by member. Names
// are case-sensitive, which decoding into a struct would not be; and a member of
// the wrong type costs that member, not the feed.
type jsonReader struct {
	source  []byte
	decoder *json.Decoder
	values  int // in objects and arrays that were looked into
	value   json.RawMessage
	compact bytes.Buffer

	version string
	title   string
	hints   hintReader
	print   fingerprinter
	entries []entry
}

// readJSON reads a JSON document, which is a feed if its version says so.
func readJSON(text []byte, now time.Time) (*policy.Document, error) {
	j := &jsonReader{source: text, decoder: json.NewDecoder(bytes.NewReader(text)), print: newFingerprinter()}
	isObject, err := j.object(j.member)
	if err == nil && isObject {
		err = j.end()
	}
	switch {
	case errors.Is(err, ErrTooComplex):
		return nil, err
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w: JSON %w after %s", ErrBroken, markup.ErrTruncated, humanize.Bytes(uint64(len(text))))
	case err != nil && j.version == "":
		return nil, fmt.Errorf("%w: text that starts with %q and is not JSON", ErrNotFeed, clip(string(text[:min(len(text), 200)])))
	case err != nil:
		return nil, fmt.Errorf("%w: %s", ErrBroken, clip(err.Error()))
	case !isObject:
		return nil, fmt.Errorf("%w: a JSON array", ErrNotFeed)
	case j.version == "":
		return nil, fmt.Errorf("%w: JSON without a JSON Feed version", ErrNotFeed)
	}
	doc := &policy.Document{Format: "json", Version: j.version, Title: j.title}
	doc.Hints, doc.Malformed = j.hints.result()
	doc.Rhythm = rhythm(j.entries, now)
	j.print.closeObject()
	doc.Fingerprint = j.print.sum()
	return doc, nil
}

// end makes sure that nothing follows the document.
func (j *jsonReader) end() error {
	_, err := j.decoder.Token()
	if err == io.EOF {
		return nil
	}
	if err == nil {
		err = errors.New("something follows the JSON document")
	}
	return err
}

// member reads a member of the feed itself.
func (j *jsonReader) member(name string) error {
	start := j.decoder.InputOffset()
	switch name {
	case "items":
		isArray, err := j.array(j.item)
		if err == nil && !isArray {
			j.hashRaw(tokenJSON, name, start)
		}
		return err
	case "hubs":
		isArray, err := j.array(j.hub)
		if err == nil && !isArray {
			j.hints.reject(hintHub, "", "hubs is not an array")
		}
		j.hashRaw(tokenJSON, name, start)
		return err
	}
	text, err := j.text()
	if err != nil {
		return err
	}
	j.hash(name, text)
	switch name {
	case "version":
		j.version = feedVersion(string(text))
	case "feed_url":
		target := strings.TrimSpace(string(text))
		if _, note := webURL(target, nil); note != "" {
			j.hints.reject(hintSelf, target, note)
		}
		j.hints.self(target)
	case "title":
		j.title = clip(string(text))
	case "expired":
		j.hints.hints.Expired = string(j.value) == "true"
		if !slices.Contains([]string{"true", "false", "null"}, string(j.value)) {
			j.hints.reject(policy.HintComplete, string(j.value), "expired is neither true nor false")
		}
	}
	return nil
}

// hash makes the value that was read last a part of the fingerprint.
func (j *jsonReader) hash(name string, text []byte) {
	kind := byte(tokenJSON)
	if len(j.value) > 0 && j.value[0] == '"' {
		kind = tokenString
	}
	j.print.member(kind, name, text)
}

// hashRaw does so with a value that was read piece by piece since start, which is
// behind its name or the value before it.
func (j *jsonReader) hashRaw(kind byte, name string, start int64) {
	j.compact.Reset()
	raw := bytes.TrimLeft(j.source[start:j.decoder.InputOffset()], ":,"+markup.Space)
	if json.Compact(&j.compact, raw) == nil {
		j.print.member(kind, name, j.compact.Bytes())
	}
}

// feedVersion returns the version in the URL of a version, or "" if it is not that of JSON
// Feed.
func feedVersion(url string) string {
	_, version, found := strings.Cut(url, "://jsonfeed.org/version/")
	if !found {
		_, version, found = strings.Cut(url, "://www.jsonfeed.org/version/")
	}
	if found && (version == "1" || version == "1/") {
		return "1.0"
	}
	return clip(strings.TrimSuffix(version, "/"))
}

// hub reads one of the hubs. Those of rssCloud speak another protocol than WebSub.
func (j *jsonReader) hub() error {
	var kind, target string
	isObject, err := j.object(func(name string) error {
		text, err := j.text()
		switch name {
		case "type":
			kind = string(text)
		case "url":
			target = string(text)
		}
		return err
	})
	if err != nil || !isObject || strings.EqualFold(kind, "rssCloud") {
		return err
	}
	if _, note := webURL(target, nil); note == "" {
		j.hints.hub(target)
	} else {
		j.hints.reject(hintHub, target, note)
	}
	return nil
}

// item reads one of the items. A value that is not an object is not an item.
func (j *jsonReader) item() error {
	var e entry
	start := j.decoder.InputOffset()
	j.print.openEntry()
	isObject, err := j.object(func(name string) error {
		text, err := j.text()
		if err != nil {
			return err
		}
		j.hash(name, text)
		switch name {
		case "id":
			e.identify(byID, text)
		case "url":
			e.identify(byLink, text)
		case "date_published":
			e.dated(published, policy.ParseDate(string(text)))
		case "date_modified":
			e.dated(updated, policy.ParseDate(string(text)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !isObject {
		j.print.dropEntry()
		j.hashRaw(tokenElement, "items", start)
		return nil
	}
	j.print.closeObject()
	j.print.closeEntry()
	j.entries = append(j.entries, e)
	return nil
}

// object reads an object, or skips another value and returns false. It calls visit with
// the name of each member, which reads the value.
func (j *jsonReader) object(visit func(name string) error) (bool, error) {
	return j.each('{', func() error {
		token, err := j.decoder.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		return visit(name)
	})
}

// array is object for an array.
func (j *jsonReader) array(visit func() error) (bool, error) { return j.each('[', visit) }

func (j *jsonReader) each(open json.Delim, visit func() error) (bool, error) {
	token, err := j.decoder.Token()
	if err != nil {
		return false, err
	}
	if token != open {
		return false, j.skip(token)
	}
	for j.decoder.More() {
		if j.values++; j.values > markup.MaxElements {
			return true, fmt.Errorf("%w: more than %d values", ErrTooComplex, markup.MaxElements)
		}
		if err := visit(); err != nil {
			return true, err
		}
	}
	_, err = j.decoder.Token()
	return true, err
}

// skip reads to the end of a value that starts with token.
func (j *jsonReader) skip(token json.Token) error {
	for depth := 0; ; {
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
		if j.values++; depth > markup.MaxDepth || j.values > markup.MaxElements {
			return fmt.Errorf("%w: more than %d values, or nested more than %d deep", ErrTooComplex, markup.MaxElements, markup.MaxDepth)
		}
		var err error
		if token, err = j.decoder.Token(); err != nil {
			return err
		}
	}
}

// text reads a value of any type: a string as what it says, null as nothing, a
// number as written ("a JSON Feed reader must coerce it to a string"), and others
// as JSON without white space. The value itself stays in j.value. The result is
// valid until the next call.
func (j *jsonReader) text() ([]byte, error) {
	j.value = j.value[:0]
	if err := j.decoder.Decode(&j.value); err != nil {
		if strings.Contains(err.Error(), "max depth") {
			err = fmt.Errorf("%w: %w", ErrTooComplex, err)
		}
		return nil, err
	}
	if string(j.value) == "null" {
		return nil, nil
	}
	if j.value[0] == '"' {
		var text string
		err := json.Unmarshal(j.value, &text)
		return []byte(text), err
	}
	j.compact.Reset()
	err := json.Compact(&j.compact, j.value)
	return j.compact.Bytes(), err
}
