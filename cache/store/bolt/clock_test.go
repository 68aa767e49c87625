// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/internal/schedule"
)

const year = 365 * 24 * time.Hour

// fake is a machine: its wall clock, its monotonic clock and its sleep.
type fake struct {
	mu                  sync.Mutex // guards all, while there is a store
	wall, steady, slept time.Duration
	boots               int           // and lives
	age                 time.Duration // of this one
}

func newFake() *fake { return &fake{wall: time.Duration(start.UnixNano())} }

var start = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// change changes the clocks.
func (f *fake) change(wall, steady, slept time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wall += wall
	f.steady += steady
	f.slept += slept
	f.age += steady + slept
}

func (f *fake) pass(d time.Duration) { f.change(d, d, 0) }

func (f *fake) set(step time.Duration) { f.change(step, 0, 0) }

func (f *fake) suspend(d time.Duration) { f.change(d, 0, d) }

// off is time in which no process runs.
func (f *fake) off(d time.Duration) {
	f.pass(d)
	f.steady = 0
}

// reboot is the same, in which the machine is booted.
func (f *fake) reboot(d time.Duration) {
	f.off(d)
	f.boots, f.age, f.slept = f.boots+1, 0, 0
}

// boot is a clock of this machine for one process.
func (f *fake) boot() *clock {
	read := func(clock *time.Duration) time.Duration {
		f.mu.Lock()
		defer f.mu.Unlock()
		return *clock
	}
	return &clock{
		wall:      func() time.Time { return time.Unix(0, int64(read(&f.wall))) },
		steady:    func() time.Duration { return read(&f.steady) },
		suspended: func() time.Duration { return read(&f.slept) },
		booted:    func() Boot { return Boot{ID: fmt.Sprint("boot ", f.boots), Ago: read(&f.age)} },
	}
}

// TestClock expects of a scale what it has to advance by, whatever happens to the
// machine between two looks at it.
func TestClock(t *testing.T) {
	for _, c := range []struct {
		name   string
		happen func(f *fake)
		want   time.Duration
	}{
		{"time passes", func(f *fake) { f.pass(time.Hour) }, time.Hour},
		{"the wall clock is put forward", func(f *fake) { f.set(year); f.pass(time.Hour) }, time.Hour},
		{"the wall clock is put back", func(f *fake) { f.set(-year); f.pass(time.Hour) }, time.Hour},
		{"the machine is suspended", func(f *fake) { f.pass(time.Minute); f.suspend(time.Hour) }, time.Hour + time.Minute},
		{"clocks that are read one after the other", func(f *fake) { f.slept += time.Millisecond }, 0},
		{"the monotonic clock falters", func(f *fake) { f.steady -= time.Second }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake()
			f.slept, f.steady = time.Hour, time.Hour // before the process
			clock := f.boot()
			clock.resume(stamp{scale: 1000, wall: clock.wall()})
			before := clock.now()
			c.happen(f)
			if got := clock.now().Sub(before); got != c.want {
				t.Errorf("advanced by %v, want %v", got, c.want)
			}
		})
	}
}

// TestClockResumes expects of a scale what it has to advance by from one process to
// the next.
func TestClockResumes(t *testing.T) {
	for _, c := range []struct {
		name string
		away func(f *fake)
		want time.Duration
		back bool
	}{
		{"time passes", func(f *fake) { f.off(time.Hour) }, time.Hour, false},
		{"suspended meanwhile", func(f *fake) { f.suspend(time.Hour); f.off(time.Hour) }, 2 * time.Hour, false},
		{"put back by a year", func(f *fake) { f.set(-year); f.off(time.Hour) }, time.Hour, false},
		{"put forward by a year", func(f *fake) { f.set(year); f.off(time.Hour) }, time.Hour, false},
		{"booted", func(f *fake) { f.reboot(time.Hour) }, time.Hour, false},
		{"booted after a fortnight", func(f *fake) { f.reboot(14 * 24 * time.Hour) }, maxAway, false},
		{"booted and put forward by a year", func(f *fake) { f.set(year); f.reboot(time.Hour) }, maxAway, false},
		{"booted and put back by a moment", func(f *fake) { f.set(-50 * time.Millisecond); f.reboot(time.Millisecond) }, 0, true},
		{"booted and put back by a year", func(f *fake) { f.set(-year); f.reboot(time.Hour) }, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake()
			first := f.boot()
			first.resume(stamp{scale: 1000, wall: first.wall()})
			f.pass(time.Hour)
			last := first.stamp()
			c.away(f)
			second := f.boot()
			if back := second.resume(last); back != c.back {
				t.Errorf("went back: %v, want %v", back, c.back)
			}
			if got := second.now().Sub(last.scale); got != c.want {
				t.Errorf("advanced by %v, want %v", got, c.want)
			}
			f.pass(time.Minute)
			if got := second.now().Sub(last.scale); got != c.want+time.Minute {
				t.Errorf("a minute later: advanced by %v, want %v", got, c.want+time.Minute)
			}
		})
	}
}

func TestClockStepped(t *testing.T) {
	f := newFake()
	clock := f.boot()
	at := clock.stamp()
	f.pass(time.Hour)
	f.suspend(time.Hour)
	f.set(900 * time.Millisecond)
	if clock.stepped(at) {
		t.Error("stepped though nobody has set it by much")
	}
	f.set(200 * time.Millisecond)
	if !clock.stepped(at) {
		t.Error("not stepped though it was set")
	}
	at = clock.stamp()
	f.set(-2 * time.Second)
	if !clock.stepped(at) {
		t.Error("not stepped though it was set back")
	}
}

// machine is a store on a machine whose clock is set by somebody.
type machine struct {
	*fake
	t   *testing.T
	dir string
	s   *Store
}

func (m *machine) start() {
	m.t.Helper()
	var err error
	if m.s, err = open(m.dir, m.boot(), zap.NewNop()); err != nil {
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
	m.off(away)
	m.start()
}

// poll claims the only feed and commits that it is due in an hour.
func (m *machine) poll() (granted bool) {
	m.t.Helper()
	leases, err := m.s.Claim(m.t.Context(), []store.Claim{{ID: numbered(1), URL: "https://example.com/", Hold: 2 * time.Hour}})
	if err != nil {
		m.t.Fatal(err)
	}
	if leases[0].Denied != "" {
		return false
	}
	o := store.Outcome{ID: numbered(1), Token: leases[0].Token, In: time.Hour, Hold: 2 * time.Hour}
	if err := m.s.Commit(m.t.Context(), o); err != nil {
		m.t.Fatal(err)
	}
	time.Sleep(2 * soon) // in a bubble, until it is durable
	return true
}

// tick lets the store notice what has become of the clock.
func (m *machine) tick() {
	m.t.Helper()
	time.Sleep(tidyEvery + time.Second) // in a bubble
	synctest.Wait()
}

func numbered(n int) (id store.ID) {
	id[0], id[1], id[15] = byte(n), byte(n>>8), 1
	return id
}

func onMachine(t *testing.T, do func(m *machine)) {
	dir := directory(t)
	synctest.Test(t, func(t *testing.T) {
		m := &machine{fake: newFake(), t: t, dir: dir}
		m.start()
		defer func() { m.s.Close() }()
		do(m)
	})
}

// TestBootWithoutTime boots as a machine does that has no clock of its own.
func TestBootWithoutTime(t *testing.T) {
	for _, graceful := range []bool{true, false} {
		onMachine(t, func(m *machine) {
			m.s.kill()
			m.wall = 0 // 1970
			m.off(0)
			m.start()
			if !m.poll() {
				t.Fatal("the first poll was denied")
			}
			m.pass(time.Minute)
			m.set(time.Duration(start.UnixNano())) // the network told the time
			if !graceful {
				m.tick()
			}
			m.pass(time.Minute)
			m.restart(graceful, time.Minute)
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
					m.tick()
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

// TestSmallStep puts the clock back by a moment between two processes.
func TestSmallStep(t *testing.T) {
	onMachine(t, func(m *machine) {
		m.poll()
		m.pass(10 * time.Minute)
		m.set(-50 * time.Millisecond)
		m.restart(true, 10*time.Millisecond)
		records, err := m.s.Lookup(t.Context(), []store.ID{numbered(1)})
		if err != nil || len(records) != 1 {
			t.Fatal(records, err)
		}
		if in := records[0].In; in < 50*time.Minute-time.Second || in > 50*time.Minute {
			t.Errorf("due in %v, want 50 minutes", in)
		}
	})
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

// TestSuspended expects that a machine that wakes up polls what is due.
func TestSuspended(t *testing.T) {
	onMachine(t, func(m *machine) {
		m.poll()
		m.suspend(12 * time.Hour)
		if !m.poll() {
			t.Error("not polled after the machine was suspended for 12 h")
		}
	})
}

func TestStampIsKept(t *testing.T) {
	at := stamp{scale: schedule.Time(123456789), wall: time.Unix(1, 5)}
	if got, ok := decodeStamp(at.encode()); !ok || got.scale != at.scale || !got.wall.Equal(at.wall) {
		t.Errorf("%+v became %+v", at, got)
	}
	if _, ok := decodeStamp([]byte("short")); ok {
		t.Error("a damaged stamp was taken")
	}
}
