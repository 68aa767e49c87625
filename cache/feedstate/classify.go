// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document"
	"github.com/feedpollard/pollard/policy/document/links"
	"github.com/feedpollard/pollard/policy/document/site"
)

// storedVersion is a version as the record of its feed has it: with what is remembered of
// the document that it was made from.
type storedVersion struct {
	version.Version
	Number  uint64             `json:"number"`
	Format  string             `json:"format"`          // rss, atom or json
	Title   string             `json:"title,omitempty"` // of the feed, one short line
	Sum     policy.Fingerprint `json:"sum"`             // half the SHA-256 of the origin's bytes
	Size    int                `json:"size"`            // of them
	Base    string             `json:"base,omitempty"`  // URL that links were resolved against; empty: it has no part in the document that readers get
	From    string             `json:"from,omitempty"`  // URL that redirects led to; empty: the feed's own
	Root    policy.Fingerprint `json:"root,omitzero"`   // of the root element; zero: the version is of an earlier edition
	Entries int                `json:"entries"`
}

// Response returns what answers requests with the version. It keeps its own copy.
func (v *storedVersion) Response(shielded bool) *version.Response {
	return version.NewResponse(new(v.Version), !shielded)
}

// StoredCoding returns the coding that the version is stored in.
func (v *storedVersion) StoredCoding() version.Coding { return version.CodingOf(v.Coding) }

// Classified is an answer with what it means for the feed.
type Classified struct {
	Answer   policy.Answer // its Failure is set if the content is not a good feed
	Result   status.Result
	document *policy.Document // of a 200 that was parsed; nil if it did not have to be, or is kept back
	unclosed bool             // a 200 whose document has no end
	emptied  bool             // a 200 that is kept back, as it has lost all entries of the version
	version  storedVersion    // of a new one, or of the same one made of other bytes
	Body     *store.Body      // of a new one, which has no number yet
	Unlinked string           // why links of a new one were left as they are; empty: they were not
	Pushed   bool             // a push has caused the poll
	Points   string           // URL that the feed points to from now on; empty if it points nowhere
	site     *site.Page       // of a 200 that is a web page instead: the feeds that it names, if it names any
}

// Good reports whether the answer is that of a feed in good order.
func (v Classified) Good() bool { return v.Answer.Failure == policy.FailureNone }

// Feeds are the feeds that the answer names, which is a web page.
func (v *Classified) Feeds() []feedurl.Redacted {
	if v.site == nil {
		return nil
	}
	return v.site.Redacted()
}

// ClassifyUnread decides what an answer means for the feed if its document need not be read for
// that. Otherwise it reports false, and the result is for [State.ClassifyDocument].
func (s *State) ClassifyUnread(a policy.Answer) (v Classified, ok bool) {
	switch {
	case a.Failure == policy.FailureGone:
		return Classified{Answer: a, Result: status.ResultGone}, true
	case a.Unsent():
		return Classified{Answer: a, Result: status.ResultUnsent}, true
	case a.Failure == policy.FailureMoved:
		return Classified{Answer: a, Result: status.ResultMoved}, true
	case a.Failure == policy.FailureHeld:
		return Classified{Answer: a, Result: status.ResultHeld}, true
	case a.Failure != policy.FailureNone && len(a.Body) == 0:
		a.Failure, a.Err = document.Refused(a)
		return Classified{Answer: a, Result: status.ResultFailed}, true
	case a.Status == http.StatusNotModified:
		return Classified{Answer: a, Result: status.ResultUnchanged}, true
	}
	known := s.Feed.Version
	if s.Version != 0 && s.Last.Unclosed == 0 && sumOf(a.Body) == known.Sum && known.servedAs(a) {
		return Classified{Answer: whole(a), Result: status.ResultUnchanged}, true
	}
	return Classified{}, false
}

// whole returns an answer whose document is there, although the connection may have broken off behind it.
func whole(a policy.Answer) policy.Answer {
	a.Failure, a.Err, a.Detail = policy.FailureNone, nil, ""
	return a
}

// ClassifyDocument decides whether a 200 brings a new version. A document that is not a feed is a
// failure: readers keep the last good version. The URL of a configured feed is written into no
// document, as readers know it by another. The document that readers have is asked for if the decision
// depends on it; nil: it cannot be read.
func (s *State) ClassifyDocument(own Key, configured bool, a policy.Answer, now time.Time, stored func() []byte) Classified {
	known, sum := s.Feed.Version, sumOf(a.Body)
	d, err := document.Read(a.Body, a.Header.Get("Content-Type"), now)
	switch {
	case a.Failure != policy.FailureNone && (err != nil || d.Unclosed): // the connection broke off before the end
		return Classified{Answer: a, Result: status.ResultFailed}
	case err != nil:
		a.Failure, a.Err = document.Failure(err, a, a.Body)
		return Classified{Answer: a, Result: status.ResultFailed, site: s.feedsOn(own, a, err)}
	}
	a = whole(a)
	v := Classified{Answer: a, Result: status.ResultUnchanged, document: d, unclosed: d.Unclosed}
	comparable := s.Version != 0 && known.Format == d.Format && known.servedAs(a) && (!own.Shielded() || sameAddresses(&s.Feed.History.Hints, &d.Hints))
	if comparable && known.Root == d.Fingerprint {
		return v
	}
	content, report := served(own, configured, a)
	if s.keptBack(own, d, content, now, stored) {
		return v.keptBack()
	}
	if comparable && known.Root == (policy.Fingerprint{}) && sameRoot(known.ContentType, content, stored(), now) {
		v.version, v.version.Root = known, d.Fingerprint
		return v
	}
	v.Result, v.version = status.ResultNew, storedVersionOf(s, a, d, sum, now)
	v.version.Root, v.Unlinked = d.Fingerprint, report.Problem
	if report.Own {
		v.version.Base = a.URL
	}
	if v.Body, err = v.version.pack(content); err != nil {
		a.Failure, a.Err = policy.FailureInternal, fmt.Errorf("encoding the new version: %w", err)
		return Classified{Answer: a, Result: status.ResultFailed}
	}
	if s.Version != 0 && v.version.Tag == known.Tag { // readers have it: only what it was made of has changed
		same := v.version
		same.Version, same.Number = known.Version, known.Number
		v.Result, v.version, v.Body = status.ResultUnchanged, same, nil
	}
	return v
}

// keptBack reports whether a document takes the place of the version only if the next one is such a
// document too: it has no end and some entries of the version are missing, or a gateway's feed has lost
// all entries. Both happen by mistake, and on purpose.
func (s *State) keptBack(own Key, d *policy.Document, content []byte, now time.Time, stored func() []byte) bool {
	known := s.Feed.Version
	switch {
	case s.Version == 0:
		return false
	case d.Unclosed:
		return s.Last.Unclosed == 0 && !hasEntries(content, stored(), known.ContentType, now)
	}
	return d.Rhythm.Entries == 0 && known.Entries > 0 && !own.Shielded() && !s.Last.Emptied
}

var errUnclosed = errors.New("broken feed: the document is truncated, and entries are missing: if the next one is too, readers get it")

// keptBack returns what a poll means whose document is kept back. A document without an end may
// have failed to arrive, so it is tried again soon. One that is empty is in good order.
func (v Classified) keptBack() Classified {
	if v.document = nil; v.unclosed {
		v.Answer.Failure, v.Answer.Err, v.Result = policy.FailureTruncated, errUnclosed, status.ResultFailed
		return v
	}
	v.emptied = true
	return v
}

// hasEntries reports whether all entries of a document, before, are still there in another one.
func hasEntries(content, before []byte, contentType string, now time.Time) bool {
	d, err := document.Read(content, contentType, now)
	old, errBefore := document.Read(before, contentType, now)
	if err != nil || errBefore != nil {
		return false
	}
	for _, id := range old.IDs {
		at, found := slices.BinarySearch(d.IDs, id)
		if !found {
			return false
		}
		d.IDs = d.IDs[at+1:]
	}
	return true
}

// sameRoot reports whether readers have a document already. That of an earlier edition is fingerprinted
// again, as that edition did it in another way.
func sameRoot(contentType string, content, before []byte, now time.Time) bool {
	d, err := document.Read(content, contentType, now)
	old, errBefore := document.Read(before, contentType, now)
	return err == nil && errBefore == nil && d.Fingerprint == old.Fingerprint
}

// sameAddresses reports whether two documents name the same address of their own and the same push services. These have
// no part in the fingerprint, and readers of a shield get them.
func sameAddresses(a, b *policy.Hints) bool { return a.Self == b.Self && slices.Equal(a.Hubs, b.Hubs) }

func sumOf(body []byte) policy.Fingerprint {
	sum := sha256.Sum256(body)
	return policy.Fingerprint(sum[:len(policy.Fingerprint{})])
}

// servedAs reports whether the document of an answer would be served as the version is, if it is
// the same: with its content type, and with links resolved against its base, whose query has no part
// in them. The fingerprint covers what the document says of its encoding.
func (v *storedVersion) servedAs(a policy.Answer) bool {
	return version.ContentType(a.Header.Get("Content-Type"), v.Format) == v.ContentType && (v.Base == "" || withoutQuery(v.Base) == withoutQuery(a.URL))
}

func withoutQuery(url string) string {
	url, _, _ = strings.Cut(url, "?")
	return url
}

// served returns the document that readers get. Readers of a shield get it from the
// address that it was written for, so it is left alone. A gateway serves it from another
// one: its relative links are made absolute, and what names the feed's own address or a
// push service is removed, as a reader that followed it would leave the gateway.
func served(own Key, configured bool, a policy.Answer) (body []byte, report links.Report) {
	if own.Shielded() {
		return a.Body, report
	}
	return links.Served(a.Body, a.Header.Get("Content-Type"), a.URL, configured)
}

// pack makes the body of the version, as it is stored, of the document that readers get.
func (v *storedVersion) pack(document []byte) (*store.Body, error) {
	coding, data, err := version.Pack(document)
	if err != nil {
		return nil, err
	}
	v.Identify(document)
	v.Coding = coding.String()
	return &store.Body{Coding: v.Coding, Data: data}, nil
}

func storedVersionOf(s *State, a policy.Answer, d *policy.Document, sum policy.Fingerprint, now time.Time) storedVersion {
	return storedVersion{
		Version: version.Version{
			LastModified: version.LastModified(s.Feed.Version.LastModified, now),
			Since:        now,
			ContentType:  version.ContentType(a.Header.Get("Content-Type"), d.Format),
		},
		Format:  d.Format,
		Sum:     sum,
		Entries: d.Rhythm.Entries,
		Size:    len(a.Body),
	}
}

// feedsOn returns the feeds that a web page links to; nil if there are none. A reader has asked
// for a site, to find its feeds. If the feed has a version, the page is an error instead.
func (s *State) feedsOn(own Key, a policy.Answer, err error) *site.Page {
	if s.Version != 0 || own.Shielded() || !errors.Is(err, document.ErrNotFeed) {
		return nil
	}
	page := site.Read(a.Body, a.Header.Get("Content-Type"), a.URL)
	if len(page.Feeds) == 0 {
		return nil
	}
	if len(a.Moves) > 0 {
		page.From = a.URL
	}
	return &page
}
