// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/feedpollard/pollard/policy/document"
)

// What a feed says about when to poll it, and how often its entries come.
func ExampleRead() {
	const feed = `<rss version="2.0"><channel>
<title>News</title>
<ttl>120</ttl>
<skipHours><hour>0</hour><hour>1</hour></skipHours>
<item><guid>3</guid><title>Three</title><pubDate>Wed, 04 Mar 2026 09:00:00 GMT</pubDate></item>
<item><guid>2</guid><title>Two</title><pubDate>Tue, 03 Mar 2026 09:00:00 GMT</pubDate></item>
<item><guid>1</guid><title>One</title><pubDate>Mon, 02 Mar 2026 09:00:00 GMT</pubDate></item>
</channel></rss>`
	now := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	d, err := document.Read([]byte(feed), "application/rss+xml", now)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Format, d.Version, d.Title)
	fmt.Println("ttl in minutes:", *d.Hints.TTL)
	fmt.Println("hours in which not to poll:", d.Hints.SkipHours)
	fmt.Println(d.Rhythm.Entries, "entries, the usual time between two is", d.Rhythm.Median)

	_, err = document.Read([]byte("<html><body>Log in</body></html>"), "text/html", now)
	fmt.Println("a web page is no feed:", errors.Is(err, document.ErrNotFeed))
	// Output:
	// rss 2.0 News
	// ttl in minutes: 120
	// hours in which not to poll: [0 1]
	// 3 entries, the usual time between two is 24h0m0s
	// a web page is no feed: true
}
