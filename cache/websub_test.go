// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

const callbacks = "https://gateway.test"

// hubbed is a gateway, or several nodes on one store, with a hub.
type hubbed struct {
	*origintest.Hub
	t        *testing.T
	origin   *script
	db       store.Store
	settings cache.Settings
	nodes    []*gateway
}

// withHub opens nodes whose polls an origin answers by a function. The hub confirms all requests at
// once, at another node each time.
func withHub(t *testing.T, nodes int, answer func(policy.Ask) policy.Answer) *hubbed {
	t.Helper()
	time.Sleep(time.Until(epoch))
	h := &hubbed{Hub: new(origintest.Hub), t: t, origin: &script{answer: answer}, db: sharedStore(t)}
	var turn atomic.Int64
	h.Callbacks = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.URL.Path, cache.CallbackPath)
		if !h.nodes[int(turn.Add(1))%len(h.nodes)].ServeHub(w, r, token) {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	rules := policy.DefaultRules()
	rules.Jitter = 0
	h.settings = cache.Settings{
		Rules:  func(feedstate.Key) policy.Rules { return rules },
		WebSub: callbacks, Post: upstream.New(upstream.WithTransport(h.Hub)).Post,
	}
	for range nodes {
		h.nodes = append(h.nodes, node(t, h.db, h.origin, h.settings))
	}
	return h
}

// apply puts settings in force on all nodes.
func (h *hubbed) apply(change func(*cache.Settings)) {
	change(&h.settings)
	for _, n := range h.nodes {
		n.Apply(h.settings)
	}
}

// get asks the first node for the feed, and waits for what that begins.
func (h *hubbed) get() string {
	h.t.Helper()
	body := h.nodes[0].get(feedURL).Body.String()
	time.Sleep(5 * time.Second)
	synctest.Wait()
	return body
}

func (h *hubbed) push() *status.Push {
	h.t.Helper()
	f, err := h.nodes[0].Status(h.t.Context(), feedURL)
	if err != nil {
		h.t.Fatal(err)
	}
	return f.Push
}

func (h *hubbed) want(when string, state status.PushState, requests int) {
	h.t.Helper()
	if p := h.push(); p == nil && state != "" || p != nil && p.State != state || len(h.Requests()) != requests {
		h.t.Fatalf("%s: %+v after %d requests, want %q after %d", when, p, len(h.Requests()), state, requests)
	}
}

// atom is a document with a hub and entries, the last of them published at a time.
func atom(entries int, newest time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id><title>Feed</title><updated>%s</updated>
		<link rel="self" href=%q/><link rel="hub" href="https://hub.test/"/><link rel="hub" href="https://other.test/"/>`, newest.UTC().Format(time.RFC3339), feedURL)
	for n := range entries {
		fmt.Fprintf(&b, "<entry><id>urn:%d</id><title>Entry %d</title><updated>%s</updated></entry>", n, n+1, newest.Add(-time.Duration(entries-n-1)*24*time.Hour).UTC().Format(time.RFC3339))
	}
	return b.String() + "</feed>"
}

func TestRequestToHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := withHub(t, 1, func(policy.Ask) policy.Answer { return ok(atom(1, epoch)) })
		h.apply(func(s *cache.Settings) { s.WebSub = "" })
		h.get()
		h.want("without the line", "", 0)

		h.apply(func(s *cache.Settings) { s.WebSub = callbacks })
		time.Sleep(25 * time.Hour)
		h.get()
		h.want("with the line", status.PushActive, 1)
		r := h.Last()
		token, ok := strings.CutPrefix(r.Form.Get("hub.callback"), callbacks+cache.CallbackPath)
		if !ok || len(token) < 40 || r.Form.Get("hub.mode") != "subscribe" || r.Form.Get("hub.topic") != feedURL ||
			r.Form.Get("hub.lease_seconds") != "864000" || len(r.Form.Get("hub.secret")) != 64 || len(r.Form) != 5 {
			t.Errorf("%+v", r.Form)
		}
		if len(r.Header) != 2 || !strings.HasPrefix(r.Header.Get("User-Agent"), "Pollard") || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
			t.Errorf("%+v", r.Header)
		}

		h.apply(func(s *cache.Settings) { s.WebSub = "" })
		if w := h.Push(r, "push"); w.Code != http.StatusGone {
			t.Errorf("%d when the line is removed, want 410", w.Code)
		}
		r.Form.Set("hub.callback", callbacks+cache.CallbackPath+strings.Repeat("A", 43))
		if w := h.Push(r, "push"); w.Code != http.StatusTeapot {
			t.Errorf("%d for what may be a path of the site, want that it is not answered", w.Code)
		}
	})
}

// What a hub may ask a callback, and gets.
func TestQuestionsOfHub(t *testing.T) {
	for _, tt := range []struct {
		name   string
		ask    func(q url.Values)
		status int
		lease  time.Duration // 0: it is not active
	}{
		{"as asked", func(url.Values) {}, 200, 10 * 24 * time.Hour},
		{"205 wrong topic", func(q url.Values) { q.Set("hub.topic", feedURL+"/") }, 404, 0},
		{"wrong mode", func(q url.Values) { q.Set("hub.mode", "unsubscribe") }, 404, 0},
		{"no mode", func(q url.Values) { q.Del("hub.mode") }, 404, 0},
		{"two modes", func(q url.Values) { q.Add("hub.mode", "subscribe") }, 404, 0},
		{"no challenge", func(q url.Values) { q.Del("hub.challenge") }, 404, 0},
		{"empty challenge", func(q url.Values) { q.Set("hub.challenge", "") }, 404, 0},
		{"two challenges", func(q url.Values) { q.Add("hub.challenge", "two") }, 404, 0},
		{"long challenge", func(q url.Values) { q.Set("hub.challenge", strings.Repeat("a", 1025)) }, 404, 0},
		{"unknown parameters", func(q url.Values) { q.Set("hub.verify_token", "x") }, 200, 10 * 24 * time.Hour},
		{"no lease", func(q url.Values) { q.Del("hub.lease_seconds") }, 200, 24 * time.Hour},
		{"lease 0", func(q url.Values) { q.Set("hub.lease_seconds", "0") }, 200, 24 * time.Hour},
		{"negative lease", func(q url.Values) { q.Set("hub.lease_seconds", "-1") }, 200, 24 * time.Hour},
		{"lease of text", func(q url.Values) { q.Set("hub.lease_seconds", "ten") }, 200, 24 * time.Hour},
		{"long lease", func(q url.Values) { q.Set("hub.lease_seconds", "99999999999999999999") }, 200, 14 * 24 * time.Hour},
		{"too late", func(url.Values) { time.Sleep(time.Hour) }, 404, 0},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			h := withHub(t, 2, func(policy.Ask) policy.Answer { return ok(atom(1, epoch)) })
			h.Answer = func(origintest.HubRequest) origintest.Answer { return origintest.Status(204) }
			h.get()
			h.want("before", status.PushAsked, 1)
			r := h.Last()
			q := url.Values{"hub.mode": {"subscribe"}, "hub.topic": {feedURL}, "hub.challenge": {"<b>ü"}, "hub.lease_seconds": {"864000"}}
			tt.ask(q)
			at := time.Now()
			w := h.Ask(r.Form.Get("hub.callback"), q)
			if w.Code != tt.status {
				t.Errorf("%d %s, want %d", w.Code, w.Body, tt.status)
			}
			echo, head := w.Body.String(), w.Header()
			if tt.status == 200 && (echo != "<b>ü" || !strings.HasPrefix(head.Get("Content-Type"), "text/plain") || head.Get("X-Content-Type-Options") != "nosniff") {
				t.Errorf("%q, %v", echo, head)
			}
			if tt.status != 200 && strings.Contains(echo, "<b>") {
				t.Errorf("the question is in the answer: %q", echo)
			}
			q.Set("hub.lease_seconds", "60")
			h.Ask(r.Form.Get("hub.callback"), q) // changes nothing
			h.get()
			p := h.push()
			if tt.lease > 0 && (p.State != status.PushActive || p.Lease.Sub(at).Abs() < tt.lease-time.Second || p.Lease.Sub(at) > tt.lease+time.Second) {
				t.Errorf("%+v, want a lease of %v", p, tt.lease)
			}
			if want := h.Ask(r.Form.Get("hub.callback")+"A", q); want.Code != 404 {
				t.Errorf("%d for a token that is not ours", want.Code)
			}
		})
	}
}

// websub.rocks 300 to 302, and what else pushes may be signed with.
func TestSignatures(t *testing.T) {
	sum := func(name string, algorithm func() hash.Hash) func(secret, body string) []string {
		return func(secret, body string) []string {
			mac := hmac.New(algorithm, []byte(secret))
			io.WriteString(mac, body)
			return []string{name + "=" + hex.EncodeToString(mac.Sum(nil))}
		}
	}
	good := sum("sha256", sha256.New)
	for _, tt := range []struct {
		name  string
		sign  func(secret, body string) []string
		polls int
	}{
		{"sha1", sum("sha1", sha1.New), 2},
		{"300 sha256", good, 2},
		{"sha384", sum("sha384", sha512.New384), 2},
		{"sha512", sum("sha512", sha512.New), 2},
		{"upper case", func(secret, body string) []string {
			return []string{strings.Replace(strings.ToUpper(good(secret, body)[0]), "SHA", "sha", 1)}
		}, 2},
		{"301 bad", func(string, string) []string { return good("another secret", "") }, 1},
		{"other body", func(secret, _ string) []string { return good(secret, "other") }, 1},
		{"302 none", func(string, string) []string { return nil }, 1},
		{"empty", func(string, string) []string { return []string{""} }, 1},
		{"no sum", func(string, string) []string { return []string{"sha256="} }, 1},
		{"md5", sum("md5", md5.New), 1},
		{"other method", func(secret, body string) []string {
			return []string{strings.Replace(good(secret, body)[0], "sha256", "sha1", 1)}
		}, 1},
		{"not hexadecimal", func(string, string) []string { return []string{"sha256=" + strings.Repeat("xy", 32)} }, 1},
		{"two fields", func(secret, body string) []string { return append(good(secret, body), good(secret, body)...) }, 1},
		{"half", func(secret, body string) []string { return []string{good(secret, body)[0][:39]} }, 1},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			h := withHub(t, 1, func(policy.Ask) policy.Answer { return ok(atom(1, epoch)) })
			h.get()
			r := h.Last()
			before := time.Now()
			if w := h.Deliver(r, "<entry>forged</entry>", tt.sign(r.Form.Get("hub.secret"), "<entry>forged</entry>")...); w.Code/100 != 2 || w.Body.Len() > 0 {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if took := time.Since(before); took > 0 {
				t.Errorf("the hub waited %v for the poll", took)
			}
			time.Sleep(10 * time.Second)
			if n := h.origin.polls(); n != tt.polls {
				t.Errorf("%d polls, want %d", n, tt.polls)
			}
			if body := h.get(); strings.Contains(body, "forged") || !strings.Contains(body, "Entry 1") {
				t.Errorf("readers get %s", body)
			}
			if p := h.push(); p.LastPush.IsZero() == (tt.polls == 2) || p.Ignored != int64(2-tt.polls) {
				t.Errorf("%+v", p)
			}
		})
	}
}
