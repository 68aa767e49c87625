// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// whoseOf returns whom an origin takes a request for: by cookie, login and address, or "all".
func whoseOf(r *http.Request) string {
	who := cmp.Or(r.Header.Get("Cookie"), r.Header.Get("Authorization"))
	if who == "" && r.RemoteAddr != pollAddress {
		who = "address " + door.Read(r).Client.String()
	}
	return cmp.Or(who, "all")
}

// manyMinded is an origin with responses for all or for one reader, as the beginning of the path says.
// The body says for whom it is.
func manyMinded(w http.ResponseWriter, r *http.Request) error {
	h, kind := w.Header(), strings.Split(r.URL.Path, "/")[1]
	if r.Body == nil {
		r.Body = http.NoBody
	}
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	body := func(whose string) string {
		return stage.FeedNamed(fmt.Sprintf("for [%s] at %s %s with %q via %s", whose, r.Method, r.URL, sent, stage.Text(r)))
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
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
	case "cookie": // another one for readers with a cookie
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

// drawVisit draws a request to a site from networks of its own: each brings in few new feeds.
func drawVisit(rng *rand.Rand, site int) (v visit) {
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	v.method = one("GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST", "DELETE", "OPTIONS")
	name := hostOf(site)
	v.host = one(name, name, name, strings.ToUpper(name), name+".", name+":80", name+":9999", "evil"+name, strings.ToUpper(name)+".:080")
	v.target = "/" + one(kinds...) + one(paths...) + one("", "", "?a=1", "?utm=0", "?utm=1")
	v.address = fmt.Sprintf(one("192.168.%d.7", "192.168.%d.8", "203.0.%d.5", "198.51.%d.6"), site)
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
		if rng.IntN(5) == 0 {
			v.header = append(v.header, field[0], one(field[1:]...))
		}
	}
	if v.method == "POST" || rng.IntN(20) == 0 {
		v.body = one("a=b", "evil")
	}
	if rng.IntN(10) == 0 {
		v.pause = time.Duration(rng.IntN(91)) * time.Second
	}
	return v
}

func hostOf(site int) string { return fmt.Sprintf("blog%d.test", site) }

func (v *visit) request() *http.Request {
	r := stage.Request(v.method, "http://blog.test"+v.target, v.header...)
	r.Host, r.RemoteAddr = v.host, v.address+":1234"
	if v.body != "" {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(v.body)), int64(len(v.body))
	}
	return r
}

var crowds = flag.Int("crowds", 12, "how many crowds visit a shielded site")

// A newcomer gets the same bytes whether a crowd has been there before or not, and whether the site has
// a shield or not, and no one of the crowd gets another's response. Each crowd visits another site.
func TestCrowd(t *testing.T) {
	// The bare site has a block like the one in the shield.
	before := `@lan {
			path */rewritten/*
			remote_ip 192.168.0.0/16
		}
		rewrite @lan {path}/members
		@known header_regexp known Cookie session=(\w+)
		vars @known seen yes
		vars who {header.Cookie}
		map {header.Cookie} {kind} {
			~session=(\w+) ${1}
		}
		request_header X-Who {header.Cookie}
	`
	says := `"{hostport}{uri} {http.request.orig_uri} {vars.who} {vars.seen} {re.known.1} {kind} {header.X-Who}"`
	sites := ":80 {\nbind void/site\n" + before + shieldOf(says, "query keep a") + "}\nhttp://bare.test {\nbind void/site\n" + before + "backend " + says + "\n}\n"
	stage.Run(t, sites, manyMinded, func(s *stage.Stage) {
		bare, alone := newcomer(s, "bare.test", 0), newcomer(s, hostOf(0), 0)
		compare := func(what string, got, want map[string]string) {
			t.Helper()
			for target := range want {
				if got[target] != want[target] {
					t.Errorf("%s: a newcomer gets of %s\n%s\nand not\n%s", what, target, got[target], want[target])
				}
			}
		}
		compare("alone", alone, bare)
		for crowd := range *crowds {
			rng := rand.New(rand.NewPCG(7, uint64(crowd)))
			for i := range 60 + rng.IntN(60) {
				v := drawVisit(rng, crowd+1)
				r := v.request()
				if problem := anothers(r, s.Send(v.request())); problem != "" {
					t.Errorf("crowd %d, request %d: %s %s of %s from %s with %v: %s", crowd, i, r.Method, r.URL, r.Host, r.RemoteAddr, r.Header, problem)
				}
				time.Sleep(v.pause)
			}
			compare(fmt.Sprint("after crowd ", crowd), newcomer(s, hostOf(crowd+1), crowd+1), alone)
		}
	})
}

// newcomer returns what a reader without anything of its own gets of each URL of a site.
func newcomer(s *stage.Stage, host string, site int) map[string]string {
	got, address := make(map[string]string), fmt.Sprintf("198.18.%d.9", site)
	for _, kind := range kinds {
		if kind == "careless" {
			continue // it shows the address of a request that passes, and not that of a poll
		}
		for _, path := range paths {
			w := s.Send(from(address, "http://"+host+"/"+kind+path))
			text := strconv.Itoa(w.Code) + " " + w.Header().Get("Content-Type") + " " + w.Header().Get("Access-Control-Allow-Origin") + "\n" + w.Body.String()
			got["/"+kind+path] = strings.NewReplacer(host, "a host", address, "an address").Replace(text)
		}
	}
	return got
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
