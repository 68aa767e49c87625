// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// visitor is a reader by its header fields and its address.
type visitor struct {
	from   string
	header []string
}

func (v visitor) ask(s *stage.Stage, method string, more ...string) *httptest.ResponseRecorder {
	s.T.Helper()
	r := stage.Request(method, blog+"/feed", append(append([]string{}, v.header...), more...)...)
	if v.from != "" {
		r.RemoteAddr = v.from + ":1234"
	}
	if r.Header.Get("User-Agent") == "none" {
		r.Header.Del("User-Agent")
	}
	return s.Send(r)
}

func defended(lines string) string {
	return blog + " {\n\tbind void/site\n\t@friend header X-Friend 1\n\tfeed_shield {\n\t\tdefend {\n" + lines + "\n\t\t}\n\t\torigin {\n\t\t\tbackend\n\t\t}\n\t}\n}\n"
}

// A step is a request some time after the one before, and its answer.
type step struct {
	after  time.Duration
	more   []string
	status int
	retry  string // Retry-After
}

// Each line of defend, through the whole of Caddy.
func TestDefend(t *testing.T) {
	const gzip = "gzip"
	rude := visitor{header: []string{"User-Agent", "Rude/1.0", "Accept-Encoding", gzip}}
	browser := visitor{header: []string{"User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0", "Accept", "text/html,application/xhtml+xml", "Sec-Fetch-Mode", "navigate"}}
	const everything = "max_rate 1 1h\nunconditional 4h\nskip_hours\nrequire_compression\nrequire_user_agent"
	five := func(status int) (steps []step) {
		for range 5 {
			steps = append(steps, step{after: time.Second, status: status})
		}
		return steps
	}
	for _, tt := range []struct {
		name, lines string
		who         visitor
		hints       string
		steps       []step
	}{
		{"bare: two whole feeds in 4 hours, then the true wait, which asking again does not lengthen", "", rude, "", []step{
			{0, nil, 200, ""}, {0, nil, 200, ""}, {time.Minute, nil, 429, "14340"}, {time.Hour, nil, 429, "10740"}, {time.Hour, nil, 429, "7140"},
			{2*time.Hour - time.Minute - time.Second, nil, 429, "1"}, {time.Second, nil, 200, ""}, {0, nil, 200, ""}, {time.Second, nil, 429, "14399"},
			{0, []string{"User-Agent", "Another/1.0"}, 200, ""}, {0, []string{"User-Agent", "Another/1.0"}, 200, ""}, {0, []string{"User-Agent", "Another/1.0"}, 429, "14400"},
		}},
		{"bare: a Referer that is the feed itself, as SimplePie sends it", "", rude, "", []step{
			{0, nil, 200, ""}, {0, []string{"Referer", "https://blog.test/feed"}, 200, ""}, {0, []string{"Referer", "https://blog.test/feed/"}, 429, "14400"},
		}},
		{"bare: a date that the reader made up, as Thunderbird does", "", visitor{header: []string{"User-Agent", "Thunderbird/115", "If-Modified-Since", "Thu, 01 Jan 1998 00:00:00 GMT"}}, "", five(200)},
		{"bare: persons by a link", "", visitor{header: []string{"User-Agent", "Rude/1.0", "Referer", "https://www.example.com/"}}, "", append(slices.Repeat([]step{{0, nil, 200, ""}}, 12), step{0, nil, 429, "14400"})},
		{"unconditional: who has the version is told so", "unconditional 4h", rude, "", []step{
			{0, nil, 200, ""}, {0, nil, 200, ""}, {time.Minute, []string{"If-None-Match", "*"}, 304, ""}, {time.Minute, nil, 429, "14280"}, {time.Minute, []string{"If-None-Match", "*"}, 304, ""},
		}},
		{"max_rate", "max_rate 3 1h", rude, "", []step{
			{0, nil, 200, ""}, {time.Second, nil, 200, ""}, {time.Second, nil, 200, ""}, {time.Second, nil, 429, "1197"}, {time.Second, []string{"If-None-Match", "*"}, 304, ""},
			{1196 * time.Second, nil, 200, ""},
		}},
		{"skip_hours", "skip_hours", rude, "<skipHours><hour>0</hour><hour>1</hour></skipHours>", []step{
			{0, nil, 200, ""}, {time.Hour, nil, 429, "3600"}, {time.Second, []string{"Referer", "https://example.com/"}, 200, ""},
			{time.Second, []string{"If-None-Match", "*"}, 304, ""}, {time.Hour, nil, 200, ""},
		}},
		{"require_compression", "require_compression", visitor{header: []string{"User-Agent", "Rude/1.0"}}, "", []step{
			{0, nil, 406, ""}, {time.Second, []string{"Accept-Encoding", "identity"}, 406, ""}, {time.Second, []string{"Accept-Encoding", "gzip;q=0"}, 406, ""},
			{time.Second, []string{"Accept-Encoding", gzip}, 200, ""}, {time.Second, []string{"Accept-Encoding", "br"}, 200, ""}, {time.Second, []string{"If-None-Match", "*"}, 304, ""},
		}},
		{"require_user_agent", "require_user_agent", visitor{header: []string{"User-Agent", "none"}}, "", []step{
			{0, nil, 403, ""}, {time.Second, []string{"User-Agent", "Rude/1.0"}, 200, ""}, {time.Second, []string{"If-None-Match", "*"}, 304, ""},
		}},
		{"403, then 429, then 406", everything, visitor{header: []string{"User-Agent", "none"}}, "", []step{
			{0, nil, 403, ""}, {0, []string{"User-Agent", "Rude/1.0"}, 406, ""}, {0, []string{"User-Agent", "Rude/1.0", "Accept-Encoding", gzip}, 200, ""},
			{0, []string{"User-Agent", "Rude/1.0", "Accept-Encoding", gzip}, 429, "14400"}, {time.Hour, []string{"User-Agent", "Rude/1.0"}, 429, "10800"},
		}},
		{"a person's browser", everything, browser, "<skipHours><hour>0</hour></skipHours>", five(200)},
		{"exempt by address", everything + "\nexempt 203.0.113.0/24", rude, "", five(200)},
		{"exempt by User-Agent", everything + "\nexempt Rude/", rude, "", five(200)},
		{"exempt by matcher", everything + "\nexempt @friend", visitor{header: []string{"User-Agent", "Rude/1.0", "X-Friend", "1"}}, "", five(200)},
		{"exempt by path", everything + "\nexempt /feed", rude, "", five(200)},
		{"exempt are others", everything + "\nexempt 192.0.2.0/24\nexempt Polite\nexempt @friend", rude, "", []step{{0, nil, 200, ""}, {0, nil, 429, "3600"}}},
		{"exempt from one rule", "unconditional 4h\nrequire_compression\nexempt Rude require_compression", visitor{header: []string{"User-Agent", "Rude/1.0"}}, "", []step{
			{0, nil, 200, ""}, {0, nil, 200, ""}, {0, nil, 429, "14400"},
		}},
		{"exempt by a matcher from two rules, and nothing else is set", "exempt @friend max_rate unconditional", visitor{header: []string{"User-Agent", "Rude/1.0", "X-Friend", "1"}}, "", five(200)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := strings.Replace(stage.Sample, "<link>", tt.hints+"<link>", 1)
			stage.Run(t, defended(tt.lines), stage.Feed(body), func(s *stage.Stage) {
				for i, step := range tt.steps {
					time.Sleep(step.after)
					w := tt.who.ask(s, "GET", step.more...)
					if w.Code != step.status || w.Header().Get("Retry-After") != step.retry {
						t.Errorf("step %d: %d, Retry-After %q: %s; want %d, %q", i, w.Code, w.Header().Get("Retry-After"), w.Header().Get("Cache-Status"), step.status, step.retry)
					}
					if w.Code >= 400 && (w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Etag") != "" || strings.Count(w.Body.String(), "\n") != 1 ||
						w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len())) {
						t.Errorf("step %d: a refusal says %v %q", i, w.Header(), w.Body)
					}
				}
			})
		})
	}
}

// A fleet gets four whole feeds in the time of unconditional, one network at most one of them.
func TestFleet(t *testing.T) {
	const path = blog + "/feed"
	ask := func(s *stage.Stage, url, from, agent string, more ...string) (status int, retry string) {
		r := stage.Request("GET", url, append([]string{"User-Agent", agent, "Accept-Encoding", "gzip"}, more...)...)
		r.RemoteAddr = from + ":1234"
		w := s.Send(r)
		return w.Code, w.Header().Get("Retry-After")
	}
	type visit struct {
		after       time.Duration
		from, agent string
		more        []string
		status      int
		retry       string
	}
	const crawler, other = "Amazon Music Podcast", "Polite/1.0"
	held := []string{"If-None-Match", "*"}
	full := []visit{
		{0, "198.51.100.1", crawler, nil, 200, ""}, {0, "198.51.100.2", crawler, nil, 429, "14400"}, {time.Hour, "203.0.113.1", crawler, nil, 200, ""},
		{time.Hour, "192.0.2.1", crawler + "/2", nil, 200, ""}, {time.Hour, "2001:db8::1", crawler, nil, 200, ""},
	}
	for _, tt := range []struct {
		name, lines string
		visits      []visit
	}{
		{"places end one by one, and are not reserved", "fleet Amazon Music Podcast", append(full[:len(full):len(full)],
			visit{0, "203.0.114.1", crawler, nil, 429, "3600"}, visit{0, "2001:db8:0:1::1", crawler, nil, 429, "14400"}, visit{0, "203.0.113.9", crawler, nil, 429, "7200"},
			visit{time.Hour - time.Second, "203.0.114.1", crawler, nil, 429, "1"}, visit{time.Second, "203.0.115.1", crawler, nil, 200, ""}, visit{0, "203.0.114.1", crawler, nil, 429, "3600"})},
		{"conditional requests, other programs, persons", "fleet Amazon Music Podcast", append(full[:len(full):len(full)],
			visit{0, "203.0.114.1", crawler, held, 304, ""}, visit{0, "203.0.114.1", crawler, []string{"If-Modified-Since", "Thu, 01 Jan 1998 00:00:00 GMT"}, 200, ""},
			visit{0, "203.0.114.1", crawler, []string{"If-None-Match", `"invented"`}, 429, "3600"}, visit{0, "203.0.114.1", crawler, []string{"Referer", "https://www.example.com/"}, 200, ""},
			visit{0, "203.0.114.1", other, nil, 200, ""}, visit{0, "203.0.114.1", other, nil, 200, ""}, visit{0, "203.0.114.1", other, nil, 429, "14400"})},
		{"exempt from all rules, and from one", "unconditional 4h\nmax_rate 1 1h\nfleet Amazon\nexempt 203.0.0.0/16\nexempt Amazon/Own unconditional", append(full[:2:2],
			visit{0, "203.0.113.1", crawler, nil, 200, ""}, visit{0, "203.0.113.1", crawler, nil, 200, ""},
			visit{0, "198.51.100.3", "Amazon/Own", nil, 200, ""}, visit{time.Hour, "198.51.100.3", "Amazon/Own", nil, 200, ""}, visit{0, "198.51.100.3", "Amazon/Own", nil, 429, "3600"})},
		{"only from its ranges; the longest name holds", "fleet Amazon 198.51.100.0/24\nfleet Amazon Music\nunconditional 1h", []visit{
			{0, "198.51.100.1", "Amazon/1", nil, 200, ""}, {0, "198.51.100.2", "Amazon/1", nil, 429, "3600"}, {0, "198.51.100.1", crawler, nil, 200, ""},
			{0, "203.0.113.1", "Amazon/1", nil, 200, ""}, {0, "203.0.113.1", "Amazon/1", nil, 200, ""}, {0, "203.0.113.1", "Amazon/1", nil, 429, "3600"},
			{0, "203.0.113.2", "Amazon/1", nil, 200, ""}, {time.Hour, "198.51.100.2", "Amazon/1", nil, 200, ""},
		}},
		{"429 before 406, which takes a place", "fleet Amazon\nrequire_compression", []visit{
			{0, "198.51.100.1", crawler, []string{"Accept-Encoding", "identity"}, 406, ""}, {0, "198.51.100.1", crawler, []string{"Accept-Encoding", "identity"}, 429, "14400"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stage.Run(t, defended(tt.lines), stage.Feed(stage.Sample), func(s *stage.Stage) {
				for i, v := range tt.visits {
					time.Sleep(v.after)
					if status, retry := ask(s, path, v.from, v.agent, v.more...); status != v.status || retry != v.retry {
						t.Errorf("visit %d: %d, Retry-After %q; want %d, %q", i, status, retry, v.status, v.retry)
					}
				}
			})
		})
	}
	t.Run("200 addresses for eight hours", func(t *testing.T) {
		stage.Run(t, defended("fleet Amazon\n"), stage.Feed(stage.Sample), func(s *stage.Stage) {
			for half := range 2 {
				served := map[string]int{}
				for i := range 4 * 60 {
					if status, _ := ask(s, fmt.Sprintf("%s?n=%d", path, i%3), fmt.Sprintf("10.%d.0.%d", i%20, i%200), crawler); status == 200 {
						served[fmt.Sprint(i%20)]++
					} else if status != 429 {
						t.Errorf("request %d: %d", i, status)
					}
					if status, _ := ask(s, path, fmt.Sprintf("10.%d.0.%d", i%20, i%200), crawler, held...); status != 304 {
						t.Errorf("conditional request %d: %d", i, status)
					}
					time.Sleep(time.Minute)
				}
				if len(served) != 4 || len(served) != served["0"]+served["1"]+served["2"]+served["3"] {
					t.Errorf("four hours %d: whole feeds by network %v", half, served)
				}
			}
		})
	})
}

// HEAD is answered and refused without a body. It does not count as a whole feed.
func TestDefendHead(t *testing.T) {
	stage.Run(t, defended("unconditional 4h\nrequire_user_agent"), stage.Feed(stage.Sample), func(s *stage.Stage) {
		v := visitor{header: []string{"User-Agent", "Rude/1.0"}}
		for range 3 {
			if w := v.ask(s, "HEAD"); w.Code != 200 || w.Body.Len() > 0 {
				t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
			}
		}
		if w := v.ask(s, "GET"); w.Code != 200 {
			t.Errorf("the first GET got %d", w.Code)
		}
		if w := (visitor{header: []string{"User-Agent", "none"}}).ask(s, "HEAD"); w.Code != 403 || w.Body.Len() > 0 {
			t.Errorf("without a User-Agent: %d, %d bytes", w.Code, w.Body.Len())
		}
	})
}

// A refused request causes no poll. The next request that is served does.
func TestDefendSparesTheOrigin(t *testing.T) {
	stage.Run(t, defended("unconditional 4h"), stage.Feed(stage.Sample), func(s *stage.Stage) {
		v := visitor{header: []string{"User-Agent", "Rude/1.0"}}
		v.ask(s, "GET")
		v.ask(s, "GET")
		s.Expect(1, "the first reader")
		for range 60 {
			time.Sleep(2 * time.Minute)
			v.ask(s, "GET")
		}
		s.Expect(0, "refused for two hours")
		s.Get(blog + "/feed")
		s.Expect(1, "another reader")
	})
}

// defend does not apply to requests that pass through, nor to feeds that are not stored.
func TestDefendLeavesOthersAlone(t *testing.T) {
	stage.Run(t, defended("unconditional 4h\nrequire_user_agent\nrequire_compression\nmax_rate 1 1h"), stage.Plain(404, "no such page"), func(s *stage.Stage) {
		for range 5 {
			if w := (visitor{header: []string{"User-Agent", "none"}}).ask(s, "GET"); w.Code != 404 {
				t.Errorf("a missing page got %d", w.Code)
			}
		}
	})
}
