// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

// whoseOf tells who a request is from, as an origin can see it: by cookie, login and
// address. Nobody in particular is "all".
func whoseOf(r *http.Request) string {
	who := cmp.Or(r.Header.Get("Cookie"), r.Header.Get("Authorization"))
	if who == "" && r.RemoteAddr != nobody {
		who = "address " + poller.Client(r).String()
	}
	return cmp.Or(who, "all")
}

// manyMinded is an origin whose answers are for all or for their reader alone, as the
// beginning of the path has it, and say in their body for whom they are.
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

// crowdRequest is a request that anybody might make.
func crowdRequest(rng *rand.Rand, host string) func(host string) *http.Request {
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	method := one("GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST", "DELETE")
	kind := one("public", "validated", "private", "no-store", "cookie", "language", "login", "careless", "page", "moved", "nothing")
	target := "/" + kind + one("/feed.xml", "/feed.xml", "/feed", "/other", "/guarded/feed.xml", "/inner/feed.xml") + one("", "", "?a=1", "?a=2&utm=x", "?utm="+fmt.Sprint(rng.IntN(4)))
	address := one("192.168.1.7", "192.168.1.8", "203.0.113.5", "203.0.113.6")
	var header []string
	maybe := func(name string, values ...string) {
		if rng.IntN(4) == 0 {
			header = append(header, name, one(values...))
		}
	}
	maybe("Cookie", "session=alice", "session=bob")
	maybe("Authorization", "Basic alice", "Basic bob")
	maybe("Accept-Language", "de", "fr", "en")
	maybe("User-Agent", "One/1.0", "Two/2.0", "")
	maybe("X-Forwarded-For", "192.168.1.7", "198.51.100.9")
	maybe("X-Forwarded-Host", "evil.test")
	maybe("X-Original-Url", "/private/feed.xml")
	maybe("X-Http-Method-Override", "DELETE")
	maybe("Accept-Encoding", "gzip", "identity", "gzip;q=0")
	maybe("Cache-Control", "no-cache", "max-age=0", "only-if-cached")
	maybe("Referer", "https://referer.test/")
	if rng.IntN(6) == 0 {
		maybe("Range", "bytes=0-9", "bytes=-5", "bytes=5-")
		maybe("If-None-Match", `"x"`, "*")
		maybe("If-Modified-Since", "Sat, 01 Jan 2000 00:00:00 GMT")
	}
	port := one("", "", "", ":80", ":666")
	body := ""
	if method == "POST" || rng.IntN(20) == 0 {
		body = one("a=b", "evil")
	}
	return func(host string) *http.Request {
		r := stage.Request(method, "http://"+host+target, header...)
		r.Host, r.RemoteAddr = host+port, address+":1234"
		if body != "" {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		}
		return r
	}
}

// A crowd of readers at a site with several shields, next to the same site without:
// what the one would have refused, or told one reader only, never comes out of the
// other to anybody else. And where nobody depends on conditions, they say the same. One
// of the shields has all its URLs in common with the others.
func TestCrowd(t *testing.T) {
	for name, mode := range modes {
		site := func(host string, shielded bool) string {
			part := func(matcher, says, more string) string {
				block := more + "backend " + says + "\n}\n"
				if !shielded {
					return "route " + matcher + " {\n" + block
				}
				return "feed_shield " + matcher + " {\norigin {\n" + block + mode + "\n}\n"
			}
			return "http://" + host + " {\nbind void/site\n@inner path */inner/*\n@feeds path */feed.xml\n@near remote_ip 192.168.1.7\n@outside not remote_ip 192.168.0.0/16\n" +
				"@guarded {\npath */guarded/*\nnot remote_ip 192.168.0.0/16\n}\nroute {\nrespond @guarded \"for [all]: go away\" 403\n" +
				part("@near", "near", "") + part("@inner", "inner", "respond @outside \"for [all]: go away\" 403\n") + part("@feeds", "feeds", "") + part("", "rest", "") + "}\n}\n"
		}
		sites := site("with.test", true) + site("without.test", false)
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 1))
				stage.Run(t, sites, manyMinded, func(s *stage.Stage) {
					for i := range 700 {
						request := crowdRequest(rng, "")
						r := request("with.test")
						got, want := s.Send(request("with.test")), s.Send(request("without.test"))
						if problem := compare(r, got, want, mode != ""); problem != "" {
							t.Fatalf("request %d: %s %s from %s with %v: %s\n%d %v\n%s\nwithout a shield\n%d %v\n%s", i, r.Method, r.URL, r.RemoteAddr, r.Header, problem,
								got.Code, got.Header(), got.Body, want.Code, want.Header(), want.Body)
						}
						if rng.IntN(10) == 0 {
							time.Sleep(time.Duration(rng.IntN(90)) * time.Second)
						}
					}
				})
			})
		}
	}
}

// compare tells what is wrong about an answer, given the one that there would have
// been without a shield; empty: nothing.
func compare(r *http.Request, got, want *httptest.ResponseRecorder, plain bool) string {
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
		if plain && whose == "all" {
			// A plain cache asks for nobody first, and who has no cookie may have that answer.
			_, after, _ := strings.Cut(bare, "for [")
			_, after, _ = strings.Cut(after, "]")
			bare = body[:strings.Index(body, "for [")] + "for [all]" + after
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
		return "" // nobody in particular comes from outside, and may have been answered so
	case got.Code != want.Code:
		return "another status"
	case got.Header().Get("Content-Encoding") == "" && want.Header().Get("Content-Encoding") == "" && r.Method == "GET" && body != bare:
		return "another body"
	}
	return ""
}
