// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document"
)

// examineValidators asks whether the feed has changed since the first answer, which
// was a moment ago, and says what each of the answers costs.
func (x *examination) examineValidators(ctx context.Context) {
	v := validatorsOf(x.first)
	if v.Empty() {
		x.find(Problem, "no-validators", "Readers cannot ask whether the feed has changed",
			"The answer has neither an ETag nor a Last-Modified, so each poll downloads the whole feed.",
			"Send an ETag made from the content (a hash will do), or the time of the newest change as Last-Modified. Web servers do so by themselves for files.")
		plain := x.poll(ctx, "asking without compression", policy.Validators{}, false)
		x.judgeCompression(plain)
		x.report.Cost = x.cost(policy.Answer{})
		return
	}
	x.judgeSyntax(v)
	again := x.poll(ctx, "asking whether it has changed", v, true)
	if again.Status == http.StatusNotModified {
		x.good("A conditional request for the current feed is answered with 304 (Not Modified).")
		if v.ETag != "" && v.LastModified != "" {
			x.judgeDate(x.poll(ctx, "asking whether it has changed, by date alone", policy.Validators{URL: v.URL, LastModified: v.LastModified}, true))
		}
		plain := x.poll(ctx, "asking without compression", policy.Validators{}, false)
		x.judgeCompression(plain)
		x.report.Cost = x.cost(again)
		return
	}
	plain := x.poll(ctx, "asking without compression", policy.Validators{}, false)
	x.judgeCompression(plain)
	var plainAgain policy.Answer
	if w := validatorsOf(plain); !w.Empty() && encoding(x.first) != "" {
		plainAgain = x.poll(ctx, "asking whether it has changed, without compression", w, false)
	}
	x.judgeWhole(v, again, plain, plainAgain)
	x.report.Cost = x.cost(plainAgain)
}

func validatorsOf(a policy.Answer) policy.Validators {
	if a.Failure != policy.FailureNone {
		return policy.Validators{}
	}
	return policy.Validators{URL: a.URL, ETag: a.Header.Get("ETag"), LastModified: a.Header.Get("Last-Modified")}
}

// judgeSyntax looks at how validators are written.
func (x *examination) judgeSyntax(v policy.Validators) {
	opaque := strings.TrimPrefix(v.ETag, "W/")
	if v.ETag != "" && (len(opaque) < 2 || opaque[0] != '"' || strings.IndexByte(opaque[1:], '"') != len(opaque)-2) {
		x.find(Problem, "etag-syntax", "The ETag is malformed",
			"ETag: "+v.ETag, `Write it in quotes, as in ETag: "5f3a" or ETag: W/"5f3a" (RFC 9110 section 8.8.3).`)
	}
	if v.LastModified == "" {
		return
	}
	t, err := policy.ParseHTTPDate(v.LastModified, x.first.At)
	switch {
	case err != nil:
		x.find(Problem, "last-modified-syntax", "The Last-Modified is malformed",
			"Last-Modified: "+v.LastModified, "Write it as in Last-Modified: "+x.first.At.UTC().Format(http.TimeFormat)+" (RFC 9110 section 5.6.7).")
	case t.After(x.first.At.Add(time.Minute)):
		x.find(Advice, "last-modified-future", "The Last-Modified lies in the future",
			"Last-Modified: "+v.LastModified, "Use the time of the newest change: caches ignore a time to come (RFC 9110 section 8.8.2.1).")
	}
}

// judgeDate looks at the answer to If-Modified-Since alone.
func (x *examination) judgeDate(a policy.Answer) {
	if a.Status == http.StatusOK {
		x.find(Advice, "date-ignored", "Last-Modified alone is not honoured",
			fmt.Sprintf("With If-Modified-Since and without If-None-Match, the answer was 200 with %s.", size(a.Wire)),
			"Answer 304 to If-Modified-Since too: some readers send only that. Or leave Last-Modified out.")
	}
}

// judgeWhole finds out why a conditional request was answered with the whole feed.
func (x *examination) judgeWhole(v policy.Validators, again, plain, plainAgain policy.Answer) {
	if again.Failure != policy.FailureNone || again.Status != http.StatusOK {
		if !again.Unsent() && !x.stopped {
			x.find(Problem, "conditional-fails", "A conditional request fails",
				"The answer to If-None-Match or If-Modified-Since was "+outcome(again)+"; without it, the feed came.",
				"Answer 304 where nothing has changed, and 200 with the feed otherwise.")
		}
		return
	}
	w := validatorsOf(again)
	sameTag := httpfield.ParseTag(v.ETag).Equal(httpfield.ParseTag(w.ETag)) || v.ETag == "" && w.ETag == ""
	waited := again.At.Sub(x.first.At).Round(time.Second)
	switch {
	case sameTag && v.LastModified == w.LastModified && plainAgain.Status == http.StatusNotModified:
		x.find(Problem, "compression-breaks-304", "Conditional requests fail when compression is on",
			fmt.Sprintf("If-None-Match: %s was answered with 200 and the same ETag; without compression, with 304.", v.ETag),
			"Apache httpd: set DeflateAlterETag NoChange (and BrotliAlterETag NoChange). Elsewhere: compare the ETag of the compressed answer as well.")
	case sameTag && v.LastModified == w.LastModified:
		x.find(Problem, "not-honoured", "Conditional requests are ignored",
			fmt.Sprintf("%s was answered with 200, the same validators and %s.", conditions(v), size(again.Wire)),
			"Answer 304 without a body where If-None-Match has the current ETag, or where the feed has not changed since If-Modified-Since. A proxy or CDN in between may drop these fields.")
	case bytes.Equal(again.Body, x.first.Body):
		x.find(Problem, "volatile-etag", "The validators change though the feed does not",
			fmt.Sprintf("%s and, %v later, %s for the very same bytes.", written(v), waited, written(w)),
			"Make the ETag from the content, not from the time or the server's process; several servers must make the same one.")
	default:
		x.judgeVolatile(v, again, plain, waited)
	}
}

// judgeVolatile looks at a feed that was another one a moment later.
func (x *examination) judgeVolatile(v policy.Validators, again, plain policy.Answer, waited time.Duration) {
	at := differs(x.first.Body, again.Body)
	d, err := document.Read(again.Body, again.Header.Get("Content-Type"), again.At)
	switch {
	case err != nil:
		x.find(Problem, "unstable", "The feed is not always a feed", fmt.Sprintf("%v later: %v.", waited, err),
			"Find out what else answers at this address.")
	case d.Fingerprint == x.document.Fingerprint:
		x.find(Problem, "volatile-document", "The feed changes though its entries do not",
			fmt.Sprintf("%v apart, the documents differ first at: %s", waited, at),
			"Leave out what changes with each request (the time of the request, a counter, a nonce) or set it only when an entry changes. Then ETags stay the same, too.")
	case plain.Failure == policy.FailureNone && bytes.Equal(plain.Body, again.Body):
		x.find(Advice, "changed-meanwhile", "The feed has changed during the examination",
			fmt.Sprintf("%v apart, the documents differ first at: %s", waited, at), "Run it again: whether validators are honoured remains open.")
	default:
		x.find(Problem, "volatile-entries", "Each answer has other entries",
			fmt.Sprintf("%v apart, the documents differ first at: %s", waited, at),
			"Give the same entries, in the same order and with the same text, until there is a change to tell. "+
				"Signed links, counters and advertisements in entries make every poll a full download.")
	}
}

// differs is the place where two documents begin to differ, in a few words of the second.
func differs(a, b []byte) string {
	const before, after = 30, 60
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(string(b[max(0, i-before):min(len(b), i+after)]), "\uFFFD"))
}

// conditions are the fields in which validators are sent back.
func conditions(v policy.Validators) string {
	return joined(v, "If-None-Match: ", "If-Modified-Since: ")
}

// written are the fields in which validators come.
func written(v policy.Validators) string { return joined(v, "ETag: ", "Last-Modified: ") }

func joined(v policy.Validators, tag, date string) string {
	var fields []string
	if v.ETag != "" {
		fields = append(fields, tag+v.ETag)
	}
	if v.LastModified != "" {
		fields = append(fields, date+v.LastModified)
	}
	return cmp.Or(strings.Join(fields, ", "), "no validators")
}

// outcome is what an answer came to.
func outcome(a policy.Answer) string {
	switch {
	case a.Err != nil:
		return a.Err.Error()
	case a.Status == 0:
		return string(a.Failure)
	}
	return fmt.Sprintf("%d %s", a.Status, http.StatusText(a.Status))
}
