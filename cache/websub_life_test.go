// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// modes are the requests that a hub got, in a form for tests: "subscribe hub.test +1h0m0s".
func (h *hubbed) modes() (list []string) {
	for _, r := range h.Requests() {
		u, _ := url.Parse(r.URL)
		list = append(list, fmt.Sprintf("%s %s +%v", r.Form.Get("hub.mode"), u.Host, r.Time.Sub(epoch).Round(time.Hour)))
	}
	return list
}

func (h *hubbed) wantModes(want ...string) {
	h.t.Helper()
	if got := h.modes(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		h.t.Fatalf("the hub was asked\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// read asks all nodes for the feed each half hour, in turn.
func (h *hubbed) read(d time.Duration) {
	h.t.Helper()
	for end, n := time.Now().Add(d), 0; time.Now().Before(end); n++ {
		h.nodes[n%len(h.nodes)].get(feedURL)
		time.Sleep(min(30*time.Minute, time.Until(end)))
	}
	synctest.Wait()
}

// A lease is renewed at half of it, by one of the nodes.
func TestLeaseIsRenewedOnce(t *testing.T) {
	slow(t)
	synctest.Test(t, func(t *testing.T) {
		h := withHub(t, 3, func(policy.Ask) policy.Answer { return ok(atom(1, epoch), "Cache-Control", "max-age=3600") })
		h.read(9 * 24 * time.Hour)
		h.wantModes("subscribe hub.test +0s", "subscribe hub.test +120h0m0s")
		first, second := h.Requests()[0].Form, h.Requests()[1].Form
		if first.Get("hub.secret") != second.Get("hub.secret") || first.Get("hub.callback") != second.Get("hub.callback") {
			t.Error("the renewal has another secret or callback: pushes between the two would be lost")
		}
	})
}

// A request that is not confirmed is described, and repeated.
func TestHubDoesNotConfirm(t *testing.T) {
	for name, tt := range map[string]struct {
		answer origintest.Answer
		want   status.PushState // an hour later
		again  string
	}{
		"202 and silence": {origintest.Status(202), status.PushUnreachable, "1h"},
		"500":             {origintest.Status(500), status.PushRefused, "1h"},
		"no answer":       {origintest.Fail(errors.New("no route")), status.PushRefused, "1h"},
		"Retry-After":     {origintest.Status(503, "Retry-After", "7200"), status.PushRefused, "2h"},
		"302":             {origintest.Redirect(302, "https://other.test/"), status.PushRefused, "1h"},
	} {
		bubble(t, name, func(t *testing.T) {
			h := withHub(t, 2, func(policy.Ask) policy.Answer { return ok(atom(1, epoch), "Cache-Control", "max-age=3600") })
			h.Answer = func(origintest.HubRequest) origintest.Answer { return tt.answer }
			h.read(59 * time.Minute)
			time.Sleep(2 * time.Minute)
			if p := h.push(); p.State != tt.want || tt.want == status.PushUnreachable && !strings.Contains(p.Sentence(time.Now()), callbacks+"/-/websub/...") {
				t.Errorf("an hour later: %+v", p)
			}
			h.read(90 * time.Minute)
			h.wantModes("subscribe hub.test +0s", "subscribe hub.test +"+tt.again+"0m0s")
			if n := h.origin.polls(); n != 3 {
				t.Errorf("%d polls, want one an hour", n)
			}
		})
	}
}

// A node that dies between the commit and the request costs an hour. Two others do not ask before.
func TestNodeDiesBeforeItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := withHub(t, 3, func(policy.Ask) policy.Answer { return ok(atom(1, epoch), "Cache-Control", "max-age=3600") })
		dead := h.settings
		dead.Post = func(ctx context.Context, _ feedurl.URL, _ url.Values, _ bool) (int, time.Time, error) {
			<-ctx.Done()
			return 0, time.Time{}, ctx.Err()
		}
		h.nodes[0].Apply(dead)
		h.nodes[0].get(feedURL)
		synctest.Wait()
		if err := h.nodes[0].Cache.Close(); err != nil {
			t.Fatal(err)
		}
		h.nodes = h.nodes[1:]
		h.read(59 * time.Minute)
		h.wantModes()
		h.read(90 * time.Minute)
		h.wantModes("subscribe hub.test +1h0m0s")
		h.want("after that", status.PushActive, 1)
	})
}

// What a hub says while another node polls the feed, and commits what it knew before, is not lost.
func TestHubConfirmsDuringPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := false
		h := withHub(t, 2, func(policy.Ask) policy.Answer {
			if slow {
				time.Sleep(20 * time.Second)
			}
			return ok(atom(1, epoch), "Cache-Control", "max-age=1800")
		})
		h.Answer = func(origintest.HubRequest) origintest.Answer { return origintest.Status(202) }
		rules := policy.DefaultRules()
		rules.MinInterval, rules.Jitter = 30*time.Minute, 0
		h.apply(func(s *cache.Settings) { s.Rules = func(feedstate.Key) policy.Rules { return rules } })
		h.get()
		h.want("at first", status.PushAsked, 1)
		slow = true
		time.Sleep(40 * time.Minute)
		go h.nodes[0].get(feedURL)
		time.Sleep(10 * time.Second)
		both := h.nodes
		h.nodes = both[1:]
		if w := h.Confirm(h.Last()); w.Code != 200 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		h.nodes = both
		time.Sleep(2 * time.Minute)
		if n := h.origin.polls(); n != 2 {
			t.Errorf("%d polls", n)
		}
		h.want("after the poll", status.PushActive, 1)
		h.read(4 * time.Hour)
		h.want("later", status.PushActive, 1)
	})
}

func TestDeniedSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := withHub(t, 2, func(policy.Ask) policy.Answer { return ok(atom(1, epoch), "Cache-Control", "max-age=3600") })
		h.get()
		denial := url.Values{"hub.mode": {"denied"}, "hub.topic": {feedURL + "x"}, "hub.reason": {"not <b>you</b>"}}
		if w := h.Ask(h.Last().Form.Get("hub.callback"), denial); w.Code != 404 {
			t.Errorf("%d for another topic", w.Code)
		}
		h.want("before", status.PushActive, 1)
		denial.Set("hub.topic", feedURL)
		if w := h.Ask(h.Last().Form.Get("hub.callback"), denial); w.Code != 200 || w.Body.Len() > 0 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		h.get()
		h.want("after", status.PushRefused, 1)
		if w := h.Push(h.Last(), ""); w.Code != http.StatusGone {
			t.Errorf("a push gets %d", w.Code)
		}
		h.read(7*24*time.Hour - time.Minute)
		h.want("for a week", status.PushRefused, 1)
		h.read(2 * time.Hour)
		h.want("then", status.PushActive, 2)
	})
}

// A hub that is not named any more gets one request to unsubscribe, and so does the hub of a feed that
// is gone or has no readers.
func TestUnsubscribing(t *testing.T) {
	slow(t)
	for _, tt := range []struct {
		name string
		then policy.Answer
		want []string
	}{
		{"no hub", ok(rss(1, ""), "Cache-Control", "max-age=3600"), []string{"unsubscribe hub.test +1h0m0s"}},
		{"another hub", ok(strings.ReplaceAll(atom(1, epoch), "https://hub.test/", "https://new.test/"), "Cache-Control", "max-age=3600"), []string{"subscribe new.test +1h0m0s", "unsubscribe hub.test +1h0m0s"}},
		{"another topic", ok(strings.ReplaceAll(atom(1, epoch), `rel="self" href="`, `rel="self" href="https://new.test/?`), "Cache-Control", "max-age=3600"), []string{"subscribe hub.test +1h0m0s", "unsubscribe hub.test +1h0m0s"}},
		{"gone", failed(410, policy.FailureGone), []string{"unsubscribe hub.test +1h0m0s"}},
		{"failing", failed(503, policy.FailureStatus), nil},
		{"unchanged", unchanged(), nil},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			answer := ok(atom(1, epoch), "Cache-Control", "max-age=3600")
			h := withHub(t, 2, func(policy.Ask) policy.Answer { return answer })
			h.get()
			answer = tt.then
			first := h.Last()
			time.Sleep(time.Hour)
			h.read(time.Minute)
			if last := h.Last(); tt.want != nil && h.Confirm(last).Code != 200 {
				t.Errorf("the question whether %+v was ours is denied", last)
			}
			h.read(3 * 24 * time.Hour)
			h.wantModes(append([]string{"subscribe hub.test +0s"}, tt.want...)...)
			if w := h.Push(first, ""); (w.Code == 202) != (tt.want == nil) {
				t.Errorf("a push gets %d", w.Code)
			}
		})
	}
}

// Pushes do not keep a feed in use that has no readers.
func TestSubscriptionEndsWithoutReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := withHub(t, 1, func(policy.Ask) policy.Answer { return ok(atom(1, epoch), "Cache-Control", "max-age=3600") })
		h.apply(func(s *cache.Settings) { s.IdleAfter = 24 * time.Hour })
		h.get()
		for range 20 {
			time.Sleep(12 * time.Hour)
			h.Push(h.Requests()[0], "")
		}
		time.Sleep(time.Minute)
		h.wantModes("subscribe hub.test +0s", "unsubscribe hub.test +24h0m0s")
	})
}

// A push causes a poll at once, and many cause one more: at several nodes, and whatever dies.
func TestManyPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := withHub(t, 3, func(policy.Ask) policy.Answer {
			return ok(strings.Replace(atom(1, epoch), "<id>urn:feed", "<rights>"+time.Now().String()+"</rights><id>urn:feed", 1), "Cache-Control", "max-age=7200")
		})
		h.get()
		for range 1000 { // in a minute
			h.Push(h.Last(), "")
			time.Sleep(60 * time.Millisecond)
		}
		if err := h.nodes[0].Cache.Close(); err != nil {
			t.Fatal(err)
		}
		h.nodes = append(h.nodes[1:], node(t, h.db, h.origin, h.settings))
		for range 100 {
			h.Push(h.Last(), "")
			time.Sleep(60 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		times := h.origin.times()
		if len(times) != 3 || times[1].Sub(times[0]) > 10*time.Second || times[2].Sub(times[1]) < 5*time.Minute || times[2].Sub(times[1]) > 6*time.Minute {
			t.Errorf("polls at %v", times)
		}
	})
}

// A push does not end what the origin has asked for, nor the back-off after failures.
func TestPushDuringPause(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer policy.Answer
		want   time.Duration // until the next poll
	}{
		{"max-age", ok(atom(1, epoch), "Cache-Control", "max-age=86400"), 10 * time.Minute},
		{"skipHours", ok(strings.Replace(rss(1, ""), "<channel>", `<channel xmlns:atom="http://www.w3.org/2005/Atom"><atom:link rel="hub" href="https://hub.test/"/><atom:link rel="self" href="`+feedURL+`"/><skipHours><hour>10</hour></skipHours>`, 1)), 10 * time.Minute},
		{"Retry-After", ok(atom(1, epoch), "Retry-After", "7200"), 2 * time.Hour},
		{"back-off", failed(404, policy.FailureNotFound), 2*time.Hour + 10*time.Minute},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			answer := tt.answer
			if answer.Status != 200 {
				answer = ok(atom(1, epoch), "Cache-Control", "max-age=3600")
			}
			h := withHub(t, 1, func(policy.Ask) policy.Answer { return answer })
			h.get()
			if answer.Status != tt.answer.Status { // a push finds the failure
				answer = tt.answer
				time.Sleep(time.Until(epoch.Add(9*time.Minute + 58*time.Second)))
				h.Push(h.Last(), "")
				time.Sleep(2 * time.Second)
			}
			time.Sleep(time.Until(epoch.Add(10 * time.Minute)))
			h.Push(h.Last(), "")
			h.read(3 * time.Hour)
			times := h.origin.times()
			if tt.answer.Status != 200 {
				times = times[1:]
			}
			if len(times) < 2 || times[1].Sub(epoch).Round(time.Minute) < tt.want || times[1].Sub(epoch) > tt.want+31*time.Minute {
				t.Errorf("polls at %v, want the next after %v", times, tt.want)
			}
		})
	}
}

// Pushes that wait for the end of a long pause take no memory. After it each causes one poll, at once or with
// the next reader.
func TestPushesWaitInTheRecord(t *testing.T) {
	slow(t)
	synctest.Test(t, func(t *testing.T) {
		const feeds = 600
		h := withHub(t, 1, func(a policy.Ask) policy.Answer {
			return ok(strings.ReplaceAll(atom(1, epoch), feedURL, a.URL.String()), "Retry-After", "7200", "Cache-Control", "max-age=90000")
		})
		g := h.nodes[0]
		get := func() {
			for i := range feeds {
				g.get(fmt.Sprintf("https://s%d.test/feed", i))
			}
		}
		get()
		time.Sleep(50 * time.Minute)
		for _, r := range h.Requests() {
			if code := h.Push(r, "x").Code; code != 202 {
				t.Fatalf("a push gets %d", code)
			}
		}
		time.Sleep(time.Hour)
		if used := g.Summary(t.Context()).Memory >> 10; used > 1536 { // what representations take shrinks with the next one
			t.Errorf("memory takes %d KiB of 1024", used)
		}
		if n := h.origin.polls(); n != feeds {
			t.Errorf("%d polls before the pause is over", n-feeds)
		}
		time.Sleep(20 * time.Minute)
		get()
		get()
		if n := h.origin.polls(); n != 2*feeds {
			t.Errorf("%d polls after the pause, want one of each feed", n-feeds)
		}
	})
}
