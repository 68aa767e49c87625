// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"strings"
	"testing"

	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// Readers get a new version, with another ETag, if and only if what they are served changes.
func TestUnchanged(t *testing.T) {
	const url, xml = feedURL, "text/xml"
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
		"volatile parts": {url, []poll{
			{url, rss("<lastBuildDate>1</lastBuildDate>"), xml}, {url, rss("<lastBuildDate>2</lastBuildDate>"), xml}, {url, rss("<!-- 3 -->"), xml},
		}, "n--"},
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
		"a shield's own address":      {"shield", []poll{{url, rss(`<atom:link rel="self" href="https://a.test/feed"/>`), xml}, {url, rss(`<atom:link rel="self" href="https://b.test/feed"/>`), xml}, {url, rss(`<!-- 3 --><atom:link rel="self" href="https://b.test/feed"/>`), xml}}, "nn-"},
		"an entry":                    {url, []poll{{url, rss(""), xml}, {url, rss("<item/>"), xml}, {url, rss(""), xml}}, "nnn"},
	} {
		l, got := newLife(t), ""
		l.own = ParseKey(test.own)
		tags := map[string]string{} // of served bytes and their content type
		for _, p := range test.polls {
			before, a := l.state.Feed.Version.Tag, given(p.body, "Content-Type", p.contentType)
			a.URL = p.url
			v := l.poll(a)
			switch after := l.state.Feed.Version.Tag; {
			case v.Result == status.ResultNew && v.Body != nil:
				got += "n"
				served := p.contentType + string(v.Body.Data)
				if other, known := tags[served]; known && other != after {
					t.Errorf("%s: the same bytes have the tags %s and %s", name, other, after)
				}
				tags[served] = after
			case v.Result == status.ResultUnchanged && after == before:
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

// An upgrade makes no version: one of an earlier edition has no fingerprint of the root element, and was
// served by other rules.
func TestUnchangedByAnUpgrade(t *testing.T) {
	const body = `<?xml version="1.0"?><?xml-stylesheet href="/rss.xsl"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>T</title><atom:link rel="self" href="x"/>` +
		`<item><link>/1/</link><description>&lt;img src="a.png"&gt;&lt;a href="#x"&gt;</description></item></channel></rss>`
	for _, own := range []string{feedURL, "shield"} {
		l := newLife(t)
		l.own = ParseKey(own)
		l.poll(given(body))
		if !l.own.Shielded() { // the edition before passed it on
			l.body = []byte(strings.Replace(string(l.body), "<rss", `<?xml-stylesheet href="/rss.xsl"?><rss`, 1))
		}
		v := &l.state.Feed.Version
		root := v.Root
		v.Root, v.Base, v.Tag = policy.Fingerprint{}, feedURL+"?token=1", "of other bytes"
		for i, again := range []string{body, strings.Replace(body, "<title>", "<lastBuildDate>now</lastBuildDate><title>", 1), strings.Replace(body, "/rss.xsl", "/new.xsl", 1)} {
			if got := l.poll(given(again)); got.Result != status.ResultUnchanged || l.state.Feed.Version.Tag != "of other bytes" {
				t.Errorf("%s: poll %d: %v with tag %s", own, i, got.Result, l.state.Feed.Version.Tag)
			}
		}
		if got := l.state.Feed.Version.Root; got != root {
			t.Errorf("%s: the fingerprint is %x, want %x", own, got, root)
		}
		if got := l.poll(given(strings.Replace(body, "<title>T", "<title>U", 1))); got.Result != status.ResultNew {
			t.Errorf("%s: a change gives %v", own, got.Result)
		}
	}
}
