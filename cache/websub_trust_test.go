// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// publisher is an origin that allows a poll an hour, and publishes entries.
type publisher struct {
	entries int
	newest  time.Time
}

func (p *publisher) publish() { p.entries, p.newest = p.entries+1, time.Now() }

func (p *publisher) answer(ask policy.Ask) policy.Answer {
	tag := fmt.Sprintf(`"%d"`, p.entries)
	if ask.Validators.ETag == tag {
		return policy.Answer{Status: http.StatusNotModified, Header: http.Header{"Cache-Control": {"max-age=3600"}, "Etag": {tag}}}
	}
	return ok(atom(p.entries, p.newest), "Cache-Control", "max-age=3600", "ETag", tag)
}

// next returns when the feed is polled next, and why.
func (h *hubbed) next() (time.Duration, string) {
	h.t.Helper()
	f, err := h.nodes[0].Status(h.t.Context(), feedURL)
	if err != nil {
		h.t.Fatal(err)
	}
	return time.Until(f.NextPoll).Round(time.Minute), f.Winner
}

func (h *hubbed) wantNext(when string, in time.Duration, winner string) {
	h.t.Helper()
	if d, why := h.next(); d != in || why != winner {
		h.t.Fatalf("%s: the next poll is in %v, %s; want %v, %s", when, d, why, in, winner)
	}
}

// A push that brings a change proves the hub: then the feed is polled a day after its last poll. Two
// changes without a push end that for a week.
func TestTrustInHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &publisher{entries: 1, newest: epoch}
		h := withHub(t, 1, p.answer)
		h.get()
		h.wantNext("at first", time.Hour, policy.HintMaxAge)
		h.Push(h.Last(), "false alarm")
		time.Sleep(5 * time.Second)
		h.wantNext("after a push without a change", time.Hour, policy.HintMaxAge)

		time.Sleep(30 * time.Minute)
		p.publish()
		h.Push(h.Last(), "")
		time.Sleep(5 * time.Second)
		h.wantNext("after a push with a change", 24*time.Hour, policy.HintPush)
		if !h.push().Trusted {
			t.Errorf("%+v", h.push())
		}
		w := h.nodes[0].get(feedURL)
		if got := w.Header().Get("Cache-Control"); got != "max-age=3600" {
			t.Errorf("readers get %s: they would not see what is pushed", got)
		}
		if w.Body.Len() == 0 || !strings.Contains(w.Body.String(), "Entry 2") {
			t.Errorf("readers get %s", w.Body)
		}
		time.Sleep(3 * time.Hour)
		for range 10 {
			h.Deliver(h.Last(), "", "sha256=00")
			time.Sleep(time.Minute)
		}
		h.wantNext("pushes that do not count do not move it", 24*time.Hour-3*time.Hour-10*time.Minute, policy.HintPush)
		p.publish() // and the hub does not say so
		time.Sleep(24 * time.Hour)
		h.get()
		if got := h.push(); got.Misses != 1 || !got.Trusted {
			t.Errorf("after a miss: %+v", got)
		}
		h.wantNext("after a miss", 24*time.Hour, policy.HintPush)
		p.publish()
		time.Sleep(24 * time.Hour)
		h.get()
		if got := h.push(); got.Misses != 2 || got.Trusted || !strings.Contains(got.Sentence(time.Now()), "did not announce 2 changes") {
			t.Errorf("after two misses: %+v", got)
		}
		h.wantNext("after two misses", time.Hour, policy.HintMaxAge)
		h.read(7*24*time.Hour - 2*time.Hour)
		if _, why := h.next(); why != policy.HintMaxAge {
			t.Errorf("for a week: the next poll is set by %s", why)
		}
		h.read(3 * time.Hour)
		if _, why := h.next(); why != policy.HintPush || !h.push().Trusted {
			t.Errorf("then: the next poll is set by %s, %+v", why, h.push())
		}
		h.want("all the time", status.PushActive, 2) // renewed on day 5

		h.apply(func(s *cache.Settings) { s.WebSub = "" })
		time.Sleep(25 * time.Hour)
		h.get()
		h.wantNext("without the line", time.Hour, policy.HintMaxAge)
	})
}

// A regular poll that comes before the push, or a change without a new entry, is no miss.
func TestNoMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &publisher{entries: 1, newest: epoch}
		h := withHub(t, 1, p.answer)
		h.get()
		for range 5 {
			time.Sleep(50 * time.Minute)
			p.publish()
			time.Sleep(10 * time.Minute)
			h.get()
			p.entries++ // an older one
			time.Sleep(time.Hour)
			h.get()
		}
		if got := h.push(); got.Misses != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// A lease that ends because the hub does not renew it leaves polls as they were without it.
func TestLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &publisher{entries: 1, newest: epoch}
		h := withHub(t, 1, p.answer)
		h.get()
		first := h.Last()
		p.publish()
		h.Push(first, "")
		time.Sleep(5 * time.Second)
		h.wantNext("with a lease", 24*time.Hour, policy.HintPush)
		h.Callbacks = http.NotFoundHandler() // renewals are not confirmed
		h.read(10*24*time.Hour + time.Minute)
		if d, why := h.next(); d > time.Hour || why != policy.HintMaxAge {
			t.Errorf("when the lease has ended, the next poll is in %v, %s", d, why)
		}
	})
}
