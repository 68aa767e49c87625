// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

const year = 365 * 24 * time.Hour

// fake is a machine: its wall clock, and the time since it was booted.
type fake struct {
	wall  time.Duration
	since time.Duration
	boots int
}

func newFake() *fake { return &fake{wall: time.Duration(start.UnixNano())} }

func (f *fake) pass(d time.Duration) { f.wall, f.since = f.wall+d, f.since+d }

func (f *fake) set(step time.Duration) { f.wall += step }

// reboot is time in which no process runs, at whose end the machine is booted.
func (f *fake) reboot(d time.Duration) {
	f.pass(d)
	f.boots, f.since = f.boots+1, 0
}

func (f *fake) moment() Reading {
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
