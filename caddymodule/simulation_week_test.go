// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var week = flag.Bool("week", false, "measure a simulated week of 100 feeds")

// It measures, and holds nothing against anything but what every simulation does.
func TestWeekOfHundredFeeds(t *testing.T) {
	if !*week {
		t.Skip("only with -week: it measures")
	}
	var resources []*resource
	for i := range 100 {
		resources = append(resources, &resource{url: fmt.Sprintf("http://host%02d.test/feed.xml", i)})
	}
	began := time.Now()
	var polls int
	simulate(t, 1, resources, func(sim *simulation) {
		sim.always = true
		sim.load()
		sim.live(5, 7*day)
		polls = len(sim.web.visits)
	})
	t.Logf("a week of %d feeds, %d polls and 5 readers took %v", len(resources), polls, time.Since(began).Round(time.Millisecond))
}
