// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document"
)

// answered takes over a 200 with a document from a URL.
func answered(s *State, own Key, at time.Time, url, body string, fields ...string) Classified {
	a := policy.Answer{Asked: at, At: at, URL: url, Status: http.StatusOK, Header: http.Header{}, Body: []byte(body)}
	for i := 0; i < len(fields); i += 2 {
		a.Header.Set(fields[i], fields[i+1])
	}
	v, ok := s.ClassifyUnread(a)
	if !ok {
		v = s.ClassifyDocument(own, false, a, at)
	}
	s.Update(own, v)
	s.Version = s.Feed.Version.Number
	return v
}

// Readers get a new version, with another ETag, if and only if what they are served changes.
func TestUnchanged(t *testing.T) {
	const url, xml = "https://origin.test/feed.xml", "text/xml"
	rss := func(channel string) string {
		return `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel><title>T</title>` + channel +
			`<item><guid>1</guid><enclosure url="/1.mp3"/></item></channel></rss>`
	}
	type poll struct{ url, body, contentType string }
	for name, test := range map[string]struct {
		own   string
		polls []poll
		want  string // for each poll: n for a new version, - for the same
	}{
		"the feed's own address": {url, []poll{
			{url, rss(`<atom:link rel="self" href="?1"/>`), xml}, {url, rss(`<atom:link rel="self" href="?2"/>`), xml}, {url, rss(`<atom:link rel="self" href="?1"/>`), xml}, {url, rss(""), xml},
		}, "n---"},
		"what only hints are made of": {url, []poll{
			{url, rss(`<itunes:new-feed-url>https://a.test/</itunes:new-feed-url>`), xml}, {url, rss(`<itunes:new-feed-url>https://b.test/</itunes:new-feed-url>`), xml}, {url, rss(""), xml},
		}, "n--"},
		"a redirect to a signed address":  {url, []poll{{url + "?sig=1", rss(""), xml}, {url + "?sig=2", rss(""), xml}, {url + "?sig=3", rss("") + " ", xml}}, "n--"},
		"a redirect to another directory": {url, []poll{{url, rss(""), xml}, {"https://new.test/feed.xml", rss(""), xml}}, "nn"},
		"no relative URL, elsewhere":      {url, []poll{{url, strings.Replace(rss(""), "/1.mp3", "https://a.test/1.mp3", 1), xml}, {"https://new.test/", strings.Replace(rss(""), "/1.mp3", "https://a.test/1.mp3", 1), xml}}, "n-"},
		"another content type, then the same bytes": {url, []poll{
			{url, rss(""), xml}, {url, rss(""), "application/rss+xml"}, {url, rss(`<itunes:new-feed-url>https://a.test/</itunes:new-feed-url>`), "application/rss+xml"}, {url, rss(""), xml},
		}, "nn-n"},
		"a shield's own push service": {"shield", []poll{{url, rss(""), xml}, {url, rss(`<atom:link rel="hub" href="https://hub.test/"/>`), xml}}, "nn"},
		"an entry":                    {url, []poll{{url, rss(""), xml}, {url, rss("<item/>"), xml}, {url, rss(""), xml}}, "nnn"},
	} {
		s, own, got, at := &State{}, ParseKey(test.own), "", time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
		tags := map[string]string{} // of served bytes and their content type
		for _, p := range test.polls {
			at = at.Add(time.Hour)
			before := s.Feed.Version.Tag
			switch v := answered(s, own, at, p.url, p.body, "Content-Type", p.contentType); {
			case v.Result == status.ResultNew && v.Body != nil:
				got += "n"
				served := p.contentType + string(v.Body.Data)
				if other, known := tags[served]; known && other != s.Feed.Version.Tag && !strings.HasPrefix(name, "another") {
					t.Errorf("%s: the same bytes have the tags %s and %s", name, other, s.Feed.Version.Tag)
				}
				tags[served] = s.Feed.Version.Tag
			case v.Result == status.ResultUnchanged && s.Feed.Version.Tag == before:
				got += "-"
			default:
				t.Errorf("%s: %v, %v", name, v.Result, v.Answer.Err)
			}
		}
		if got != test.want {
			t.Errorf("%s: versions %s, want %s", name, got, test.want)
		}
	}
}

// An upgrade makes no version: one of an earlier edition has the fingerprint of the whole document, and
// was served by other rules.
func TestUnchangedByAnUpgrade(t *testing.T) {
	const url, body = "https://origin.test/feed.xml", `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>T</title><atom:link rel="self" href="x"/>` +
		`<item><link>/1/</link><description>&lt;img src="a.png"&gt;&lt;a href="#x"&gt;</description></item></channel></rss>`
	s, at := &State{}, time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	answered(s, ParseKey(url), at, url, body)
	d, err := document.Read([]byte(body), "", at)
	if err != nil || d.Whole == d.Fingerprint {
		t.Fatal(d, err)
	}
	s.Feed.Version.Fingerprint, s.Feed.Version.Base, s.Feed.Version.Tag = d.Whole, url+"?token=1", "of other bytes"
	for i, again := range []string{body, strings.Replace(body, "<title>", "<lastBuildDate>now</lastBuildDate><title>", 1)} {
		if v := answered(s, ParseKey(url), at.Add(time.Hour), url, again); v.Result != status.ResultUnchanged || s.Feed.Version.Tag != "of other bytes" {
			t.Errorf("poll %d: %v with tag %s", i, v.Result, s.Feed.Version.Tag)
		}
	}
	v := answered(s, ParseKey(url), at.Add(time.Hour), url, strings.Replace(body, "<title>T", "<title>U", 1))
	if v.Result != status.ResultNew || s.Feed.Version.Fingerprint == d.Whole {
		t.Errorf("a change gives %v", v.Result)
	}
}
