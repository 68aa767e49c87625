// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/cache/transfer"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// imported stores lines, and returns the export of that.
func imported(t *testing.T, lines []byte) (refused int, export []byte) {
	t.Helper()
	store := sqlite.NewMemory(nil)
	defer store.Close()
	i := &transfer.Importer{
		Store: store,
		Host: func(u feedurl.URL) policy.Host {
			if _, err := feedurl.Parse(u.String()); err != nil {
				t.Errorf("a feed has the URL %q", u)
			}
			return policy.Host{Site: u.Name()}
		},
		Shielded: func(key string) bool { return strings.HasPrefix(key, "shield:") },
		Refused: func(_ int64, err error) {
			refused++
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("not one line: %q", err)
			}
		},
		Report: func(int64) {},
	}
	feeds, err := i.Import(t.Context(), bytes.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := transfer.Export(t.Context(), store, &out, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(out.Bytes(), []byte("\n")); int64(n) > feeds {
		t.Fatalf("%d feeds have become %d", feeds, n)
	}
	return refused, out.Bytes()
}

// An import into a running node replaces a version with the same number.
func TestImportedVersionIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(1, ""), "Cache-Control", "max-age=86400") }).open()
		before := g.get(feedURL)
		i := &transfer.Importer{
			Store: &g.store, Host: g.origin.Host, Report: func(int64) {},
			Refused: func(_ int64, err error) { t.Error(err) },
		}
		line := must(json.Marshal(map[string]string{"url": feedURL, "body": rss(2, "")}))
		if n, err := i.Import(t.Context(), bytes.NewReader(line)); n != 1 || err != nil {
			t.Fatalf("%d feeds, %v", n, err)
		}
		time.Sleep(time.Second)
		after := g.get(feedURL, "Accept-Encoding", "gzip", "If-None-Match", before.Header().Get("ETag"))
		if after.Code != 200 || strings.HasPrefix(after.Header().Get("ETag"), strings.TrimSuffix(before.Header().Get("ETag"), `"`)) {
			t.Errorf("%d with the tag %s", after.Code, after.Header().Get("ETag"))
		}
	})
}

// An answer that another system has kept is served, as though it had come by a poll.
func TestImportedAnswerIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return unchanged() }).open()
		i := &transfer.Importer{
			Store: &g.store, Host: g.origin.Host, Report: func(int64) {},
			Refused: func(_ int64, err error) { t.Error(err) },
		}
		line := `{"url":"` + feedURL + `","next_poll":"` + time.Now().Add(time.Hour).Format(time.RFC3339) + `","etag":"\"one\"","content_type":"text/xml","body":` +
			`"<rss version=\"2.0\"><channel><title>T</title><item><title>E</title><link>/1</link></item></channel></rss>"}`
		if n, err := i.Import(t.Context(), strings.NewReader(line)); n != 1 || err != nil {
			t.Fatalf("%d feeds, %v", n, err)
		}
		g.restart()
		w := g.get(feedURL)
		wantBody(t, w, 200, "<link>https://origin.test/1</link>")
		for tag, want := range map[string]int{w.Header().Get("ETag"): 304, `"one"`: 200} {
			if w := g.get(feedURL, "If-None-Match", tag); w.Code != want {
				t.Errorf("%s: %d", tag, w.Code)
			}
		}
		if n := g.origin.polls(); n != 0 {
			t.Errorf("%d polls within the hour", n)
		}
		time.Sleep(2 * time.Hour)
		g.get(feedURL)
		if n := g.origin.polls(); n != 1 || g.origin.last().Validators.ETag != `"one"` {
			t.Errorf("poll %d carried %+v", n, g.origin.last().Validators)
		}
	})
}

// Readers get the same ETag and date after an import, however long that takes, as from the store that was exported.
func TestImportKeepsTheDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := func(policy.Ask) policy.Answer { return ok(rss(2, "")) }
		from := newGateway(t, answer).open()
		want := from.get(feedURL).Header()
		time.Sleep(30 * time.Minute)
		var out bytes.Buffer
		if err := transfer.Export(t.Context(), &from.store, &out, func(int64) {}); err != nil {
			t.Fatal(err)
		}
		to := newGateway(t, answer).open()
		i := &transfer.Importer{Store: &to.store, Host: to.origin.Host, Report: func(int64) {}, Refused: func(_ int64, err error) { t.Error(err) }}
		if n, err := i.Import(t.Context(), &out); n != 1 || err != nil {
			t.Fatalf("%d feeds, %v", n, err)
		}
		time.Sleep(30 * time.Hour)
		to.restart()
		for range 2 { // before and after its next poll
			got := to.get(feedURL).Header()
			if got.Get("ETag") != want.Get("ETag") || got.Get("Last-Modified") != want.Get("Last-Modified") {
				t.Errorf("%v, want %v", got, want)
			}
			synctest.Wait()
		}
		if n := to.origin.polls(); n != 1 {
			t.Errorf("%d polls, want 1", n)
		}
	})
}

// FuzzImport imports lines that may come from anywhere. Lines that were accepted can be
// exported, imported again without a refusal, and is the same then.
func FuzzImport(f *testing.F) {
	f.Add([]byte("\xef\xbb\xbf" + `{"url":"https://Example.com","next_poll":"2000-01-02T00:00:00Z","last_reader":"1999-12-31T00:00:00Z"}`))
	f.Add([]byte(`{"url":"https://example.com/feed","etag":"\"é\"","content_type":"text/xml","body":"<rss version=\"2.0\"><channel><title>T</title><item><title>E</title></item></channel></rss>"}`))
	f.Add([]byte(`{"url":"https://example.com/feed","next_poll":"never","state":"fresh","hold_seconds":3600,"facts":{"status":200},"memo":{"version":{"number":1,"tag":"aa","length":3,"coding":"identity"}},"version":1,"coding":"identity","data":"Zm9v"}`))
	f.Add([]byte("{\"url\":\"shield:x y\",\"state\":\"gone\",\"facts\":{\"failure\":\"gone\"}}\n\n{}\nnull\n{\"url\":\"http://a.example/\",\"spacing_seconds\":1e300}"))
	f.Fuzz(func(t *testing.T, lines []byte) {
		synctest.Test(t, func(t *testing.T) {
			_, once := imported(t, lines)
			refused, twice := imported(t, once)
			if refused > 0 || !bytes.Equal(once, twice) {
				t.Errorf("%q was exported as\n%s\n%d lines of that were refused, and it became\n%s", lines, once, refused, twice)
			}
		})
	})
}
