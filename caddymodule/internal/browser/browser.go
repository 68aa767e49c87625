// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package browser starts real browsers for tests of what people see.
package browser

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Window is a window of a browser.
type Window interface {
	// Open goes to an address.
	Open(t *testing.T, address string)
	// Choose chooses a file for a field of a form.
	Choose(t *testing.T, selector, file string)
	// Click clicks on an element.
	Click(t *testing.T, selector string)
	// Wait waits for an element, of the page to which a click leads: to open another page meanwhile may fail.
	Wait(t *testing.T, selector string)
}

// Network is what a browser has of a network, besides 127.0.0.1.
type Network struct {
	Names []string // hosts, all at 127.0.0.1
	HTTP  string   // the port of 127.0.0.1 that is asked in place of port 80
}

// Each runs a test in a window of each browser: of those that are not installed, it is skipped.
func Each(t *testing.T, n Network, run func(t *testing.T, w Window)) {
	t.Helper()
	t.Run("Chromium", func(t *testing.T) { run(t, window{open(t, n)}) })
	t.Run("Firefox", func(t *testing.T) { run(t, openFirefox(t, n)) })
}

// Open starts Chromium with nothing but loopback, and skips the test if it is not
// installed. The context is that of its window.
func Open(t *testing.T) context.Context { t.Helper(); return open(t, Network{}) }

func open(t *testing.T, n Network) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium is installed: apt-get install chromium")
	}
	var rules []string
	for _, name := range n.Names {
		rules = append(rules, "MAP "+name+":80 127.0.0.1:"+n.HTTP, "MAP "+name+" 127.0.0.1")
	}
	rules = append(rules, "MAP * ~NOTFOUND", "EXCLUDE 127.0.0.1")
	home := t.TempDir() // for what it downloads, too
	allocator, cancel := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(path), chromedp.UserDataDir(home), chromedp.Env("HOME="+home), chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck, chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("ignore-certificate-errors", true),
		chromedp.Flag("host-resolver-rules", strings.Join(rules, ", ")), chromedp.Flag("lang", "en-GB"))
	t.Cleanup(cancel)
	ctx, cancel := context.WithTimeout(allocator, 8*time.Minute) // a busy machine takes its time
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return ctx
}

// window is a window of Chromium.
type window struct{ ctx context.Context }

func (w window) do(t *testing.T, step chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(w.ctx, step); err != nil {
		t.Fatal(err)
	}
}

// Open tries again if a download, which a click before has begun, ends in this moment: Chromium aborts both.
func (w window) Open(t *testing.T, address string) {
	t.Helper()
	err := chromedp.Do(w.ctx, chromedp.Navigate(address))
	if err != nil && strings.Contains(err.Error(), "net::ERR_ABORTED") {
		err = chromedp.Do(w.ctx, chromedp.Navigate(address))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w window) Choose(t *testing.T, selector, file string) {
	t.Helper()
	w.do(t, chromedp.SetUploadFiles(chromedp.CSS(selector), []string{file}))
}

func (w window) Click(t *testing.T, selector string) {
	t.Helper()
	w.do(t, chromedp.Click(chromedp.CSS(selector)))
}

func (w window) Wait(t *testing.T, selector string) {
	t.Helper()
	w.do(t, chromedp.WaitVisible(chromedp.CSS(selector)))
}
