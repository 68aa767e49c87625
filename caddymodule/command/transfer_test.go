// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
	"github.com/feedpollard/pollard/cache/store/sqlite"
)

// Statistics are neither exported nor imported.
func TestStatisticsStay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.SaveCounters(t.Context(), "node", []byte("data")), s.Close()); err != nil {
		t.Fatal(err)
	}
	if out, said, code := runWithErrors(t, exportCommand(), "", "--store", "sqlite:"+dir); out != "" || code != exitFailed || !strings.Contains(said, "has no feeds: nothing was exported") {
		t.Errorf("exit code %d: %s%s", code, out, said)
	}
	if _, said, code := runWithErrors(t, importCommand(), "", "--store", "sqlite:"+dir); code != exitFailed || !strings.Contains(said, "there is nothing to import") {
		t.Errorf("an empty import: exit code %d: %s", code, said)
	}
	_, said, code := runWithErrors(t, importCommand(), `{"figure":"d","key":"YQ==","value":"AQAA"}`, "--store", "sqlite:"+dir)
	if code != exitFailed || !strings.Contains(said, "line 1: statistics are not imported") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// Feeds that go from one kind of store into the other and back keep versions, validators and schedule.
func TestFeedsMoveBetweenStores(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	database := postgrestest.Start(t).Database(t)
	root := t.TempDir()
	move := func(lines, to string) string {
		t.Helper()
		if out, said, code := runWithErrors(t, importCommand(), lines, "--store", to); code != exitDone {
			t.Fatalf("import into %s: exit code %d: %s%s", to, code, out, said)
		}
		out, said, code := runWithErrors(t, exportCommand(), "", "--store", to)
		if code != exitDone || strings.Count(out, "\n") != 2 {
			t.Fatalf("export from %s: exit code %d: %s%s", to, code, out, said)
		}
		return out
	}
	due := time.Now().Add(5 * time.Hour)
	first := move(`{"url": "https://feeds.test/1", "next_poll": "`+due.Format(time.RFC3339)+`", "etag": "\"one\"", "content_type": "text/xml", `+
		`"body": "<rss version=\"2.0\"><channel><title>T</title><item><title>E</title></item></channel></rss>"}`+"\n"+
		`{"url": "https://feeds.test/2", "next_poll": "never"}`, "sqlite:"+filepath.Join(root, "first"))
	moved := first
	for _, to := range []string{"postgres:" + database, "sqlite:" + filepath.Join(root, "second")} {
		moved = move(moved, to)
		for i, line := range strings.Split(strings.TrimSpace(moved), "\n") {
			sameFeed(t, strings.Split(first, "\n")[i], line)
		}
	}
}

// sameFeed compares two exported feeds. Times are counted from the present, so they may differ by seconds.
func sameFeed(t *testing.T, a, b string) {
	t.Helper()
	fields := func(line string) (times []time.Time, others string) {
		var f map[string]any
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"next_poll", "last_poll", "last_reader", "first_reader"} {
			if at, err := time.Parse(time.RFC3339, fmt.Sprint(f[name])); err == nil {
				times = append(times, at)
				delete(f, name)
			}
		}
		return times, fmt.Sprint(f)
	}
	was, one := fields(a)
	is, two := fields(b)
	near := slices.EqualFunc(was, is, func(x, y time.Time) bool { return x.Sub(y).Abs() < 10*time.Second })
	if !near || one != two {
		t.Errorf("a feed has changed from\n%v %s\nto\n%v %s", was, one, is, two)
	}
}

func TestImportCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	feed := func(n int) string { return fmt.Sprintf("https://feeds.test/%d", n) }
	in := strings.Join([]string{
		"\ufeff" + `{"url": "` + feed(1) + `"}`,
		`{"url": "HTTPS://Feeds.Test:443/2", "next_poll": "` + time.Now().Add(time.Hour).Format(time.RFC3339) + `", "other": 1}`,
		"",
		`{"url": "` + feed(3) + `", "next_poll": "2000-01-01T00:00:00Z", "etag": "\"one\"", "content_type": "text/xml",
		"body": "<rss version=\"2.0\"><channel><title>T</title></channel></rss>"}`, // over two lines: neither makes sense
		strings.ReplaceAll(`{"url": "`+feed(4)+`", "next_poll": "never", "etag": "\"one\"", "last_modified": "Sat, 21 Nov 2026 06:00:00 GMT",
			"content_type": "text/xml", "body": "<rss version=\"2.0\"><channel><title>T</title><item><title>E</title></item></channel></rss>"}`, "\n", ""),
		`{"url": "` + feed(5) + `", "body": "<html><body>Not found</body></html>"}`,
		`{"url": "` + feed(6) + `", "next_poll": "tomorrow"}`,
		`{"url": "shield:x", "memo": {}, "state": "cold"}`,
		`{"url": "` + feed(7) + `", "memo": {"version": {"number": 1, "tag": "t", "coding": "gzip", "length": -1}}, "state": "fresh", "version": 1, "coding": "gzip", "data": "AAAA"}`,
		`{}`,
		`{"url": "` + feed(8) + `"}`,
	}, "\n")
	out, told, code := runWithErrors(t, importCommand(), in, "--store", "sqlite:"+dir)
	if code != exitFailed || out != "" {
		t.Errorf("exit code %d, printed %q", code, out)
	}
	var got []string
	for _, l := range strings.Split(told, "\n") {
		got = append(got, strings.Join(strings.Fields(l)[:min(3, len(strings.Fields(l)))], " "))
	}
	want := []string{"line 4: it", "line 5: no", "line 7: its", "line 8: next_poll:", "line 9: its", "line 10: its", "line 11: it", "imported 4 feeds", "pollard: 7 lines", ""}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("told\n%s", told)
	}
	out, _, code = runWithErrors(t, exportCommand(), "", "--store", "sqlite:"+dir)
	if code != exitDone || strings.Count(out, "\n") != 4 || !strings.Contains(out, `"`+feed(2)+`"`) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	for _, l := range strings.Split(out, "\n") {
		if strings.Contains(l, feed(4)) && (!strings.Contains(l, `"next_poll":"never"`) || !strings.Contains(l, `"etag":"\"one\""`) || !strings.Contains(l, `"state":"fresh"`)) {
			t.Errorf("the one with a body: %s", l)
		}
	}
	out, _, code = runWithErrors(t, importCommand(), in, "--json", "--store", "sqlite:"+dir)
	var done imported
	if err := json.Unmarshal([]byte(out), &done); err != nil || code != exitFailed || done != (imported{"sqlite " + dir, 4, 7}) {
		t.Errorf("exit code %d, printed %s: %v", code, out, err)
	}
}

func TestTransfersThatFail(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	held, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	installed(t, filepath.Join(dir, "Caddyfile"))
	for _, tt := range []struct {
		name, store string
		code        int
		told        string
	}{
		{"no store", "", exitUsage, "no store is named: expected --store sqlite:<directory>"},
		{"unknown", "redis:x", exitUsage, `a store "redis" is not known`},
		{"no directory", "sqlite:", exitUsage, `--store "sqlite:": expected sqlite:<directory>`},
		{"nothing there", "sqlite:" + dir + "x", exitFailed, "there is no store in "},
		{"in use", "sqlite:" + dir, exitFailed, "is in use by another process: stop that one before"},
		{"a database out of reach", "postgres://u:secret@127.0.0.1:1/feeds", exitFailed, "see whether the database runs"},
		{"a database as other commands name it", "postgres:postgres://u:secret@127.0.0.1:1/feeds", exitFailed, "see whether the database runs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, told, code := runWithErrors(t, exportCommand(), "", "--store", tt.store)
			if code != tt.code || out != "" || !strings.Contains(told, tt.told) || strings.Contains(told, "secret") {
				t.Errorf("exit code %d, told %q, want %q", code, told, tt.told)
			}
		})
	}
	if _, err := os.Stat(dir + "x"); err == nil {
		t.Error("exporting has made a store")
	}
}

// installed changes where the configuration of the installed service is expected.
func installed(t *testing.T, path string) {
	before := installedConfig
	installedConfig = path
	t.Cleanup(func() { installedConfig = before })
}

func TestStoreOfAConfiguration(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	configured := file("Caddyfile", fmt.Sprintf("{\n\tpollard {\n\t\tstore sqlite %q\n\t}\n}\n:8080 {\n\tfeed_gateway {\n\t\ttoken alice {env.NOT_HERE}\n\t}\n}\n", filepath.Join(dir, "mine")))
	feed := `{"url": "https://feeds.test/1"}`
	if _, said, code := runWithErrors(t, importCommand(), feed, "--config", configured); code != exitDone || !strings.Contains(said, "imported 1 feed into sqlite "+filepath.Join(dir, "mine")) {
		t.Errorf("import by --config: exit code %d: %s", code, said)
	}
	installed(t, configured)
	if out, said, code := runWithErrors(t, exportCommand(), ""); code != exitDone || !strings.Contains(out, "https://feeds.test/1") {
		t.Errorf("export from the installed service: exit code %d: %s%s", code, out, said)
	}
	if _, said, code := runWithErrors(t, exportCommand(), "", "--config", configured, "--store", "sqlite:x"); code != exitUsage || !strings.Contains(said, "both name a store") {
		t.Errorf("two stores: exit code %d: %s", code, said)
	}
	secret := file("postgres", "{\n\tpollard {\n\t\tstore postgres postgres://u:{env.NOT_HERE}@127.0.0.1:1/feeds\n\t}\n}\n")
	if _, said, code := runWithErrors(t, exportCommand(), "", "--config", secret); code != exitUsage || !strings.Contains(said, "env.NOT_HERE") {
		t.Errorf("a password that is not in the environment: exit code %d: %s", code, said)
	}
}
