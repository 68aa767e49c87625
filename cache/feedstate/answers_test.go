// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"errors"
	"fmt"
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
		"truncated":        brokenOff(whole[:len(whole)/2]),
		"cut in its end":   brokenOff(whole[:len(whole)-3]),
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

// brokenOff is a 200 whose connection, or content coding, has ended too early.
func brokenOff(body string) policy.Answer {
	a := given(body)
	a.Failure, a.Err = policy.FailureTruncated, errors.New("the body broke off")
	return a
}

// An entry that is not well-formed reaches readers, most of which show it, and so does a document with
// something around it.
func TestMistakesInAnEntry(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"bare ampersand":            {"<title>", "<title>AT&T & ", "new"},
		"undeclared entity":         {"<title>", "<title>&foo; ", "new"},
		"control character":         {"<title>", "<title>\x0b", "new"},
		"attribute without quotes":  {"<guid", "<guid isPermaLink=false", "new"},
		"unclosed element":          {"<title>", "<title><br>", "new"},
		"element closed by another": {"<title>", "<title><b><i></b></i>", "new"},
		"wrong end tag":             {"</guid>", "</giud>", "new"},
		"missing end tag":           {"</item>", "", "new"},
		"bare less-than sign":       {"<title>", "<title>1 < 2 ", "new"},
		"two hyphens in a comment":  {"<channel>", "<channel><!-- a -- b -->", "new"},
		"a script behind":           {"</rss>", "</rss><script/>", "new"},
		"a warning in front":        {"<rss", "Warning: ... <rss", "new"},
		"a script in front":         {"<rss", "<script>x</script> <rss", "new"},
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

// A document with fewer entries, or without an end, is a mistake or what its publisher wants. It reaches
// readers at once, or if the next one is such a document too.
func TestVersionAtTheSecondPoll(t *testing.T) {
	whole := func(n int) string { return origintest.Feed(n, "") }
	unclosed := func(n int) string { return strings.TrimSuffix(strings.TrimSpace(whole(n)), "</channel></rss>") }
	dropped := strings.Replace(unclosed(4), "Entry 1", "Changed", 1)
	dropped = dropped[:strings.LastIndex(dropped, "<item>")]
	half := whole(3)[:len(whole(3))/2]
	type poll struct {
		answer policy.Answer
		want   string // n: new, -: unchanged, f: failed
	}
	for name, c := range map[string]struct {
		own   string
		polls []poll
	}{
		"emptied":                    {feedURL, []poll{{given(whole(2)), "n"}, {given(whole(0)), "-"}, {given(whole(0)), "n"}, {given(whole(0)), "-"}}},
		"emptied by mistake, twice":  {feedURL, []poll{{given(whole(2)), "n"}, {given(whole(0)), "-"}, {given(whole(2)), "-"}, {given(whole(0)), "-"}, {given(whole(3)), "n"}}},
		"emptied in a shield":        {"shield", []poll{{given(whole(2)), "n"}, {given(whole(0)), "n"}}},
		"empty from the start":       {feedURL, []poll{{given(whole(0)), "n"}, {given(whole(2)), "n"}}},
		"no end, all entries":        {feedURL, []poll{{given(whole(2)), "n"}, {given(unclosed(3)), "n"}, {given(unclosed(3)), "-"}}},
		"no end, not all entries":    {feedURL, []poll{{given(whole(3)), "n"}, {given(half), "f"}, {given(half), "n"}, {given(whole(3)), "n"}}},
		"no end, by mistake":         {feedURL, []poll{{given(whole(3)), "n"}, {given(half), "f"}, {given(whole(3)), "-"}, {given(half), "f"}}},
		"no end, in a shield":        {"shield", []poll{{given(whole(3)), "n"}, {given(half), "f"}, {given(half), "n"}}},
		"no end from the start":      {feedURL, []poll{{given(unclosed(2)), "n"}, {given(unclosed(2)), "-"}, {given(dropped), "n"}, {given(unclosed(3)), "n"}}},
		"no end, JSON":               {feedURL, []poll{{given(`{"version":"https://jsonfeed.org/version/1.1","title":"T","items":[{"id":"1"}]}`), "n"}, {given(`{"version":"https://jsonfeed.org/version/1.1","items":[`), "f"}}},
		"broken off behind its end":  {feedURL, []poll{{given(whole(2)), "n"}, {brokenOff(whole(3)), "n"}, {brokenOff(whole(3)), "-"}}},
		"broken off before its end":  {feedURL, []poll{{given(whole(2)), "n"}, {brokenOff(unclosed(3)), "f"}, {brokenOff(unclosed(3)), "f"}, {brokenOff(unclosed(3)), "f"}}},
		"broken off, without a body": {feedURL, []poll{{given(whole(2)), "n"}, {brokenOff(""), "f"}}},
	} {
		l := newLife(t)
		l.own = ParseKey(c.own)
		for i, p := range c.polls {
			if i > 0 && !p.answer.At.IsZero() {
				t.Fatal("an answer is used twice")
			}
			v, tag := Classified{}, l.state.Feed.Version.Tag
			v = l.poll(p.answer)
			got := map[status.Result]string{status.ResultNew: "n", status.ResultUnchanged: "-", status.ResultFailed: "f"}[v.Result]
			if got != p.want || (got == "n") != (l.state.Feed.Version.Tag != tag) {
				t.Errorf("%s: poll %d is %s, %v, want %s", name, i+1, got, v.Answer.Err, p.want)
			}
			if got == "f" && (v.Answer.Failure != policy.FailureTruncated || !v.Answer.Passing()) {
				t.Errorf("%s: poll %d failed as %q: that may not pass", name, i+1, v.Answer.Failure)
			}
		}
	}
}

// A site that never closes its root, and drops its oldest entry for each new one, is not old for ever.
func TestNeverClosed(t *testing.T) {
	l := newLife(t)
	for n := range 6 {
		items := ""
		for i := n + 5; i > n; i-- {
			items += fmt.Sprintf("<item><guid>%d</guid></item>", i)
		}
		body := `<rss version="2.0"><channel><title>T</title>` + items
		for polls := 0; ; polls++ {
			if polls > 1 {
				t.Fatalf("entry %d is kept from readers", n+5)
			}
			if l.poll(given(body, "ETag", fmt.Sprintf("%q", fmt.Sprint(n)))); strings.Contains(string(l.body), fmt.Sprintf(">%d<", n+5)) {
				break
			}
		}
		l.poll(policy.Answer{Status: http.StatusNotModified})
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
