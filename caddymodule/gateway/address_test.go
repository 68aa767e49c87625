// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

func TestFeedGivesTheAddressAsAsked(t *testing.T) {
	const document = `<rss version="2.0" xmlns:a="http://www.w3.org/2005/Atom"><channel><title>T</title>` +
		`<a:link rel="self" href="https://one.example/feed"/><a:link rel="hub" href="https://hub.example/"/>` +
		`<item><title>One</title><link>/posts/1</link></item></channel></rss>`
	for _, tt := range []struct {
		lines, target, want string
	}{
		{"", "/one.xml?_=1", `href="http://example.com/one.xml"`},
		{"", "/https://one.example/feed", `href="http://example.com/https://one.example/feed"`},
		{"", "/https://one.example/feed?a=1&b=%20", `href="http://example.com/https://one.example/feed?a=1&amp;b=%20"`},
		{"rewrite off", "/one.xml", `<link>/posts/1</link>`},
	} {
		synctest.Test(t, func(t *testing.T) {
			g, a, o := gatewayOf(t, "feed /one.xml https://one.example/feed\n"+tt.lines)
			o.Document = document
			start(t, a)
			body := ask(t, g, "GET", tt.target, stage.Home).Body.String()
			if !strings.Contains(body, tt.want) {
				t.Errorf("%s %s: %s is not in %s", tt.lines, tt.target, tt.want, body)
			}
			if off := tt.lines != ""; strings.Contains(body, "hub.example") != off {
				t.Errorf("%s %s: %s", tt.lines, tt.target, body)
			}
		})
	}
}
