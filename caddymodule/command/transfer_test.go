// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres"
	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

const movedFeeds = 40

// movedWeb is a web of feeds, of which each knows when it was asked.
type movedWeb struct {
	mu     sync.Mutex // guards all
	asked  map[string][]time.Time
	tagged int // requests with the validator of a version
}

func (w *movedWeb) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.asked[r.URL.String()] = append(w.asked[r.URL.String()], time.Now())
	known := r.Header.Get("If-None-Match") == `"one"`
	if known {
		w.tagged++
	}
	w.mu.Unlock()
	resp := &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Body: http.NoBody,
		Header: http.Header{"Content-Type": {"application/rss+xml"}, "Etag": {`"one"`}},
	}
	if r.URL.Path == "/down" {
		resp.StatusCode = 500
		return resp, nil
	}
	if known {
		resp.StatusCode = 304
		return resp, nil
	}
	body := fmt.Sprintf(`<rss version="2.0"><channel><title>%s</title><item><title>Entry</title><description>%s</description></item></channel></rss>`,
		r.URL, strings.Repeat("words ", 100))
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return resp, nil
}

func (w *movedWeb) polls() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, asked := range w.asked {
		n += len(asked)
	}
	return n
}

// movedFloor is the time between two polls of a feed.
const movedFloor = time.Hour

// run opens an engine over a store for the length of a function.
func (w *movedWeb) run(t *testing.T, store store.Store, prefetch bool, use func(get func(n int, header ...string) *httptest.ResponseRecorder)) {
	t.Helper()
	client := upstream.New(upstream.WithTransport(w), upstream.WithoutPacing())
	defer client.Close()
	c, err := cache.New(cache.Options{Store: store, Origin: client})
	if err != nil {
		t.Fatal(err)
	}
	rules := policy.DefaultRules()
	rules.MinInterval, rules.DefaultInterval, rules.UnvalidatedInterval, rules.MaxInterval, rules.Jitter = movedFloor, movedFloor, movedFloor, movedFloor, 0
	c.Apply(cache.Settings{Prefetch: prefetch, Rules: func(cache.Key) policy.Rules { return rules }})
	use(func(n int, header ...string) *httptest.ResponseRecorder {
		t.Helper()
		f, err := c.Feed(t.Context(), movedFeed(n))
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/", nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		f.Ask(0)
		answer := httptest.NewRecorder()
		if _, err := f.Serve(answer, r); err != nil {
			answer.Code = 500
		}
		return answer
	})
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

func movedFeed(n int) string {
	if n == 0 {
		return "https://feeds.test/down"
	}
	return fmt.Sprintf("https://feeds.test/%d.xml", n)
}

// Feeds that go from one store into another and back keep versions, validators and
// schedule: their origins notice nothing.
func TestFeedsMoveBetweenStores(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	cluster := postgrestest.Start(t)
	t.Setenv("XDG_DATA_HOME", t.TempDir()) // in which the databases that were used are recorded
	url, root := cluster.Database(t), t.TempDir()
	w := &movedWeb{asked: make(map[string][]time.Time)}
	openSQLite := func(name string) store.Store {
		s, err := sqlite.Open(filepath.Join(root, name), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	openPostgres := func() store.Store {
		s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Log: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	command := func(name, stdin string, args ...string) string {
		t.Helper()
		cmd := exportCommand()
		if name == "import" {
			cmd = importCommand()
		}
		out, told, code := runWithErrors(t, cmd, stdin, args...)
		if code != exitDone || !strings.Contains(told, fmt.Sprintf("ed %d feeds ", movedFeeds+1)) {
			t.Fatalf("%s: exit code %d: %s", name, code, told)
		}
		return out
	}

	tags := make(map[int]string)
	w.run(t, openSQLite("first"), false, func(get func(n int, header ...string) *httptest.ResponseRecorder) {
		for n := range movedFeeds + 1 {
			tags[n] = get(n).Header().Get("ETag")
		}
	})
	served := func(get func(n int, header ...string) *httptest.ResponseRecorder) {
		t.Helper()
		for n := 1; n <= movedFeeds; n++ {
			if got := get(n); got.Code != 200 || !strings.Contains(got.Body.String(), movedFeed(n)) || got.Header().Get("ETag") != tags[n] {
				t.Errorf("feed %d: %d, ETag %s, want %s", n, got.Code, got.Header().Get("ETag"), tags[n])
			}
			for _, tag := range []string{tags[n], `"one"`} {
				if code := get(n, "If-None-Match", tag).Code; code != 304 {
					t.Errorf("feed %d: %s gets %d", n, tag, code)
				}
			}
		}
	}
	first := command("export", "", "--store", "sqlite:"+filepath.Join(root, "first"))
	command("import", first, "--store", url)
	w.run(t, openPostgres(), true, served)
	second := command("export", "", "--store", "postgres:"+url)
	command("import", second, "--store", "sqlite:"+filepath.Join(root, "second"))
	third := command("export", "", "--store", "sqlite:"+filepath.Join(root, "second"))
	for i, line := range strings.Split(strings.TrimSpace(first), "\n") {
		sameFeed(t, line, strings.Split(second, "\n")[i])
		sameFeed(t, line, strings.Split(third, "\n")[i])
	}
	w.run(t, openSQLite("second"), true, served)
	if n := w.polls(); n != movedFeeds+1 {
		t.Errorf("%d polls of %d feeds", n, movedFeeds+1)
	}
}

// Imported feeds are polled when they are due, not before, and with their validators.
func TestImportedFeedsArePolledWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &movedWeb{asked: make(map[string][]time.Time)}
		from, to := sqlite.NewMemory(nil), sqlite.NewMemory(nil)
		var lines bytes.Buffer
		w.run(t, from, false, func(get func(n int, header ...string) *httptest.ResponseRecorder) {
			for n := range movedFeeds + 1 {
				get(n)
			}
			time.Sleep(2 * time.Minute) // requests of readers are stored within a minute
			if err := cache.Export(t.Context(), from, &lines, func(int64) {}); err != nil {
				t.Fatal(err)
			}
		})
		i := &cache.Importer{
			Store: to, Host: upstream.New().Host, Report: func(int64) {}, Shielded: func(string) bool { return false },
			Refused: func(_ int64, err error) { t.Error(err) },
		}
		if _, err := i.Import(t.Context(), &lines); err != nil {
			t.Fatal(err)
		}
		w.run(t, to, true, func(get func(n int, header ...string) *httptest.ResponseRecorder) {
			get(0) // during the backoff of a feed that never answered
			time.Sleep(movedFloor)
		})
		if n := len(w.asked[movedFeed(0)]); n != 1 {
			t.Errorf("a feed that failed was polled %d times", n)
		}
		for n := 1; n <= movedFeeds; n++ {
			asked := w.asked[movedFeed(n)]
			gap := time.Duration(0)
			if len(asked) > 1 {
				gap = asked[1].Sub(asked[0])
			}
			if gap < movedFloor || gap > movedFloor+time.Minute {
				t.Errorf("%s was polled again after %v", movedFeed(n), gap)
			}
		}
		if w.tagged != movedFeeds {
			t.Errorf("%d polls with validators, want one of each feed", w.tagged)
		}
	})
}

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
	_, said, code := runWithErrors(t, exportCommand(), "", "--figures", "--store", "sqlite:"+dir)
	if code != exitUsage || !strings.Contains(said, "--figures was removed") {
		t.Errorf("exit code %d: %s", code, said)
	}
	_, said, code = runWithErrors(t, importCommand(), `{"figure":"d","key":"YQ==","value":"AQAA"}`, "--store", "sqlite:"+dir)
	if code != exitFailed || !strings.Contains(said, "line 1: statistics are not imported") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// sameFeed compares lines of exports, but for the few milliseconds that clocks of
// stores are apart.
func sameFeed(t *testing.T, a, b string) {
	t.Helper()
	var one, two map[string]any
	for text, into := range map[string]*map[string]any{a: &one, b: &two} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"next_poll", "last_poll", "last_reader"} {
		x, y := fmt.Sprint(one[name]), fmt.Sprint(two[name])
		was, err1 := time.Parse(time.RFC3339, x)
		is, err2 := time.Parse(time.RFC3339, y)
		near := err1 == nil && err2 == nil && math.Abs(float64(is.Sub(was))) < float64(2*time.Second)
		if name == "last_reader" {
			near = true // readers have asked again
		}
		if x != y && !near {
			t.Errorf("%v: %s was %s and is %s", one["url"], name, x, y)
		}
		delete(one, name)
		delete(two, name)
	}
	x, _ := json.Marshal(one) // they were JSON
	y, _ := json.Marshal(two)
	if string(x) != string(y) {
		t.Errorf("a feed has changed from\n%s\nto\n%s", x, y)
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
	want := []string{"line 4: no", "line 5: no", "line 7: its", "line 8: next_poll:", "line 9: its", "line 10: its", "line 11: it", "imported 4 feeds", "pollard: 7 lines", ""}
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
