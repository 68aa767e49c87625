// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package transfer_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres"
	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/cache/store/storetest"
	"github.com/feedpollard/pollard/cache/transfer"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// importInto imports lines, of which none may be refused.
func importInto(t *testing.T, s store.Store, lines io.Reader) (feeds int64) {
	t.Helper()
	i := &transfer.Importer{
		Store: s, Report: func(int64) {}, Shielded: func(string) bool { return true },
		Host: func(u feedurl.URL) policy.Host {
			return policy.Host{Site: u.Name(), Spacing: time.Second}
		},
		Refused: func(n int64, err error) { t.Errorf("line %d: %v", n, err) },
	}
	feeds, err := i.Import(t.Context(), lines)
	if err != nil {
		t.Fatal(err)
	}
	return feeds
}

func export(t *testing.T, s store.Store) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	if err := transfer.Export(t.Context(), s, &out, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	return &out
}

// records are all records of a store by ID, or what it remembers of forgotten feeds.
func records(t *testing.T, s store.Store, forgotten bool) map[store.ID]store.Record {
	t.Helper()
	all := make(map[store.ID]store.Record)
	for page, err := range store.Pages(t.Context(), s, 10, forgotten) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			all[r.ID] = r
		}
	}
	return all
}

// A store that moves to another database keeps for whom its feeds count, who asked for them and when, and what it
// remembers of those that were forgotten.
func TestMove(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { move(t, sqlite.NewMemory(nil)) })
	t.Run("PostgreSQL", func(t *testing.T) {
		to, err := postgres.Open(t.Context(), postgres.Options{URL: postgrestest.Start(t).Database(t)})
		if err != nil {
			t.Fatal(err)
		}
		move(t, to)
	})
}

func move(t *testing.T, to interface {
	store.Store
	io.Closer
}) {
	defer to.Close()
	from := sqlite.NewMemory(nil)
	defer from.Close()
	owners := []store.Owner{store.Operator, store.OwnerOf(store.KindShield, "s"), store.OwnerOf(store.KindNamed, "t"), store.OwnerOf(store.KindNamed, "a"), store.Any}
	for n, by := range owners {
		for days := range 4 {
			c := storetest.Claim(10*n + days)
			c.By, c.Hold = []store.Owner{by}, 3*time.Hour
			o := storetest.Outcome(storetest.Grant(t, from, c), nil)
			o.PollState, o.FeedState = []byte(`{"status":500}`), []byte("{}")
			if n > 1 {
				o.NotBefore = 3 * time.Hour
			}
			storetest.Commit(t, from, o)
			for day := days; day >= 0; day-- {
				asked := map[store.ID]store.Asked{c.ID: {Ago: time.Duration(day) * 24 * time.Hour, By: []store.Owner{by, owners[4]}}}
				if err := from.Touch(t.Context(), asked); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	forgotten := storetest.Claim(1)
	if err := from.Forget(t.Context(), forgotten.ID); err != nil {
		t.Fatal(err)
	}
	pause := policy.Pause{Site: "example.com", New: true, For: time.Hour, Why: policy.HintHostCooldown, Step: 2, URL: "https://example.com/1.xml"}
	if err := from.Restore(t.Context(), []store.Saved{{Pause: &pause}}); err != nil {
		t.Fatal(err)
	}

	counts := make(map[store.Owner]int)
	lines := export(t, from).Bytes()
	for range 2 { // the second time over what is there
		if n := importInto(t, to, bytes.NewReader(lines)); n != 19 {
			t.Fatalf("%d feeds were imported", n)
		}
		got := records(t, to, false)
		for id, want := range records(t, from, false) {
			counts[want.Owner]++
			r := got[id]
			if r.Owner != want.Owner || r.State != want.State || r.Version != want.Version || fmt.Sprint(r.Askers) != fmt.Sprint(want.Askers) || r.First >= 0 != (want.First >= 0) {
				t.Errorf("a feed has become\n%+v, was\n%+v", r, want)
			}
			if (r.NotBefore-want.NotBefore).Abs() > time.Minute || want.NotBefore > 0 && r.NotBefore == 0 {
				t.Errorf("a feed is not polled before %v, want %v", r.NotBefore, want.NotBefore)
			}
		}
	}
	if len(counts) != 5 {
		t.Errorf("only these owners were there: %v", counts)
	}
	was, is := records(t, from, true)[forgotten.ID], records(t, to, true)[forgotten.ID]
	if d := is.Polled - was.Polled; d.Abs() > time.Minute || (is.In-was.In).Abs() > time.Minute ||
		fmt.Sprint(is.Askers) != fmt.Sprint(was.Askers) || len(was.Askers) == 0 {
		t.Errorf("what is remembered of a forgotten feed is\n%+v, was\n%+v", is, was)
	}
	if l := storetest.Ask(t, to, forgotten); l.Denied != store.DeniedNotDue || l.Wait < 50*time.Minute {
		t.Errorf("it is polled: %+v", l)
	}
	if p, err := to.Pauses(t.Context()); err != nil || len(p) != 1 || p[0].Site != "example.com" || !p[0].New || p[0].Step != 2 || p[0].URL != pause.URL {
		t.Errorf("pauses: %+v, %v", p, err)
	}
}

// An export of the edition before says nothing of askers and of forgotten feeds. It is imported all the same.
func TestEarlierExport(t *testing.T) {
	packed, err := os.Open("testdata/earlier.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	lines, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	s := sqlite.NewMemory(nil)
	defer s.Close()
	if n := importInto(t, s, lines); n != 25 {
		t.Errorf("%d feeds were imported", n)
	}
	all := records(t, s, false)
	for url, state := range map[string]store.State{
		"https://fresh.test/feed.xml": store.StateFresh, "https://gone.test/feed.xml": store.StateGone, "https://failing.test/feed.xml": store.StateFailing,
		"https://paused.test/feed.xml": store.StateWaiting, "https://never.test/feed.xml": store.StateCold, "https://configured.example/feed.xml": store.StateFresh,
	} {
		r := all[store.IDOf(url)]
		if r.State != state || r.Polled < 0 || (r.In == store.Ended) != (state == store.StateGone) || r.Configured != (url == "https://configured.example/feed.xml") {
			t.Errorf("%s: %+v", url, r)
		}
		if state != store.StateCold {
			if b, err := store.ReadBody(t.Context(), s, r.ID); err != nil || b.Version != r.Version {
				t.Errorf("%s has no version: %v", url, err)
			}
		}
	}
}

// Pauses of hosts, in an export of an earlier version, become those of their sites, for an hour at most.
func TestEarlierPauses(t *testing.T) {
	until := time.Now().Add(5 * time.Hour).UTC().Format(time.RFC3339)
	soon := time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
	s := sqlite.NewMemory(nil)
	defer s.Close()
	importInto(t, s, strings.NewReader(`{"pause":{"scope":"host www.refuse.test 3","until":"`+until+`","why":"host-cooldown","step":1,"url":"http://www.refuse.test/feed.xml"}}
{"pause":{"scope":"ratelimit feeds.used.test","until":"`+soon+`","why":"ratelimit","step":3,"url":"http://feeds.used.test/feed.xml"}}
{"pause":{"scope":"domain all.test","until":"`+until+`","why":"host-cooldown","step":2}}
`))
	pauses, err := s.Pauses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	longest := map[string]time.Duration{"refuse.test": time.Hour, "used.test": time.Minute, "all.test": time.Hour}
	for _, p := range pauses {
		if most := longest[p.Site]; p.For > most || p.For < most-30*time.Second || p.New || p.Step != 0 {
			t.Errorf("a pause: %+v", p)
		}
		delete(longest, p.Site)
	}
	if len(longest) > 0 {
		t.Errorf("no pause of %v", longest)
	}
}

// Of half a file, the whole lines are imported, an error names the line that was cut off, and the import of all of it later adds what is missing.
func TestHalfAFile(t *testing.T) {
	from := sqlite.NewMemory(nil)
	defer from.Close()
	for n := range 4 {
		o := storetest.Outcome(storetest.Grant(t, from, storetest.Claim(n)), storetest.Text(1, "one"))
		o.PollState, o.FeedState = []byte(`{"status":200}`), []byte(`{"version":{"number":1,"tag":"aa","length":3,"coding":"identity"}}`)
		storetest.Commit(t, from, o)
	}
	whole := export(t, from).Bytes()
	last := bytes.LastIndexByte(bytes.TrimSpace(whole), '\n') + 1
	for _, left := range []int{1, 2, 40, len(whole) - last - 3} {
		to := sqlite.NewMemory(nil)
		told := ""
		i := &transfer.Importer{
			Store: to, Report: func(int64) {}, Host: func(feedurl.URL) policy.Host { return policy.Host{} },
			Refused: func(n int64, err error) { told += fmt.Sprintf("line %d: %v", n, err) },
		}
		if n, err := i.Import(t.Context(), bytes.NewReader(whole[:last+left])); n != 3 || err != nil || !strings.Contains(told, "line 4: it ends in the middle") {
			t.Errorf("%d bytes of the last line: %d feeds, %v, %q", left, n, err, told)
		}
		importInto(t, to, bytes.NewReader(whole))
		if n := len(records(t, to, false)); n != 4 {
			t.Errorf("the whole file later: %d feeds", n)
		}
		to.Close()
	}
}

// Every field of a record goes through an export and an import, but for those that are named here.
func TestEveryFieldMoves(t *testing.T) {
	skipped := map[string]string{
		"Token": "no lease outlives an import", "Poked": "the time of the poke is the next poll's", "Renew": "configured feeds are recorded at each start",
	}
	from, to := sqlite.NewMemory(nil), sqlite.NewMemory(nil)
	defer from.Close()
	defer to.Close()
	alice := store.OwnerOf(store.KindNamed, "alice")
	c := storetest.Claim(1)
	c.Host.Site, c.By, c.Own = "example.com", []store.Owner{alice}, true
	o := storetest.Outcome(storetest.Grant(t, from, c), storetest.Text(1, "one"))
	o.PollState, o.FeedState = []byte(`{"status":200}`), []byte(`{"version":{"number":1,"tag":"aa","length":3,"coding":"identity"}}`)
	o.NotBefore, o.Site, o.Points = 90*time.Minute, "example.com", new("https://example.net/feed")
	storetest.Commit(t, from, o)
	if err := from.Touch(t.Context(), map[store.ID]store.Asked{c.ID: {Ago: time.Minute, By: c.By}}); err != nil {
		t.Fatal(err)
	}
	if err := from.Restore(t.Context(), []store.Saved{{New: true, Record: store.Record{ID: c.ID, URL: c.URL, Configured: true}}}); err != nil {
		t.Fatal(err)
	}
	if n := importInto(t, to, bytes.NewReader(export(t, from).Bytes())); n != 1 {
		t.Fatalf("%d feeds were imported", n)
	}
	was, is := reflect.ValueOf(records(t, from, false)[c.ID]), reflect.ValueOf(records(t, to, false)[c.ID])
	for i := range was.NumField() {
		field := was.Type().Field(i)
		if skipped[field.Name] != "" {
			continue
		}
		a, b := was.Field(i).Interface(), is.Field(i).Interface()
		if was.Field(i).IsZero() {
			t.Errorf("%s is not set: this test does not say whether it moves", field.Name)
		}
		if d, ok := a.(time.Duration); ok && (d-b.(time.Duration)).Abs() < time.Minute && d < 0 == (b.(time.Duration) < 0) {
			continue
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s was %v, has become %v", field.Name, a, b)
		}
	}
}
