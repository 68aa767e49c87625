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

// examineValidators requests the feed conditionally, a moment after the first answer, and
// computes the cost of the answers.
func (x *checker) examineValidators(ctx context.Context) {
	v := validatorsOf(x.first)
	if v.Empty() {
		x.find("no-validators", "The answer has neither an ETag nor a Last-Modified, so each poll downloads the whole feed.")
		plain := x.poll(ctx, "asking without compression", policy.Validators{}, false)
		x.checkCompression(plain)
		x.report.Cost = x.cost(policy.Answer{})
		return
	}
	x.checkSyntax(v)
	again := x.poll(ctx, "asking whether it has changed", v, true)
	unchanged := again.Status == http.StatusNotModified
	if unchanged {
		x.good("A conditional request for the current feed is answered with 304 (Not Modified).")
		if v.ETag != "" && v.LastModified != "" {
			byDate := x.poll(ctx, "asking whether it has changed, by date alone", policy.Validators{URL: v.URL, LastModified: v.LastModified}, true)
			if byDate.Status == http.StatusOK {
				x.find("date-ignored", fmt.Sprintf("With If-Modified-Since and without If-None-Match, the answer was 200 with %s.", size(byDate.Wire)))
			}
		}
	}
	plain := x.poll(ctx, "asking without compression", policy.Validators{}, false)
	if x.checkCompression(plain); unchanged {
		x.report.Cost = x.cost(again)
		return
	}
	var plainAgain policy.Answer
	if w := validatorsOf(plain); !w.Empty() && encoding(x.first) != "" {
		plainAgain = x.poll(ctx, "asking whether it has changed, without compression", w, false)
	}
	x.checkWhole(v, again, plain, plainAgain)
	x.report.Cost = x.cost(plainAgain)
}

func validatorsOf(a policy.Answer) policy.Validators {
	if a.Failure != policy.FailureNone {
		return policy.Validators{}
	}
	return policy.Validators{URL: a.URL, ETag: a.Header.Get("ETag"), LastModified: a.Header.Get("Last-Modified")}
}

func (x *checker) checkSyntax(v policy.Validators) {
	opaque := strings.TrimPrefix(v.ETag, "W/")
	if v.ETag != "" && (len(opaque) < 2 || opaque[0] != '"' || strings.IndexByte(opaque[1:], '"') != len(opaque)-2) {
		x.find("etag-syntax", "ETag: "+v.ETag)
	}
	if v.LastModified == "" {
		return
	}
	t, err := http.ParseTime(v.LastModified)
	switch {
	case err != nil:
		x.find("last-modified-syntax", "Last-Modified: "+v.LastModified, x.first.At.UTC().Format(http.TimeFormat))
	case t.After(x.first.At.Add(time.Minute)):
		x.find("last-modified-future", "Last-Modified: "+v.LastModified)
	}
}

// checkWhole finds out why a conditional request was answered with the whole feed.
func (x *checker) checkWhole(v policy.Validators, again, plain, plainAgain policy.Answer) {
	if again.Failure != policy.FailureNone || again.Status != http.StatusOK {
		if !again.Unsent() && !x.stopped {
			x.find("conditional-fails", "The answer to If-None-Match or If-Modified-Since was "+outcome(again)+"; without it, the feed came.")
		}
		return
	}
	w := validatorsOf(again)
	sameTag := httpfield.ParseTag(v.ETag).Equal(httpfield.ParseTag(w.ETag)) || v.ETag == "" && w.ETag == ""
	waited := again.At.Sub(x.first.At).Round(time.Second)
	switch {
	case sameTag && v.LastModified == w.LastModified && plainAgain.Status == http.StatusNotModified:
		x.find("compression-breaks-304", fmt.Sprintf("If-None-Match: %s was answered with 200 and the same ETag; without compression, with 304.", v.ETag))
	case sameTag && v.LastModified == w.LastModified:
		x.find("not-honoured", fmt.Sprintf("%s was answered with 200, the same validators and %s.", written(v, "If-None-Match", "If-Modified-Since"), size(again.Wire)))
	case bytes.Equal(again.Body, x.first.Body):
		x.find("volatile-etag", fmt.Sprintf("%s and, %v later, %s for the very same bytes.", written(v, "ETag", "Last-Modified"), waited, written(w, "ETag", "Last-Modified")))
	default:
		x.checkVolatile(again, plain, waited)
	}
}

// checkVolatile judges a feed that differed a moment later.
func (x *checker) checkVolatile(again, plain policy.Answer, waited time.Duration) {
	d, err := document.Read(again.Body, again.Header.Get("Content-Type"), again.At)
	id := "volatile-entries"
	switch {
	case err != nil:
		x.find("unstable", fmt.Sprintf("%v later: %v.", waited, err))
		return
	case d.Fingerprint == x.document.Fingerprint:
		id = "volatile-document"
	case plain.Failure == policy.FailureNone && bytes.Equal(plain.Body, again.Body):
		id = "changed-meanwhile"
	}
	x.find(id, fmt.Sprintf("%v apart, the documents differ first at: %s", waited, differs(x.first.Body, again.Body)))
}

// differs returns the text around the first difference, from the second document.
func differs(a, b []byte) string {
	const before, after = 30, 60
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(string(b[max(0, i-before):min(len(b), i+after)]), "\uFFFD"))
}

// written returns validators in fields of these names.
func written(v policy.Validators, tag, date string) string {
	var fields []string
	if v.ETag != "" {
		fields = append(fields, tag+": "+v.ETag)
	}
	if v.LastModified != "" {
		fields = append(fields, date+": "+v.LastModified)
	}
	return cmp.Or(strings.Join(fields, ", "), "no validators")
}

func outcome(a policy.Answer) string {
	switch {
	case a.Err != nil:
		return a.Err.Error()
	case a.Status == 0:
		return string(a.Failure)
	}
	return fmt.Sprintf("%d %s", a.Status, http.StatusText(a.Status))
}
