// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/feedpollard/pollard/figures"
)

// shelf is a store, with who brings something there.
type shelf struct {
	figures.Memory
	number uint64
}

func (s *shelf) add(t *testing.T, taken []figures.Figure, moves []figures.Move, now time.Time) {
	t.Helper()
	s.number++
	if err := s.AddFigures(t.Context(), &figures.Batch{Node: "one", Number: s.number, At: now, Add: taken, Move: moves}); err != nil {
		t.Fatal(err)
	}
}

func (s *shelf) all(t *testing.T, kind figures.Kind) []figures.Figure {
	t.Helper()
	found, err := s.Figures(t.Context(), kind, "")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// take brings what a ledger has counted to the store.
func (s *shelf) take(t *testing.T, l *Ledger, now time.Time) (answered int64) {
	t.Helper()
	taken, of := l.Take(now)
	s.add(t, taken, nil, now)
	for _, a := range of {
		answered += a.Requests
	}
	return answered
}

func (s *shelf) recall(t *testing.T, l *Ledger, now time.Time) *Stored {
	t.Helper()
	return l.Recall(s.all(t, figures.Feed), s.all(t, figures.Family), s.all(t, figures.Reader), now)
}

func (s *shelf) report(t *testing.T, l *Ledger, now time.Time) Report {
	t.Helper()
	return l.Report(ReportOptions{Stored: s.recall(t, l, now)})
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// randomly is a request of one of some readers for one of some feeds.
func randomly(r *rand.Rand, at time.Time) Request {
	agents := []string{"FreshRSS/1.24 (Linux)", "Feedly/1.0 (%d subscribers; feed-id=7)", "", "NetNewsWire/6 (macOS)", "curl/8"}
	agent := agents[r.IntN(len(agents))]
	if agent == agents[1] {
		agent = fmt.Sprintf(agent, 1+r.IntN(50))
	}
	q := poll(at, agent, netip.AddrFrom4([4]byte{192, 0, byte(r.IntN(3)), byte(r.IntN(4))}).String())
	q.Feed = fmt.Sprint("https://example.com/", r.IntN(4))
	q.Bytes = r.Int64N(100_000)
	q.Compressible, q.Referer = r.IntN(2) == 0, r.IntN(5) == 0
	q.Status = []int{200, 200, 304, 429, 404, 503}[r.IntN(6)]
	q.SkipHours = HoursOf([]int{3, 4})
	if r.IntN(3) == 0 {
		q.IfNoneMatch, q.Validators = `"x"`, Validators(r.IntN(4))
	}
	if r.IntN(9) == 0 {
		q.Token = "alice"
	}
	return q
}

// Whatever is taken out of a ledger, and whenever, store and ledger together know what
// the ledger would know alone. A restart in between changes nothing either.
func TestNothingIsLostToTheStore(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		whole, part := NewLedger(Options{Seed: 7}), NewLedger(Options{Seed: 7})
		var s shelf
		at, answered := start(), int64(0)
		for range 500 {
			at = at.Add(time.Duration(6+r.IntN(3000)) * time.Second)
			q := randomly(r, at)
			whole.Note(q)
			part.Note(q)
			switch r.IntN(40) {
			case 0, 1:
				answered += s.take(t, part, at)
			case 2:
				answered += s.take(t, part, at)
				part = NewLedger(Options{})
				part.Use(7)
				part.Resume(s.recall(t, part, at))
			}
		}
		// Of a period: what the store drops of others is another matter.
		want, got := text(t, whole.Report(ReportOptions{})), text(t, s.report(t, part, at))
		if got != want {
			t.Fatalf("seed %d: store and ledger know\n%s\nwant\n%s", seed, got, want)
		}
		answered += s.take(t, part, at)
		if got := text(t, s.report(t, part, at)); got != want {
			t.Fatalf("seed %d: the store knows\n%s\nwant\n%s", seed, got, want)
		}
		total := whole.Report(ReportOptions{}).Total.Answers
		if answered != total.Full+total.NotModified {
			t.Errorf("seed %d: %d requests were answered, want %d", seed, answered, total.Full+total.NotModified)
		}
	}
}

// Sums stay right where more come than memory and store keep apart.
func TestSumsOfWhatGaveWay(t *testing.T) {
	l := NewLedger(Options{Readers: 8, Feeds: 2, Seed: 1})
	var s shelf
	answered := int64(0)
	const requests = storedFeeds + 500
	for i := range requests {
		q := poll(start().Add(time.Duration(i)*time.Second), "A/1", "192.0.2.1")
		q.Feed = fmt.Sprint("https://example.com/", i)
		l.Note(q)
		if i%1000 == 0 {
			answered += s.take(t, l, q.Time)
		}
	}
	now := start().Add(requests * time.Second)
	answered += s.take(t, l, now)
	if answered != requests {
		t.Errorf("%d requests were answered, want %d", answered, requests)
	}
	if got := s.report(t, l, now); got.Total.Requests != requests || len(got.Feeds) != requests {
		t.Errorf("%d requests for %d feeds", got.Total.Requests, len(got.Feeds))
	}
	for range 2 { // the second time there is nothing to do
		s.add(t, nil, Outdated(s.all(t, figures.Feed), s.all(t, figures.Family), s.all(t, figures.Reader), now), now)
		got := s.report(t, l, now)
		if got.Total.Requests != requests || got.Total.Bytes != requests*10_000 || len(got.Feeds) != storedFeeds {
			t.Errorf("after tidying: %d requests for %d feeds", got.Total.Requests, len(got.Feeds))
		}
	}

	// After two periods nobody remembers.
	later := now.Add(2 * period)
	s.add(t, nil, Outdated(s.all(t, figures.Feed), s.all(t, figures.Family), s.all(t, figures.Reader), later), later)
	for _, kind := range []figures.Kind{figures.Feed, figures.Family, figures.Reader} {
		if left := s.all(t, kind); len(left) != 0 {
			t.Errorf("%d figures %c are left", len(left), kind)
		}
	}
}

// No full address goes to a store.
func TestStoreLearnsNoAddress(t *testing.T) {
	l := NewLedger(Options{Seed: 1})
	l.Note(poll(start(), "A/1", "198.51.100.77"))
	l.Note(poll(start(), "A/1", "2001:db8:1:2:3:4:5:6"))
	taken, _ := l.Take(start())
	found := text(t, taken)
	var labels string
	for _, f := range taken {
		labels += string(f.Label)
	}
	for _, secret := range []string{"100.77", "3:4:5:6"} {
		if contains(labels, secret) || contains(found, secret) {
			t.Errorf("%s is in %s", secret, labels)
		}
	}
	if !contains(labels, "198.51.100.0/24") {
		t.Errorf("no network in %s", labels)
	}
}

func contains(text, part string) bool { return containsAny(text, []string{part}) }

func TestDamagedFiguresAreLeftOut(t *testing.T) {
	l := NewLedger(Options{Seed: 1})
	for _, f := range []figures.Figure{
		{}, {Ref: figures.Ref{Key: "12345678901234567890"}},
		{Ref: figures.Ref{Key: "zzzz5678901234567890"}, Peaks: []int64{1, 2, 3, 4}, Label: []byte("{")},
		{Ref: figures.Ref{Key: "zzzzrest"}, Peaks: []int64{1}},
	} {
		for _, kind := range []figures.Kind{figures.Feed, figures.Family, figures.Reader, figures.Tally} {
			f.Kind = kind
			one := []figures.Figure{f}
			l.Report(ReportOptions{Stored: l.Recall(one, one, one, start())})
			NewCensus().Recall(one, start())
		}
	}
	if r := l.Report(ReportOptions{}); r.Total.Requests != 0 {
		t.Errorf("%+v", r.Total)
	}
}

// A census that has been told by a store counts as the one that has told it, and nodes
// that have counted others count all.
func TestCensusesCountTogether(t *testing.T) {
	var s shelf
	now := start()
	one, two := NewCensus(), NewCensus()
	for i, c := range []*Census{one, two} {
		c.Use(1)
		for n := range 100 {
			c.Tally(feed).Note("A", netip.AddrFrom4([4]byte{byte(i), byte(n), 0, 1}))
		}
		c.Count(feed, now)
		s.add(t, c.Take(now), nil, now)
		if again := c.Take(now); len(again) != 0 {
			t.Errorf("%d bitmaps are taken twice", len(again))
		}
	}
	fresh := NewCensus()
	fresh.Use(1)
	for name, c := range map[string]*Census{"the first": one, "the second": two, "a new one": fresh} {
		c.Recall(s.all(t, figures.Tally), now)
		if got := c.Count(feed, now); got < 180 || got > 220 {
			t.Errorf("%s counts %d, want about 200", name, got)
		}
		if again := c.Take(now); len(again) != 0 {
			t.Errorf("%s takes what it was told", name)
		}
	}
	week := now.Add(generation)
	fresh.Count(feed, week)
	fresh.Tally(feed).Note("B", netip.MustParseAddr("203.0.113.1"))
	s.add(t, fresh.Take(week), nil, week)
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 201}, {generation, 201}, {2 * generation, 1}, {3 * generation, 0}} {
		late := NewCensus()
		late.Use(1)
		late.Recall(s.all(t, figures.Tally), now.Add(c.after))
		if got := late.Count(feed, now.Add(c.after)); got < c.want*9/10 || got > c.want*11/10 {
			t.Errorf("%v later: %d readers, want about %d", c.after, got, c.want)
		}
	}
	s.add(t, nil, OutdatedTallies(s.all(t, figures.Tally), week.Add(generation)), week)
	if left := s.all(t, figures.Tally); len(left) != 1 {
		t.Errorf("%d bitmaps are left, want that of the last week", len(left))
	}
	var moves []figures.Move
	for _, ref := range fresh.OfFeed(feed, week) {
		moves = append(moves, figures.Move{From: ref})
	}
	s.add(t, nil, moves, week)
	if left := s.all(t, figures.Tally); len(left) != 0 {
		t.Errorf("%d bitmaps of a forgotten feed are left", len(left))
	}
}
