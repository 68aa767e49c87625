// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/feedpollard/pollard/internal/markup"
	"github.com/feedpollard/pollard/policy"
)

// object is a JSON object. Names are case-sensitive, which decoding into a struct would
// not be; and a member of the wrong type costs that member, not the feed.
type object map[string]json.RawMessage

// jsonReader reads a JSON Feed (jsonfeed.org/version/1.1).
type jsonReader struct {
	hints   hintReader
	print   fingerprinter
	entries []entry
	others  []policy.Fingerprint // of elements of items that are not objects
}

// readJSON reads a JSON document, which is a feed if its version says so.
func readJSON(text []byte, now time.Time) (*policy.Document, error) {
	if text[0] == '[' {
		return nil, fmt.Errorf("%w: a JSON array", ErrNotFeed)
	}
	var feed object
	err := json.Unmarshal(text, &feed)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && strings.HasSuffix(syntax.Error(), "after top-level value") {
		err = json.Unmarshal(text[:syntax.Offset-1], &feed) // text behind the feed does not belong to it
	}
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "unexpected end"):
		return nil, fmt.Errorf("%w: JSON %w after %s", ErrBroken, markup.ErrTruncated, humanize.Bytes(uint64(len(text))))
	case err != nil && strings.Contains(err.Error(), "max depth"):
		return nil, fmt.Errorf("%w: %w", ErrTooComplex, err)
	case err != nil && !bytes.Contains(text, []byte("jsonfeed.org/version/")):
		return nil, fmt.Errorf("%w: text that starts with %q and is not JSON", ErrNotFeed, clip(string(text[:min(len(text), 200)])))
	case err != nil:
		return nil, fmt.Errorf("%w: %s", ErrBroken, clip(err.Error()))
	}
	doc := &policy.Document{Format: "json", Version: feedVersion(feed.text("version")), Title: clip(feed.text("title"))}
	if doc.Version == "" {
		return nil, fmt.Errorf("%w: JSON without a JSON Feed version", ErrNotFeed)
	}
	j := &jsonReader{print: newFingerprinter()}
	j.readHints(feed)
	items, isArray := elements(feed["items"])
	if isArray {
		delete(feed, "items")
	}
	if len(feed)+len(items) > markup.MaxElements {
		return nil, fmt.Errorf("%w: more than %d values", ErrTooComplex, markup.MaxElements)
	}
	for _, item := range items {
		j.item(item)
	}
	delete(feed, "feed_url")
	delete(feed, "hubs")
	j.hash(feed, j.others)
	doc.Hints, doc.Malformed = j.hints.result()
	doc.Rhythm, doc.IDs = rhythm(j.entries, now)
	doc.Fingerprint = j.print.sum()
	return doc, nil
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

// readHints reads the hints of the feed itself.
func (j *jsonReader) readHints(feed object) {
	if _, given := feed["feed_url"]; given {
		target, note := webURL(strings.TrimSpace(feed.text("feed_url")), nil)
		if note != "" {
			j.hints.reject(hintSelf, target, note)
		}
		j.hints.self(target)
	}
	// Only true counts, because an expired feed is polled rarely.
	expired := string(feed["expired"])
	j.hints.hints.Expired = expired == "true"
	if !slices.Contains([]string{"", "true", "false", "null"}, expired) {
		j.hints.reject(policy.HintComplete, expired, "expired is neither true nor false")
	}
	hubs, isArray := elements(feed["hubs"])
	if _, given := feed["hubs"]; given && !isArray {
		j.hints.reject(hintHub, "", "hubs is not an array")
	}
	for _, raw := range hubs {
		hub, isObject := members(raw)
		if !isObject || strings.EqualFold(hub.text("type"), "rssCloud") { // which is another protocol than WebSub
			continue
		}
		if target, note := webURL(hub.text("url"), nil); note == "" {
			j.hints.hub(target)
		} else {
			j.hints.reject(hintHub, target, note)
		}
	}
}

// item reads one of the items. A value that is not an object is not an item.
func (j *jsonReader) item(raw json.RawMessage) {
	item, isObject := members(raw)
	if !isObject {
		j.others = append(j.others, memberSum(tokenElement, "items", compact(raw)))
		return
	}
	var e entry
	e.identify(byID, []byte(item.text("id")))
	e.identify(byLink, []byte(item.text("url")))
	setDate(&e.published, item.text("date_published"))
	setDate(&e.updated, item.text("date_modified"))
	j.entries = append(j.entries, e)
	j.print.openEntry()
	j.hash(item, nil)
	j.print.closeEntry()
}

// hash makes an object a part of the fingerprint, with the hashes of what else belongs to it.
// The order of members does not count.
func (j *jsonReader) hash(o object, sums []policy.Fingerprint) {
	for name, raw := range o {
		kind := byte(tokenJSON)
		if raw[0] == '"' {
			kind = tokenString
		}
		sums = append(sums, memberSum(kind, name, []byte(o.text(name))))
	}
	j.print.writeSorted(sums)
}

// elements returns the elements of a value that is an array.
func elements(raw json.RawMessage) (list []json.RawMessage, isArray bool) {
	isArray = len(raw) > 0 && raw[0] == '[' && json.Unmarshal(raw, &list) == nil
	return list, isArray
}

// members returns the members of a value that is an object.
func members(raw json.RawMessage) (o object, isObject bool) {
	isObject = len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, &o) == nil
	return o, isObject
}

// text returns a member of any type: a string as what it says, null as nothing, a number
// as written ("a JSON Feed reader must coerce it to a string"), and others as JSON without
// white space.
func (o object) text(name string) string {
	raw := o[name]
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case raw[0] == '"':
		var text string
		_ = json.Unmarshal(raw, &text) // it is valid: it was read with the object
		return text
	}
	return string(compact(raw))
}

// compact removes the white space of a valid value.
func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	_ = json.Compact(&b, raw)
	return b.Bytes()
}
