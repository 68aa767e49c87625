// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
)

var (
	fenced  = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")
	written = regexp.MustCompile(`(?m)^\s*(?:sudo |.*/)?pollard ((?:feeds )?[a-z]+)((?: .*)?)$`)
	flagOf  = regexp.MustCompile(` (--[a-z][a-z-]*)`)
)

// texts returns the README and the pages in docs that people write by hand.
func texts(t *testing.T) map[string]string {
	t.Helper()
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, page := range append(pages, "../../../README.md", "../../../packaging/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "<!-- Written by") { // its blocks say what may be written
			all[filepath.Base(filepath.Dir(page))+"/"+filepath.Base(page)] = string(text)
		}
	}
	return all
}

// pollard runs the program, and returns what it prints.
func pollard(home string, args ...string) (string, error) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childArgs+"="+strings.Join(args, "\n"), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home,
		"ALICE_TOKEN=0f3b5c1de7a94e6f", "GIT_TOKEN=s3cret", "POLLARD_DB_PASSWORD=s3cret", "PROXY_PASSWORD=s3cret")
	out, err := c.CombinedOutput()
	return string(out), err
}

// Each Caddyfile of the README and of docs is one that `pollard validate` calls valid.
func TestCaddyfilesOfTexts(t *testing.T) {
	t.Parallel()
	const list = "/etc/pollard/subscriptions.opml"
	all := 0
	for page, text := range texts(t) {
		for _, b := range fenced.FindAllStringSubmatch(text, -1) {
			if b[1] != "caddyfile" {
				continue
			}
			all++
			dir := t.TempDir()
			stage.WriteFile(t, filepath.Join(dir, "Caddyfile"), strings.ReplaceAll(b[2], list, filepath.Join(dir, "subscriptions.opml")))
			stage.WriteFile(t, filepath.Join(dir, "subscriptions.opml"), `<opml version="2.0"><body><outline xmlUrl="https://example.com/feed.xml"/></body></opml>`)
			if out, err := pollard(dir, "validate", "--config", filepath.Join(dir, "Caddyfile")); err != nil {
				t.Errorf("%s: %v\n%s\n%s", page, err, b[2], out)
			}
		}
	}
	if all < 30 {
		t.Errorf("only %d Caddyfiles were found", all)
	}
}

// The program has each command and flag that the README and docs write.
func TestCommandsOfTexts(t *testing.T) {
	t.Parallel()
	home, help, all := t.TempDir(), make(map[string]string), 0
	for page, text := range texts(t) {
		var code strings.Builder
		rest := fenced.ReplaceAllStringFunc(text, func(b string) string {
			if m := fenced.FindStringSubmatch(b); m[1] == "sh" {
				code.WriteString(strings.ReplaceAll(m[2], "\\\n", " "))
			}
			return ""
		})
		for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(rest, -1) {
			code.WriteString(m[1] + "\n")
		}
		for _, m := range written.FindAllStringSubmatch(strings.NewReplacer("|", "\n", " > ", "\n").Replace(code.String()), -1) {
			if _, has := help[m[1]]; !has {
				out, err := pollard(home, append(strings.Fields(m[1]), "--help")...)
				if err != nil || !strings.Contains(out, "Usage:") {
					t.Errorf("%s: %s is no command: %v\n%s", page, m[0], err, out)
				}
				help[m[1]] = out
			}
			for _, f := range flagOf.FindAllStringSubmatch(m[2], -1) {
				all++
				if !strings.Contains(help[m[1]], f[1]+" ") {
					t.Errorf("%s: %s: the command has no %s", page, m[0], f[1])
				}
			}
		}
	}
	if len(help) < 12 || all < 20 {
		t.Errorf("only %d commands with %d flags were found", len(help), all)
	}
}

// The first minute of the README goes as it says.
func TestFirstMinute(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sh", "curl", "sed", "tr"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	example, err := os.ReadFile("../../../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	c := configure(t, setup{})
	ports := strings.NewReplacer(":8080", ":"+portOf(c.address), ":8090", ":"+portOf(loopback.FreeAddress(t)), "localhost:2019", c.admin)
	stage.WriteFile(t, c.file, ports.Replace(string(example)))
	c.start()
	_, minute, _ := strings.Cut(texts(t)["../README.md"], "\n## A first minute\n")
	minute, _, _ = strings.Cut(minute, "\n## ")
	want := []string{"run --config Caddyfile.example", "HTTP/1.1 200", "HTTP/1.1 304", `"next_poll"`}
	blocks := fenced.FindAllStringSubmatch(minute, -1)
	if len(blocks) != len(want) {
		t.Fatalf("%d blocks, want %d", len(blocks), len(want))
	}
	for i, b := range blocks {
		out := []byte(b[2])
		if i > 0 { // the first one has been run, as it were
			out, err = exec.Command("sh", "-c", ports.Replace(b[2])).CombinedOutput()
		}
		if err != nil || !strings.Contains(string(out), want[i]) {
			t.Errorf("%s: %v, want %s\n%s", b[2], err, want[i], out)
		}
	}
}
