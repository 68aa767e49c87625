// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// shieldsIn returns the shields in a Caddyfile, in their order.
func shieldsIn(t *testing.T, file, text string) (list []*Shield) {
	t.Helper()
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": file})
	if err != nil {
		t.Fatal(err)
	}
	var config any
	if err := json.Unmarshal(adapted, &config); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			if v["handler"] == "feed_shield" {
				raw, _ := json.Marshal(v)
				s := &Shield{log: zap.NewNop()}
				_ = json.Unmarshal(raw, s) // it has a member handler besides
				list = append(list, s)
				return
			}
			for _, member := range v {
				walk(member)
			}
		}
	}
	walk(config)
	return list
}

// identitiesIn returns their identities.
func identitiesIn(t *testing.T, file, text string) (list []string) {
	t.Helper()
	for _, s := range shieldsIn(t, file, text) {
		if err := s.identify(); err != nil {
			t.Fatal(err)
		}
		list = append(list, s.identity)
	}
	return list
}

// The rest of the Caddyfile, its path and its imports are not part of the identity. The effect of the
// block is.
func TestIdentityIsOfTheBlock(t *testing.T) {
	dir := t.TempDir()
	stage.WriteFile(t, filepath.Join(dir, "site.inc"), "encode\n")
	stage.WriteFile(t, filepath.Join(dir, "block.inc"), "header X-A b\n")
	site := func(lines, block string) string {
		return blog + " {\n" + lines + "\nfeed_shield {\norigin {\n" + block + "\n}\n}\n}\n"
	}
	const block = "root * /srv\nhandle /a/* {\nphp_fastcgi localhost:9000\n}\nhandle_path /b/* {\ntry_files {path} /index.html\nfile_server\n}\nhandle {\nfile_server\n}"
	const other = "http://a.example {\nhandle /a/* {\nrespond a\n}\nhandle {\nrewrite /x /y\nrewrite /z /y\nrespond b\n}\n}\n"
	one := func(file, text string) string { return identitiesIn(t, file, text)[0] }
	want := one("Caddyfile", site("", block))
	for name, got := range map[string]string{
		"another path":         one("/etc/caddy/Caddyfile", site("", block)),
		"a site before it":     one("Caddyfile", other+site("", block)),
		"an import before it":  one("Caddyfile", site("import "+dir+"/site.inc", block)),
		"handles before it":    one("Caddyfile", site("handle /x {\nrespond x\n}\nhandle /y {\nrespond y\n}", block)),
		"hidden files":         one("Caddyfile", strings.Replace(site("", block), "file_server\n}\nhandle", "file_server {\nhide x\n}\n}\nhandle", 1)),
		"another site's block": identitiesIn(t, "Caddyfile", site("", block)+strings.ReplaceAll(site("", block), blog, "http://b.example"))[1],
	} {
		if got != want {
			t.Errorf("%s changes the identity", name)
		}
	}
	seen := map[string]string{want: "the block"}
	for name, block := range map[string]string{
		"another root":        strings.Replace(block, "/srv", "/srv2", 1),
		"an import in it":     block + "\nimport " + dir + "/block.inc",
		"one group":           "route {\nrewrite /a /x\nrewrite /b /x\n}",
		"two groups":          "route {\nrewrite /a /x\n}\nroute {\nrewrite /b /x\n}",
		"a variable":          "vars group tenant-a\n" + block,
		"another variable":    "vars group tenant-b\n" + block,
		"without a handle":    strings.Replace(block, "handle {\nfile_server\n}", "file_server", 1),
		"handles in disorder": strings.NewReplacer("/a/*", "/b/*", "/b/*", "/a/*").Replace(block),
	} {
		got := one("Caddyfile", site("", block))
		if seen[got] != "" {
			t.Errorf("%s has the identity of %s", name, seen[got])
		}
		seen[got] = name
	}
}
