// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/origintest"
)

// websub.rocks 100 to 104: where the hub and the topic are.
func TestHubOf(t *testing.T) {
	const (
		document = `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id><title>F</title><updated>2026-03-01T00:00:00Z</updated>%s</feed>`
		links    = `<link rel="hub" href="https://hub.test/"/><link rel="self" href="https://origin.test/self"/>`
		channel  = `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>F</title><link>https://origin.test/</link><description>F</description>%s</channel></rss>`
	)
	for _, tt := range []struct {
		name, url, body, link string
		hub, topic            string // empty: it is not asked
	}{
		{"100 header", feedURL, origintest.Feed(1, ""), `<https://hub.test/>; rel="hub", <https://origin.test/self>; rel="self"`, "https://hub.test/", "https://origin.test/self"},
		{"102 Atom", feedURL, fmt.Sprintf(document, links), "", "https://hub.test/", "https://origin.test/self"},
		{"103 RSS", feedURL, fmt.Sprintf(channel, strings.ReplaceAll(links, "<link", "<atom:link")), "", "https://hub.test/", "https://origin.test/self"},
		{"104 header before document", feedURL, fmt.Sprintf(document, links), `</hub>; rel=hub, </topic>; rel=self`, "https://origin.test/hub", "https://origin.test/topic"},
		{"not mixed", feedURL, fmt.Sprintf(document, links), `<https://other.test/>; rel=hub`, "https://hub.test/", "https://origin.test/self"},
		{"JSON", feedURL, `{"version":"https://jsonfeed.org/version/1.1","title":"F","feed_url":"https://origin.test/self","items":[],"hubs":[{"type":"rssCloud","url":"https://cloud.test/"},{"type":"WebSub","url":"https://hub.test/"}]}`, "", "https://hub.test/", "https://origin.test/self"},
		{"https first", feedURL, fmt.Sprintf(document, strings.ReplaceAll(links, "https://hub", "http://hub")), "", "https://hub.test/", "https://origin.test/self"},
		{"as written", feedURL, fmt.Sprintf(document, strings.ReplaceAll(links, "origin.test/self", "ORIGIN.test:443/%7eself")), "", "https://hub.test/", "https://ORIGIN.test:443/%7eself"},
		{"YouTube", "https://www.youtube.com/feeds/videos.xml?channel_id=UC0123456789abcdefghijkl", origintest.Feed(1, ""), "", "https://pubsubhubbub.appspot.com/subscribe", "https://www.youtube.com/xml/feeds/videos.xml?channel_id=UC0123456789abcdefghijkl"},
		{"another host", "https://m.youtube.com/feeds/videos.xml?channel_id=UC0123456789abcdefghijkl", origintest.Feed(1, ""), "", "", ""},
		{"without self", feedURL, fmt.Sprintf(document, `<link rel="hub" href="https://hub.test/"/>`), "", "", ""},
		{"credentials", "https://me:pw@origin.test/feed.xml", fmt.Sprintf(document, links), "", "", ""},
		{"secret", feedURL + "?token=1", fmt.Sprintf(document, links), "", "", ""},
		{"secret of the topic", feedURL, fmt.Sprintf(document, strings.ReplaceAll(links, "/self", "/self?key=1")), "", "", ""},
		{"credentials of the hub", feedURL, fmt.Sprintf(document, strings.ReplaceAll(links, "//hub", "//me:pw@hub")), "", "", ""},
		{"address of the hub as a number", feedURL, fmt.Sprintf(document, strings.ReplaceAll(links, "//hub.test/", "//2130706433/")), "", "", ""},
		{"another hub", feedURL, fmt.Sprintf(document, strings.ReplaceAll(links, "https://hub.test/", "ftp://hub.test/")), "", "", ""},
	} {
		l := newLife(t)
		l.own = ParseKey(tt.url)
		a := given(tt.body, "Link", tt.link)
		a.URL = tt.url
		l.poll(a)
		if got := l.state.HubOf(l.own, false); got != (HubTopic{tt.hub, tt.topic}) {
			t.Errorf("%s: %+v, want %q, %q", tt.name, got, tt.hub, tt.topic)
		}
	}
}

// A hub is asked after a poll: to renew a lease at its half, more and more seldom if it does not confirm, and not
// while it has asked for a pause. If another one is wanted, or none, the old subscription ends.
func TestAsk(t *testing.T) {
	hub, other := HubTopic{"https://hub.test/", feedURL}, HubTopic{"https://other.test/", feedURL}
	const lease = 10 * 24 * time.Hour
	confirmed := func(at time.Time) HubState { return HubState{Answered: at, Lease: at.Add(lease)} }
	silence := func(time.Time) HubState { return HubState{} }
	for name, tt := range map[string]struct {
		want   func(hour int) HubTopic
		answer func(at time.Time) HubState
		days   int
		asked  string // mode, host and hour of each request
	}{
		"confirmed": {func(int) HubTopic { return hub }, confirmed, 11, "subscribe hub 0, subscribe hub 120, subscribe hub 240"},
		"silence":   {func(int) HubTopic { return hub }, silence, 3, "subscribe hub 0, subscribe hub 1, subscribe hub 3, subscribe hub 7, subscribe hub 15, subscribe hub 31, subscribe hub 55"},
		"a pause": {func(int) HubTopic { return hub }, func(at time.Time) HubState {
			return HubState{Refused: at, Wait: at.Add(25 * time.Hour)}
		}, 3, "subscribe hub 0, subscribe hub 25, subscribe hub 50"},
		"renewal fails": {func(int) HubTopic { return hub }, func(at time.Time) HubState {
			return either(at.Equal(epoch), confirmed(at), HubState{Answered: epoch, Lease: epoch.Add(lease), Refused: at})
		}, 7, "subscribe hub 0, subscribe hub 120, subscribe hub 121, subscribe hub 123, subscribe hub 127, subscribe hub 135, subscribe hub 151"},
		"another hub":    {func(hour int) HubTopic { return either(hour < 5, hub, other) }, confirmed, 2, "subscribe hub 0, subscribe other 5, unsubscribe hub 5"},
		"no hub":         {func(hour int) HubTopic { return either(hour < 5, hub, HubTopic{}) }, confirmed, 20, "subscribe hub 0, unsubscribe hub 5"},
		"no hub a day":   {func(hour int) HubTopic { return either(hour < 5 || hour > 28, hub, HubTopic{}) }, confirmed, 2, "subscribe hub 0, unsubscribe hub 5, subscribe hub 29"},
		"nothing at all": {func(int) HubTopic { return HubTopic{} }, confirmed, 2, ""},
	} {
		var p Subscription
		var asked []string
		for hour := range tt.days * 24 {
			now := epoch.Add(time.Duration(hour) * time.Hour)
			ended, ask := p.Ended, false
			if p, ask = p.Ask(tt.want(hour), "https://gateway.test", now); !ask {
				continue
			}
			for _, r := range []HubRequest{p.HubRequest, p.Ended} {
				if r.Mode != "" && r != ended {
					asked = append(asked, fmt.Sprint(r.Mode, " ", strings.TrimSuffix(r.Hub[len("https://"):], ".test/"), " ", hour))
				}
			}
			p.State = tt.answer(now)
		}
		if got := strings.Join(asked, ", "); got != tt.asked {
			t.Errorf("%s: asked are %s, want %s", name, got, tt.asked)
		}
	}
}
