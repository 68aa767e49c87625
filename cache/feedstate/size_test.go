// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/policy"
)

// TestNewFeedsAreSmall has an origin say as much as it can. What is remembered of a feed that is not established takes 8 KiB
// at most, and its version is served all the same.
func TestNewFeedsAreSmall(t *testing.T) {
	long := strings.Repeat("a&b", 630)
	target := "https://origin.test/" + strings.Repeat("a", 4000)
	var hubs, fields strings.Builder
	for i := range 5 {
		fmt.Fprintf(&hubs, `<atom:link rel="hub" href="https://h%d.test/%s"/>`, i, strings.ReplaceAll(long, "&", "&amp;"))
		fmt.Fprintf(&fields, `, <https://h%d.test/%s>; rel="hub"`, i, long)
	}
	document := `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel>
		<title>` + strings.Repeat("&lt;", 1000) + `</title><ttl>` + strings.Repeat("x", 3000) + `</ttl>%s
		<item><title>x</title><guid>1</guid></item></channel></rss>`
	self := `<atom:link rel="self" href="https://origin.test/` + strings.Repeat("s", 1900) + `"/>`
	for name, a := range map[string]policy.Answer{
		"hubs and self in the document": {Body: []byte(fmt.Sprintf(document, hubs.String()+self))},
		"hubs and self in fields": {Body: []byte(fmt.Sprintf(document, "")), Header: http.Header{
			"Link": {`<https://origin.test/` + long + `>; rel="self"` + fields.String()},
		}},
		"another address in the document": {Body: []byte(fmt.Sprintf(document, `<itunes:new-feed-url>https://new.test/`+strings.Repeat("n", 2000)+`</itunes:new-feed-url>`))},
		"validators": {Body: []byte(fmt.Sprintf(document, "")), Header: http.Header{
			"Etag": {`"` + strings.Repeat("\xff", 1900) + `"`}, "Cache-Control": {`max-age=60, x="` + long + `"`},
		}},
		"a redirect": {Body: []byte(fmt.Sprintf(document, hubs.String()+self)), URL: target, Moves: []policy.Move{{Status: http.StatusMovedPermanently, To: target}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			if a.Status = http.StatusOK; a.Header == nil {
				a.Header = http.Header{}
			}
			a.Header.Set("Content-Type", "application/rss+xml")
			for range 3 {
				l.poll(a)
				if size := len(l.record.PollState) + len(l.record.FeedState); size > 8<<10 {
					t.Errorf("%d and %d bytes: %s, %s", len(l.record.PollState), len(l.record.FeedState), l.record.PollState, l.record.FeedState)
				}
				if l.state.Feed.Version.Tag == "" || l.state.Version == 0 {
					t.Errorf("the version is lost: %+v", l.state.Last)
				}
				l.poll(policy.Answer{Status: http.StatusInternalServerError, Failure: policy.FailureStatus, Err: fmt.Errorf("it said %s", long)})
			}
		})
	}
}
