// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/upstream"
)

// The site sees a poll as it would see the reader's own request: after rewrites, with
// what other handlers have set.
func TestShieldInRoutes(t *testing.T) {
	for _, tt := range []struct {
		name, site, target string
		said               string // by the backend, of the poll
	}{
		{"vars", "vars tenant seven\nfeed_shield\nbackend {vars.tenant}", "/feed", "seven"},
		{"rewrite", "rewrite /feed /index.php?feed=rss2\nfeed_shield\nbackend \"{uri} {http.request.orig_uri}\"", "/feed", "/index.php?feed=rss2 /feed"},
		{"handle_path", "handle_path /blog/* {\nfeed_shield\nbackend \"{uri} {http.request.orig_uri}\"\n}", "/blog/feed?a=b", "/feed?a=b /blog/feed?a=b"},
		{"strip_prefix", "uri strip_prefix /blog\nfeed_shield\nbackend {uri}", "/blog/feed", "/feed"},
		{"escapes", "feed_shield\nbackend {http.request.orig_uri}", "/a%2Fb%20c/feed?q=%20x&&y", "/a%2Fb%20c/feed?q=%20x&&y"},
		{"two slashes", "feed_shield\nbackend {http.request.orig_uri}", "//feed//a", "//feed//a"},
		{"question mark alone", "feed_shield\nbackend {http.request.orig_uri}", "/feed?", "/feed?"},
		{"map", "map {host} {tenant} {\nblog.test seven\ndefault none\n}\nfeed_shield\nbackend {tenant}", "/feed", "seven"},
		{"request_header", "request_header X-Tenant seven\nfeed_shield\nbackend {header.X-Tenant}", "/feed", "seven"},
		{"request_header elsewhere", "request_header /other X-Tenant seven\nfeed_shield\nbackend -{header.X-Tenant}-", "/feed", "--"},
		{"captures", "@f path_regexp f ^/(\\w+)/feed$\nhandle @f {\nfeed_shield\nbackend {re.f.1}\n}", "/seven/feed", "seven"},
		{"local address", "feed_shield\nbackend {http.request.local.port}", "/feed", "80"},
		{"client", "feed_shield\nbackend \"{client_ip} {remote_host} {header.X-Forwarded-For}\"", "/feed", "0.0.0.0 0.0.0.0 "},
		{"scheme and host", "feed_shield\nbackend {scheme}://{hostport}", "/feed", "http://blog.test"},
		{"encode", "encode\nfeed_shield\nbackend hello", "/feed", "hello"},
		{"invoke", "invoke r", "/feed", "named"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			named := "&(r) {\nroute {\nfeed_shield\nbackend named\n}\n}\n"
			stage.Run(t, named+blog+" {\nbind void/site\n"+tt.site+"\n}\n", stage.Feed(stage.FeedNamed("good")), func(s *stage.Stage) {
				for range 2 {
					w := s.Get(blog+tt.target, "X-Forwarded-For", "198.51.100.9", "X-Tenant", "evil")
					stage.WantBody(t, "a reader", w, 200, "good")
				}
				if poll := s.Expect(1, "two readers")[0]; poll.Said != tt.said {
					t.Errorf("the poll was %q, want %q", poll.Said, tt.said)
				}
			})
		})
	}
}

// Sites, and shields of one site, do not get each other's feeds.
func TestShieldsApart(t *testing.T) {
	for _, tt := range []struct {
		name, sites string
		asks        [][]string // target, then header
	}{
		{"sites of one server", "http://a.test {\nbind void/site\nfeed_shield\nbackend {host}\n}\nhttp://b.test {\nbind void/site\nfeed_shield\nbackend {host}\n}",
			[][]string{{"http://a.test/feed"}, {"http://b.test/feed"}}},
		{"hosts within a site", ":80 {\nbind void/site\n@a host a.test\nhandle @a {\nfeed_shield\nbackend A\n}\nhandle {\nfeed_shield\nbackend B\n}\n}",
			[][]string{{"http://a.test/feed"}, {"http://b.test/feed"}}},
		{"wildcard", "http://*.test {\nbind void/site\nfeed_shield\nbackend {host}\n}",
			[][]string{{"http://a.test/feed"}, {"http://b.test/feed"}}},
		{"stripped prefixes", ":80 {\nbind void/site\nhandle_path /a/* {\nfeed_shield\nbackend A\n}\nhandle_path /b/* {\nfeed_shield\nbackend B\n}\n}",
			[][]string{{"/a/feed"}, {"/b/feed"}}},
		{"rewrites of one path", "http://a.test {\nbind void/site\n@m header X-Mobile 1\nrewrite @m /m{uri}\nfeed_shield\nbackend {uri}\n}",
			[][]string{{"http://a.test/feed"}, {"http://a.test/feed", "X-Mobile", "1"}}},
		{"shields of one path", "http://a.test {\nbind void/site\n@beta header X-Beta 1\nhandle @beta {\nfeed_shield\nbackend beta\n}\nhandle {\nfeed_shield\nbackend main\n}\n}",
			[][]string{{"http://a.test/feed"}, {"http://a.test/feed", "X-Beta", "1"}}},
		{"schemes", "http://a.test {\nbind void/site\nfeed_shield\nbackend {scheme}\n}",
			[][]string{{"http://a.test/feed"}, {"https://a.test/feed"}}},
		{"a named route for two sites", "&(r) {\nroute {\nfeed_shield\nbackend {host}\n}\n}\nhttp://a.test {\nbind void/site\ninvoke r\n}\nhttp://b.test {\nbind void/site\ninvoke r\n}",
			[][]string{{"http://a.test/feed"}, {"http://b.test/feed"}}},
		{"concurrent polls of one site", "http://a.test {\nbind void/site\nfeed_shield\nbackend {http.request.orig_uri}\n}",
			[][]string{{"http://a.test/feed?1"}, {"http://a.test/feed?2"}, {"http://a.test/other/feed"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Each backend says who it is.
			who := func(w http.ResponseWriter, r *http.Request) error {
				time.Sleep(time.Second)
				said := stage.Said(r)
				return stage.Feed(stage.FeedNamed("I am "+said+"."))(w, r)
			}
			stage.Run(t, tt.sites, who, func(s *stage.Stage) {
				first := make([]string, len(tt.asks))
				done := make(chan struct{})
				for round := range 3 {
					for i, ask := range tt.asks {
						go func() {
							w := s.Get(ask[0], ask[1:]...)
							if w.Code != 200 {
								t.Errorf("%v: %d %s", ask, w.Code, w.Body)
							}
							if round == 0 {
								first[i] = w.Body.String()
							} else if first[i] != w.Body.String() {
								t.Errorf("%v: first %s, then %s", ask, first[i], w.Body)
							}
							done <- struct{}{}
						}()
					}
					for range tt.asks {
						<-done
					}
					if round == 1 {
						time.Sleep(90 * time.Second)
					}
				}
				for i := range first {
					for j := range i {
						if first[i] == first[j] {
							t.Errorf("%v and %v got the same: %s", tt.asks[i], tt.asks[j], first[i])
						}
					}
				}
				s.Expect(2*len(tt.asks), "three rounds")
			})
		})
	}
}

// A shield behind another one leaves it the work.
func TestShieldBehindShield(t *testing.T) {
	stage.Run(t, blog+" {\nbind void/site\nfeed_shield /feed/*\n@xml path *.xml\nfeed_shield @xml\nbackend\n}\n", stage.Feed(stage.FeedNamed("good")), func(s *stage.Stage) {
		began := time.Now()
		stage.WantBody(t, "a reader", s.Get(blog+"/feed/a.xml"), 200, "good")
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		s.Expect(1, "a reader")
	})
}

// Among the routes for errors nobody knows what a shield would stand before.
func TestShieldAmongErrors(t *testing.T) {
	stage.Run(t, blog+" {\nbind void/site\nerror 404\nhandle_errors {\nfeed_shield\nbackend\n}\n}\n", stage.Plain(404, "sorry"), func(s *stage.Stage) {
		stage.WantBody(t, "a reader", s.Get(blog+"/feed"), 404, "sorry")
		s.Expect(1, "a reader")
	})
}

// Who may read a feed because of its address, reads it alone: a poll has no address
// that an operator would trust.
func TestShieldBeforeAccessControl(t *testing.T) {
	site := blog + " {\nbind void/site\nfeed_shield\n@far not remote_ip private_ranges 127.0.0.1/8\nrespond @far 403\nbackend\n}\n"
	stage.Run(t, site, stage.Feed(stage.FeedNamed("internal")), func(s *stage.Stage) {
		near := stage.Request("GET", blog+"/feed")
		near.RemoteAddr = "192.168.1.7:1234"
		for range 2 {
			stage.WantBody(t, "a neighbour", s.Send(near.Clone(near.Context())), 200, "internal")
			stage.WantBody(t, "a stranger", s.Get(blog+"/feed"), 403, "")
		}
	})
}

// Files from a directory that another directive has set, and answers of Caddy's own.
func TestShieldBeforeFiles(t *testing.T) {
	root := t.TempDir()
	write := func(name, title string, at time.Time) {
		t.Helper()
		path := filepath.Join(root, name)
		stage.WriteFile(t, path, stage.FeedNamed(title))
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write("feed.xml", "one", stage.Modtime)
	site := blog + " {\nbind void/site\nroot * " + root + "\nencode\nfeed_shield\nrespond /said.xml `" + stage.FeedNamed("said") + "`\nfile_server\n}\n"
	stage.Run(t, site, nil, func(s *stage.Stage) {
		stage.WantBody(t, "a file", s.Get(blog+"/feed.xml"), 200, "one")
		stage.WantBody(t, "an answer of Caddy's", s.Get(blog+"/said.xml"), 200, "said")
		stage.WantBody(t, "a missing file", s.Get(blog+"/other.xml"), 404, "")
		_, c := poller.Running()
		account, err := c.Account("shield:" + blog + "/feed.xml")
		if err != nil || account.Validators.ETag == "" || account.Validators.LastModified != stage.Modtime.Format(http.TimeFormat) {
			t.Errorf("%v: validators %+v", err, account.Validators)
		}
		if missing, err := c.Account("shield:" + blog + "/other.xml"); err != nil || missing.LastStatus != 404 {
			t.Errorf("%v: a missing file has status %d", err, missing.LastStatus)
		}
		time.Sleep(2 * time.Minute)
		s.Get(blog + "/feed.xml")
		if account, _ := c.Account("shield:" + blog + "/feed.xml"); account.LastStatus != 304 {
			t.Errorf("the second poll got %d", account.LastStatus)
		}
		if err := os.Remove(filepath.Join(root, "feed.xml")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		stage.WantBody(t, "a file that was removed", s.Get(blog+"/feed.xml"), 200, "one")
		write("feed.xml", "two", stage.Modtime.Add(time.Hour))
		time.Sleep(time.Hour)
		stage.WantBody(t, "a new file", s.Get(blog+"/feed.xml"), 200, "two")
	})
}

func TestListener(t *testing.T) {
	for want, local := range map[string]net.Addr{
		"localhost":                 nil,
		"192.0.2.1:80":              &net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: 80},
		"[fe80::1]:8080":            &net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 8080, Zone: "eth0"},
		"[::1]:443":                 &net.UDPAddr{IP: net.IPv6loopback, Port: 443},
		"socket-062ad34e.localhost": &net.UnixAddr{Name: "/run/site.sock", Net: "unix"},
	} {
		if got := listener(local); got != want {
			t.Errorf("%v: %s, want %s", local, got, want)
		}
	}
}

// HTTPS of readers is HTTPS of polls, also where a proxy that is trusted tells of it.
func TestShieldScheme(t *testing.T) {
	for _, tt := range []struct {
		name, trusted string
		header        []string
		tls           bool
		want          string
	}{
		{"http", "", nil, false, "http"},
		{"https", "", nil, true, "https"},
		{"a stranger's word", "", []string{"X-Forwarded-Proto", "https"}, false, "http"},
		{"a proxy's word", "servers {\ntrusted_proxies static " + stage.Abroad + "\n}", []string{"X-Forwarded-Proto", "https", "X-Forwarded-For", "198.51.100.9"}, false, "https"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			site := blog + " {\nbind void/site\nfeed_shield\nbackend \"{scheme} {client_ip}\"\n}\n"
			stage.RunWith(t, tt.trusted, site, stage.Feed(stage.Sample), func(s *stage.Stage) {
				r := stage.Request("GET", blog+"/feed", tt.header...)
				if tt.tls {
					r.TLS = &tls.ConnectionState{HandshakeComplete: true, ServerName: "blog.test"}
				}
				if w := s.Send(r); w.Code != 200 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
				if poll := s.Expect(1, "a reader")[0]; poll.Said != tt.want+" 0.0.0.0" || poll.Header["X-Forwarded-For"] != nil {
					t.Errorf("the poll was %q, %v", poll.Said, poll.Header)
				}
			})
		})
	}
}

// The engine that is not there yet, or any more, is no reason for a site to be down.
func TestShieldWithoutEngine(t *testing.T) {
	_, a := stage.Provision(t, upstream.New(), "")
	s := &Shield{engine: a.Engine()}
	s.position.Store(&position{known: true})
	r := stage.Request("GET", "/feed")
	ctx, leave := context.WithCancel(r.Context())
	leave()
	passed := false
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { passed = true; return nil })
	if err := s.ServeHTTP(nil, r.WithContext(ctx), next); err != nil || !passed {
		t.Errorf("passed: %v, error %v", passed, err)
	}
}

// A poisoned query must not be taken for what rewrites have made of another request.
func TestShieldKeyIsUnambiguous(t *testing.T) {
	s := &Shield{Host: "blog.test"}
	p := &position{known: true}
	seen := make(map[string]string)
	for _, targets := range [][2]string{ // original, rewritten
		{"/feed", "/feed"}, {"/feed", "/index.php"}, {"/index.php", "/index.php"}, {"/feed?a /index.php", "/feed?a /index.php"},
		{"/feed?a", "/index.php"}, {"/feed?a%20/index.php", "/x"}, {"/feed%20/index.php", "/feed%20/index.php"}, {"/feed?", "/feed?"},
		{"/feed%09X=1", "/feed%09X=1"}, {"//feed", "//feed"}, {"/feed#/x", "/feed#/x"}, {"/feed?#/x", "/feed?#/x"},
	} {
		r := stage.Request("GET", "/")
		// As HTTP/2 has it, which lets a space into the query.
		r.URL = asSent(t, targets[1])
		original := http.Request{URL: asSent(t, targets[0])}
		r = r.WithContext(context.WithValue(r.Context(), caddyhttp.OriginalRequestCtxKey, original))
		s.position.Store(p)
		key := s.keyOf(r)
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %s have the key %q", targets, other, key)
		}
		seen[key] = fmt.Sprintf("%q", targets)
		if strings.Count(key, " ") > 1 || strings.Contains(key, "\t") {
			t.Errorf("%q has the key %q", targets, key)
		}
	}
}

// asSent is the URL of a request line.
func asSent(t *testing.T, target string) *url.URL {
	t.Helper()
	u, err := url.ParseRequestURI(target)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
