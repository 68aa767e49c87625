// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

const year = 365 * 24 * time.Hour

// fake is a machine: its wall clock, and the time since it was booted.
type fake struct {
	mu    sync.Mutex // guards what follows: the store reads it now and then
	wall  time.Duration
	since time.Duration
	boots int
}

func newFake() *fake { return &fake{wall: time.Duration(start.UnixNano())} }

func (f *fake) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wall, f.since = f.wall+d, f.since+d
}

func (f *fake) set(step time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wall += step
}

// reboot is time in which no process runs, at whose end the machine is booted.
func (f *fake) reboot(d time.Duration) {
	f.pass(d)
	f.boots, f.since = f.boots+1, 0
}

func (f *fake) moment() Reading {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Reading{Wall: time.Unix(0, int64(f.wall)), Since: f.since, Boot: fmt.Sprint("boot ", f.boots)}
}

// machine is a store on a machine whose clock is set.
type machine struct {
	*fake
	t   *testing.T
	dir string
	s   *Store
}

func (m *machine) start() {
	m.t.Helper()
	var err error
	if m.s, err = Open(m.dir, Options{Clocks: m.moment}); err != nil {
		m.t.Fatal(err)
	}
}

// stop ends the process, gracefully or not, and starts the next one after some time.
func (m *machine) restart(graceful bool, away time.Duration) {
	m.t.Helper()
	if graceful {
		if err := m.s.Close(); err != nil {
			m.t.Fatal(err)
		}
	} else {
		m.s.kill()
	}
	m.pass(away)
	m.start()
}

// poll claims the only feed and commits that it is due in an hour.
func (m *machine) poll() (granted bool) {
	m.t.Helper()
	l := storetest.Ask(m.t, m.s, store.Claim{ID: numbered(1), URL: urlOf(1), Hold: 2 * time.Hour})
	if l.Denied == "" {
		o := storetest.Outcome(l, nil)
		o.In = time.Hour
		storetest.Commit(m.t, m.s, o)
	}
	return l.Denied == ""
}

func urlOf(n int) string { return fmt.Sprint("https://example.com/", n) }

func numbered(n int) store.ID { return store.IDOf(urlOf(n)) }

func onMachine(t *testing.T, do func(m *machine)) {
	m := &machine{fake: newFake(), t: t, dir: directory(t)}
	m.start()
	defer func() { m.s.Close() }()
	do(m)
}

// TestBootWithoutTime boots as a machine does that has no clock of its own. Its clock is set while
// a process runs, or while none does.
func TestBootWithoutTime(t *testing.T) {
	for _, graceful := range []bool{true, false} {
		onMachine(t, func(m *machine) {
			m.s.kill()
			m.wall = 0 // 1970
			m.start()
			if !m.poll() {
				t.Fatal("the first poll was denied")
			}
			m.pass(time.Minute)
			m.set(time.Duration(start.UnixNano())) // the network told the time
			m.pass(time.Minute)
			m.restart(graceful, time.Minute)
			m.s.kill()
			m.set(year)
			m.start()
			if m.poll() {
				t.Error("polled twice within minutes")
			}
			m.pass(time.Hour)
			if !m.poll() {
				t.Error("not polled after an hour")
			}
		})
	}
}

// TestClockAhead polls while the clock is a year ahead, and restarts again and again.
func TestClockAhead(t *testing.T) {
	for _, when := range []string{"while it runs", "while it is off"} {
		for _, graceful := range []bool{true, false} {
			onMachine(t, func(m *machine) {
				m.set(year)
				m.restart(true, 0)
				m.poll()
				if when == "while it runs" {
					m.set(-year)
					m.poll() // each transaction writes the time
				}
				m.restart(true, 0)
				if when == "while it is off" {
					m.set(-year)
					m.restart(graceful, 0)
				}
				polls := 0
				for range 24 {
					m.pass(30 * time.Minute)
					m.restart(graceful, 29*time.Minute)
					if m.poll() {
						polls++
					}
				}
				if polls < 11 || polls > 24 {
					t.Errorf("clock corrected %s, graceful %v: %d polls in 24 h of hourly ones with restarts", when, graceful, polls)
				}
			})
		}
	}
}

// TestBootAYearAhead boots with a clock that is a year ahead: feeds are due, and none is
// forgotten.
func TestBootAYearAhead(t *testing.T) {
	onMachine(t, func(m *machine) {
		m.poll()
		if err := m.s.Close(); err != nil {
			t.Fatal(err)
		}
		m.set(year)
		m.reboot(time.Minute)
		m.start()
		gone, err := m.s.Sweep(t.Context(), store.SweepQuery{Idle: 30 * 24 * time.Hour, Unread: 30 * 24 * time.Hour})
		if err != nil || len(gone) > 0 {
			t.Errorf("%d feeds were forgotten: %v", len(gone), err)
		}
		if !m.poll() {
			t.Error("not polled")
		}
	})
}

// lateMachine runs a test on a machine that has no clock of its own: it was off, and was booted with the clock of its shutdown,
// or in 1970, 20 seconds before the store is opened. The feeds were polled ten minutes before the shutdown, and one just before it. They are due
// after an hour; one and its site were told to wait, for longer.
func lateMachine(t *testing.T, bootedAt time.Duration, test func(m *machine)) {
	synctest.Test(t, func(t *testing.T) {
		onMachine(t, func(m *machine) {
			m.ask(0, nil)
			m.ask(1, func(o *store.Outcome) { o.NotBefore, o.In = 20*time.Hour, 20*time.Hour })
			m.ask(2, nil)
			mustDo(t, m.s.Restore(t.Context(), []store.Saved{{Pause: &store.Pause{Site: "refuses.test", For: 10 * time.Hour}}}))
			m.ask(3, func(o *store.Outcome) { o.In = 10 * 24 * time.Hour })
			m.pass(10 * time.Minute)
			m.ask(4, nil)
			m.pass(time.Second)
			mustDo(t, m.s.Close())
			m.reboot(0)
			if bootedAt >= 0 {
				m.wall = bootedAt
			}
			m.pass(20 * time.Second)
			m.start()
			synctest.Wait()
			test(m)
		})
	})
}

// ask claims a feed, with a site of its own or one that refuses, and commits that it is due in an hour if the claim is granted.
func (m *machine) ask(n int, change func(*store.Outcome)) store.Lease {
	m.t.Helper()
	site := map[bool]string{true: "refuses.test"}[n == 2]
	l := storetest.Ask(m.t, m.s, store.Claim{ID: numbered(n), URL: urlOf(n), Own: true, Hold: 2 * time.Hour, Host: store.Host{Site: site}})
	if l.Denied == "" {
		o := storetest.Outcome(l, storetest.Text(1, "x"))
		if o.In = time.Hour; change != nil {
			change(&o)
		}
		storetest.Commit(m.t, m.s, o)
	}
	return l
}

// learn has the network tell the time. The store looks at the clock soon after.
func (m *machine) learn(step time.Duration) {
	m.set(step)
	time.Sleep(3 * followEvery)
	synctest.Wait()
}

// waits expects that a feed is not due before a time has passed.
func (m *machine) waits(when string, n int, want time.Duration) {
	m.t.Helper()
	if l := m.ask(n, nil); l.Denied == "" || (l.Wait-want).Abs() > 2*time.Minute {
		m.t.Errorf("%s: feed %d is denied %q for %v, want %v", when, n, l.Denied, l.Wait, want)
	}
}

// TestTimeAfterBoot has a machine learn the time soon after it was booted, when a feed was polled and another one was told to wait. The time that
// it was off has passed for feeds that were polled before, and for nothing else.
func TestTimeAfterBoot(t *testing.T) {
	const off = 25 * 24 * time.Hour
	lateMachine(t, -1, func(m *machine) {
		m.waits("booted", 0, 50*time.Minute)
		m.ask(7, func(o *store.Outcome) {
			o.Hops = map[store.ID]time.Duration{numbered(8): 30 * time.Hour}
		})
		storetest.Grant(m.t, m.s, store.Claim{ID: numbered(6), URL: urlOf(6), Own: true, Hold: 3 * time.Hour}) // its poll is under way
		mustDo(m.t, m.s.Restore(m.t.Context(), []store.Saved{{Record: store.Record{ID: numbered(5), URL: urlOf(5), Polled: 40 * time.Minute, In: 20 * time.Minute}}}))
		m.pass(6 * time.Second)
		m.learn(off)
		for _, when := range []string{"told the time", "killed", "told another time"} {
			switch when {
			case "killed":
				m.restart(false, time.Second)
			case "told another time":
				m.learn(off)
			}
			m.waits(when, 7, time.Hour)
			m.waits(when, 6, 3*time.Hour)
			m.waits(when, 5, 20*time.Minute)
			if when != "told another time" { // of each step, seven days count
				m.waits(when, 3, (10-7)*24*time.Hour-10*time.Minute)
			} else if l := m.ask(3, nil); l.Denied != "" {
				m.t.Errorf("%s: %+v", when, l)
			}
			m.waits(when, 8, 30*time.Hour)
			m.waits(when, 1, 20*time.Hour-10*time.Minute)
			if l := m.ask(2, nil); l.Denied != store.DeniedPaused {
				m.t.Errorf("%s: a site that refuses is asked: %+v", when, l)
			}
			for _, n := range []int{0, 4} {
				if l := m.ask(n, nil); (l.Denied == "") != (when == "told the time") {
					m.t.Errorf("%s: feed %d: %+v", when, n, l)
				}
			}
			if r, err := m.s.Lookup(m.t.Context(), []store.ID{numbered(0), numbered(7)}); err != nil || len(r) != 2 || r[0].Version != 1 || r[1].Version != 1 || r[1].Polled > time.Minute {
				m.t.Errorf("%s: %+v, %v", when, r, err)
			}
		}
		m.pass(time.Hour + time.Minute)
		if l := m.ask(7, nil); l.Denied != "" {
			m.t.Errorf("an hour later: %+v", l)
		}
	})
	lateMachine(t, 0, func(m *machine) { // in 1970
		m.pass(time.Minute)
		m.learn(time.Duration(start.UnixNano()) + 15*time.Minute) // it was off for a few minutes
		m.waits("off for a few minutes", 0, 44*time.Minute)
		m.waits("off for a few minutes", 4, 54*time.Minute)
		m.learn(-time.Hour)
		m.learn(time.Hour)
		m.waits("set back and forth", 0, 44*time.Minute)
	})
	lateMachine(t, 0, func(m *machine) {
		m.restart(true, time.Minute)
		m.learn(time.Duration(start.UnixNano()) + 15*time.Minute)
		m.waits("started twice in 1970", 0, 44*time.Minute)
		m.ask(7, nil)
		m.restart(false, time.Minute)
		m.set(-time.Hour)
		m.restart(true, time.Second)
		m.learn(time.Hour)
		m.waits("set back, and restarted", 7, 59*time.Minute)
	})
	lateMachine(t, 0, func(m *machine) {
		m.pass(time.Minute)
		mustDo(m.t, m.s.Close())
		m.reboot(0)
		m.wall = time.Duration(start.UnixNano()) + 20*time.Minute
		m.start()
		m.waits("booted with the right time after a life in 1970", 0, 40*time.Minute)
	})
	lateMachine(t, -1, func(m *machine) {
		m.pass(young + time.Minute)
		m.learn(off)
		m.waits("told the time too late", 0, 34*time.Minute)
	})
}

// TestLossAfterBoot has the file of a store set aside soon after the machine was booted. Then it learns the time: feeds wait all the same.
func TestLossAfterBoot(t *testing.T) {
	lateMachine(t, -1, func(m *machine) {
		mustDo(m.t, m.s.database.outside(m.t.Context(), func(*connection) error { return m.s.database.recordLoss() }))
		m.learn(30 * 24 * time.Hour)
		m.waits("a feed that is new to the store", 9, 2*time.Hour)
	})
}

// TestPollsAfterBoot boots, sets the clock, kills and waits in any order. In one life of the machine no feed is polled twice within its hour, whatever
// the clock shows.
func TestPollsAfterBoot(t *testing.T) {
	random := rand.New(rand.NewPCG(2026, 11))
	synctest.Test(t, func(t *testing.T) {
		onMachine(t, func(m *machine) {
			polled := make(map[int]time.Duration)
			followed, events := 0, 150
			if testing.Short() {
				events = 60
			}
			for range events {
				switch random.IntN(8) {
				case 0:
					m.restart(random.IntN(2) == 0, time.Second)
				case 1, 2:
					mustDo(t, m.s.Close())
					m.reboot(time.Duration(random.Int64N(int64(48 * time.Hour))))
					m.set(-time.Duration(random.Int64N(int64(48 * time.Hour))))
					clear(polled)
					m.start()
				case 3, 4:
					before := m.s.database.scale.now()
					m.learn(time.Duration(random.Int64N(int64(60*time.Hour))) - 12*time.Hour)
					if m.s.database.scale.now().Sub(before) > time.Minute {
						followed++
					}
				default:
					m.pass(time.Duration(random.Int64N(int64(10 * time.Minute))))
				}
				for n := range 3 {
					if random.IntN(2) > 0 || m.ask(n+20, nil).Denied != "" {
						continue
					}
					if at, known := polled[n]; known && m.since-at < time.Hour {
						t.Fatalf("feed %d was polled %v after the boot and %v after it", n, at, m.since)
					}
					polled[n] = m.since
				}
			}
			if followed < events/15 {
				t.Errorf("the clock was followed %d times", followed)
			}
		})
	})
}

// A row may be committed after a reader has begun, and before it reads.
func TestNoRowIsFromTheFuture(t *testing.T) {
	m := &machine{fake: newFake(), t: t, dir: t.TempDir()}
	m.start()
	defer m.s.Close()
	err := m.s.database.Read(t.Context(), func(tx store.Tx) error {
		for range 2 {
			m.pass(time.Millisecond)
			committed := m.s.database.scale.now()
			if err := tx.Query(`select 1`, [][]any{{}}, func(int, store.Row) error { return nil }); err != nil {
				return err
			}
			now := tx.Now()
			m.pass(time.Millisecond)
			if now < committed || tx.Now() != now {
				t.Errorf("a row of %d was read at %d, and then at %d", committed, now, tx.Now())
			}
		}
		return nil
	})
	mustDo(t, err)
}
