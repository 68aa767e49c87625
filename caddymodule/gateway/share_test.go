// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// A network that asks for many feeds uses up its own share of new ones, and nobody
// else's. What is known is served to it as to everybody.
func TestStrangersUseUpTheirOwnShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a, _ := gatewayOf(t, "feed /one.xml https://one.example/feed\nclients any\ntoken alice s3cret-of-alice-0001")
		start(t, a)
		for i := range strangers.burst {
			if w := ask(t, g, "GET", fmt.Sprintf("/https://site%d.example/feed", i), "203.0.113.5"); w.Code == http.StatusTooManyRequests {
				t.Fatalf("feed %d: %d %s", i, w.Code, w.Body)
			}
		}
		w := ask(t, g, "GET", "/https://more.example/feed", "203.0.113.77")
		after, err := strconv.Atoi(w.Header().Get("Retry-After"))
		if w.Code != http.StatusTooManyRequests || err != nil || after < 1 || after > 10 {
			t.Fatalf("another address of the network: %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
		}
		for name, r := range map[string][2]string{
			"a known feed":     {"/https://site0.example/feed", "203.0.113.5"},
			"a configured one": {"/one.xml", "203.0.113.5"},
			"the same by URL":  {"/https://one.example/feed", "203.0.113.5"},
			"another network":  {"/https://two.example/feed", "198.51.100.1"},
			"IPv6":             {"/https://three.example/feed", "2001:db8::1"},
			"a token":          {"/~s3cret-of-alice-0001/https://four.example/feed", "203.0.113.5"},
			"at home":          {"/https://five.example/feed", stage.Home},
		} {
			if w := ask(t, g, "GET", r[0], r[1]); w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		}
		time.Sleep(time.Duration(after) * time.Second)
		if w := ask(t, g, "GET", "/https://more.example/feed", "203.0.113.5"); w.Code != http.StatusOK {
			t.Errorf("after Retry-After: %d %s", w.Code, w.Body)
		}
		if w := ask(t, g, "GET", "/https://again.example/feed", "203.0.113.5"); w.Code != http.StatusTooManyRequests {
			t.Errorf("one more: %d", w.Code)
		}
	})
}

func TestShares(t *testing.T) {
	s, now := newShares().(*shares), time.Unix(1e9, 0)
	of := share{2, time.Minute}
	for i, want := range []time.Duration{0, 0, time.Minute, time.Minute} {
		if wait := s.take("a", of, now); wait != want {
			t.Errorf("%d: wait %v, want %v", i, wait, want)
		}
	}
	if wait := s.take("a", of, now.Add(time.Minute)); wait != 0 {
		t.Errorf("after a minute: wait %v", wait)
	}
	for i := range 2 * maxShares {
		s.take(strconv.Itoa(i), of, now)
	}
	if len(s.used) > maxShares+1 {
		t.Errorf("%d shares are kept", len(s.used))
	}
	if wait := s.take("one too many", of, now); wait == 0 {
		t.Error("those that are not known do not share")
	}
	if wait := s.take("later", of, now.Add(time.Hour)); wait != 0 || len(s.used) > 1 {
		t.Errorf("an hour later: wait %v, %d are kept", wait, len(s.used))
	}
}
