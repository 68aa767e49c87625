// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/upstream"
)

// A site is reported whose feeds take more than an hour at their spacing, and one that refuses polls of a day while it
// answers others.
func TestSlowSites(t *testing.T) {
	for name, c := range map[string]struct {
		spacing  time.Duration
		refusals bool
		want     string
	}{
		"long round":    {spacing: 13 * time.Minute, want: "host slow.test { spacing 12m0s }"},
		"short round":   {spacing: 11 * time.Minute},
		"refuses twice": {spacing: time.Minute, refusals: true, want: "host slow.test { spacing 2m0s }"},
	} {
		bubble(t, name, func(t *testing.T) {
			g := newWebGateway(t, func(url string) response {
				if n := strings.TrimPrefix(url, "https://www.slow.test/"); c.refusals && (n == "1" && time.Since(epoch) > 9*time.Hour || n == "2" && time.Since(epoch) > 12*time.Hour) {
					return origintest.Status(429, "Retry-After", "600")
				}
				return given(rss(2, ""), "Cache-Control", "max-age=10800")
			})
			g.client.Apply(upstream.Settings{Hosts: []upstream.HostRule{{Pattern: "*", Spacing: c.spacing}}})
			g.open()
			for range 6 {
				for n := range 5 {
					g.get(fmt.Sprintf("https://www.slow.test/%d", n))
					time.Sleep(max(c.spacing, 36*time.Minute))
				}
			}
			synctest.Wait()
			slow := g.Summary(t.Context()).Slow
			switch {
			case c.want == "" && len(slow) > 0:
				t.Errorf("reported: %+v", slow)
			case c.want != "" && (len(slow) != 1 || !strings.Contains(slow[0].Sentence(), c.want)):
				t.Errorf("reported: %+v, want one with %q", slow, c.want)
			}
		})
	}
}
