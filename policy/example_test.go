// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// The longest hint of a feed decides: here its ttl of two hours, and not the shorter
// max-age of the HTTP response.
func ExampleDecide() {
	now := time.Date(2026, time.March, 2, 10, 0, 0, 0, time.UTC)
	answer := policy.Answer{
		Asked: now, At: now, URL: "https://example.org/feed.xml", Status: http.StatusOK,
		Header: http.Header{"Cache-Control": {"max-age=3600"}, "Etag": {`"1"`}},
	}
	ttl := int64(120)
	document := &policy.Document{Hints: policy.Hints{TTL: &ttl}}

	history := policy.History{}.Update(answer, document, false)
	decision := policy.Decide(policy.DefaultRules(), history, answer, 0)
	fmt.Println(decision.Winner, decision.Interval)
	for _, term := range decision.Considered {
		fmt.Println(" ", term.Hint, term.Seconds, term.Used)
	}
	// Output:
	// ttl 2h0m0s
	//   max-age 3600 false
	//   ttl 7200 true
	//   floor 3600 false
	//   cap 86400 false
	//   jitter 0 false
}
