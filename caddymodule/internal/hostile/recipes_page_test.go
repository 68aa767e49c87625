// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/feedpollard/pollard/caddymodule/internal/browser"
	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
)

func init() { caddy.RegisterModule(new(execEvents)) }

// execEvents runs a command at an event: a stand-in for the module of that name, which is not part of Caddy.
type execEvents struct{ Words []string }

func (*execEvents) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "events.handlers.exec", New: func() caddy.Module { return new(execEvents) }}
}

func (e *execEvents) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	e.Words = d.RemainingArgs()
	return nil
}

func (e *execEvents) Handle(ctx context.Context, _ caddy.Event) error {
	repl := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	var words []string
	for _, word := range e.Words {
		words = append(words, repl.ReplaceAll(word, ""))
	}
	return exec.Command(words[0], words[1:]...).Run()
}

// trustingLoopback lets tests say in X-Forwarded-For who asks.
const trustingLoopback = "servers {\ntrusted_proxies static 127.0.0.1\ntrusted_proxies_strict\n}"

// recipe is a running Caddyfile of docs/recipes.md.
type recipe struct {
	*child
	p *page
}

// recipe runs a Caddyfile of the page, in which its site is at an address of the test's.
func (p *page) recipe(t *testing.T, name, site string, pairs ...string) recipe {
	t.Helper()
	c := configure(t, setup{})
	host, _, _ := strings.Cut(strings.TrimPrefix(site, "http://"), ":")
	text := p.replaced(t, name, append(pairs, site+" {", "http://"+host+":"+portOf(c.address)+" {")...)
	stage.WriteFile(t, c.file, text)
	return recipe{c, p}
}

// run starts the Caddy.
func (r recipe) run() recipe {
	text, err := os.ReadFile(r.file)
	if err != nil {
		r.t.Fatal(err)
	}
	r.p.caddy(r.t, r.child, string(text), trustingLoopback)
	return r
}

// eventually fails unless something holds within a minute.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// serve starts a server, and returns its host and port.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// The recipes of docs/recipes.md work, and their usual mistakes cause the errors that the page names.
func TestRecipesPage(t *testing.T) {
	t.Parallel()
	p := &page{t: t, blocks: blocksOf(t, "recipes.md"), used: make(map[string]bool), tls: strings.TrimSpace(stage.TLS(t))}
	p.run("a private feed", p.privateFeed)
	p.run("an authority of your own", p.ownAuthority)
	p.run("beside a puzzle", p.besidePuzzle)
	p.run("score your own reader", p.scoreReader)
	p.run("follow a list", p.followList)
	p.run("a feed in a web page", p.webPage)
	p.run("a mail", p.mail)
	p.run("a fleet", p.fleet)
	p.run("leave", p.leave)
	p.expectAllUsed("docs/recipes.md", "Behind Miniflux or FreshRSS: yaml")
}

const household = "http://feeds.home.arpa"

func (p *page) privateFeed(t *testing.T) {
	page, err := os.ReadFile("../../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile("(?m)^\\| (?:[^|`]+ \\| )?`(header_up [^`]+)`").FindAllStringSubmatch(string(page), -1)
	wanted := map[string]string{"Authorization": "Bearer s3cret", "X-Api-Key": "s3cret", "Cookie": "session=s3cret", "Basic": "Basic s3cret"}
	const usual = `header_up Authorization "Bearer {env.GIT_TOKEN}"`
	tried := 0
	for _, line := range lines {
		t.Run(line[1], func(t *testing.T) {
			field := strings.Fields(line[1])[1]
			want := wanted[field]
			if strings.Contains(line[1], "Basic") {
				want = wanted["Basic"]
			}
			mistaken := strings.Count(line[1], " ") == 3 && !strings.Contains(line[1], `"`)
			origin := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Host != "git.example.com" || r.Header.Get(field) != want {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				_, _ = io.WriteString(w, stage.Sample)
			})
			inner := loopback.FreeAddress(t)
			r := p.recipe(t, "A private feed: caddyfile", household, "https://git.example.com", "http://"+origin, "127.0.0.1:8180", inner, usual, line[1])
			r.env = []string{"GIT_TOKEN=s3cret"}
			r.run()
			tried++
			a := r.get("/git.xml", "Host", "feeds.home.arpa")
			if mistaken {
				const remedy = `"A private feed" in docs/recipes.md`
				told := r.feeds("show", "/git.xml", "--address", r.admin)
				feed := "http://" + inner + "/alice/project.atom"
				page := r.get("/-/feeds?url="+feed, "Host", "feeds.home.arpa")
				checked := r.feeds("check", feed)
				if a.Status != 502 || !strings.Contains(a.Body, remedy) || !strings.Contains(told, remedy) || !strings.Contains(checked, remedy) ||
					!strings.Contains(page.Body, strings.ReplaceAll(remedy, `"`, "&#34;")) {
					t.Errorf("%v\n%s\n%s\n%v", a, told, checked, page)
				}
				return
			}
			if a.Status != 200 || !strings.Contains(a.Body, "<rss") {
				t.Errorf("%v", a)
			}
			for what, a := range map[string]answered{
				"a stranger at its path":    r.get("/git.xml", "Host", "feeds.home.arpa", "X-Forwarded-For", "8.8.8.8"),
				"by URL":                    r.get("/http://"+inner+"/alice/project.atom", "Host", "feeds.home.arpa"),
				"by URL, what is not named": r.get("/http://"+inner+"/alice/secret.atom", "Host", "feeds.home.arpa"),
			} {
				if a.Status != 403 {
					t.Errorf("%s: %v", what, a)
				}
			}
		})
	}
	if tried != len(wanted)+1 {
		t.Errorf("%d lines were tried, want the %d ways of a site to know readers and a mistake", tried, len(wanted))
	}
}

func (p *page) ownAuthority(t *testing.T) {
	site := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, stage.Sample) }))
	defer site.Close()
	dir := t.TempDir()
	stage.WriteFile(t, filepath.Join(dir, "own.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: site.Certificate().Raw})))
	stage.WriteFile(t, filepath.Join(dir, "own.der"), string(site.Certificate().Raw))
	for file, want := range map[string]string{
		"own.pem": "<rss", "missing.pem": "cannot be read (no such file or directory)", "own.der": "has no certificate in PEM", "": "in the environment variable SSL_CERT_FILE",
	} {
		c := configure(t, setup{app: "private_upstreams 127.0.0.1", site: "feed_gateway {\nfeed /own.xml " + site.URL + "/feed\n}\n"})
		c.env = []string{"SSL_CERT_FILE="}
		if file != "" {
			unit := strings.Fields(p.replaced(t, "An authority of your own: ini", "/etc/pollard/authority.pem", filepath.Join(dir, file)))
			c.env = []string{strings.TrimPrefix(unit[1], "Environment=")}
		}
		c.start()
		a := c.get("/own.xml")
		if !strings.Contains(a.Body, want) || (a.Status == 200) != (file == "own.pem") || a.Status != 200 && !strings.Contains(a.Body, "docs/recipes.md") {
			t.Errorf("%q: %v, want %s", file, a, want)
		}
		if a.Status == 200 {
			continue
		}
		for what, told := range map[string]string{
			"show": c.feeds("show", "/own.xml", "--address", c.admin), "check": c.feeds("check", site.URL+"/feed"),
			"the page": c.get("/-/feeds?url=" + site.URL + "/feed").Body,
		} {
			if !strings.Contains(told, want) {
				t.Errorf("%q: %s: %s", file, what, told)
			}
		}
	}
}

func (p *page) besidePuzzle(t *testing.T) {
	var application, puzzle atomic.Int64
	at := map[string]string{"8090": serve(t, func(w http.ResponseWriter, r *http.Request) {
		application.Add(1)
		w.Header().Set("Content-Type", "application/rss+xml")
		_, _ = io.WriteString(w, stage.Sample)
	}), "8923": serve(t, func(w http.ResponseWriter, r *http.Request) {
		puzzle.Add(1)
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<html><script src="/.within.website/x/cmd/anubis/static/js/main.mjs"></script></html>`)
	})}
	const name = "Beside Anubis or another puzzle: caddyfile"
	r := p.recipe(t, name, "blog.example.com", "localhost:8090", at["8090"], "localhost:8923", at["8923"]).run()
	agents := []string{"Mozilla/5.0 (compatible; Miniflux/2.3.3; +https://miniflux.app)", "Mozilla/5.0 Thunderbird/140.1", "GPTBot/1.0", "Feedbin feed-id:1"}
	for i := range 20 {
		if a := r.get("/feed/index.xml", "Host", "blog.example.com", "User-Agent", agents[i%len(agents)]); a.Status >= 400 && a.Status != 429 {
			t.Errorf("%s: %v", agents[i%len(agents)], a)
		}
	}
	if application.Load() > 2 || puzzle.Load() != 0 { // the first request may find that it is a feed
		t.Errorf("%d requests at the application, %d at the puzzle", application.Load(), puzzle.Load())
	}
	if a := r.get("/article", "Host", "blog.example.com", "User-Agent", agents[0]); !strings.Contains(a.Body, "anubis") {
		t.Errorf("a page without the puzzle: %v", a)
	}
	mistaken := p.recipe(t, name, "blog.example.com", "localhost:8090", at["8923"], "localhost:8923", at["8923"]).run()
	for range 2 {
		if a := mistaken.get("/feed/index.xml", "Host", "blog.example.com"); strings.Contains(a.Header.Get("Cache-Status"), "hit") || !strings.Contains(a.Body, "anubis") {
			t.Errorf("with the puzzle's port in the block: %v", a)
		}
	}
}

func (p *page) scoreReader(t *testing.T) {
	r := p.recipe(t, "Score your own reader: caddyfile", "http://:8082").run()
	for range 3 {
		r.get("/test/newsboat.xml", "User-Agent", "newsboat/2.38", "If-None-Match", `"made up"`)
	}
	if a := r.get("/test/newsboat.xml"); a.Status != 200 || !strings.Contains(a.Body, "/test/newsboat.xml") || a.Header.Get("Cache-Control") == "" {
		t.Errorf("%v", a)
	}
	seen := r.get("/test/status/readers")
	if seen.Status != 200 || !strings.Contains(seen.Body, "newsboat") || !strings.Contains(seen.Body, "not judged yet") {
		t.Errorf("%d %s", seen.Status, seen.Body)
	}
	if a := r.get("/test/status/readers", "X-Forwarded-For", "8.8.8.8"); a.Status != 403 {
		t.Errorf("a stranger: %v", a)
	}
}

func (p *page) followList(t *testing.T) {
	for _, program := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	const name = "Follow the list that your reader keeps: "
	answer, list := http.StatusOK, ""
	reader := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(answer)
		_, _ = io.WriteString(w, list)
	})
	feed := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, stage.Sample) })
	dir := t.TempDir()
	opml := func(feed string) string {
		return `<opml version="2.0"><body><outline type="rss" text="t" xmlUrl="` + feed + `"/></body></opml>`
	}
	stage.WriteFile(t, filepath.Join(dir, "subscriptions.opml"), opml("https://one.example/feed"))
	p.app = "private_upstreams 127.0.0.0/8"
	defer func() { p.app = "" }()
	r := p.recipe(t, name+"caddyfile", household, "/etc/pollard", dir).run()
	address := "http://feeds.home.arpa:" + portOf(r.address)
	bin := t.TempDir()
	stage.WriteFile(t, filepath.Join(bin, "pollard"), "#!/bin/sh\n"+childArgs+`="$(printf '%s\n' "$@")" exec `+os.Args[0]+"\n")
	if err := os.Chmod(filepath.Join(bin, "pollard"), 0o755); err != nil {
		t.Fatal(err)
	}
	run := func() (string, error) {
		script := exec.Command("sh", "-c", p.replaced(t, name+"sh", "/etc/pollard", dir, "https://reader.example.com", "http://"+reader, household, address))
		script.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir)
		out, err := script.CombinedOutput()
		return string(out), err
	}
	direct := "/http://" + feed + "/feed"
	if a := r.get(direct, "Host", "feeds.home.arpa"); a.Status != 403 || !strings.Contains(a.Body, "does not list this feed") {
		t.Errorf("before it is listed: %v", a)
	}
	list = opml(address + direct) // at the gateway, as a reader has it that reads through it
	if out, err := run(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	eventually(t, "the feed that is listed now is not served", func() bool { return r.get(direct, "Host", "feeds.home.arpa").Status == 200 })
	list = "<html><title>Log in</title></html>"
	if out, err := run(); err == nil {
		t.Errorf("a log-in page is taken for a list: %s", out)
	}
	answer = http.StatusInternalServerError
	if _, err := run(); err == nil {
		t.Error("an error is taken for a list")
	}
	if a := r.get(direct, "Host", "feeds.home.arpa"); a.Status != 200 {
		t.Errorf("after these the list of before does not count: %v", a)
	}
	// Without the second command.
	stage.WriteFile(t, filepath.Join(dir, "subscriptions.opml"), list)
	eventually(t, "the log does not tell of the page", func() bool {
		a := r.get(direct, "Host", "feeds.home.arpa")
		return a.Status == 200 && strings.Contains(r.logged(), "cannot read the changed subscription list")
	})
}

func (p *page) webPage(t *testing.T) {
	const name = "A feed in your own web page: "
	feed := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, stage.Sample) })
	r := p.recipe(t, name+"caddyfile", "feeds.example.com", "https://www.example.com", "http://"+feed).run()
	html := p.replaced(t, name+"html", "https://feeds.example.com", "http://feeds.example.com:"+portOf(r.address))
	site := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!DOCTYPE html><title>t</title>"+html)
	})
	if a := r.get("/news.xml", "Host", "feeds.example.com"); a.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%v", a.Header)
	}
	if testing.Short() {
		return // starts browsers
	}
	browser.Each(t, browser.Network{Names: []string{"feeds.example.com", "www.example.com"}, HTTP: portOf(r.address)}, func(t *testing.T, w browser.Window) {
		w.Open(t, "http://"+site+"/")
		w.Wait(t, "#news li")
	})
}

func (p *page) mail(t *testing.T) {
	gone := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	dir := t.TempDir()
	command := filepath.Join(dir, "mail-me")
	stage.WriteFile(t, command, "#!/bin/sh\nprintf '%s\\n' \"$@\" > "+filepath.Join(dir, "mail")+"\n")
	if err := os.Chmod(command, 0o755); err != nil {
		t.Fatal(err)
	}
	r := p.recipe(t, "A mail when a feed ends: caddyfile", household, "/usr/local/bin/mail-me", command, "https://www.example.com", "http://"+gone).run()
	r.get("/news.xml", "Host", "feeds.home.arpa")
	eventually(t, "no mail came", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "mail"))
		return strings.Contains(string(text), "http://"+gone+"/news/rss\n") && strings.Contains(string(text), "410")
	})
}

func (p *page) fleet(t *testing.T) {
	site := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/rss+xml")
		_, _ = io.WriteString(w, stage.Sample)
	})
	const name = "Fewer requests from Amazon: caddyfile"
	got := func(fleet string) (whole int) {
		r := p.recipe(t, name, "podcast.example.com", "localhost:8081", site, "fleet Amazon Music Podcast", fleet).run()
		var mu sync.Mutex
		for machine := range 20 {
			a := r.get("/feed/podcast", "Host", "podcast.example.com", "User-Agent", "Amazon Music Podcast", "X-Forwarded-For", fmt.Sprintf("44.%d.0.1", machine))
			mu.Lock()
			if a.Status == 200 {
				whole++
			}
			mu.Unlock()
		}
		return whole
	}
	if n := got("fleet Amazon Music Podcast"); n > 5 { // the first one may come from the site
		t.Errorf("20 machines get %d whole feeds", n)
	}
	if n := got("fleet amazon"); n != 20 {
		t.Errorf("with the mistake 20 machines get %d whole feeds", n)
	}
}

func (p *page) leave(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	const name = "Leave Pollard again: "
	feed := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, stage.Sample) })
	c := start(t, setup{app: "private_upstreams 127.0.0.0/8", site: "feed_gateway"})
	c.get(feedAt("http://" + feed + "/feed"))
	list := func(query string) string {
		script := exec.Command("sh", "-c", p.replaced(t, name+"sh", household, "http://"+c.address, "?direct&asked", query))
		script.Dir = t.TempDir()
		if out, err := script.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		text, err := os.ReadFile(filepath.Join(script.Dir, "subscriptions.opml"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if text := list("?direct&asked"); !strings.Contains(text, `xmlUrl="http://`+feed+`/feed"`) {
		t.Errorf("the list is %s", text)
	}
	if text := list("?direct"); strings.Contains(text, "xmlUrl") {
		t.Errorf("without asked, the list is %s", text)
	}
	r := p.recipe(t, name+"caddyfile", household).run()
	for path, want := range map[string]string{
		"/https://one.example/feed.xml?lang=en&x=%20": "https://one.example/feed.xml?lang=en&x=%20", "/http:/one.example/": "http://one.example/",
		"/~0123456789abcdef/https://one.example/a/b": "https://one.example/a/b", "/about": "",
	} {
		a := r.get(path, "Host", "feeds.home.arpa")
		if a.Header.Get("Location") != want || (a.Status == 301) != (want != "") {
			t.Errorf("%s: %d to %q, want %q", path, a.Status, a.Header.Get("Location"), want)
		}
	}
}
