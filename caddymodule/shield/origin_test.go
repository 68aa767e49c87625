// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// The block starts with the same variables for polls and for readers' own requests. Requests that
// it does not answer go on as they came.
func TestOriginIsOneWorld(t *testing.T) {
	const said = `"{vars.tenant}|{kind}|{vars.root}|{client_ip}|{uri}|{http.request.orig_uri}|{header.X-Set}"`
	site := blog + ` {
		bind void/site
		root * /srv
		vars tenant seven
		map {host} {kind} {
			default one
		}
		request_header X-Set before
		rewrite /old* /new{uri}
		route {
		feed_shield {
			origin {
				request_header X-Set inside
				vars /unanswered tenant inside
				rewrite /unanswered /changed
				@answered not path /changed
				backend @answered ` + said + `
			}
		}
		backend ` + said + `
		}
	}
	`
	stage.Run(t, site, stage.Feed(stage.FeedNamed("good")), func(s *stage.Stage) {
		for _, tt := range []struct {
			method, target, says string
		}{
			{"GET", "/feed", "||" + noRoot + "|0.0.0.0|/feed|/feed|inside"}, // a poll
			{"POST", "/feed", "||" + noRoot + "|" + stage.Outside + "|/feed|/feed|inside"},
			{"GET", "/old/feed", "||" + noRoot + "|0.0.0.0|/new/old/feed|/old/feed|inside"},
			{"POST", "/old/feed", "||" + noRoot + "|" + stage.Outside + "|/new/old/feed|/old/feed|inside"},
			{"GET", "/unanswered", "seven|one|/srv|" + stage.Outside + "|/unanswered|/unanswered|before"},
			{"POST", "/unanswered", "seven|one|/srv|" + stage.Outside + "|/unanswered|/unanswered|before"},
		} {
			s.Send(stage.Request(tt.method, blog+tt.target))
			if got := s.Expect(1, tt.target)[0]; got.Text != tt.says {
				t.Errorf("%s %s: %q, want %q", tt.method, tt.target, got.Text, tt.says)
			}
		}
	})
}

// A block without a root finds no file, for polls and readers, and never one of the working directory.
func TestOriginWithoutRoot(t *testing.T) {
	dir := t.TempDir()
	stage.WriteFile(t, filepath.Join(dir, "feed.xml"), stage.FeedNamed("secret"))
	t.Chdir(dir)
	for _, block := range []string{
		"file_server", "try_files {path} /feed.xml\nfile_server", "handle /x* {\nroot * " + dir + "\n}\nhandle {\nfile_server\n}", "templates\nfile_server",
	} {
		site := blog + " {\nbind void/site\nroot * " + dir + "\nfeed_shield {\norigin {\n" + block + "\n}\n}\n}\n"
		stage.Run(t, site, nil, func(s *stage.Stage) {
			for _, method := range []string{"GET", "HEAD", "POST"} {
				for _, target := range []string{"/feed.xml", "/other"} {
					if w := s.Send(stage.Request(method, blog+target)); w.Code == http.StatusOK {
						t.Errorf("%q, %s %s: %d %s", block, method, target, w.Code, w.Body)
					}
				}
			}
		})
	}
	if _, err := os.Stat(noRoot); err == nil {
		t.Errorf("%s exists", noRoot)
	}
}

// Validation warns of what a block expects and does not set.
func TestOriginWarnings(t *testing.T) {
	for _, tt := range []struct{ block, want string }{
		{"reverse_proxy localhost:1", ""},
		{"root * /srv\nfile_server", ""},
		{"file_server {\nroot /srv\n}", ""},
		{"file_server", "file_server in origin finds no file"},
		{"try_files {path} /x\nreverse_proxy localhost:1", "file or try_files in origin"},
		{"php_fastcgi localhost:1", "php_fastcgi in origin"},
		{"root * /srv\nphp_fastcgi localhost:1", ""},
		{"templates\nreverse_proxy localhost:1", "templates in origin"},
		{"reverse_proxy localhost:1 {\nheader_up X-User {http.auth.user.id}\n}", "{http.auth.user.id} is empty in origin"},
		{"reverse_proxy localhost:1 {\nheader_up X-User {vars.who}\n}", "{http.vars.who} is empty in origin"},
		{"vars who alice\nreverse_proxy localhost:1 {\nheader_up X-User {vars.who}\n}", ""},
		{"reverse_proxy localhost:1 {\nheader_up X-User {re.f.1}\n}", "{http.regexp.f.1} is empty in origin"},
		{"@f path_regexp f ^/(.*)$\nrewrite @f /{re.f.1}\nreverse_proxy localhost:1", ""},
		{"reverse_proxy localhost:1 {\nheader_up X-User {client_ip}\n}", ""},
	} {
		core, logs := observer.New(zap.WarnLevel)
		s := shieldsIn(t, "Caddyfile", "http://a.test {\nfeed_shield {\norigin {\n"+tt.block+"\n}\n}\n}\n")[0]
		s.log = zap.New(core)
		if err := s.identify(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, entry := range logs.All() {
			got = append(got, entry.Message)
		}
		if all := strings.Join(got, "; "); tt.want == "" && all != "" || !strings.Contains(all, tt.want) {
			t.Errorf("%q: %q, want %q", tt.block, all, tt.want)
		}
	}
}
