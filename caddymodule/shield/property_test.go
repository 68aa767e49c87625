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
	method, target, address, port, body string
	header                              []string
	pause                               time.Duration
	reload                              bool
}

func drawVisit(t *rapid.T) (v visit) {
	one := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	chance := func(name string, of int) bool { return rapid.IntRange(0, of-1).Draw(t, name) == of-1 }
	v.method = one("method", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST", "DELETE")
	kind := one("kind", "public", "validated", "private", "no-store", "cookie", "language", "login", "careless", "page", "moved", "nothing")
	v.target = "/" + kind + one("path", "/feed.xml", "/feed.xml", "/feed", "/other", "/guarded/feed.xml", "/inner/feed.xml") +
		one("query", "", "", "?a=1", "?a=2&utm=x", "?utm=0", "?utm=1", "?utm=2")
	v.address = one("address", "192.168.1.7", "192.168.1.8", "203.0.113.5", "203.0.113.6")
	for _, field := range [][]string{
		{"Cookie", "session=alice", "session=bob"},
		{"Authorization", "Basic alice", "Basic bob"},
		{"Accept-Language", "de", "fr", "en"},
		{"User-Agent", "One/1.0", "Two/2.0", ""},
		{"X-Forwarded-For", "192.168.1.7", "198.51.100.9"},
		{"X-Forwarded-Host", "evil.test"},
		{"X-Original-Url", "/private/feed.xml"},
		{"X-Http-Method-Override", "DELETE"},
		{"Accept-Encoding", "gzip", "identity", "gzip;q=0"},
		{"Cache-Control", "no-cache", "max-age=0", "only-if-cached"},
		{"Referer", "https://referer.test/"},
	} {
		if chance(field[0], 4) {
			v.header = append(v.header, field[0], one("value", field[1:]...))
		}
	}
	if chance("conditional", 15) {
		field := rapid.SampledFrom([][]string{
			{"Range", "bytes=0-9", "bytes=-5", "bytes=5-"}, {"If-None-Match", `"x"`, "*"}, {"If-Modified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"},
		}).Draw(t, "condition")
		v.header = append(v.header, field[0], one("value", field[1:]...))
	}
	v.port = one("port", "", "", "", ":80", ":666")
	if v.method == "POST" || chance("body", 20) {
		v.body = one("body", "a=b", "evil")
	}
	if chance("pause", 10) {
		v.pause = time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second
	}
	v.reload = chance("reload", 40)
	return v
}

func (v *visit) to(host string) *http.Request {
	r := stage.Request(v.method, "http://"+host+v.target, v.header...)
	r.Host, r.RemoteAddr = host+v.port, v.address+":1234"
	if v.body != "" {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(v.body)), int64(len(v.body))
	}
	return r
}

var crowds = flag.Int("crowds", 0, "how many crowds visit a shielded site, each another one; 0: a few, always the same")

// Random readers request from a site with several shields, and from the same site without them. A
// response that the bare site refuses, or gives to one reader, never reaches another reader of the
// shielded site; otherwise both sites answer the same. One shield has all its URLs in common with the
// others.
func TestCrowd(t *testing.T) {
	checks, seed := *crowds, "0"
	if checks == 0 {
		checks, seed = 10, "7"
	}
	setFlag(t, "rapid.checks", strconv.Itoa(checks))
	setFlag(t, "rapid.seed", seed)
	setFlag(t, "rapid.nofailfile", "true") // a seed is enough
	site := func(host string, shielded bool) string {
		part := func(matcher, says, more string) string {
			block := more + "backend " + says + "\n}\n"
			if !shielded {
				return "route " + matcher + " {\n" + block
			}
			return "feed_shield " + matcher + " {\norigin {\n" + block + "}\n"
		}
		return "http://" + host + " {\nbind void/site\n@inner path */inner/*\n@feeds path */feed.xml\n@near remote_ip 192.168.1.7\n@outside not remote_ip 192.168.0.0/16\n" +
			"@guarded {\npath */guarded/*\nnot remote_ip 192.168.0.0/16\n}\nroute {\nrespond @guarded \"for [all]: go away\" 403\n" +
			part("@near", "near", "") + part("@inner", "inner", "respond @outside \"for [all]: go away\" 403\n") + part("@feeds", "feeds", "") + part("", "rest", "") + "}\n}\n"
	}
	sites := site("with.test", true) + site("without.test", false)
	rapid.Check(t, func(rt *rapid.T) {
		visits := rapid.SliceOfN(rapid.Custom(drawVisit), 150, 400).Draw(rt, "visits")
		problem := ""
		stage.Run(t, sites, manyMinded, func(s *stage.Stage) { problem = visited(s, sites, visits) })
		if problem != "" {
			rt.Error(problem)
		}
	})
}

// visited describes the first response that is wrong, or returns "".
func visited(s *stage.Stage, sites string, visits []visit) string {
	for i, v := range visits {
		r := v.to("with.test")
		got, want := s.Send(v.to("with.test")), s.Send(v.to("without.test"))
		if problem := compare(r, got, want); problem != "" {
			return fmt.Sprintf("request %d: %s %s from %s with %v: %s\n%d %v\n%s\nwithout a shield\n%d %v\n%s", i, r.Method, r.URL, r.RemoteAddr, r.Header, problem,
				got.Code, got.Header(), got.Body, want.Code, want.Header(), want.Body)
		}
		time.Sleep(v.pause)
		if v.reload {
			s.Load(sites)
		}
	}
	return ""
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

// compare describes what is wrong with a response, given the one without a shield, or returns "".
func compare(r *http.Request, got, want *httptest.ResponseRecorder) string {
	body, bare := got.Body.String(), want.Body.String()
	if _, rest, ok := strings.Cut(body, "for ["); ok {
		whose, _, _ := strings.Cut(rest, "]")
		mine := []string{"all", r.Header.Get("Cookie"), r.Header.Get("Authorization"), "address " + strings.TrimSuffix(r.RemoteAddr, ":1234")}
		found := false
		for _, who := range mine {
			found = found || who != "" && whose == who
		}
		if !found {
			return "an answer for somebody else"
		}
	}
	if want.Code >= 400 && got.Code < 400 {
		return "it was refused without a shield"
	}
	for _, name := range []string{"Range", "If-None-Match", "If-Modified-Since"} {
		if r.Header[name] != nil {
			return ""
		}
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/careless"), strings.Contains(r.Header.Get("Cache-Control"), "only-if-cached"):
		return "" // whom it is for is anybody's guess; it may not be asked
	case strings.Contains(r.URL.Path, "/inner/") && got.Code == 403:
		return "" // a poll comes from outside, so its response may be this one
	case got.Code != want.Code:
		return "another status"
	case got.Header().Get("Content-Encoding") == "" && want.Header().Get("Content-Encoding") == "" && r.Method == "GET" && body != bare:
		return "another body"
	}
	return ""
}
