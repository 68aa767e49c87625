// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/feedpollard/pollard/caddymodule/command/check"
)

// quickCheck is `feeds check` with less patience.
func quickCheck() *cobra.Command {
	o := checkOptions{cancelOnce: true}
	return &cobra.Command{
		RunE: run(func(cmd *cobra.Command, args []string) error {
			o.json = args[0] == "json"
			return o.run(cmd.Context(), args[1], cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
}

// publisher is a site that compresses, and whose 304s compression breaks.
func publisher(t *testing.T, requests *[]string) *httptest.Server {
	t.Helper()
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		*requests = append(*requests, r.Header.Get("Accept-Encoding")+" "+r.Header.Get("If-None-Match"))
		mu.Unlock()
		switch r.URL.Path {
		case "/old.xml":
			http.Redirect(w, r, "/feed.xml", http.StatusFound)
			return
		case "/home":
			io.WriteString(w, "<!DOCTYPE html><link rel=alternate type=application/rss+xml href=/feed.xml>")
			return
		case "/page":
			io.WriteString(w, "<!DOCTYPE html><html>")
			return
		}
		w.Header().Set("Content-Type", "application/rss+xml")
		w.Header().Set("Vary", "Accept-Encoding")
		w.Header().Set("Set-Cookie", "\u009b31m=1")
		body := strings.Replace(hinted, "<item>", "<item><guid>1</guid>", 1)
		if r.Header.Get("Accept-Encoding") == "identity" {
			w.Header().Set("ETag", `"one"`)
			if r.Header.Get("If-None-Match") == `"one"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			io.WriteString(w, body)
			return
		}
		w.Header().Set("ETag", `"one-gzip"`)
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, body)
		z.Close()
	}))
	t.Cleanup(server.Close)
	return server
}

func TestCheck(t *testing.T) {
	var requests []string
	server := publisher(t, &requests)
	out, told, code := runWithErrors(t, quickCheck(), "", "text", server.URL+"/old.xml")
	if code != exitDone || strings.ContainsRune(out, '\u009b') {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	for _, want := range []string{
		"RSS 2.0, 1 entry, ",
		"1. Conditional requests fail when compression is on (problem)\n   Seen:   If-None-Match: \"one-gzip\" was answered with 200 and the same ETag; without compression, with 304.\n   Remedy: Apache httpd: set DeflateAlterETag NoChange",
		"The address redirects, and not for good (advice)\n   Seen:   302 to " + server.URL + "/feed.xml.\n",
		"\nGood:\n",
		"Many readers see: \"T\", 1 entry.\n",
		"A reader that polls every hour costs, in a month of 720 polls and 30 changes:\n",
		"Pollard would poll it again after ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if !strings.Contains(out, " kB ") || strings.Contains(out, "iB") {
		t.Errorf("sizes are not written as on the pages:\n%s", out)
	}
	const coded = "gzip, br, zstd "
	want := []string{coded, coded, coded, coded + `"one-gzip"`, "identity ", "identity ", "identity ", `identity "one"`} // each redirected
	if strings.Join(requests, "|") != strings.Join(want, "|") {
		t.Errorf("requests %q, want %q", requests, want)
	}
	if !strings.HasPrefix(told, "poll 1 of at most 4: asking for the feed\npoll 2 of") || strings.Count(told, "\n") != 4 {
		t.Errorf("told %q", told)
	}
}

func TestCheckJSON(t *testing.T) {
	var requests []string
	out, code := runCommand(t, quickCheck(), "", "json", publisher(t, &requests).URL+"/feed.xml")
	var r check.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitDone {
		t.Fatalf("exit code %d, %v: %s", code, err, out)
	}
	if r.Format != "rss" || len(r.Polls) != 4 || len(r.Findings) == 0 || r.Findings[0].ID != "compression-breaks-304" || r.Cost.With304 == 0 || r.Seconds == 0 {
		t.Errorf("%+v", r)
	}
}

func TestCheckFails(t *testing.T) {
	var requests []string
	server := publisher(t, &requests)
	out, told, code := runWithErrors(t, quickCheck(), "", "text", server.URL+"/page")
	if code != exitFailed || out != server.URL+"/page\n" || !strings.HasSuffix(told, "pollard: not a feed: an HTML page\n") {
		t.Errorf("exit code %d, %q, %q", code, out, told)
	}
	const names = "pollard: not a feed: an HTML page; the page names "
	if _, told, code := runWithErrors(t, quickCheck(), "", "text", server.URL+"/home"); code != exitFailed || !strings.HasSuffix(told, names+server.URL+"/feed.xml\n") {
		t.Errorf("a home page: exit code %d, %q", code, told)
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
	}{
		{"nothing", nil, exitUsage},
		{"no URL", []string{"ftp://a.example/"}, exitUsage},
		{"a word", []string{"notaurl"}, exitUsage},
		{"no config", []string{server.URL, "--config", "testdata/none"}, exitFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if out, code := runCommand(t, checkCommand(), "", tt.args...); code != tt.code || out != "" {
				t.Errorf("exit code %d, want %d: %s", code, tt.code, out)
			}
		})
	}
	if len(requests) != 2 {
		t.Errorf("%d requests", len(requests))
	}
}
