// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/upstream"
)

// echo responds with a feed that contains request fields, and sets a cookie.
func echo(vary string, header ...string) stage.Answer {
	return func(w http.ResponseWriter, r *http.Request) error {
		var said strings.Builder
		for _, name := range []string{"Accept-Language", "Cookie", "Origin", "Rsc", "X-Forwarded-Host"} {
			fmt.Fprintf(&said, "[%s]", r.Header.Get(name))
		}
		return stage.Feed(stage.FeedNamed(said.String()), append(header, "Vary", vary, "Set-Cookie", "session=1")...)(w, r)
	}
}

// A stored response is for the requests that match it (RFC 9111 section 4.1). All others get the site's
// own answer, whole, and are counted by the field that made them differ.
func TestShieldVary(t *testing.T) {
	const newcomer = "[][][][][]"
	for _, tt := range []struct {
		name, vary, lines string
		header            []string // of the response
		sent              []string // by a reader
		differs           string   // empty: it gets what is shared
		says              string   // Vary of what is shared
	}{
		{"a cookie that does not matter", "", "", nil, []string{"Cookie", "a=b"}, "", "Accept-Encoding"},
		{"a cookie that matters", "Cookie", "", nil, []string{"Cookie", "a=b"}, "Cookie", "Accept-Encoding, cookie"},
		{"without the cookie", "Cookie", "", nil, []string{"X-Other", "a=b"}, "", "Accept-Encoding, cookie"},
		{"a language", "Accept-Encoding, accept-language", "", nil, []string{"Accept-Language", "de"}, "Accept-Language", "Accept-Encoding, accept-language"},
		{"Next.js", "RSC, Next-Router-State-Tree", "", nil, nil, "", "Accept-Encoding, next-router-state-tree, rsc"},
		{"a part of a page of Next.js", "RSC, Next-Router-State-Tree", "", nil, []string{"RSC", "1"}, "Rsc", "Accept-Encoding, next-router-state-tree, rsc"},
		{"every agent", "User-Agent", "", nil, nil, "User-Agent", "Accept-Encoding, user-agent"},
		{"Accept", "Accept", "", nil, []string{"Accept", "*/*"}, "Accept", "Accept-Encoding, accept"},
		{"Accept as a poll sends it", "Accept", "", nil, []string{"Accept", upstream.Accept}, "", "Accept-Encoding, accept"},
		{"what the key has", "Host, X-Forwarded-Host, X-Forwarded-Proto", "", nil, []string{"X-Forwarded-Host", "evil.test"}, "", "Accept-Encoding, host, x-forwarded-host, x-forwarded-proto"},
		{"another site's script", "", "", nil, []string{"Origin", "https://other.test"}, "Origin", "Accept-Encoding"},
		{"a script that all sites may run", "", "", []string{"Access-Control-Allow-Origin", "*"}, []string{"Origin", "https://other.test"}, "", "Accept-Encoding"},
		{"ignored", "User-Agent, Accept-Language", "vary ignore user-agent Accept-Language", nil, []string{"Accept-Language", "de"}, "", "Accept-Encoding"},
		{"ignored in part", "User-Agent, Cookie", "vary ignore User-Agent", nil, []string{"Cookie", "a=b"}, "Cookie", "Accept-Encoding, cookie"},
		{"credentials", "", "", nil, []string{"Authorization", "Basic eA=="}, "Authorization", "Accept-Encoding"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stage.Run(t, stage.ShieldedSite(blog, "{\n"+tt.lines+"\n}"), echo(tt.vary, tt.header...), func(s *stage.Stage) {
				first := s.Get(blog+"/feed", "Accept", upstream.Accept)
				s.Calls()
				for round := range 2 {
					w := s.Get(blog+"/feed", tt.sent...)
					if tt.differs == "" {
						stage.WantBody(t, "a reader", w, 200, newcomer)
						s.Expect(0, "a reader")
						if w.Header().Get("Vary") != tt.says || w.Header().Get("Set-Cookie") != "" || first.Body.String() != w.Body.String() {
							t.Errorf("round %d: %v", round, w.Header())
						}
						continue
					}
					own := s.Expect(1, "a reader of its own")[0]
					if len(tt.sent) > 0 && own.Header.Get(tt.sent[0]) != tt.sent[1] || w.Header().Get("Set-Cookie") == "" || own.RemoteAddr == pollAddress {
						t.Errorf("round %d: the origin saw %v, the reader %v", round, own.Header, w.Header())
					}
				}
				counted := memoryOf(t).passed(func(key string) bool { return strings.Contains(key, "//blog.test/") })
				delete(counted, "User-Agent")
				want := map[string]int64{tt.differs: 2}
				if tt.differs == "" || tt.differs == "User-Agent" {
					want = nil
				}
				if !maps.Equal(counted, want) {
					t.Errorf("counted %v, want %v", counted, want)
				}
			})
		})
	}
}

// memoryOf returns the memory of the only shield.
func memoryOf(t *testing.T) (memory *entries) {
	t.Helper()
	memories.Range(func(_, kept any) bool {
		if memory != nil {
			t.Fatal("there are several shields")
		}
		memory = kept.(*entries)
		return true
	})
	return memory
}

// A site that varies by the agent no more is shielded again soon, although all its readers were passed on.
func TestShieldNoticesThatVaryHasGone(t *testing.T) {
	stage.Run(t, stage.ShieldedSite(blog, ""), echo("User-Agent"), func(s *stage.Stage) {
		for range 10 {
			s.Get(blog + "/feed")
			time.Sleep(30 * time.Second)
		}
		if n := len(s.Calls()); n < 13 || n > 16 {
			t.Errorf("ten readers in five minutes made %d requests", n)
		}
		s.Now(echo(""))
		time.Sleep(2 * time.Minute)
		s.Get(blog + "/feed")
		time.Sleep(time.Second)
		s.Calls()
		s.Get(blog + "/feed")
		s.Expect(0, "a reader after the mend")
	})
}
