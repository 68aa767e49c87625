// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	_ "github.com/feedpollard/pollard/caddymodule/gateway"
	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	_ "github.com/feedpollard/pollard/caddymodule/shield"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/internal/status"
)

// gatewayWith is anyGateway with a configured feed.
func gatewayWith(feed string) string {
	return strings.Replace(anyGateway, "feed_gateway {", "feed_gateway {\n\ttoken operator s3same-0perator\n\tallow 127.0.0.1\n\tfeed /configured.xml "+feed, 1)
}

const anyGateway = `http://feeds.test {
	bind void/feeds
	feed_gateway {
		clients any
	}
}`

func TestReadersOfAShield(t *testing.T) {
	stage.RunInstance(t, "", stage.ShieldedSite("http://blog.test", "/feed*"), func(s *stage.Stage, address string) {
		s.Now(stage.Feed(stage.Sample))
		s.Get("http://blog.test/feed", "User-Agent", "FreshRSS/1.24")
		for _, args := range [][]string{nil, {"http://blog.test/feed"}} {
			out, _, code := runWithErrors(t, readersCommand(), "", append([]string{"--address", address}, args...)...)
			if code != exitDone || !strings.Contains(out, "FreshRSS") || !strings.Contains(out, "not judged yet (1 of 10 visits)") || !strings.Contains(out, "1 request, ") {
				t.Errorf("readers %s: exit code %d: %s", args, code, out)
			}
		}
	})
}

// A unix socket has an admin endpoint of Caddy that accepts no Origin.
func TestCommandsThroughASocket(t *testing.T) {
	address := "unix/" + filepath.Join(t.TempDir(), "admin.sock")
	stage.RunInstanceWith(t, "admin "+address, "", anyGateway, func(*stage.Stage, string) {
		out, errors, code := runWithErrors(t, listCommand(), "", "--address", address)
		if code != exitDone || !strings.HasPrefix(out, "No feeds") {
			t.Errorf("list: exit code %d: %s%s", code, out, errors)
		}
	})
}

func TestCommandsOfAnInstance(t *testing.T) {
	origin := origintest.New(origintest.OK(stage.Sample, "Cache-Control", "max-age=7200"))
	feed := origin.Start(t).URL + "/feed.xml"
	stage.RunInstance(t, "private_upstreams 127.0.0.0/8", anyGateway, func(s *stage.Stage, address string) {
		stage.WantBody(t, "the gateway", s.Get("http://feeds.test/"+feed), http.StatusOK, "<rss")
		for _, tt := range []struct {
			name string
			cmd  func() *cobra.Command
			args []string
			code int
			want []string // in what is printed, or told where the code is not 0
		}{
			{"list", listCommand, nil, exitDone, []string{"fresh    in 2 h     max-age               200          just now     ", feed, "1 feed, all fresh."}},
			{"show", showCommand, []string{feed}, exitDone, []string{feed, "Fresh. The site says that its answer is good for 2 hours", "200, new", "the 1st", "* max-age"}},
			{"show by the gateway's address", showCommand, []string{"http://feeds.test/~secret/" + feed}, exitDone, []string{feed + "\nFresh."}},
			{"show what is not known", showCommand, []string{"blog.example/feed"}, exitFailed, []string{"pollard: no such feed: https://blog.example/feed\n"}},
			{"show what is no URL", showCommand, []string{"ftp://blog.example/feed"}, exitUsage, []string{"pollard: \"ftp://blog.example/feed\" is not a feed URL"}},
			{"health", healthCommand, nil, exitDone, []string{"ok\n"}},
			{"health of a process", healthCommand, []string{"--live", "--json"}, exitDone, []string{`"status": "ok"`}},
			{"show nothing", showCommand, nil, exitUsage, []string{"pollard: expected the URL of one feed"}},
			{"show an empty URL", showCommand, []string{""}, exitUsage, []string{"pollard: expected the URL of one feed, such as https://example.com/feed.xml, got an empty argument"}},
			{"explain", explainCommand, []string{feed}, exitDone, []string{"Fresh. The site says", "(Cache-Control: max-age=7200)"}},
			{"list as JSON", listCommand, []string{"--json"}, exitDone, []string{`"url": "` + feed + `"`, `"winner": "max-age"`}},
			{"show as JSON", showCommand, []string{feed, "--json"}, exitDone, []string{`"url": "` + feed + `"`, `"state": "fresh"`}},
			{"explain as JSON", explainCommand, []string{feed, "--json"}, exitDone, []string{`"format": "rss"`, `"entries": 1`, `"winner": "max-age"`, `"interval_seconds": 7200`}},
			{"readers as JSON", readersCommand, []string{feed, "--json"}, exitDone, []string{`"families": [`}},
			{"refresh too early", refreshCommand, []string{feed}, exitDone, []string{"Not polled yet. It is polled in ", feed}},
			{"readers", readersCommand, nil, exitDone, []string{"No shield has had a reader yet."}},
			{"readers of a gateway's feed", readersCommand, []string{"http://feeds.test/" + feed}, exitDone, []string{"No shield has had a reader yet."}},
			{"readers of what is not known", readersCommand, []string{"blog.example/feed"}, exitFailed, []string{"pollard: no such feed: https://blog.example/feed\n"}},
			{"readers of a word", readersCommand, []string{"blog"}, exitUsage, []string{"pollard: \"blog\" is no URL: write one such as https://example.com/feed.xml\n"}},
			{"readers of two", readersCommand, []string{feed, feed}, exitUsage, []string{"pollard: expected at most"}},
			{"list a state", listCommand, []string{"--state", "fresh"}, exitDone, []string{"1 feed, all fresh."}},
			{"list another state", listCommand, []string{"--state", "failing"}, exitDone, []string{"No feed is failing."}},
			{"list by name", listCommand, []string{"--sort", "name"}, exitDone, []string{"1 feed, all fresh."}},
			{"list in no order", listCommand, []string{"--sort", "colour"}, exitUsage, []string{"--sort \"colour\": expected one of state, next, name, failures"}},
			{"list at a URL", listCommand, []string{"--address", "http://" + address + "/"}, exitDone, []string{"1 feed, all fresh."}},
			{"list no state", listCommand, []string{"--state", "cold"}, exitUsage, []string{"--state \"cold\": expected one of failing, gone, waiting, due, fresh, unread"}},
			{"forget", forgetCommand, []string{feed}, exitDone, []string{"Forgotten.\n"}},
			{"list nothing", listCommand, nil, exitDone, []string{"No feeds"}},
			{"list nothing as JSON", listCommand, []string{"--json"}, exitDone, []string{"[]"}},
			{"no instance", listCommand, []string{"--address", "unix//nonexistent/admin.sock"}, exitFailed, []string{"pollard: no running instance at unix//nonexistent/admin.sock (connect: no such file or directory): start one with `pollard run`"}},
			{"no address", listCommand, []string{"--address", "a:1-2"}, exitUsage, []string{"pollard: --address \"a:1-2\": expected one such as"}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				out, told, code := runWithErrors(t, tt.cmd(), "", append([]string{"--address", address}, tt.args...)...)
				if code != exitDone {
					if out != "" || strings.Count(told, "\n") != 1 {
						t.Errorf("printed %q and told %q", out, told)
					}
					out = told
				}
				if code != tt.code {
					t.Errorf("exit code %d, want %d", code, tt.code)
				}
				for _, want := range tt.want {
					if !strings.Contains(out, want) {
						t.Errorf("%q is not in\n%s", want, out)
					}
				}
			})
		}
		if n := len(origin.Requests()); n != 1 {
			t.Errorf("the origin had %d requests, want the one of the gateway", n)
		}
		// If the instance does not know a feed, explain asks its origin.
		out, _, code := runWithErrors(t, explainCommand(), "", "--json", "--address", address, feed+"?another")
		if n := len(origin.Requests()); code != exitDone || !strings.Contains(out, `"version": "2.0"`) || n != 2 {
			t.Errorf("explain after %d polls: exit code %d: %s", n, code, out)
		}
	})
}

// The list is sorted like the pages', says first if no site can be reached, and names shielded feeds
// by their URLs.
func TestListIsSorted(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/pollard/stats" {
			io.WriteString(w, `{"offline":true,"store_away":false}`)
			return
		}
		io.WriteString(w, `[{"id":"1","url":"https://b.example/","state":"fresh","next_poll":"2026-11-21T08:00:00Z","title":"A title that is far too long for a column"},
			{"id":"2","url":"https://c.example/","state":"fresh","next_poll":"2026-11-21T07:00:00Z","shield":true},
			{"id":"3","url":"https://d.example/","state":"waiting"},{"id":"4","url":"https://a.example/","state":"failing","failures":2,"winner":"back-off"}]`)
	}))
	defer server.Close()
	for flag, want := range map[string][]string{
		"":                {"No site can be reached;", "failing", "2 failures", "https://a.example/", "waiting", "https://d.example/", "fresh", "https://c.example/ (shield)", "A title that is", "https://b.example/", "4 feeds. 1 is failing, "},
		"--sort=name":     {"https://a.example/", "https://b.example/", "https://c.example/", "https://d.example/"},
		"--sort=next":     {"https://c.example/", "https://b.example/", "https://d.example/"},
		"--state=waiting": {"https://d.example/", "1 feed. 1 is waiting as asked."},
	} {
		out, told, code := runWithErrors(t, listCommand(), "", "--address", server.URL, cmp.Or(flag, "--sort=state"))
		rest := out
		for _, text := range want {
			at := strings.Index(rest, text)
			if at < 0 || code != 0 {
				t.Fatalf("%s: %q is not in its place in\n%s%s", flag, text, out, told)
			}
			rest = rest[at:]
		}
	}
	for flag, want := range map[string]string{"--sort=state": "4 3 2 1", "--sort=name": "4 1 2 3", "--sort=next": "2 1 3 4", "--state=waiting": "3", "--state=gone": ""} {
		out, told, code := runWithErrors(t, listCommand(), "", "--json", "--address", server.URL, flag)
		var feeds []status.Feed
		err := json.Unmarshal([]byte(out), &feeds)
		var ids []string
		for _, f := range feeds {
			ids = append(ids, f.ID)
		}
		if got := strings.Join(ids, " "); got != want || err != nil || code != 0 || feeds == nil {
			t.Errorf("%s as JSON has %q, want %q: %v %s", flag, got, want, err, told)
		}
	}
}

// Addresses that never gave a feed are counted below the list; with --all they are listed.
func TestListLeavesOutWhatIsNoFeed(t *testing.T) {
	origin := (&origintest.Origin{Answer: func(r *http.Request) origintest.Answer {
		if r.URL.Path == "/feed.xml" {
			return origintest.Status(http.StatusInternalServerError)
		}
		return origintest.Status(http.StatusNotFound)
	}}).Start(t)
	stage.RunInstance(t, "private_upstreams 127.0.0.0/8\nspacing 0", gatewayWith(origin.URL+"/feed.xml"), func(s *stage.Stage, address string) {
		list := func(flags ...string) string {
			out, told, _ := runWithErrors(t, listCommand(), "", append([]string{"--address", address}, flags...)...)
			return out + told
		}
		feed, home, folder := origin.URL+"/feed.xml", origin.URL+"/home", origin.URL+"/posts"
		s.Get("http://feeds.test/" + home)
		if got, want := list(), "1 address never gave a feed: --all lists it.\n"; !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if got, want := list("--state", "unread"), "\nNone of these addresses has given a feed yet.\n"; !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		s.Get("http://feeds.test/" + folder)
		s.Get("http://feeds.test/" + feed)
		if got := list(); strings.Contains(got, home) || strings.Contains(got, folder) || !strings.Contains(got, feed) ||
			!strings.HasSuffix(got, "\n1 feed. 1 is failing.\n2 addresses never gave a feed: --all lists them.\n") {
			t.Errorf("got\n%s", got)
		}
		for _, flag := range []string{"--all", "--json"} {
			if got := list(flag); !strings.Contains(got, home) || !strings.Contains(got, folder) || strings.Contains(got, "--all lists") {
				t.Errorf("%s: got\n%s", flag, got)
			}
		}
	})
}

// An instance may be older or newer, something else may listen there, and what it
// knows comes from strangers.
func TestCommandsOfAStrangeInstance(t *testing.T) {
	hostile := `[{"url":"https://ann:s3cret@a.example/\u001b[31mfeed","state":"failing\u009b","next_poll":"2026-11-21T08:00:00Z","last_poll":"2026-11-21T07:00:00Z",` +
		`"winner":"\u202eback-off","considered":[],"last_failure":"dns\r\n","novelty":{"a":1}}]`
	for _, tt := range []struct {
		name   string
		status int
		body   string
		code   int
		want   string
	}{
		{"hostile texts", 200, hostile, exitDone, "https://***@a.example/ [31mfeed"},
		{"half of a list", 200, strings.TrimSuffix(hostile, "]"), exitFailed, "pollard: reading the list of feeds: "},
		{"not JSON", 200, "hello", exitFailed, "pollard: reading the list of feeds: "},
		{"a Caddy without Pollard", 404, "404 page not found\n", exitFailed, "is a Caddy without Pollard\n"},
		{"without a poller", 503, `{"error":"no feed poller is running"}`, exitFailed, "pollard: no feed poller is running\n"},
		{"an error page", 502, "<html>", exitFailed, "answered 502 Bad Gateway\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				w.Write([]byte(tt.body))
			}))
			defer server.Close()
			out, told, code := runWithErrors(t, listCommand(), "", "--address", strings.TrimPrefix(server.URL, "http://"))
			if code != tt.code || !strings.Contains(out+told, tt.want) {
				t.Errorf("exit code %d, %q is not in %q", code, tt.want, out+told)
			}
			if strings.ContainsAny(out+told, "\x1b\u009b\u202e\r") || strings.Contains(out+told, "s3cret") {
				t.Errorf("printed %q", out+told)
			}
		})
	}
}

// The admin API, a gateway's pages and `feeds show` have one JSON form of a feed.
func TestOneJSONForm(t *testing.T) {
	origin := origintest.New(origintest.OK(strings.Replace(stage.Sample, "<channel>", "<channel><ttl>180</ttl>", 1), "ETag", `"1"`)).Start(t)
	feed := strings.Replace(origin.URL, "http://", "http://ann:s3cret@", 1) + "/feed.xml"
	stage.RunInstance(t, "private_upstreams 127.0.0.0/8", gatewayWith(feed), func(s *stage.Stage, address string) {
		stage.WantBody(t, "the gateway", s.Get("http://feeds.test/configured.xml", "User-Agent", "Reader/1.0"), http.StatusOK, "<rss")
		shown, told, _ := runWithErrors(t, showCommand(), "", "--json", "--address", address, feed)
		var f status.Feed
		if err := json.Unmarshal([]byte(shown), &f); err != nil {
			t.Fatal(err, told)
		}
		listed, _, _ := runWithErrors(t, listCommand(), "", "--json", "--address", address)
		page := s.Get("http://feeds.test/~s3same-0perator/-/feeds?id="+f.ID, "Accept", "application/json").Body.String()
		forms := []map[string]any{decodeFeed(t, shown), decodeFeed(t, page)}
		for i, form := range forms {
			if !reflect.DeepEqual(form, forms[0]) {
				t.Errorf("form %d has %v, want %v", i, form, forms[0])
			}
			for _, name := range []string{"state", "next_poll", "winner", "reason", "considered", "hints", "last_poll", "last_status", "last_result", "polls", "version_since", "validators", "versions"} {
				if form[name] == nil {
					t.Errorf("form %d has no %s", i, name)
				}
			}
			if poll := form["polls"].([]any)[0].(map[string]any); poll["took_seconds"] == nil || poll["took_seconds"].(float64) > 60 {
				t.Errorf("form %d has the poll %v", i, poll)
			}
		}
		if strings.Contains(shown+page, "s3cret") {
			t.Errorf("a password is shown in %s", shown)
		}
		// Lists have the same fields, except those that only one feed has.
		var lists [2][]map[string]any
		var paged struct{ Feeds []map[string]any }
		if err := json.Unmarshal([]byte(listed), &lists[0]); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(s.Get("http://feeds.test/~s3same-0perator/-/feeds", "Accept", "application/json").Body.Bytes(), &paged); err != nil {
			t.Fatal(err)
		}
		lists[1] = paged.Feeds
		for i, list := range lists {
			if len(list) != 1 {
				t.Fatalf("list %d has %d feeds", i, len(list))
			}
			for name, value := range steady(list[0]) {
				if !reflect.DeepEqual(value, forms[0][name]) {
					t.Errorf("%s is %v in list %d, want %v", name, value, i, forms[0][name])
				}
			}
		}
	})
}

func decodeFeed(t *testing.T, text string) (form map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &form); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return steady(form)
}

// steady removes what is computed from the present.
func steady(form map[string]any) map[string]any {
	delete(form, "last_asked")
	return form
}

// Caddy logs the URLs of admin requests, so a feed's URL, which may have credentials, is
// not in them.
func TestURLsAreSentAsForms(t *testing.T) {
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Method+" "+r.RequestURI+" "+r.PostFormValue("url"))
		io.WriteString(w, "{}")
	}))
	defer server.Close()
	const feed = "https://ann:s3cret@blog.example/feed"
	for _, cmd := range []*cobra.Command{showCommand(), refreshCommand(), forgetCommand(), readersCommand(), explainCommand()} {
		runWithErrors(t, cmd, "", "--address", strings.TrimPrefix(server.URL, "http://"), feed)
	}
	want := []string{"POST /pollard/feeds " + feed, "POST /pollard/refresh " + feed, "POST /pollard/forget " + feed, "POST /pollard/readers " + feed, "POST /pollard/feeds " + feed}
	if !slices.Equal(requests, want) {
		t.Errorf("got %q, want %q", requests, want)
	}
}

// A feed is named by its URL, by its path at a gateway or by its address there, and never by a
// URL that contains one of these.
func TestNamesOfFeeds(t *testing.T) {
	origin := origintest.New(origintest.OK(stage.Sample)).Start(t)
	site := func(host, lines string) string {
		return "http://" + host + " {\nbind void/feeds\nfeed_gateway {\nclients any\nallow 127.0.0.1\n" + lines + "\n}\n}\n"
	}
	below := strings.Replace(site("three.test", "feed /c.xml "+origin.URL+"/c"), "feed_gateway", "handle_path /sub/* {\nfeed_gateway", 1) + "}\n"
	sites := below + site("one.test", "feed /a.xml "+origin.URL+"/a\nfeed /both.xml "+origin.URL+"/one") + site("two.test", "feed /both.xml "+origin.URL+"/two")
	stage.RunInstance(t, "private_upstreams 127.0.0.0/8\nspacing 0", sites, func(s *stage.Stage, address string) {
		for _, url := range []string{"http://one.test/a.xml", "http://one.test/both.xml", "http://two.test/both.xml", "http://one.test/" + origin.URL + "/by-url",
			"http://three.test/sub/c.xml", "http://three.test/sub/" + origin.URL + "/below"} {
			stage.WantBody(t, url, s.Get(url), http.StatusOK, "<rss")
		}
		for _, tt := range []struct {
			name, want string
			code       int
		}{
			{origin.URL + "/a", "http://one.test/a.xml\n" + origin.URL + "/a\n", 0},
			{"/a.xml", origin.URL + "/a\n", 0},
			{"http://one.test/a.xml", origin.URL + "/a\n", 0},
			{"http://one.test/" + origin.URL + "/by-url", origin.URL + "/by-url\n", 0},
			{"/both.xml", "is a name of several feeds: write the URL of one of them, " + origin.URL + "/one or " + origin.URL + "/two", 1},
			{"http://two.test/both.xml", origin.URL + "/two\n", 0},
			{"/c.xml", "http://three.test/sub/c.xml\n" + origin.URL + "/c\n", 0},
			{"/sub/c.xml", origin.URL + "/c\n", 0},
			{"http://three.test/sub/c.xml", origin.URL + "/c\n", 0},
			{"http://three.test/sub/" + origin.URL + "/below", origin.URL + "/below\n", 0},
			{"http://three.test/c.xml", "no such feed", 1},
			{"/none.xml", "no gateway has a feed at the path /none.xml", 1},
			{"https://web.archive.example/" + origin.URL + "/a", "no such feed", 1},
			{"http://two.test/a.xml", "no such feed", 1},
			{"a.xml", "did you mean /a.xml?", 1},
			{"sub/c.xml", "did you mean /sub/c.xml?", 1},
			{origin.URL + "/a/", "did you mean " + origin.URL + "/a?", 1},
			{strings.Replace(origin.URL, "http", "https", 1) + "/a", "did you mean " + origin.URL + "/a?", 1},
		} {
			for _, command := range []*cobra.Command{showCommand(), readersCommand(), refreshCommand(), forgetCommand()} {
				if command.Name() != "show" && tt.code == 0 {
					continue
				}
				out, told, code := runWithErrors(t, command, "", "--address", address, tt.name)
				if code != tt.code || !strings.Contains(out+told, tt.want) {
					t.Errorf("%s %s: exit code %d, %s%s, want %s", command.Name(), tt.name, code, out, told, tt.want)
				}
			}
		}
		if out, told, code := runWithErrors(t, forgetCommand(), "", "--address", address, "http://one.test/"+origin.URL+"/by-url"); code != 0 || !strings.Contains(out, "Forgotten") {
			t.Errorf("forget: %d %s%s", code, out, told)
		}
		if out, _, code := runWithErrors(t, showCommand(), "", "--address", address, origin.URL+"/by-url"); code != 1 {
			t.Errorf("a forgotten feed: %s", out)
		}
	})
}
