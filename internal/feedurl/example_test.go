// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedurl_test

import (
	"fmt"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// Spellings that send the same request are one feed. What may matter to the site stays as it is.
func ExampleParse() {
	for _, raw := range []string{"feed:https://EXAMPLE.com:443", "https://example.com/", "https://example.com/a%2fb?x=1&a=2"} {
		u, err := feedurl.Parse(raw)
		fmt.Println(u, err)
	}
	_, err := feedurl.Parse("ftp://example.com/")
	fmt.Println(err)
	// Output:
	// https://example.com/ <nil>
	// https://example.com/ <nil>
	// https://example.com/a%2fb?x=1&a=2 <nil>
	// not a feed URL: it must begin with http:// or https://
}

// Logs and pages show a URL without what may be a secret.
func ExampleRedact() {
	fmt.Println(feedurl.Redact("https://ann:s3cret@example.com/feed?format=rss&token=c2VjcmV0"))
	fmt.Printf("%v\n", feedurl.Redacted("https://ann:s3cret@example.com/feed"))
	// Output:
	// https://***@example.com/feed?format=rss&token=***
	// https://***@example.com/feed
}

// A site is paced and paused as one: a registrable domain, with all its hosts.
func ExampleURL_Site() {
	for _, raw := range []string{"https://blog.example.com/feed", "https://ann.github.io/feed", "http://192.168.1.4:8080/feed"} {
		fmt.Println(feedurl.MustParse(raw).Site())
	}
	// Output:
	// example.com
	// ann.github.io
	// 192.168.1.4:8080
}

// A gateway has an address for each feed, and finds the feed in it again.
func ExampleGateway() {
	g, err := feedurl.ParseGateway("https://feeds.example.org/", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	address, _ := g.Address("https://example.com/feed.xml")
	fmt.Println(address)
	fmt.Println(g.Feed(address))
	// Output:
	// https://feeds.example.org/https://example.com/feed.xml
	// https://example.com/feed.xml true
}
