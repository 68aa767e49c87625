// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"
)

// neighbours are feeds that share a host or a registrable domain.
func neighbours() []*resource {
	var all []*resource
	for i := range 5 {
		all = append(all, &resource{url: fmt.Sprintf("http://many.test/%d.xml", i)})
	}
	all[2].instead = answering(429, 4*time.Hour, 20*time.Hour, "Retry-After", "28800")
	for i, name := range []string{"a", "b", "c"} {
		r := &resource{url: "http://" + name + ".siblings.test/feed"}
		if i < 2 {
			r.instead = answering(429, 5*time.Hour, 3*day, "Retry-After", "10800")
		}
		all = append(all, r)
	}
	return all
}

// movedFeeds are redirected, and what they are redirected to.
func movedFeeds() []*resource {
	to := func(status int, location string, header ...string) func(*call) (reply, bool) {
		a := reply{status: status}
		a.set("Location", location)
		for i := 0; i < len(header); i += 2 {
			a.set(header[i], header[i+1])
		}
		return func(*call) (reply, bool) { return a, true }
	}
	during := func(instead func(*call) (reply, bool), from, until time.Duration) func(*call) (reply, bool) {
		return func(c *call) (reply, bool) {
			a, _ := instead(c)
			return a, from <= c.age && c.age < until
		}
	}
	target := func(url string) *resource { return &resource{url: url, moves: true, quiet: true} }
	return []*resource{
		{url: "http://found.test/feed", moves: true, instead: to(302, "/elsewhere")},
		target("http://found.test/elsewhere"),
		{url: "http://moved.test/feed", moves: true, instead: to(301, "http://moved-here.test/feed?x=1&y")},
		target("http://moved-here.test/feed?x=1&y"),
		{url: "http://permanent.test/feed", moves: true, instead: to(308, "//permanent-here.test/a%2Fb")},
		target("http://permanent-here.test/a%2Fb"),
		// Three URLs of one feed.
		{url: "http://www.one.test/feed", moves: true, instead: to(301, "http://one.test/feed.xml")},
		{url: "http://one.test/rss", moves: true, instead: to(301, "http://one.test/feed.xml")},
		{url: "http://one.test/feed.xml", moves: true},
		// A permanent redirect that lasts five days.
		{url: "http://fiveday.test/feed", moves: true, instead: during(to(301, "http://fiveday-there.test/feed"), 2*day, 7*day)},
		target("http://fiveday-there.test/feed"),
		// Redirects to a page, or in circles, for some days.
		{url: "http://portal.test/feed", moves: true, instead: during(to(301, "http://portal-login.test/login"), 3*day, 5*day)},
		{url: "http://portal-login.test/login", moves: true, quiet: true, instead: func(*call) (reply, bool) {
			a := reply{status: 200, body: []byte("<!DOCTYPE html><html><body>Welcome</body></html>")}
			a.set("Content-Type", "text/html")
			return a, true
		}},
		{url: "http://circle.test/feed", moves: true, instead: during(to(301, "http://circle.test/feed"), 3*day, 5*day)},
		// A redirect that asks for a pause.
		{url: "http://patient.test/feed", moves: true, instead: func(c *call) (reply, bool) {
			a, ok := to(302, "http://patient-there.test/feed", "Retry-After", "10800")(c)
			a.retryAfter, a.pause = 3*time.Hour, 3*time.Hour
			return a, ok
		}},
		target("http://patient-there.test/feed"),
		// The same, to a feed that has readers of its own.
		{url: "http://delegating.test/feed", moves: true, instead: func(c *call) (reply, bool) {
			a, ok := to(308, "http://plain.test/feed.xml", "Retry-After", "18000")(c)
			a.retryAfter, a.pause = 5*time.Hour, 5*time.Hour
			return a, ok
		}},
	}
}
