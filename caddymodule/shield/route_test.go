// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/upstream"
)

// shieldOf returns a shield in front of a backend with an argument.
func shieldOf(says string, lines ...string) string {
	return "feed_shield {\norigin {\nbackend " + says + "\n}\n" + strings.Join(lines, "\n") + "\n}\n"
}

// The origin block gets a poll as rewritten by the handlers before it, and nothing else that they
// have set.
func TestShieldInRoutes(t *testing.T) {
	tests := []struct {
		name, site, target string
		said               string // by the backend, of the poll
	}{
		{"vars in the block", "feed_shield {\norigin {\nvars tenant seven\nbackend {vars.tenant}\n}\n}", "/feed", "seven"},
		{"vars before it", "vars tenant {client_ip}\n" + shieldOf("-{vars.tenant}-"), "/feed", "--"},
		{"rewrite", "rewrite /feed /index.php?feed=rss2\n" + shieldOf(`"{uri} {http.request.orig_uri}"`), "/feed", "/index.php?feed=rss2 /feed"},
		{"handle_path", "handle_path /blog/* {\n" + shieldOf(`"{uri} {http.request.orig_uri}"`) + "}", "/blog/feed?a=b", "/feed?a=b /blog/feed?a=b"},
		{"strip_prefix", "uri strip_prefix /blog\n" + shieldOf("{uri}"), "/blog/feed", "/feed"},
		{"a rewrite in the block", "feed_shield {\norigin {\nrewrite /feed /index.php\nbackend \"{uri} {http.request.orig_uri}\"\n}\n}", "/feed", "/index.php /feed"},
		{"escapes", shieldOf("{http.request.orig_uri}"), "/a%2Fb%20c/feed?q=%20x&&y", "/a%2Fb%20c/feed?q=%20x&&y"},
		{"two slashes", shieldOf("{http.request.orig_uri}"), "//feed//a", "//feed//a"},
		{"question mark alone", shieldOf("{http.request.orig_uri}"), "/feed?", "/feed"},
		{"map", "map {remote_host} {tenant} {\ndefault {remote_host}\n}\n" + shieldOf("-{tenant}-"), "/feed", "--"},
		{"map in the block", "feed_shield {\norigin {\nmap {host} {tenant} {\nblog.test seven\n}\nbackend {tenant}\n}\n}", "/feed", "seven"},
		{"request_header", "request_header X-Tenant seven\n" + shieldOf("-{header.X-Tenant}-"), "/feed", "--"},
		{"request_header in the block", "feed_shield {\norigin {\nrequest_header X-Tenant seven\nbackend {header.X-Tenant}\n}\n}", "/feed", "seven"},
		{"captures", "@f header_regexp f X-Forwarded-For ^(\\d+)\nhandle @f {\n" + shieldOf("-{re.f.1}-") + "}", "/feed", "--"},
		{"local address", shieldOf("{http.request.local.port}"), "/feed", "80"},
		{"client", shieldOf(`"{client_ip} {remote_host} {header.X-Forwarded-For}"`), "/feed", "0.0.0.0 0.0.0.0 "},
		{"scheme and host", shieldOf("{scheme}://{hostport}"), "/feed", "http://blog.test"},
		{"encode", "encode\n" + shieldOf("hello"), "/feed", "hello"},
		{"query keep", shieldOf("{uri}", "query keep a c"), "/feed?c=3&utm=1&a=1&b=2", "/feed?c=3&a=1"},
		{"query ignore", shieldOf("{uri}", "query ignore"), "/feed?utm=1", "/feed"},
	}
	host, sites := func(i int) string { return fmt.Sprintf("blog%d.test", i) }, ""
	for i, tt := range tests {
		sites += strings.ReplaceAll(blog+" {\nbind void/site\n"+tt.site+"\n}\n", "blog.test", host(i))
	}
	stage.Run(t, sites, stage.Feed(stage.FeedNamed("good")), func(s *stage.Stage) {
		for i, tt := range tests {
			for range 2 {
				w := s.Get("http://"+host(i)+tt.target, "X-Forwarded-For", "198.51.100.9", "X-Tenant", "evil")
				stage.WantBody(t, tt.name, w, 200, "good")
			}
			if poll := s.Expect(1, tt.name)[0]; poll.Text != strings.ReplaceAll(tt.said, "blog.test", host(i)) {
				t.Errorf("%s: the poll was %q, want %q", tt.name, poll.Text, tt.said)
			}
		}
	})
}

// Sites, and shields of one site, do not share feeds.
func TestShieldsApart(t *testing.T) {
	for _, tt := range []struct {
		name, sites string
		asks        [][]string // target, then header
	}{
		{"hosts within a site", "http://a.test, http://b.test {\nbind void/site\n@a host a.test\nhandle @a {\n" + shieldOf("A") + "}\nhandle {\n" + shieldOf("B") + "}\n}",
			[][]string{{"http://a.test/feed"}, {"http://b.test/feed"}}},
		{"wildcard", "http://*.test {\nbind void/site\n" + shieldOf("{host}") + "}",
			[][]string{{"http://a.test/feed"}, {"http://b.test/feed"}}},
		{"stripped prefixes", "http://a.test {\nbind void/site\nhandle_path /a/* {\n" + shieldOf("A") + "}\nhandle_path /b/* {\n" + shieldOf("B") + "}\n}",
			[][]string{{"http://a.test/a/feed"}, {"http://a.test/b/feed"}}},
		{"rewrites of one path", "http://a.test {\nbind void/site\n@m header X-Mobile 1\nrewrite @m /m{uri}\n" + shieldOf("{uri}") + "}",
			[][]string{{"http://a.test/feed"}, {"http://a.test/feed", "X-Mobile", "1"}}},
		{"schemes", "http://a.test {\nbind void/site\n" + shieldOf("{scheme}") + "}",
			[][]string{{"http://a.test/feed"}, {"https://a.test/feed"}}},
		{"concurrent polls of one site", "http://a.test {\nbind void/site\n" + shieldOf("{http.request.orig_uri}") + "}",
			[][]string{{"http://a.test/feed?1"}, {"http://a.test/feed?2"}, {"http://a.test/other/feed"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Each backend has another feed.
			who := func(w http.ResponseWriter, r *http.Request) error {
				time.Sleep(time.Second / 2)
				return stage.Feed(stage.FeedNamed("I am "+stage.Text(r)+"."))(w, r)
			}
			stage.Run(t, tt.sites, who, func(s *stage.Stage) {
				first := make([]string, len(tt.asks))
				for round := range 3 {
					var all sync.WaitGroup
					for i, ask := range tt.asks {
						all.Go(func() {
							w := s.Get(ask[0], ask[1:]...)
							if round == 0 {
								first[i] = w.Body.String()
							}
							stage.WantBody(t, fmt.Sprint(ask), w, 200, first[i])
						})
					}
					all.Wait()
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

// A shield inside the block of another one passes its polls through.
func TestShieldBehindShield(t *testing.T) {
	site := blog + " {\nbind void/site\nfeed_shield /feed/* {\norigin {\n" + shieldOf("both") + "}\n}\n}\n"
	stage.Run(t, site, stage.Feed(stage.FeedNamed("good")), func(s *stage.Stage) {
		began := time.Now()
		stage.WantBody(t, "a reader", s.Get(blog+"/feed/a.xml"), 200, "good")
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		s.Expect(1, "a reader")
	})
}

// A shield works in handle_errors.
func TestShieldAmongErrors(t *testing.T) {
	site := blog + " {\nbind void/site\nerror 404\nhandle_errors {\n" + shieldOf("sorry") + "}\n}\n"
	stage.Run(t, site, stage.Plain(404, "sorry"), func(s *stage.Stage) {
		for range 2 {
			stage.WantBody(t, "a reader", s.Get(blog+"/page"), 404, "sorry")
		}
		s.Expect(2, "two readers")
	})
}

// Access rules before a shield apply to all readers, whatever is stored. Inside the block, an address
// rule never matches a poll.
func TestShieldAndAccessControl(t *testing.T) {
	const rule = "@outside not remote_ip 192.168.0.0/16\nrespond @outside \"go away\" 403\n"
	for name, site := range map[string]string{
		"before":       rule + shieldOf("x"),
		"in the block": "feed_shield {\norigin {\n" + rule + "backend\n}\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			answer := stage.Feed(stage.FeedNamed("internal"), "Cache-Control", "max-age=600")
			stage.Run(t, blog+" {\nbind void/site\n"+site+"}\n", answer, func(s *stage.Stage) {
				for range 2 {
					stage.WantBody(t, "a stranger", s.Get(blog+"/feed"), 403, "go away")
					near := stage.Request("GET", blog+"/feed")
					near.RemoteAddr = stage.Home + ":1234"
					if w := s.Send(near); w.Code != 200 {
						t.Errorf("a neighbour: %d %s", w.Code, w.Body)
					}
					stage.WantBody(t, "a stranger", s.Get(blog+"/feed"), 403, "go away")
				}
			})
		})
	}
}

// Files, and responses of Caddy's own.
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
	write("feed.xml", "one", modtime)
	site := blog + " {\nbind void/site\nencode\nfeed_shield {\norigin {\nroot * " + root + "\nrespond /said.xml `" + stage.FeedNamed("said") + "`\nfile_server\n}\n}\n}\n"
	stage.Run(t, site, nil, func(s *stage.Stage) {
		stage.WantBody(t, "a file", s.Get(blog+"/feed.xml"), 200, "one")
		stage.WantBody(t, "an answer of Caddy's", s.Get(blog+"/said.xml"), 200, "said")
		stage.WantBody(t, "a missing file", s.Get(blog+"/other.xml"), 404, "")
		_, c := poller.Running()
		account, err := c.Status(context.Background(), feedKey("/feed.xml"))
		if err != nil || account.Validators.ETag == "" || account.Validators.LastModified != modtime.Format(http.TimeFormat) {
			t.Errorf("%v: validators %+v", err, account.Validators)
		}
		time.Sleep(2 * time.Minute)
		s.Get(blog + "/feed.xml")
		if account, _ := c.Status(context.Background(), feedKey("/feed.xml")); account.LastStatus != 304 {
			t.Errorf("the second poll got %d", account.LastStatus)
		}
		if err := os.Remove(filepath.Join(root, "feed.xml")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		stage.WantBody(t, "a file that was removed", s.Get(blog+"/feed.xml"), 200, "one")
		write("feed.xml", "two", modtime.Add(time.Hour))
		time.Sleep(time.Hour)
		stage.WantBody(t, "a new file", s.Get(blog+"/feed.xml"), 200, "two")
	})
}

// Polls have the scheme of the request, which a trusted proxy may name.
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
		{"a proxy's word", "servers {\ntrusted_proxies static " + stage.Outside + "\n}", []string{"X-Forwarded-Proto", "https", "X-Forwarded-For", "198.51.100.9"}, false, "https"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			site := blog + " {\nbind void/site\n" + shieldOf(`"{scheme} {client_ip}"`) + "}\n"
			stage.RunWith(t, tt.trusted, "", site, stage.Feed(stage.Sample), func(s *stage.Stage) {
				r := stage.Request("GET", blog+"/feed", tt.header...)
				if tt.tls {
					r.TLS = &tls.ConnectionState{HandshakeComplete: true, ServerName: "blog.test"}
				}
				if w := s.Send(r); w.Code != 200 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
				if poll := s.Expect(1, "a reader")[0]; poll.Text != tt.want+" 0.0.0.0" || poll.Header["X-Forwarded-For"] != nil {
					t.Errorf("the poll was %q, %v", poll.Text, poll.Header)
				}
			})
		})
	}
}

// Before the engine starts and after it stops, requests pass through.
func TestShieldWithoutEngine(t *testing.T) {
	ctx, _ := stage.Provision(t, upstream.New(), "")
	s := new(Shield)
	config := `{"origin": {"routes": [{"handle": [{"handler": "static_response", "body": "alive"}]}]}}`
	if err := json.Unmarshal([]byte(config), s); err != nil {
		t.Fatal(err)
	}
	if err := s.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	defer s.Cleanup()
	r := stage.Request("GET", blog+"/feed")
	gone, leave := context.WithCancel(r.Context())
	leave()
	w := httptest.NewRecorder()
	r = caddyhttp.PrepareRequest(r.WithContext(gone), caddy.NewReplacer(), w, nil)
	if err := s.ServeHTTP(w, r, nil); err != nil || w.Body.String() != "alive" {
		t.Errorf("%v, %d %s", err, w.Code, w.Body)
	}
}

// feedKey returns the key of a feed of blog.
func feedKey(target string) string {
	_, c := poller.Running()
	for _, key := range c.Keys(context.Background(), poller.ShieldCommon) {
		if poller.ReadersURL(key) == blog+target {
			return key
		}
	}
	return ""
}
