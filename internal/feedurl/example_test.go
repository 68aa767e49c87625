// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedurl_test

import (
	"fmt"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// Spellings that send the same request are one feed.
func ExampleParse() {
	for _, spelling := range []string{
		"https://example.org/feed.xml", "HTTPS://Example.ORG:443/feed.xml#top", "https://bücher.example/feed", "https://example.org/a%2Fb?",
	} {
		u, err := feedurl.Parse(spelling)
		fmt.Println(u, err)
	}
	_, err := feedurl.Parse("ftp://example.org/feed.xml")
	fmt.Println(err)
	// Output:
	// https://example.org/feed.xml <nil>
	// https://example.org/feed.xml <nil>
	// https://xn--bcher-kva.example/feed <nil>
	// https://example.org/a%2Fb? <nil>
	// not a feed URL: it must begin with http:// or https://
}

// Logs and pages never show what may be a secret.
func ExampleRedact() {
	fmt.Println(feedurl.Redact("https://bob:hunter2@example.org/feed.xml?key=s3cret"))
	// Output:
	// https://***@example.org/feed.xml?key=***
}
