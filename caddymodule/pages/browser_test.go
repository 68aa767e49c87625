// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/internal/browser"
	"github.com/feedpollard/pollard/internal/status"
)

// serve runs pages as a gateway mounts them: at the root and, for a holder of the
// token "secret", below /~secret/; and below /status/ those of a shield.
func serve(t *testing.T, p *Pages, at Place) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	shield, atShield := ofShield(p)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, path := at, r.URL.Path
		at.Gateway = server.URL + "/"
		if rest, ok := strings.CutPrefix(path, "/~secret/"); ok {
			at.Home, at.Below, at.Gateway, at.Token, path = "/~secret/", "/~secret/-/", at.Gateway+"~secret/", true, "/"+rest
		}
		if strings.HasPrefix(path, "/https://none.example/") {
			p.ServeProblem(w, door.Read(r), at, 502, "The URL gives an HTML page, not a feed.", path[1:])
			return
		}
		if strings.HasPrefix(path, "/https://") {
			p.ServeSite(w, door.Read(r), at, Site{URL: "https://blog.example/", Title: "Notes from the river", Feeds: []Found{{URL: "https://blog.example/posts/feed-0.xml", Title: "All posts", Type: "application/atom+xml"}}})
			return
		}
		if name, ok := strings.CutPrefix(path, atShield.Below); ok {
			shield.ServeHTTP(w, door.Read(r), atShield, name)
			return
		}
		p.ServeHTTP(w, door.Read(r), at, strings.TrimPrefix(strings.TrimPrefix(path, "/"), "-/"))
	})
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// tab is a browser's window that notes what it asks for.
type tab struct {
	ctx context.Context

	mu     sync.Mutex
	asked  []string // URLs of requests
	errors []string // on the console: violations of the policy above all
}

// openTab starts a browser that has nothing but loopback.
func openTab(t *testing.T) *tab {
	t.Helper()
	b := &tab{ctx: browser.Open(t)}
	err := chromedp.Listen(b.ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			b.asked = append(b.asked, e.Request.URL)
		case *runtime.EventExceptionThrown:
			b.errors = append(b.errors, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError && !strings.HasSuffix(e.Entry.URL, "/-/nothing") && !strings.Contains(e.Entry.URL, "none.example") {
				b.errors = append(b.errors, e.Entry.Text)
			}
		}
	})
	if err != nil {
		t.Fatalf("starting the browser: %v", err)
	}
	return b
}

func (b *tab) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// follow takes steps that lead to another page, and waits for that page.
func (b *tab) follow(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if _, err := chromedp.RunResponse(b.ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// open goes to an address.
func (b *tab) open(t *testing.T, address string) {
	t.Helper()
	b.follow(t, chromedp.Navigate(address))
}

// get runs an action for its result.
func get[T any](t *testing.T, b *tab, action chromedp.Action[T]) T {
	t.Helper()
	result, err := chromedp.Run(b.ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// colours switches the system's colours to light or dark.
func (b *tab) colours(t *testing.T, scheme string) {
	t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	b := openTab(t)
	p, source, at := newPages(t, 10_000)
	at.Chosen = func() ([]status.Feed, error) {
		return []status.Feed{{URL: "https://old.example/feed", Address: "http://feeds.home.arpa/old.xml", State: status.StateFailing}}, nil
	}
	server := serve(t, p, at)
	feed := string(source.row(0).URL)

	t.Run("from a site to a feed and a poll", func(t *testing.T) {
		b.open(t, server.URL+"/")
		b.do(t, chromedp.SendKeys(chromedp.CSS("#find"), "https://blog.example/"))
		b.follow(t, chromedp.Click(chromedp.CSS(".find button")))
		if got := get(t, b, chromedp.Text(chromedp.CSS(".found code"))); got != server.URL+"/"+feed {
			t.Errorf("the address is %q", got)
		}
		b.do(t, chromedp.Click(chromedp.CSS(".found .copy")), chromedp.WaitVisible(`//button[.="Copied"]`))
		b.follow(t, chromedp.Click(chromedp.CSS(".found li a")))
		if got := get(t, b, chromedp.Text(chromedp.CSS("h1"))); got != "Notes from the river" {
			t.Errorf("the feed's page is headed %q", got)
		}
		b.follow(t, chromedp.Click(chromedp.CSS(".refresh button")))
		if got := get(t, b, chromedp.Text(chromedp.CSS(".note"))); !strings.Contains(got, "nothing has changed") {
			t.Errorf("after the poll the page says %q", got)
		}
		if got := source.polledByHand(); len(got) != 1 || got[0].URL != feed {
			t.Errorf("polled %v, want %s once", got, feed)
		}
		if !get(t, b, chromedp.Evaluate[bool](`document.querySelector(".refresh button").disabled`)) {
			t.Error("the page offers another poll at once")
		}
	})

	t.Run("search among 10,000", func(t *testing.T) {
		b.open(t, server.URL+"/-/feeds")
		b.do(t, chromedp.SendKeys(chromedp.CSS("#q"), "feed-7777."))
		// A choice by keyboard passes other values, and must not leave the page (WCAG 2.2, 3.2.2).
		b.do(t, chromedp.SendKeys(chromedp.CSS("#sort"), kb.ArrowDown))
		if got := get(t, b, chromedp.Evaluate[string](`document.activeElement.id + " " + document.activeElement.value + " " + location.search`)); got != "sort next " {
			t.Errorf("after an arrow key on the order: %q", got)
		}
		b.follow(t, chromedp.Click(chromedp.CSS(".filter button")))
		if got := get(t, b, chromedp.Evaluate[string](`location.search`)); got != "?q=feed-7777.&state=&sort=next" {
			t.Errorf("Show leads to %q", got)
		}
		urls := get(t, b, chromedp.Evaluate[[]string](`[...document.querySelectorAll(".feeds li a")].map(a => a.title)`))
		if len(urls) != 1 || urls[0] != string(source.row(7777).URL) {
			t.Errorf("found %q", urls)
		}
	})

	t.Run("without script", func(t *testing.T) {
		script := func(off bool) {
			if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: off}); err != nil {
				t.Fatal(err)
			}
		}
		script(true)
		defer script(false)
		b.open(t, server.URL+"/-/feeds?q=feed-7777.")
		if !get(t, b, chromedp.Evaluate[bool](`document.querySelector(".filter button").offsetParent !== null`)) {
			t.Error("without script, filters have no button")
		}
		b.follow(t, chromedp.Click(chromedp.CSS(".feeds li a")))
		b.follow(t, chromedp.Click(chromedp.CSS(`nav a[href$="savings"]`)))
		if got := get(t, b, chromedp.Text(chromedp.CSS("h1"))); !strings.HasPrefix(got, "Sites were spared") {
			t.Errorf("the page of savings is headed %q", got)
		}
		if get(t, b, chromedp.Evaluate[int](`document.querySelectorAll("time[title]").length`)) != 0 {
			t.Error("the script has run")
		}
	})

	t.Run("drop a subscription list", func(t *testing.T) {
		dir := t.TempDir()
		done := make(chan string, 1)
		err := chromedp.ListenBrowser(b.ctx, func(event any) {
			if e, ok := event.(*cdpbrowser.EventDownloadProgress); ok && e.State == cdpbrowser.DownloadProgressStateCompleted {
				done <- e.GUID
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		yes := true
		if _, err := chromedp.CallBrowser(b.ctx, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{
			Behavior: cdpbrowser.SetDownloadBehaviorBehaviorAllowAndName, DownloadPath: dir, EventsEnabled: &yes,
		}); err != nil {
			t.Fatal(err)
		}
		b.open(t, server.URL+"/~secret/")
		get(t, b, chromedp.Evaluate[chromedp.Void](`{
				const carried = new DataTransfer();
				carried.items.add(new File(['<opml><body><outline xmlUrl="https://a.example/f"/></body></opml>'], "subscriptions.opml"));
				document.querySelector("form.drop").dispatchEvent(new DragEvent("drop", { dataTransfer: carried, bubbles: true, cancelable: true }));
			}`))
		select {
		case name := <-done:
			got, err := os.ReadFile(filepath.Join(dir, name))
			if want := `xmlUrl="` + server.URL + `/~secret/https://a.example/f"`; err != nil || !strings.Contains(string(got), want) {
				t.Errorf("got back %s (%v), want %s", got, err, want)
			}
		case <-b.ctx.Done():
			t.Fatal("nothing came back")
		}
	})

	t.Run("on a phone", func(t *testing.T) { checkPhone(t, b, server.URL) })
	t.Run("accessible", func(t *testing.T) { checkAccessibility(t, b, server.URL) })

	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.asked) < 20 {
		t.Errorf("only %d requests were seen", len(b.asked))
	}
	for _, u := range b.asked {
		if !strings.HasPrefix(u, server.URL+"/") {
			t.Errorf("a page asked for %s", u)
		}
	}
	for _, e := range b.errors {
		t.Errorf("a page complains: %s", e)
	}
}

// everyPage returns one address of each kind of page.
func everyPage() (paths []string) {
	for _, name := range pageNames() {
		switch {
		case notHTML[name]:
		case routes[name].shield:
			paths = append(paths, "/status/"+name)
		default:
			paths = append(paths, "/-/"+name)
		}
	}
	return append(paths, "/?find=https://blog.example/", "/-/feeds?state=failing&sort=failures",
		"/-/feeds?url=https%3A%2F%2Fblog.example%2Fposts%2Ffeed-0.xml", "/https://blog.example/", "/-/nothing", "/https://none.example/article")
}

// checkPhone looks at each page as phones show it: nothing scrolls sideways (WCAG 2.2, 1.4.10, down to 320 pixels),
// and what stands alone is large enough for a thumb. Links within a sentence are as high as its line.
func checkPhone(t *testing.T, b *tab, base string) {
	screen := func(p emulation.SetDeviceMetricsOverrideParams) {
		if _, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, p); err != nil {
			t.Fatal(err)
		}
	}
	defer screen(emulation.SetDeviceMetricsOverrideParams{})
	targets := 0
	for _, width := range []int64{320, 390} {
		screen(emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 844, DeviceScaleFactor: 3, Mobile: true})
		for _, path := range everyPage() {
			b.open(t, base+path)
			got := get(t, b, chromedp.Evaluate[struct {
				Wide    int64
				Targets int
				Small   []string
			}](`(() => {
				const targets = [...document.querySelectorAll("button, input, select, nav a")].filter(e => e.offsetHeight && !e.closest(".vh, .skip"))
				const small = targets.filter(e => e.getBoundingClientRect().height < 32).map(e => e.outerHTML.slice(0, 80))
				return { Wide: document.documentElement.scrollWidth, Targets: targets.length, Small: small }
			})()`))
			if got.Wide != width {
				t.Errorf("%s is %d wide, in a window of %d", path, got.Wide, width)
			}
			for _, s := range got.Small {
				t.Errorf("%s: too small for a thumb: %s", path, s)
			}
			targets += got.Targets
		}
	}
	if targets < 100 {
		t.Errorf("only %d targets were seen", targets)
	}
}

// axeVersion is pinned: another one may find more, and that is for a person to look at.
const axeVersion = "4.14.1"

func checkAccessibility(t *testing.T, b *tab, base string) {
	dir := t.TempDir()
	install := exec.Command("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir, "axe-core@"+axeVersion)
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("axe-core cannot be installed by npm: %v %s", err, out)
	}
	axe, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range everyPage() {
		b.open(t, base+path)
		get(t, b, chromedp.Evaluate[chromedp.Void](string(axe)+";0"))
		for scheme, rules := range map[string]string{"light": "{}", "dark": `{runOnly: ["color-contrast"]}`} {
			b.colours(t, scheme)
			found := get(t, b, chromedp.Evaluate[string](`axe.run(`+rules+`).then(r => JSON.stringify({
				passes: r.passes.length, bad: r.violations.map(v => v.id + ": " + v.help + " " + v.nodes.slice(0, 3).map(n => n.target).join(", "))}))`,
				chromedp.EvalAwaitPromise))
			var result struct {
				Passes int
				Bad    []string
			}
			if err := json.Unmarshal([]byte(found), &result); err != nil || result.Passes < 1 || scheme == "light" && result.Passes < 10 {
				t.Fatalf("axe-core on %s: %s (%v)", path, found, err)
			}
			for _, violation := range result.Bad {
				t.Errorf("%s, %s: %s", path, scheme, violation)
			}
		}
	}
}
