// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"net/http"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// Whatever an origin sends, the last good version and its validators stay.
func TestNothingReplacesTheLastGoodVersion(t *testing.T) {
	whole := origintest.Feed(3, "")
	for name, bad := range map[string]policy.Answer{
		"403":              failed(403, policy.FailureForbidden),
		"404":              failed(404, policy.FailureNotFound),
		"410":              failed(410, policy.FailureGone),
		"429":              failed(429, policy.FailureRateLimited),
		"500":              failed(500, policy.FailureStatus),
		"timeout":          failed(0, policy.FailureTimeout),
		"html":             given("<!DOCTYPE html><html><body>Please log in</body></html>"),
		"html as a feed":   given("<html><rss>not really</rss></html>", "Content-Type", "application/rss+xml"),
		"json error":       given(`{"error":"rate limit"}`, "Content-Type", "application/json"),
		"truncated":        given(whole[:len(whole)/2]),
		"empty channel":    given(origintest.Feed(0, "")),
		"wrong end tag":    given(strings.Replace(whole, "</guid>", "</giud>", 1)),
		"304 never asked":  failed(304, policy.FailureUnasked),
		"control sequence": given("\x00\x01\x02"),
	} {
		l := newLife(t)
		l.poll(given(origintest.Feed(2, ""), "ETag", `"good"`))
		tag := l.state.Feed.Version.Tag
		for range 2 {
			if v := l.poll(bad); v.Good() || v.Body != nil {
				t.Errorf("%s: it is %s", name, v.Result)
			}
			if s := l.state; s.Version != 1 || s.Feed.Version.Tag != tag || s.Feed.Validators.ETag != `"good"` {
				t.Errorf("%s: version %d, tag %s, validators %+v", name, s.Version, s.Feed.Version.Tag, s.Feed.Validators)
			}
		}
	}
}

// An entry that is not well-formed reaches readers, most of which show it, unless its tags are wrong.
func TestMistakesInAnEntry(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"bare ampersand":            {"<title>", "<title>AT&T & ", "new"},
		"undeclared entity":         {"<title>", "<title>&foo; ", "new"},
		"control character":         {"<title>", "<title>\x0b", "new"},
		"attribute without quotes":  {"<guid", "<guid isPermaLink=false", "new"},
		"unclosed element":          {"<title>", "<title><br>", "failed"},
		"element closed by another": {"<title>", "<title><b><i></b></i>", "failed"},
		"attribute without an end":  {"<guid", `<enclosure url="a></item><item><enclosure url="b"/><guid`, "failed"},
		"a script behind":           {"</rss>", "</rss><script/>", "failed"},
		"a warning in front":        {"<rss", "Warning: ... <rss", "failed"},
	} {
		l := newLife(t)
		l.poll(given(origintest.Feed(2, "")))
		whole := origintest.Feed(3, "")
		document := strings.Replace(whole, c.old, c.new, 1)
		if v := l.poll(given(document)); document == whole || string(v.Result) != c.want || v.Good() && v.document.Rhythm.Entries != 3 {
			t.Errorf("%s: %s, %v, want %s", name, v.Result, v.Answer.Err, c.want)
		}
	}
}

// Repairs of a publisher are a new version although no entry has changed.
func TestRepairsReachReaders(t *testing.T) {
	const relative = `<?xml version="1.0" encoding="ISO-8859-1"?><rss version="2.0"><channel><title>T</title><item><title>1</title><link>/1</link></item></channel></rss>`
	elsewhere := given(relative)
	elsewhere.URL = "https://new.test/feed.xml"
	for name, c := range map[string]struct {
		before, after policy.Answer
		contentType   string // of the version then
		base          string
	}{
		"content type": {
			given(origintest.Feed(2, ""), "Content-Type", "application/rss+xml; charset=iso-8859-1"),
			given(origintest.Feed(2, ""), "Content-Type", "application/rss+xml; charset=utf-8"),
			"application/rss+xml; charset=utf-8", "",
		},
		"XML declaration": {given(relative), given(strings.Replace(relative, "ISO-8859-1", "UTF-8", 1)), "text/xml", feedURL},
		"address":         {given(relative), elsewhere, "text/xml", elsewhere.URL},
	} {
		l := newLife(t)
		for i, step := range []struct {
			answer policy.Answer
			want   status.Result
		}{{c.before, status.ResultNew}, {c.before, status.ResultUnchanged}, {c.after, status.ResultNew}, {c.after, status.ResultUnchanged}} {
			tag := l.state.Feed.Version.Tag
			v := l.poll(step.answer)
			if v.Result != step.want {
				t.Fatalf("%s: poll %d is %s, want %s", name, i+1, v.Result, step.want)
			}
			if changed := l.state.Feed.Version.Tag != tag; changed != (step.want == status.ResultNew) {
				t.Errorf("%s: poll %d changes the tag: %v", name, i+1, changed)
			}
		}
		if v := l.state.Feed.Version; v.ContentType != c.contentType || v.Base != c.base {
			t.Errorf("%s: it is served as %s against %q", name, v.ContentType, v.Base)
		}
	}
}

// A program that ends in the middle of its feed fails like a connection that ends there: that may pass.
func TestTruncatedDocumentIsTriedSoon(t *testing.T) {
	l := newLife(t)
	for _, whole := range []string{origintest.Feed(3, ""), `{"version":"https://jsonfeed.org/version/1.1","title":"T","items":[]}`} {
		v := l.poll(given(whole[:len(whole)-3]))
		if v.Answer.Failure != policy.FailureTruncated || !v.Answer.Passing() || !strings.Contains(v.Answer.Err.Error(), "truncated after") {
			t.Errorf("%.20s: it failed as %q: %v", whole, v.Answer.Failure, v.Answer.Err)
		}
	}
}

// A check for browsers is named, before and after there is a version.
func TestChallengeIsNamed(t *testing.T) {
	anubis := given(`<html><script src="/.within.website/x/cmd/anubis/static/js/main.mjs"></script></html>`, "Content-Type", "text/html")
	cloudflare := failed(http.StatusForbidden, policy.FailureForbidden)
	cloudflare.Header = http.Header{"Cf-Mitigated": {"challenge"}}
	for name, answer := range map[string]policy.Answer{"Anubis": anubis, "Cloudflare": cloudflare} {
		l := newLife(t)
		for range 2 {
			l.poll(answer)
			if p := l.state.Last; p.Failure != policy.FailureChallenge || !strings.Contains(p.Error, "check for browsers ("+name+")") {
				t.Errorf("%s: the failure is %q: %s", name, p.Failure, p.Error)
			}
			l.poll(given(origintest.Feed(2, "")))
		}
		if l.state.Version != 1 {
			t.Errorf("%s: version %d", name, l.state.Version)
		}
	}
}
