// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestParseAgent(t *testing.T) {
	const chrome = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/99.0.4844.51 Safari/537.36"
	for _, tc := range []struct {
		text   string
		family string
		kind   Kind
		id     string
		people int64
	}{
		{"", "-", KindNone, "", 0},
		{"Amazon Music Podcast", "Amazon Music Podcast", KindService, "", 0},
		{"deezer/curl-3.0", "deezer", KindService, "", 0},
		{"SpaceCowboys Android RSS Reader / 2.6.21(306)", "SpaceCowboys Android RSS Reader", KindDevice, "", 0},
		{"Aggrivator (PodcastIndex.org)/v0.1.7", "Aggrivator", KindService, "", 0},
		{"gPodder/3.11.1 (+http://gpodder.org/) Linux", "gPodder", KindDevice, "", 0},
		{"Some Reader 2.1.0-beta", "Some Reader", KindService, "", 0},
		{"NetNewsWire (RSS Reader; https://netnewswire.com/)", "NetNewsWire", KindService, "", 0},
		{"Tiny Tiny RSS/23.06 (https://tt-rss.org/)", "Tiny Tiny RSS", KindService, "", 0},
		{"https://example.com/robot", "example.com", KindService, "", 0},
		{"(compatible; Nothing/1.0)", "compatible", KindService, "", 0},
		{"1.0", "1.0", KindService, "", 0},

		{"Pocket%20Casts/1 CFNetwork/1237 Darwin/20.4.0", "Pocket Casts", KindDevice, "", 0},
		{"AppleCoreMedia/1.0.0.17D50 (iPhone; U; CPU OS 13_3_1 like Mac OS X; en_us)", "AppleCoreMedia", KindDevice, "", 0},

		{"Go-http-client/1.1", "Go-http-client", KindLibrary, "", 0},
		{"Python/3.11 aiohttp/3.8.5", "aiohttp", KindLibrary, "", 0},
		{"node-fetch/1.0 (+https://github.com/bitinn/node-fetch)", "node-fetch", KindLibrary, "", 0},

		{"Overcast/1.0 Podcast Sync (3 subscribers; feed-id=XXXX; +http://overcast.fm/)", "Overcast", KindService, "XXXX", 3},
		{"Feedly/1.0 (+http://www.feedly.com/fetcher.html; 16 subscribers; like FeedFetcher-Google)", "Feedly", KindService, "", 16},
		{"Feedbin feed-id:1373711 - 142 subscribers", "Feedbin", KindService, "1373711", 142},
		{"NewsBlur Feed Fetcher - 54 subscribers - http://www.newsblur.com/site/6/x", "NewsBlur Feed Fetcher", KindService, "", 54},
		{"Mozilla/5.0 (compatible; theoldreader.com; 2 subscribers; feed-id=522cb01)", "theoldreader.com", KindService, "522cb01", 2},
		{"inoreader.com-like FeedFetcher-Google; Inoreader/1.0 (+http://www.inoreader.com/feed-fetcher; 14 subscribers; )", "Inoreader", KindService, "", 14},
		{"ListenNotes/3.0 (id=XXXX; +https://www.listennotes.com/about/)", "ListenNotes", KindService, "XXXX", 0},
		{"Pollard/1.0 (+https://example.com/about; 1 subscribers)", "Pollard", KindService, "", 1},
		{"Huge/1 (99999999999999999999 subscribers)", "Huge", KindService, "", 0},
		{"Reader/2.6 readers", "Reader", KindService, "", 0},

		{chrome, "Chrome", KindBrowser, "", 0},
		{"Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:124.0) Gecko/20100101 Firefox/124.0", "Firefox", KindBrowser, "", 0},
		{"Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Mobile/15E148 Safari/604.1", "Safari", KindBrowser, "", 0},
		{chrome + " Edg/99.0", "Edge", KindBrowser, "", 0},
		{chrome + " Liferea/1.14", "Liferea", KindDevice, "", 0},
		{chrome + " FeedDemon/4.5", "FeedDemon", KindDevice, "", 0},
		{"Mozilla/5.0 (Linux;) AppleWebKit/ Chrome/ Safari - iHeartRadio", "iHeartRadio", KindDevice, "", 0},
		{"Mozilla/5.0 (compatible; Miniflux/2.0.50; +https://miniflux.app)", "Miniflux", KindService, "", 0},
		{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm) Chrome/116.0.1938.76 Safari/537.36", "bingbot", KindService, "", 0},
		{"Mozilla/5.0 (Linux; Android 13) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/ Safari/537.36", "Chrome", KindDevice, "", 0},
		{"Mozilla/4.0 (Windows NT 10.0; Win64; x64) Chrome/99.0 Safari/537.36", "Chrome", KindDevice, "", 0},
		{"Mozilla/5.0 (Windows NT 10.0; +https://example.org/about) Chrome/99.0 Safari/537.36", "Chrome", KindDevice, "", 0},
		{"Mozilla/5.0", "Mozilla", KindService, "", 0},
		{"Mozilla/5.0 (AntennaPod/3.3)", "AntennaPod", KindService, "", 0},
	} {
		t.Run(tc.text, func(t *testing.T) {
			a := ParseAgent(tc.text)
			if a.Family != tc.family || a.Kind != tc.kind || a.FeedID != tc.id || a.Subscribers != tc.people {
				t.Errorf("family %q, kind %s, feed ID %q, %d subscribers; want %q, %s, %q, %d",
					a.Family, a.Kind, a.FeedID, a.Subscribers, tc.family, tc.kind, tc.id, tc.people)
			}
		})
	}
}

func FuzzParseAgent(f *testing.F) {
	for _, seed := range []string{
		"", "-", "(((", ")))", "a (b", "Mozilla/5.0 (compatible; ; ;)", "feed-id=", "id=\xff", "İ id=3", "3 subscribers",
		"Mozilla/5.0 - ", "+https://", "%zz/1", "%00/1", strings.Repeat("x", 300), "1/2/3", "v", "Python/3", "Python", "é\xcc",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a := ParseAgent(text)
		if a.Family == "" || len(a.Family) > maxName || len(a.FeedID) > maxName || len(a.UserAgent) > maxAgent {
			t.Errorf("%q: family %q, feed ID %q, %d bytes", text, a.Family, a.FeedID, len(a.UserAgent))
		}
		if a.Subscribers < 0 || a.Subscribers > maxSubscribers {
			t.Errorf("%q: %d subscribers", text, a.Subscribers)
		}
		for _, part := range []string{a.Family, a.FeedID, a.UserAgent} {
			if !utf8.ValidString(part) || strings.ContainsFunc(part, unicode.IsControl) {
				t.Errorf("%q: %q is not printable", text, part)
			}
		}
		if again := ParseAgent(a.UserAgent); again != a {
			t.Errorf("%q: read again, %+v became %+v", text, a, again)
		}
		if a.Kind == KindBrowser && !strings.HasPrefix(a.UserAgent, "Mozilla/5.0 (") {
			t.Errorf("%q is taken for a browser", text)
		}
	})
}
