// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

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
	all[2].spell = answering(429, 4*time.Hour, 20*time.Hour, "Retry-After", "28800")
	for i, name := range []string{"a", "b", "c"} {
		r := &resource{url: "http://" + name + ".siblings.test/feed"}
		if i < 2 {
			r.spell = answering(429, 5*time.Hour, 3*day, "Retry-After", "10800")
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
	during := func(spell func(*call) (reply, bool), from, until time.Duration) func(*call) (reply, bool) {
		return func(c *call) (reply, bool) {
			a, _ := spell(c)
			return a, from <= c.age && c.age < until
		}
	}
	target := func(url string) *resource { return &resource{url: url, moves: true, quiet: true} }
	return []*resource{
		{url: "http://found.test/feed", moves: true, spell: to(302, "/elsewhere")},
		target("http://found.test/elsewhere"),
		{url: "http://moved.test/feed", moves: true, spell: to(301, "http://moved-here.test/feed?x=1&y")},
		target("http://moved-here.test/feed?x=1&y"),
		{url: "http://permanent.test/feed", moves: true, spell: to(308, "//permanent-here.test/a%2Fb")},
		target("http://permanent-here.test/a%2Fb"),
		// Three feeds that are one.
		{url: "http://www.one.test/feed", moves: true, spell: to(301, "http://one.test/feed.xml")},
		{url: "http://one.test/rss", moves: true, spell: to(302, "http://one.test/feed.xml")},
		{url: "http://one.test/feed.xml", moves: true},
		// A permanent redirect for five days is not for ever.
		{url: "http://fiveday.test/feed", moves: true, spell: during(to(301, "http://fiveday-there.test/feed"), 2*day, 7*day)},
		target("http://fiveday-there.test/feed"),
		// For some days everything leads to a page or in circles.
		{url: "http://portal.test/feed", moves: true, spell: during(to(301, "http://portal-login.test/login"), 3*day, 5*day)},
		{url: "http://portal-login.test/login", moves: true, quiet: true, spell: func(*call) (reply, bool) {
			a := reply{status: 200, body: []byte("<!DOCTYPE html><html><body>Welcome</body></html>")}
			a.set("Content-Type", "text/html")
			return a, true
		}},
		{url: "http://circle.test/feed", moves: true, spell: during(to(301, "http://circle.test/feed"), 3*day, 5*day)},
		// The redirect itself asks for a pause.
		{url: "http://patient.test/feed", moves: true, spell: func(c *call) (reply, bool) {
			a, ok := to(302, "http://patient-there.test/feed", "Retry-After", "10800")(c)
			a.firm, a.pause = 3*time.Hour, 3*time.Hour
			return a, ok
		}},
		target("http://patient-there.test/feed"),
		// The same, to a feed that is subscribed to by itself.
		{url: "http://delegating.test/feed", moves: true, spell: func(c *call) (reply, bool) {
			a, ok := to(307, "http://plain.test/feed.xml", "Retry-After", "18000")(c)
			a.firm, a.pause = 5*time.Hour, 5*time.Hour
			return a, ok
		}},
	}
}
