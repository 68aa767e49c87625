// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
)

// The grades of findings.
const (
	Problem = "problem" // costs bytes, or breaks readers
	Advice  = "advice"  // could be better
)

// Finding is something that a publisher can improve.
type Finding struct {
	ID       string `json:"id"`    // short and fixed, for programs
	Grade    string `json:"grade"` // Problem or Advice
	Title    string `json:"title"`
	Evidence string `json:"evidence"`
	Remedy   string `json:"remedy"`
}

// checks are all findings that a check can make. A remedy may have verbs.
var checks = []Finding{
	{ID: "slow", Grade: Advice, Title: "The answer takes long",
		Remedy: "Make the feed when something is published, and serve it as a file or from a cache."},
	{ID: "cookie", Grade: Advice, Title: "The feed sets a cookie",
		Remedy: "Leave cookies out of feeds: many caches do not store an answer that has one."},
	{ID: "clock", Grade: Advice, Title: "The server's clock is wrong",
		Remedy: "Let it be set over the network (NTP): Expires and Last-Modified depend on it."},
	{ID: "no-https", Grade: Advice, Title: "The feed comes without encryption",
		Remedy: "Serve it over https, redirect permanently (301), and name the new address in the feed."},
	{ID: "redirected", Grade: Advice, Title: "The feed has moved",
		Remedy: "Link to the new address everywhere: each poll of the old one costs %s."},
	{ID: "redirected-for-now", Grade: Advice, Title: "The address redirects, and not for good",
		Remedy: "If the feed stays there, redirect with 301 or 308, so that readers can remember it: each poll costs %s until then."},
	{ID: "no-type", Grade: Problem, Title: "The answer has no Content-Type",
		Remedy: "Send Content-Type: %s."},
	{ID: "type-syntax", Grade: Problem, Title: "The Content-Type is malformed",
		Remedy: "Send Content-Type: %s."},
	{ID: "wrong-type", Grade: Problem, Title: "The Content-Type is not that of a feed",
		Remedy: "Send Content-Type: %s: some readers refuse the feed, and browsers show or save it."},
	{ID: "other-type", Grade: Advice, Title: "The Content-Type is not that of this format",
		Remedy: "Send Content-Type: %s."},
	{ID: "vary", Grade: Advice, Title: "Caches can hardly store the feed",
		Remedy: "Make the feed the same for all, and send Vary: Accept-Encoding alone."},
	{ID: "no-vary", Grade: Advice, Title: "The compressed feed has no Vary: Accept-Encoding",
		Remedy: "Send Vary: Accept-Encoding, or caches may serve compressed bytes to clients that cannot read them."},
	{ID: "not-compressed", Grade: Problem, Title: "The feed is not compressed",
		Remedy: "Switch compression on for %s and the other types of feeds: servers often compress text/html only."},
	{ID: "compressed-unasked", Grade: Problem, Title: "The feed is compressed even when the client does not accept it",
		Remedy: "Compress only where the request offers it, and send Vary: Accept-Encoding, so that caches do the same."},
	{ID: "incomplete", Grade: Advice, Title: "The examination is not complete",
		Remedy: "Run it again later."},
	{ID: "not-well-formed", Grade: Problem, Title: "The document is not well-formed",
		Remedy: "Let a validator show the place (https://validator.w3.org/feed/). Often it is a bare & or <, or a wrong encoding."},
	{ID: "large", Grade: Advice, Title: "The feed is large",
		Remedy: "The newest 20 or 30 entries are enough for readers that poll once a day; older ones belong on the site, or in further pages (RFC 5005)."},
	{ID: "unparsable", Grade: Problem, Title: "A parser that many readers use cannot read it",
		Remedy: "Let a validator show the place (https://validator.w3.org/feed/)."},
	{ID: "duplicate-ids", Grade: Problem, Title: "Entries share an ID",
		Remedy: "Give each entry a <guid> or <id> of its own: readers show one of them only."},
	{ID: "no-ids", Grade: Problem, Title: "Entries have no ID",
		Remedy: "Give each entry a <guid> or <id> that never changes: without one, an edited entry appears twice."},
	{ID: "no-dates", Grade: Advice, Title: "Entries have no date that can be read",
		Remedy: "Give each entry a <pubDate> (RFC 822) or <updated> (RFC 3339): readers take the time of the download instead."},
	{ID: "no-links", Grade: Advice, Title: "Entries have no link",
		Remedy: "Link each entry to its page."},
	{ID: "hint-ignored", Grade: Advice, Title: "A hint says nothing",
		Remedy: "State how often the feed really changes, or leave it out."},
	{ID: "no-hint", Grade: Advice, Title: "Nothing says how often to ask",
		Remedy: "Send Cache-Control: max-age=3600 (an hour, or whatever suits you): good readers obey, and so do gateways. In RSS, <ttl>60</ttl> says the same."},
	{ID: "malformed-hint", Grade: Problem, Title: "A hint in the document is malformed",
		Remedy: "Correct it, or leave it out: it is ignored."},
	{ID: "cache-control-syntax", Grade: Problem, Title: "The Cache-Control is malformed",
		Remedy: "Write the length in seconds, without a unit, as in %s=3600."},
	{ID: "not-cacheable", Grade: Advice, Title: "Caches may not store the feed",
		Remedy: "Allow it, as in Cache-Control: max-age=3600, unless each reader gets another feed."},
	{ID: "long-lifetime", Grade: Advice, Title: "Readers may come late",
		Remedy: "This tells readers not to ask for %s days. An hour to a day suits most feeds."},
	{ID: "expires-syntax", Grade: Problem, Title: "The Expires is malformed",
		Remedy: "Write it as in Expires: Sat, 21 Nov 2026 08:00:00 GMT, or use Cache-Control: max-age."},
	{ID: "other-self", Grade: Advice, Title: "The feed gives another address as its own",
		Remedy: "Name the address that is to be subscribed to: some readers move there."},
	{ID: "no-validators", Grade: Problem, Title: "Readers cannot ask whether the feed has changed",
		Remedy: "Send an ETag made from the content (a hash will do), or the time of the newest change as Last-Modified. Web servers do so by themselves for files."},
	{ID: "etag-syntax", Grade: Problem, Title: "The ETag is malformed",
		Remedy: `Write it in quotes, as in ETag: "5f3a" or ETag: W/"5f3a" (RFC 9110 section 8.8.3).`},
	{ID: "last-modified-syntax", Grade: Problem, Title: "The Last-Modified is malformed",
		Remedy: "Write it as in Last-Modified: %s (RFC 9110 section 5.6.7)."},
	{ID: "last-modified-future", Grade: Advice, Title: "The Last-Modified lies in the future",
		Remedy: "Use the time of the newest change: caches ignore a time to come (RFC 9110 section 8.8.2.1)."},
	{ID: "date-ignored", Grade: Advice, Title: "Last-Modified alone is not honoured",
		Remedy: "Answer 304 to If-Modified-Since too: some readers send only that. Or leave Last-Modified out."},
	{ID: "conditional-fails", Grade: Problem, Title: "A conditional request fails",
		Remedy: "Answer 304 where nothing has changed, and 200 with the feed otherwise."},
	{ID: "compression-breaks-304", Grade: Problem, Title: "Conditional requests fail when compression is on",
		Remedy: "Apache httpd: set DeflateAlterETag NoChange (and BrotliAlterETag NoChange). Elsewhere: compare the ETag of the compressed answer as well."},
	{ID: "not-honoured", Grade: Problem, Title: "Conditional requests are ignored",
		Remedy: "Answer 304 without a body where If-None-Match has the current ETag, or where the feed has not changed since If-Modified-Since. A proxy or CDN in between may drop these fields."},
	{ID: "volatile-etag", Grade: Problem, Title: "The validators change though the feed does not",
		Remedy: "Make the ETag from the content, not from the time or the server's process; several servers must make the same one."},
	{ID: "unstable", Grade: Problem, Title: "The feed is not always a feed",
		Remedy: "Find out what else answers at this address."},
	{ID: "volatile-document", Grade: Problem, Title: "The feed changes though its entries do not",
		Remedy: "Leave out what changes with each request (the time of the request, a counter, a nonce) or set it only when an entry changes. Then ETags stay the same, too."},
	{ID: "changed-meanwhile", Grade: Advice, Title: "The feed has changed during the examination",
		Remedy: "Run it again: whether validators are honoured remains open."},
	{ID: "volatile-entries", Grade: Problem, Title: "Each answer has other entries",
		Remedy: "Give the same entries, in the same order and with the same text, until there is a change to tell. Signed links, counters and advertisements in entries make every poll a full download."},
}

// find adds a finding with its evidence. The args are for the verbs of its remedy.
func (x *checker) find(id, evidence string, args ...any) {
	i := slices.IndexFunc(checks, func(f Finding) bool { return f.ID == id })
	f := checks[i]
	f.Evidence = evidence
	if len(args) > 0 {
		f.Remedy = fmt.Sprintf(f.Remedy, args...)
	}
	x.report.Findings = append(x.report.Findings, f)
}
