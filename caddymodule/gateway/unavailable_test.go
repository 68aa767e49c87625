// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/origintest"
)

// After an import of many feeds of one host, those that wait for their first poll are empty at first.
// Their titles contain no token.
func TestFeedsThatWaitForTheirHostAreEmptyAtFirst(t *testing.T) {
	const secret, feeds = "s3cret-of-alice-0001", 30
	onGateway(t, "token alice "+secret, func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		answers := make([]*httptest.ResponseRecorder, feeds)
		target := func(i int) string { return fmt.Sprintf("/~%s/https://one.example/feed?n=%d", secret, i) }
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = ask(t, g, "GET", target(i), stage.Outside) })
		}
		all.Wait()
		empty := 0
		for i, w := range answers {
			body := w.Body.String()
			if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/rss+xml") {
				t.Errorf("feed %d: %d %s", i, w.Code, body)
			}
			if strings.Contains(body, "<item>") {
				continue
			}
			empty++
			own := fmt.Sprintf("https://one.example/feed?n=%d", i)
			if h := w.Header(); h.Get("Cache-Control") != "no-store" || h.Get("Etag") != "" || h.Get("Retry-After") == "" {
				t.Errorf("feed %d: may be kept: %v", i, h)
			}
			if !strings.Contains(body, "<title>"+own+"</title><link>"+own+"</link>") || strings.Contains(body, secret) {
				t.Errorf("feed %d: %s", i, body)
			}
		}
		// All sums of what readers were served agree.
		every := func(string) bool { return true }
		spared := g.engine.Traffic(t.Context(), every, every)
		served := int64(feeds - empty)
		if o := spared.Origins["https://one.example"]; o.Requests != served || spared.Total.Requests != served || o.Served != spared.Total.Served {
			t.Errorf("%d requests were served; counted are %+v, of the origin %+v", served, spared.Total, o)
		}
		if empty == 0 || empty == feeds {
			t.Errorf("%d of %d feeds are empty: this shows nothing", empty, feeds)
		}
		time.Sleep(5 * time.Minute)
		for i := range feeds {
			if w := ask(t, g, "GET", target(i), stage.Outside); w.Code != 200 || !strings.Contains(w.Body.String(), "<item>") {
				t.Errorf("feed %d, five minutes later: %d %s", i, w.Code, w.Body)
			}
		}
	})
}
