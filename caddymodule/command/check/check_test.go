// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

const address = "https://blog.example/feed.xml"

// feed is a feed with entries, and with more in its channel.
func feed(more string) string {
	return origintest.Document{
		Title: "Blog", Home: "https://blog.example", Entries: 20, Extra: more,
		Newest: time.Date(1999, time.November, 20, 10, 0, 0, 0, time.UTC), Text: strings.Repeat("Some words. ", 20),
	}.String()
}

// publisher is a site that does everything right, but for what a test changes.
type publisher struct {
	body     func() string
	header   http.Header // in addition; a field without values is left out
	tag      func() string
	deaf     func(r *http.Request) bool // to conditions
	noGzip   bool
	gzipAll  bool
	status   func(n int) int // of the nth answer, from 1; 0: as usual
	duration time.Duration
	requests []*http.Request
}

func (s *publisher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests = append(s.requests, r)
	time.Sleep(s.duration)
	body := s.body()
	coding := ""
	if !s.noGzip && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") || s.gzipAll {
		coding = "gzip"
	}
	h := w.Header()
	for name, value := range map[string]string{
		"Content-Type": "application/rss+xml", "Cache-Control": "max-age=3600", "Vary": "Accept-Encoding", "Last-Modified": "Mon, 20 Dec 1999 10:00:00 GMT",
		"Etag": fmt.Sprintf(`"%x%s"`, sha256.Sum256([]byte(body)), coding),
	} {
		h.Set(name, value)
	}
	if s.tag != nil {
		h.Set("ETag", s.tag())
	}
	for name, values := range s.header {
		h[name] = values
	}
	if s.status != nil {
		if status := s.status(len(s.requests)); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	if s.deaf == nil || !s.deaf(r) {
		tag, date := r.Header.Get("If-None-Match"), r.Header.Get("If-Modified-Since")
		if tag != "" && tag == h.Get("ETag") || tag == "" && date != "" && date == h.Get("Last-Modified") {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if coding != "" {
		h.Set("Content-Encoding", coding)
		body = origintest.Encode(body, coding)
	}
	io.WriteString(w, body)
}

// poll polls the site with the real client.
func (s *publisher) poll(ctx context.Context, ask policy.Ask, compression bool) policy.Answer {
	client := upstream.New(upstream.WithTransport(transport(func(r *http.Request) (*http.Response, error) {
		if !compression {
			r.Header.Del("Accept-Encoding")
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Result(), nil
	})), upstream.WithoutPacing())
	defer client.Close()
	return client.Poll(ctx, ask)
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// check examines a site in a bubble.
func check(t *testing.T, s *publisher) (r *Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		began := time.Now()
		r, err = Run(t.Context(), Options{URL: feedurl.MustParse(address), Rules: policy.DefaultRules(), Spacing: 3 * time.Second, Poll: s.poll})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(s.requests); n > MaxPolls || n != len(r.Polls) || time.Since(began) < time.Duration(n-1)*3*time.Second {
			t.Errorf("%d requests, %d polls in %v", n, len(r.Polls), time.Since(began))
		}
	})
	return r
}

func (r *Report) ids() (ids []string) {
	for _, f := range r.Findings {
		ids = append(ids, f.ID)
	}
	return ids
}

func TestFindings(t *testing.T) {
	good := feed("<ttl>60</ttl>")
	always := func(body string) func() string { return func() string { return body } }
	counting := func(format string) func() string {
		n := 0
		return func() string { n++; return feed(fmt.Sprintf(format, n)) }
	}
	entriesNow := func() string { return strings.Replace(good, "Entry 7", time.Now().Format(time.StampNano), 1) }
	field := func(name string, values ...string) http.Header { return http.Header{name: values} }
	gone := http.Header{"Etag": nil, "Last-Modified": nil}
	nth := func(n, status int) func(int) int { return func(i int) int { return map[int]int{n: status}[i] } }
	// after is a body that is another one from its nth use on.
	after := func(n int, body, other string) func() string {
		return func() string {
			if n--; n <= 0 {
				return other
			}
			return body
		}
	}
	for _, tt := range []struct {
		name  string
		site  publisher
		want  []string // IDs of the findings
		polls int
	}{
		{"nothing", publisher{body: always(good)}, nil, 4},
		{"no date", publisher{body: always(good), header: field("Last-Modified")}, nil, 3},
		{"no validators", publisher{body: always(good), header: gone}, []string{"no-validators"}, 2},
		{"deaf", publisher{body: always(good), deaf: func(*http.Request) bool { return true }}, []string{"not-honoured"}, 4},
		{"deaf with compression", publisher{body: always(good), deaf: func(r *http.Request) bool { return r.Header.Get("Accept-Encoding") != "" }}, []string{"compression-breaks-304"}, 4},
		{"deaf to the date", publisher{body: always(good), deaf: func(r *http.Request) bool { return r.Header.Get("If-None-Match") == "" }}, []string{"date-ignored"}, 4},
		{"a volatile ETag", publisher{body: always(good), tag: func() string { return time.Now().Format(`"150405"`) }}, []string{"volatile-etag"}, 4},
		{"a volatile date", publisher{body: counting("<lastBuildDate>Sat, 01 Jan 2000 00:00:%02d GMT</lastBuildDate>")}, []string{"volatile-document"}, 4},
		{"volatile entries", publisher{body: entriesNow}, []string{"volatile-entries"}, 4},
		{"a change", publisher{body: after(2, good, strings.Replace(good, "Entry 7", "Entry VII", 1))}, []string{"changed-meanwhile"}, 4},
		{"a page later", publisher{body: after(2, good, "<html></html>")}, []string{"unstable"}, 4},
		{"an error for conditions", publisher{body: always(good), status: nth(2, 500)}, []string{"conditional-fails"}, 4},
		{"not compressed", publisher{body: always(good), noGzip: true}, []string{"not-compressed"}, 4},
		{"compressed unasked", publisher{body: always(good), gzipAll: true}, []string{"compressed-unasked"}, 4},
		{"an ETag without quotes", publisher{body: always(good), tag: func() string { return "abc" }}, []string{"etag-syntax"}, 4},
		{"a date of its own", publisher{body: always(good), header: field("Last-Modified", "yesterday")}, []string{"last-modified-syntax"}, 4},
		{"a date to come", publisher{body: always(good), header: field("Last-Modified", "Sat, 20 Jan 2001 10:00:00 GMT")}, []string{"last-modified-future"}, 4},
		{"no type", publisher{body: always(good), header: field("Content-Type")}, []string{"no-type"}, 4},
		{"text/html", publisher{body: always(good), header: field("Content-Type", "text/html; charset=utf-8")}, []string{"wrong-type"}, 4},
		{"another format's type", publisher{body: always(good), header: field("Content-Type", "application/atom+xml")}, []string{"other-type"}, 4},
		{"Vary: Cookie", publisher{body: always(good), header: field("Vary", "Accept-Encoding, Cookie")}, []string{"vary"}, 4},
		{"no Vary", publisher{body: always(good), header: field("Vary")}, []string{"no-vary"}, 4},
		{"a cookie", publisher{body: always(good), header: field("Set-Cookie", "id=s3cret")}, []string{"cookie"}, 4},
		{"slow", publisher{body: always(good), duration: 3 * time.Second}, []string{"slow"}, 4},
		{"a wrong clock", publisher{body: always(good), header: field("Date", "Fri, 31 Dec 1999 12:00:00 GMT")}, []string{"clock"}, 4},
		{"no hint", publisher{body: always(feed("")), header: field("Cache-Control")}, []string{"no-hint"}, 4},
		{"no-store", publisher{body: always(good), header: field("Cache-Control", "no-store")}, []string{"not-cacheable"}, 4},
		{"a month", publisher{body: always(good), header: field("Cache-Control", "max-age=2592000")}, []string{"long-lifetime"}, 4},
		{"max-age in words", publisher{body: always(good), header: field("Cache-Control", "max-age=1h")}, []string{"cache-control-syntax"}, 4},
		{"Expires in words", publisher{body: always(good), header: field("Expires", "tomorrow")}, []string{"expires-syntax"}, 4},
		{"Expires: 0", publisher{body: always(good), header: field("Expires", "0")}, nil, 4},
		{"a malformed hint", publisher{body: always(feed("<ttl>soon</ttl>"))}, []string{"malformed-hint"}, 4},
		{"WordPress's hint", publisher{body: always(feed("<sy:updatePeriod>hourly</sy:updatePeriod><sy:updateFrequency>1</sy:updateFrequency>"))}, []string{"hint-ignored"}, 4},
		{"another self", publisher{body: always(feed(`<atom:link rel="self" href="http://blog.example/feed.xml"/>`))}, []string{"other-self"}, 4},
		{"two of one ID", publisher{body: always(strings.Replace(good, "<guid>https://blog.example/2<", "<guid>https://blog.example/3<", 1))}, []string{"duplicate-ids"}, 4},
		{"no ID", publisher{body: always(strings.Replace(good, "<guid>https://blog.example/2</guid>", "", 1))}, []string{"no-ids"}, 4},
		{"no date of an entry", publisher{body: always(strings.Replace(good, "Tue, 02 Nov 1999 10:00:00 +0000", "a day", 1))}, []string{"no-dates"}, 4},
		{"no link", publisher{body: always(strings.Replace(good, "<link>https://blog.example/2</link>", "", 1))}, []string{"no-links"}, 4},
		{"not well-formed", publisher{body: always(strings.Replace(good, "Entry 2", "Day & Night", 1))}, []string{"not-well-formed"}, 4},
		{"large", publisher{body: always(strings.Replace(good, "Some words.", strings.Repeat("Many words. ", large/10), 1))}, []string{"large"}, 4},
		{"too many requests", publisher{body: always(good), status: nth(2, 429)}, []string{"incomplete"}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := check(t, &tt.site)
			if !slices.Equal(r.ids(), tt.want) || r.Problem != "" {
				t.Errorf("found %v, want %v\n%+v\n%s", r.ids(), tt.want, r.Findings, r.Problem)
			}
			if len(r.Polls) != tt.polls {
				t.Errorf("%d polls, want %d", len(r.Polls), tt.polls)
			}
			for _, f := range r.Findings {
				if f.Title == "" || f.Evidence == "" || f.Remedy == "" || strings.Contains(f.Evidence, "s3cret") {
					t.Errorf("half a finding: %+v", f)
				}
			}
			if r.Cost == nil || r.Cost.With304 <= 0 || r.Cost.With304 > r.Cost.Without304 || r.Cost.Without304 > r.Cost.Plain {
				t.Errorf("cost %+v", r.Cost)
			}
			if tt.name == "nothing" {
				for _, hint := range []string{"max-age=3600", "ttl 60"} {
					if want := "It says how often to ask: " + hint + "."; !slices.Contains(r.Good, want) {
						t.Errorf("good is %q, want %q in it", r.Good, want)
					}
				}
			}
			if r.Reason == "" || r.Readers == nil || r.Readers.Title != "Blog" {
				t.Errorf("%q, readers %+v", r.Reason, r.Readers)
			}
		})
	}
}

func TestNoFeed(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		site       publisher
	}{
		{"a page", "not a feed: an HTML page", publisher{body: func() string { return "<!DOCTYPE html><html></html>" }}},
		{"an error", "blog.example: status 404", publisher{body: func() string { return "" }, status: func(int) int { return 404 }}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := check(t, &tt.site)
			if !strings.HasPrefix(r.Problem, tt.want) || len(r.Polls) != 1 || len(r.Findings) != 0 {
				t.Errorf("%q after %d polls, %v; want %q", r.Problem, len(r.Polls), r.ids(), tt.want)
			}
		})
	}
}

// A site that asks for a pause is not asked again before it is over.
func TestPauses(t *testing.T) {
	for _, tt := range []struct {
		pause time.Duration
		polls int
	}{{20 * time.Second, 4}, {time.Hour, 1}} {
		synctest.Test(t, func(t *testing.T) {
			s := &publisher{body: func() string { return feed("<ttl>60</ttl>") }}
			began := time.Now()
			r, err := Run(t.Context(), Options{URL: feedurl.MustParse(address), Rules: policy.DefaultRules(), Spacing: time.Second, Poll: func(ctx context.Context, ask policy.Ask, compression bool) policy.Answer {
				a := s.poll(ctx, ask, compression)
				a.NotBefore = a.At.Add(tt.pause)
				return a
			}})
			if err != nil || len(r.Polls) != tt.polls || time.Since(began) < time.Duration(tt.polls-1)*tt.pause {
				t.Errorf("%v: %d polls in %v, %v", tt.pause, len(r.Polls), time.Since(began), err)
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		s := &publisher{body: func() string { return feed("") }}
		r, err := Run(ctx, Options{URL: feedurl.MustParse(address), Rules: policy.DefaultRules(), Spacing: 4 * time.Second, Poll: s.poll})
		if err == nil || len(s.requests) != 2 {
			t.Errorf("%+v, %v after %d requests", r, err, len(s.requests))
		}
	})
}
