// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

// whoseOf returns whom an origin takes a request for: by cookie, login and address, or "all".
func whoseOf(r *http.Request) string {
	who := cmp.Or(r.Header.Get("Cookie"), r.Header.Get("Authorization"))
	if who == "" && r.RemoteAddr != pollAddress {
		who = "address " + poller.Client(r).String()
	}
	return cmp.Or(who, "all")
}

// manyMinded is an origin with responses for all or for one reader, as the beginning of the path says.
// The body says for whom it is.
func manyMinded(w http.ResponseWriter, r *http.Request) error {
	h, kind := w.Header(), strings.Split(r.URL.Path, "/")[1]
	body := func(whose string) string {
		return stage.FeedNamed(fmt.Sprintf("for [%s] at %s %s via %s", whose, r.Method, r.URL, stage.Said(r)))
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if r.Body == nil {
			r.Body = http.NoBody
		}
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		return stage.Plain(200, fmt.Sprintf("for [%s]: %s %d bytes", whoseOf(r), r.Method, len(sent)), "Cache-Control", "no-store")(w, r)
	}
	h.Set("Content-Type", "application/rss+xml")
	text := ""
	switch kind {
	case "public": // says the same to all
		h.Set("Cache-Control", "max-age=60")
		text = body("all")
	case "validated":
		h.Set("Etag", fmt.Sprintf("%q", r.URL.String()))
		h.Set("Cache-Control", "no-cache")
		text = body("all")
	case "private":
		h.Set("Cache-Control", "private, max-age=60")
		text = body(whoseOf(r))
	case "no-store":
		h.Set("Cache-Control", "no-store")
		text = body(whoseOf(r))
	case "cookie": // another one for who has a cookie
		h.Set("Vary", "Cookie")
		h.Set("Cache-Control", "max-age=60")
		text = body(cmp.Or(r.Header.Get("Cookie"), "all"))
	case "language":
		h.Set("Vary", "Accept-Language")
		h.Set("Cache-Control", "max-age=60")
		text = body("all") + r.Header.Get("Accept-Language")
	case "origin": // says nothing of Vary
		if origin := r.Header.Get("Origin"); origin != "" {
			h.Set("Access-Control-Allow-Origin", origin)
		}
		text = body("all")
	case "login":
		if r.Header.Get("Authorization") == "" {
			return stage.Plain(401, "for [all]: log in", "WWW-Authenticate", "Basic", "Content-Type", "text/plain")(w, r)
		}
		text = body(r.Header.Get("Authorization"))
	case "careless": // for its reader, and does not say so
		text = body(whoseOf(r))
	case "page":
		h.Set("Content-Type", "text/html")
		text = "<!DOCTYPE html>for [" + whoseOf(r) + "]"
	case "moved":
		h.Set("Cache-Control", "max-age=60")
		return stage.Plain(302, "for [all]: elsewhere", "Location", "/public/feed.xml")(w, r)
	default:
		return stage.Plain(404, "for [all]: nothing", "Content-Type", "text/plain")(w, r)
	}
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
	return nil
}

// visit is a random request, and what happens after it.
type visit struct {
	method, host, target, address, body string
	header                              []string
	pause                               time.Duration
}

// kinds and paths make up what a newcomer requests after the crowd.
var (
	kinds = []string{"public", "validated", "private", "no-store", "cookie", "language", "origin", "login", "careless", "page", "moved", "nothing"}
	paths = []string{"/feed.xml", "/feed", "/other", "/rewritten/feed.xml"}
)

func drawVisit(t *rapid.T) (v visit) {
	one := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	chance := func(name string, of int) bool { return rapid.IntRange(0, of-1).Draw(t, name) == of-1 }
	v.method = one("method", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST", "DELETE", "OPTIONS")
	v.host = one("host", "blog.test", "blog.test", "blog.test", "BLOG.test", "blog.test.", "blog.test:80", "blog.test:9999", "evil.test", "Blog.Test.:080")
	v.target = "/" + one("kind", kinds...) + one("path", paths...) + one("query", "", "", "?a=1", "?utm=0", "?utm=1")
	v.address = one("address", "192.168.1.7", "192.168.1.8", "203.0.113.5", "203.0.113.6")
	for _, field := range [][]string{
		{"Cookie", "session=alice", "session=bob"},
		{"Authorization", "Basic alice", "Basic bob"},
		{"Accept-Language", "de", "fr", "en"},
		{"Accept", "text/html", "application/rss+xml"},
		{"User-Agent", "One/1.0", "Two/2.0", ""},
		{"Origin", "https://evil.test"},
		{"Rsc", "1"},
		{"X-Forwarded-For", "192.168.1.7", "198.51.100.9"},
		{"X-Forwarded-Host", "evil.test"},
		{"X-Forwarded-Proto", "https"},
		{"X-Original-Url", "/private/feed.xml"},
		{"X-Http-Method-Override", "DELETE"},
		{"Accept-Encoding", "gzip", "identity", "gzip;q=0"},
		{"Cache-Control", "no-cache", "max-age=0", "only-if-cached"},
		{"Referer", "https://referer.test/"},
		{"Range", "bytes=0-9", "bytes=-5"},
		{"If-None-Match", `"x"`, "*"},
	} {
		if chance(field[0], 5) {
			v.header = append(v.header, field[0], one("value", field[1:]...))
		}
	}
	if v.method == "POST" || chance("body", 20) {
		v.body = one("body", "a=b", "evil")
	}
	if chance("pause", 10) {
		v.pause = time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second
	}
	return v
}

func (v *visit) request() *http.Request {
	r := stage.Request(v.method, "http://blog.test"+v.target, v.header...)
	r.Host, r.RemoteAddr = v.host, v.address+":1234"
	if v.body != "" {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(v.body)), int64(len(v.body))
	}
	return r
}

var crowds = flag.Int("crowds", 0, "how many crowds visit a shielded site, each another one; 0: a few, always the same")

// A newcomer gets the same bytes whether a crowd has been there before or not, and no one of the crowd
// gets another's response.
func TestCrowd(t *testing.T) {
	checks, seed := *crowds, "0"
	if checks == 0 {
		checks, seed = 4, "7"
	}
	setFlag(t, "rapid.checks", strconv.Itoa(checks))
	setFlag(t, "rapid.seed", seed)
	setFlag(t, "rapid.nofailfile", "true") // a seed is enough
	sites := ":80 {\nbind void/site\n@lan {\npath */rewritten/*\nremote_ip 192.168.0.0/16\n}\nvars who {header.Cookie}\nrequest_header X-Who {header.Cookie}\n" +
		"rewrite @lan {path}/members\n" + shieldOf(`"{hostport}{uri} {http.request.orig_uri} {vars.who} {header.X-Who}"`, "query keep a") + "}\n"
	alone := newcomer(t, sites, nil)
	rapid.Check(t, func(rt *rapid.T) {
		visits := rapid.SliceOfN(rapid.Custom(drawVisit), 60, 120).Draw(rt, "visits")
		for target, got := range newcomer(t, sites, func(s *stage.Stage) {
			for i, v := range visits {
				r := v.request()
				if problem := anothers(r, s.Send(v.request())); problem != "" {
					rt.Errorf("request %d: %s %s of %s from %s with %v: %s", i, r.Method, r.URL, r.Host, r.RemoteAddr, r.Header, problem)
				}
				time.Sleep(v.pause)
			}
		}) {
			if got != alone[target] {
				rt.Errorf("a newcomer gets of %s\n%s\nand without a crowd\n%s", target, got, alone[target])
			}
		}
	})
}

// newcomer returns what a reader without anything of its own gets of each URL, after a crowd.
func newcomer(t *testing.T, sites string, crowd func(s *stage.Stage)) map[string]string {
	got := make(map[string]string)
	stage.Run(t, sites, manyMinded, func(s *stage.Stage) {
		if crowd != nil {
			crowd(s)
		}
		for _, kind := range kinds {
			if kind == "careless" {
				continue // it shows the address of a request that passes, and not that of a poll
			}
			for _, path := range paths {
				w := s.Get("http://blog.test/" + kind + path)
				got["/"+kind+path] = strconv.Itoa(w.Code) + " " + w.Header().Get("Content-Type") + " " + w.Header().Get("Access-Control-Allow-Origin") + "\n" + w.Body.String()
			}
		}
	})
	return got
}

func setFlag(t *testing.T, name, value string) {
	t.Helper()
	f := flag.Lookup(name)
	before := f.Value.String()
	if err := f.Value.Set(value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(before) })
}

// anothers describes a response that is another reader's, or returns "".
func anothers(r *http.Request, got *httptest.ResponseRecorder) string {
	_, rest, ok := strings.Cut(got.Body.String(), "for [")
	if !ok {
		return ""
	}
	whose, _, _ := strings.Cut(rest, "]")
	for _, mine := range []string{"all", r.Header.Get("Cookie"), r.Header.Get("Authorization"), "address " + strings.TrimSuffix(r.RemoteAddr, ":1234")} {
		if mine != "" && whose == mine {
			return ""
		}
	}
	return "a response for " + whose
}
