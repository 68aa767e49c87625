// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"
	"testing/synctest"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/origintest"
)

// Elements that name the feed's own address or a hub are removed, at every address of the feed.
func TestFeedNamesNoOtherAddress(t *testing.T) {
	const document = `<rss version="2.0" xmlns:a="http://www.w3.org/2005/Atom"><channel><title>T</title>` +
		`<a:link rel="self" href="https://one.example/feed"/><a:link rel="hub" href="https://hub.example/"/>` +
		`<item><title>One</title><link>/posts/1</link></item></channel></rss>`
	const want = `<rss version="2.0" xmlns:a="http://www.w3.org/2005/Atom"><channel><title>T</title>` +
		`<item><title>One</title><link>https://one.example/posts/1</link></item></channel></rss>`
	for _, target := range []string{"/one.xml?_=1", "/https://one.example/feed", "/https://one.example/feed?a=1&b=%20"} {
		synctest.Test(t, func(t *testing.T) {
			g, a, o := gatewayOf(t, "feed /one.xml https://one.example/feed")
			o.Answer = origintest.InOrder(origintest.OK(document))
			start(t, a)
			if body := ask(t, g, "GET", target, stage.Home).Body.String(); body != want {
				t.Errorf("%s: got %s", target, body)
			}
		})
	}
}
