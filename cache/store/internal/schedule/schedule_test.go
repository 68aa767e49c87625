// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/feedpollard/pollard/cache/store"
)

// shelf is a keeper in memory.
type shelf struct {
	feeds map[store.ID]*Feed
	texts map[store.ID]Text
}

func (s *shelf) Get(id store.ID) (*Feed, error) { return s.feeds[id], nil }

func (s *shelf) Put(id store.ID, f *Feed, _ bool) {
	if s.feeds[id] = f; f == nil {
		delete(s.feeds, id)
		delete(s.texts, id)
	}
}

func (s *shelf) Text(id store.ID) (Text, error) { return s.texts[id], nil }

func (s *shelf) PutText(id store.ID, text Text) { s.texts[id] = text }

func (s *shelf) Note(string, []byte) {}

func (s *shelf) Each(visit func(store.ID, *Feed)) error {
	for id, f := range s.feeds {
		visit(id, f)
	}
	return nil
}

func newSchedule(t testing.TB) *Schedule {
	s, err := New(0, &shelf{feeds: make(map[store.ID]*Feed), texts: make(map[store.ID]Text)}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// act is one call, with everything drawn beforehand, so that it can be made of two
// schedules. Its result leaves out tokens, which are never given again.
type act func(s *Schedule, now Time) string

// acts draws a call. Lengths are of odd nanoseconds, so that no two moments are the same.
func acts(t *rapid.T) act {
	id := store.ID{byte(rapid.IntRange(1, 5).Draw(t, "feed"))}
	length := func(name string) time.Duration {
		return time.Duration(rapid.IntRange(1, 200).Draw(t, name))*time.Minute + time.Duration(rapid.IntRange(0, 1<<20).Draw(t, "odd"))
	}
	host := rapid.SampledFrom([]store.Host{
		{}, {Name: "a.one", Domain: "one", Spacing: time.Minute}, {Name: "two", Spacing: time.Hour},
	}).Draw(t, "host")
	some := rapid.Bool().Draw(t, "some")
	switch rapid.IntRange(0, 8).Draw(t, "call") {
	case 0, 1:
		c := store.Claim{ID: id, URL: "x", Hold: length("hold"), Host: host, Configured: some}
		if rapid.Bool().Draw(t, "by hand") {
			c.Floor = 1
		}
		return func(s *Schedule, now Time) string {
			l, err := s.Claim(now, c)
			l.Token = 0
			return fmt.Sprintf("%+v %v", l, err)
		}
	case 2, 3:
		o := store.Outcome{ID: id, In: length("in"), Hold: length("hold"), State: store.StateFresh, Host: host, Memo: []byte("memo")}
		if some {
			o.Body = &store.Body{Version: 1, Data: make([]byte, 10)}
			o.Pauses = []store.Pause{{Scope: "domain one", For: length("pause")}}
		}
		return func(s *Schedule, now Time) string {
			if f, _ := s.keeper.Get(id); f != nil {
				o.Token = f.Token
			}
			_, err := s.Commit(now, o, 1)
			return fmt.Sprint(err)
		}
	case 4, 5:
		q := store.DueQuery{Limit: rapid.IntRange(1, 5).Draw(t, "limit"), Idle: length("idle")}
		return func(s *Schedule, now Time) string {
			leases, _, err := s.ClaimDue(now, q)
			for i := range leases {
				leases[i].Token = 0
			}
			return fmt.Sprintf("%+v %v", leases, err)
		}
	case 6:
		h := store.Hop{ID: id, Floor: length("floor"), Yield: some, Host: host}
		return func(s *Schedule, now Time) string {
			p, err := s.Hop(now, h)
			return fmt.Sprintf("%+v %v", p, err)
		}
	case 7:
		asked := map[store.ID]time.Duration{id: length("ago")}
		return func(s *Schedule, now Time) string { return fmt.Sprint(s.Touch(now, asked)) }
	default:
		return func(s *Schedule, now Time) string {
			r, err := s.Forget(now, id)
			return fmt.Sprint(r, err)
		}
	}
}

// TestUndo makes the same calls of two schedules. One of them makes others in between
// and takes them back, which must make no difference.
func TestUndo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain, tried := newSchedule(nil), newSchedule(nil)
		var now Time
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "minutes")) * time.Minute)
			mark := tried.Mark()
			for range rapid.IntRange(0, 3).Draw(t, "undone") {
				acts(t)(tried, now)
			}
			tried.Undo(mark)
			call := acts(t)
			want, got := call(plain, now), call(tried, now)
			if got != want {
				t.Fatalf("got  %s\nwant %s", got, want)
			}
			plain.Confirm()
			tried.Confirm()
			a, b := plain.Totals(now), tried.Totals(now)
			if a.Overdue, b.Overdue = 0, 0; fmt.Sprint(a, plain.Pauses(now)) != fmt.Sprint(b, tried.Pauses(now)) {
				t.Fatalf("totals %+v, want %+v", b, a)
			}
		}
	})
}

func TestHeap(t *testing.T) {
	random := rand.New(rand.NewPCG(2026, 11))
	var h heap[int]
	var want []Time
	for range 20_000 {
		if random.IntN(5) < 2 && len(h) > 0 {
			slices.Sort(want)
			if got := h.pop(); got.at != want[0] || got.value != int(want[0]) {
				t.Fatalf("popped %+v, want %d", got, want[0])
			}
			want = want[1:]
		} else {
			at := Time(random.IntN(1000))
			h.push(at, int(at))
			want = append(want, at)
		}
		if random.IntN(100) == 0 {
			limit := Time(random.IntN(1000))
			n := 0
			for _, at := range want {
				if at <= limit {
					n++
				}
			}
			if got := h.until(limit); got != n {
				t.Fatalf("%d until %d, want %d", got, limit, n)
			}
		}
		if first := h.first(); len(want) > 0 && first != slices.Min(want) || len(want) == 0 && first != End {
			t.Fatalf("the first is %d of %d", first, len(want))
		}
	}
}

func TestTime(t *testing.T) {
	for _, c := range []struct {
		at   Time
		add  time.Duration
		want Time
	}{
		{5, 3, 8}, {5, -3, 2}, {5, store.Ended, End}, {0, store.Ended, End}, {End, -time.Hour, End}, {Never, time.Hour, Never},
		{5, math.MinInt64, Never + 5}, {-5, math.MinInt64, Never + 1}, {End - 1, 1, End}, {End - 1, 5, End},
	} {
		if got := c.at.Add(c.add); got != c.want {
			t.Errorf("%d + %d = %d, want %d", c.at, c.add, got, c.want)
		}
	}
	for _, c := range []struct {
		t, u Time
		want time.Duration
	}{
		{8, 5, 3}, {5, 8, -3}, {End, 5, store.Ended}, {5, Never, store.Ended}, {Never, 5, math.MinInt64}, {Never, -5, math.MinInt64},
		{End - 1, -5, store.Ended}, {Never + 1, 5, math.MinInt64},
	} {
		if got := c.t.Sub(c.u); got != c.want {
			t.Errorf("%d - %d = %d, want %d", c.t, c.u, got, c.want)
		}
	}
}

// TestIndexIsBounded polls few feeds by hand again and again, which leaves an entry
// behind each time.
func TestIndexIsBounded(t *testing.T) {
	s := newSchedule(t)
	var now Time
	for range 10_000 {
		now = now.Add(time.Minute)
		l, err := s.Claim(now, store.Claim{ID: store.ID{1}, URL: "x", Hold: 1000 * time.Hour, Floor: 1, Configured: true})
		if err != nil || l.Denied != "" {
			t.Fatal(l, err)
		}
		if _, err := s.Commit(now, store.Outcome{ID: l.ID, Token: l.Token, In: 999 * time.Hour}, 0); err != nil {
			t.Fatal(err)
		}
		s.Confirm()
		if err := s.Tidy(now); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.index.due); n > 1100 {
		t.Errorf("%d entries for one feed", n)
	}
}

// TestLinesAreLeft expects that feeds which wait for their host are not taken up again
// and again meanwhile.
func TestLinesAreLeft(t *testing.T) {
	s := newSchedule(t)
	host := store.Host{Name: "one", Spacing: time.Hour}
	for n := range 1000 {
		l, err := s.Claim(0, store.Claim{ID: store.ID{1, byte(n), byte(n >> 8)}, URL: "x", Hold: time.Minute, Host: host, Configured: true})
		if err != nil || (n == 0) != (l.Denied == "") {
			t.Fatal(l, err)
		}
	}
	reads := &counting{Keeper: s.keeper}
	s.keeper = reads
	granted := make(map[store.ID]bool)
	for minute := range 1200 {
		leases, _, err := s.ClaimDue(Time(minute)*Time(time.Minute), store.DueQuery{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range leases {
			granted[l.ID] = true
		}
	}
	if len(granted) != 19 {
		t.Errorf("%d grants in 20 hours, want 19", len(granted))
	}
	if reads.n > 1100 {
		t.Errorf("%d feeds were read", reads.n)
	}
}

type counting struct {
	Keeper
	n int
}

func (c *counting) Get(id store.ID) (*Feed, error) {
	c.n++
	return c.Keeper.Get(id)
}

// TestLogOverflows expects that a reader who is too far behind is told so.
func TestLogOverflows(t *testing.T) {
	var l Log
	changes := make([]store.Change, 10)
	for n := range changes {
		changes[n].Version = uint64(n)
	}
	l.add(changes)
	seen := func(from store.Cursor, n int) (got []store.Change) {
		stop := fmt.Errorf("stop")
		err := l.Watch(t.Context(), from, func(c store.Change) error {
			if got = append(got, c); len(got) == n {
				return stop
			}
			return nil
		})
		if err != stop {
			t.Fatal(err)
		}
		return got
	}
	first := l.cursor(0)
	at := seen(first, 3)[2]
	if at.Version != 2 || at.Lost {
		t.Fatalf("third change is %+v", at)
	}
	for n := range logged - 7 {
		l.add([]store.Change{{Version: uint64(n + 10)}})
	}
	if got := seen(at.At, 1)[0]; got.Lost || got.Version != 3 {
		t.Errorf("the oldest that is known: %+v", got)
	}
	l.add([]store.Change{{Version: 9999}})
	if got := seen(at.At, 1)[0]; !got.Lost {
		t.Errorf("behind the oldest that is known: %+v", got)
	}
	lost := seen(first, 1)[0]
	l.add([]store.Change{{Version: 7777}})
	if got := seen(lost.At, 1)[0]; got.Lost || got.Version != 7777 {
		t.Errorf("after a loss: %+v", got)
	}
}

// TestMovesOutOfLine moves a feed that waits for a paused host to another host.
func TestMovesOutOfLine(t *testing.T) {
	s := newSchedule(t)
	paused, free := store.Host{Name: "paused"}, store.Host{Name: "free"}
	claim := store.Claim{ID: store.ID{1}, URL: "x", Hold: time.Minute, Host: paused, Configured: true}
	l, err := s.Claim(0, claim)
	if err != nil || l.Denied != "" {
		t.Fatal(l, err)
	}
	pause := store.Pause{Scope: "host paused", For: time.Hour}
	if _, err := s.Commit(0, store.Outcome{ID: l.ID, Token: l.Token, Host: paused, Pauses: []store.Pause{pause}}, 0); err != nil {
		t.Fatal(err)
	}
	due := func(now Time, want int) {
		t.Helper()
		leases, _, err := s.ClaimDue(now, store.DueQuery{Limit: 5})
		if err != nil || len(leases) != want {
			t.Fatalf("ClaimDue = %+v, %v, want %d", leases, err, want)
		}
	}
	due(1, 0)
	// It is claimed for the other host, which is paused as well, but for a moment.
	s.pause(1, store.Pause{Scope: "host free", For: time.Minute})
	claim.Host = free
	if l, err := s.Claim(2, claim); err != nil || l.Denied != store.DeniedPaused {
		t.Fatal(l, err)
	}
	due(3, 0)
	due(Time(2*time.Minute), 1)
	due(Time(2*time.Minute)+1, 0)
}

// TestUndoFreesHosts takes back a grant for which a feed of the same host was kept waiting.
func TestUndoFreesHosts(t *testing.T) {
	s := newSchedule(t)
	host := store.Host{Name: "one", Spacing: time.Hour}
	claim := store.Claim{ID: store.ID{1}, URL: "x", Hold: time.Minute, Host: host, Configured: true}
	if _, err := s.Claim(0, claim); err != nil {
		t.Fatal(err)
	}
	s.Confirm()
	now := Time(2 * time.Hour)
	mark := s.Mark()
	claim.ID = store.ID{2}
	if l, err := s.Claim(now, claim); err != nil || l.Denied != "" {
		t.Fatal(l, err)
	}
	if leases, _, err := s.ClaimDue(now, store.DueQuery{Limit: 5}); err != nil || len(leases) != 0 {
		t.Fatal(leases, err)
	}
	s.Undo(mark)
	if leases, _, err := s.ClaimDue(now, store.DueQuery{Limit: 5}); err != nil || len(leases) != 1 || leases[0].ID != (store.ID{1}) {
		t.Fatalf("ClaimDue = %+v, %v, want the feed that waited", leases, err)
	}
}
