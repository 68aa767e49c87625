// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document"
	"github.com/feedpollard/pollard/policy/document/links"
	"github.com/feedpollard/pollard/policy/document/site"
)

// Result is what a poll came to.
type Result string

// The results of a poll.
const (
	ResultNew       Result = "new"       // a version with a new meaning
	ResultUnchanged Result = "unchanged" // 304, the same bytes, or the same meaning
	ResultMoved     Result = "moved"     // as unchanged or new, and a permanent redirect was adopted
	ResultGone      Result = "gone"      // 410
	ResultFailed    Result = "failed"
	ResultUnsent    Result = "unsent" // nothing reached the origin
)

// suspicion is how long a suspect document is kept back. One that stays as it is
// for a week is what its publisher wants: [document] cannot know better.
const suspicion = 7 * 24 * time.Hour

const (
	// judgingSize is how many bytes of documents are read at once, or a single one that is
	// larger: a hostile one takes a hundred times its size of memory, if only for a moment.
	judgingSize = 1 << 20
	// quickBody is up to how many bytes a document never waits to be read.
	quickBody = 64 << 10
)

// version is one distinct content of a feed.
type version struct {
	Number       uint64             `json:"number"`
	Tag          string             `json:"tag"`                  // opaque part of our ETags, without coding
	LastModified time.Time          `json:"last_modified"`        // as readers are told; grows with each version
	OriginTag    string             `json:"origin_tag,omitempty"` // the origin's ETag of these bytes
	ContentType  string             `json:"content_type"`         // as readers are told
	Format       string             `json:"format"`               // rss, atom or json
	Title        string             `json:"title,omitempty"`      // of the feed, one short line
	Hash         uint64             `json:"hash"`                 // xxhash of the bytes
	Fingerprint  policy.Fingerprint `json:"meaning"`
	Entries      int                `json:"entries"`           // how many the document has
	Size         int                `json:"size"`              // bytes of the document as its origin gave it
	Length       int                `json:"length,omitempty"`  // bytes of the identity representation
	Coding       string             `json:"coding,omitempty"`  // that it is stored in
	Lenient      bool               `json:"lenient,omitempty"` // accepted by a lenient parse only
	Since        time.Time          `json:"since"`             // when it was first seen

	// Of a shielded feed: the header fields that its site gave, for readers to get
	// them too, and the fields of requests that it depends on, in lower case.
	Header http.Header `json:"header,omitempty"`
	Vary   []string    `json:"vary,omitempty"`
}

// verdict is an answer with what the gateway makes of it.
type verdict struct {
	answer    policy.Answer // its Failure is set where the content was no good
	result    Result
	sameBytes bool             // a 200 with the bytes of the stored version
	document  *policy.Document // of a 200 that was read; nil where it did not have to be
	version   version          // of a new one
	body      *store.Body      // of a new one, which has no number yet
	site      *site.Page       // of a 200 that is a web page instead: the feeds that it names, if it names any
}

func (v verdict) good() bool { return v.answer.Failure == policy.FailureNone }

// judge decides whether an answer brings a new version. Whatever is no complete,
// credible feed is a failure and never content: readers keep the last good version.
func (f *Feed) judge(s *state, a policy.Answer) verdict {
	switch {
	case a.Failure == policy.FailureGone:
		return verdict{answer: a, result: ResultGone}
	case a.Unsent():
		return verdict{answer: a, result: ResultUnsent}
	case a.Failure != policy.FailureNone:
		return verdict{answer: a, result: ResultFailed}
	case a.Status == http.StatusNotModified:
		return verdict{answer: a, result: ResultUnchanged}
	}
	now, known := f.cache.now(), s.memo.Version
	hash := xxhash.Sum64(a.Body)
	if s.version != 0 && hash == known.Hash && len(a.Body) == known.Size {
		return verdict{answer: a, result: ResultUnchanged, sameBytes: true}
	}
	if size := min(int64(len(a.Body)), judgingSize); size > quickBody {
		if err := f.cache.judging.Acquire(f.cache.life, size); err != nil {
			a.Failure, a.Err = policy.FailureInternal, fmt.Errorf("waiting to read the document: %w", err)
			return verdict{answer: a, result: ResultFailed}
		}
		defer f.cache.judging.Release(size)
	}
	d, err := document.Read(a.Body, a.Header.Get("Content-Type"), now)
	if err == nil {
		err = suspect(s, d)
	}
	if err != nil {
		a.Failure, a.Err = policy.FailureNotFeed, err
		if errors.Is(err, errSuspect) {
			a.Failure = policy.FailureSuspect
		}
		return verdict{answer: a, result: ResultFailed, site: f.siteOf(s, a, err)}
	}
	if s.version != 0 && d.Fingerprint == known.Fingerprint && d.Format == known.Format {
		return verdict{answer: a, result: ResultUnchanged, document: d}
	}
	v := verdict{answer: a, result: ResultNew, document: d, version: newVersion(s, a, d, hash, now)}
	body := f.served(a, &v.version)
	if v.body, err = f.cache.coders.rest(f.cache.life, body); err != nil {
		a.Failure, a.Err = policy.FailureInternal, fmt.Errorf("encoding the new version: %w", err)
		return verdict{answer: a, result: ResultFailed}
	}
	v.version.Coding = v.body.Coding
	return v
}

// served returns the document that readers get. Readers of a shield get it from the
// address that it was written for, so it is left alone. A gateway serves it from another
// one: its relative links are made absolute, and what names the feed's own address or a
// push service is removed, as a reader that followed it would leave the gateway.
func (f *Feed) served(a policy.Answer, v *version) []byte {
	body := a.Body
	if !f.key.shielded() {
		var report links.Report
		body, report = links.Served(a.Body, a.Header.Get("Content-Type"), a.URL)
		if report.Problem != "" {
			f.cache.log().Debug("links were left as they are", urlField(f.key.text), zap.String("problem", report.Problem))
		}
	}
	v.identify(body)
	return body
}

// identify notes what tells the body from others.
func (v *version) identify(body []byte) {
	sum := sha256.Sum256(body)
	v.Tag, v.Length = hex.EncodeToString(sum[:10]), len(body)
}

var errSuspect = errors.New("kept back")

// suspect tells why a feed that was read may have lost its entries. A document
// that a tolerant parser alone accepts may have lost some without a trace, so it
// does not replace a sound one; nor does one without any replace one that had some.
func suspect(s *state, d *policy.Document) error {
	known := s.memo.Version
	if s.version == 0 || s.memo.Suspect > 0 && s.memo.Suspect+s.gap >= suspicion {
		return nil
	}
	switch {
	case d.Lenient && !known.Lenient:
		return fmt.Errorf("%w: the document is not well-formed any more and may have lost entries", errSuspect)
	case d.Rhythm.Entries == 0 && known.Entries > 0:
		return fmt.Errorf("%w: the document has lost all its %d entries", errSuspect, known.Entries)
	}
	return nil
}

func newVersion(s *state, a policy.Answer, d *policy.Document, hash uint64, now time.Time) version {
	known := s.memo.Version
	tag := originTag(a)
	if tag == s.memo.Validators.ETag && hash != known.Hash {
		tag = "" // the origin gives it to different bytes: whoever sends it may have the old ones
	}
	return version{
		LastModified: lastModified(known.LastModified, a.Header.Get("Last-Modified"), now),
		OriginTag:    tag,
		ContentType:  contentType(a.Header.Get("Content-Type"), d.Format),
		Format:       d.Format,
		Hash:         hash,
		Fingerprint:  d.Fingerprint,
		Entries:      d.Rhythm.Entries,
		Size:         len(a.Body),
		Lenient:      d.Lenient,
		Since:        now,
	}
}

// originTag is the origin's ETag of an answer, where it is fit to be told from others.
func originTag(a policy.Answer) string {
	tag := a.Header.Get("ETag")
	if len(tag) > policy.MaxValidators || httpfield.ParseTag(tag).Opaque == "" {
		return ""
	}
	return tag
}

// lastModified is the date that readers are told of a new version. The origin's
// own is taken where it is credible. It must grow from version to version: a
// reader that sends the date of the version before must not be told 304.
func lastModified(before time.Time, origin string, now time.Time) time.Time {
	now = now.UTC().Truncate(time.Second)
	t, err := http.ParseTime(origin)
	if err != nil || t.After(now) || !t.After(before) {
		t = now
	}
	if !t.After(before) {
		t = before.Add(time.Second)
	}
	return t.UTC()
}

// Bounds of what is told to readers, in bytes.
const (
	maxContentType = 200
	maxCharset     = 40
)

// contentType is a feed's media type. What the origin said stays where it can be
// a feed's; HTML never comes out of a gateway, nor what is no plain short text.
func contentType(origin, format string) string {
	media, params, err := mime.ParseMediaType(origin)
	odd := strings.ContainsFunc(origin, func(r rune) bool { return r < ' ' || r > '~' })
	if err == nil && len(origin) <= maxContentType && !odd {
		switch {
		case strings.HasPrefix(media, "text/html"), media == "application/xhtml+xml", media == "image/svg+xml":
		case format == "json" && (media == "application/json" || strings.HasSuffix(media, "+json")),
			format != "json" && (media == "text/xml" || media == "application/xml" || strings.HasSuffix(media, "+xml")):
			return origin
		}
	}
	media = map[string]string{"rss": "application/rss+xml", "atom": "application/atom+xml", "json": "application/feed+json"}[format]
	if charset := params["charset"]; charset != "" && len(charset) <= maxCharset && format != "json" {
		return mime.FormatMediaType(media, map[string]string{"charset": charset})
	}
	return media
}
