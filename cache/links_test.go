// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/feedpollard/pollard/policy"
)

// Readers of a configured feed know the address that the operator chose, not the origin's.
func TestPathOfAConfiguredFeedIsInNoDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "https://origin.test/hunter2/feed.xml"
		g := newGateway(t, func(policy.Ask) policy.Answer {
			return ok(`<rss><channel><link>`+secret+`</link><item><enclosure url="1.mp3"/><description>&lt;img src="/a.png"&gt;&lt;a href="?x"&gt;</description></item></channel></rss>`, "ETag", `"v"`)
		})
		g.settings.Feeds = []string{secret}
		body := g.open().get(secret).Body.String()
		if strings.Contains(body, "hunter2") || !strings.Contains(body, "https://origin.test/1.mp3") || !strings.Contains(body, "https://origin.test/a.png") {
			t.Errorf("readers get %s", body)
		}
	})
}
