// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// childDirectory is the environment variable that makes a test the child process
// of itself, working on the store in that directory.
const childDirectory = "POLLARD_TEST_CHILD_DIRECTORY"

// child is this test as a process of its own.
func child(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), childDirectory+"="+dir)
	return c
}

const crashFeeds = 8

// acknowledged is what a child said it has stored of a feed.
type acknowledged struct {
	granted uint64          // token of the last grant
	before  map[uint64]bool // those of others
	version uint64          // of the last commit with a body
	paused  uint64          // number of the poll that agreed the last pause
}

// work is the child: each feed is polled so many times by a goroutine of its own.
func work(t *testing.T, dir string, times int) {
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for n := range crashFeeds {
		all.Go(func() {
			if err := poll(t, s, n, times); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// poll claims and commits a feed and says so, one line each.
func poll(t *testing.T, s *Store, n, times int) error {
	c := store.Claim{Own: true, ID: numbered(n), URL: urlOf(n), Floor: time.Nanosecond}
	version := uint64(0)
	for polls := range times {
		c.Hold = 700 * time.Hour
		leases, err := s.Claim(t.Context(), []store.Claim{c})
		if err != nil || leases[0].Denied != "" {
			return fmt.Errorf("claiming: %+v, %w", leases, err)
		}
		token, number := uint64(leases[0].Token), uint64(time.Now().UnixNano()) // of this poll
		fmt.Printf("ack %d %d %d 0\n", n, token, version)

		o := store.Outcome{ID: c.ID, Token: leases[0].Token, In: 700 * time.Hour, Claimed: c.Hold, State: store.StateFresh}
		pause := uint64(0)
		switch polls % 4 {
		case 0, 2:
			version = number
			o.Body = crashBody(n, version)
		case 1:
			pause = number
			o.Pauses = []store.Pause{{Site: fmt.Sprintf("%d-%d", n, number)}}
		case 3: // brings nothing
		}
		o.FeedState = fmt.Append(nil, version)
		if err := s.Commit(t.Context(), o); err != nil {
			return err
		}
		fmt.Printf("ack %d %d %d %d\n", n, token, version, pause)
	}
	return nil
}

// crashBody is the content of a version, up to 60 KB.
func crashBody(n int, version uint64) *store.Body {
	random := rand.NewChaCha8([32]byte{byte(n), byte(version), byte(version >> 8), byte(version >> 16)})
	content := make([]byte, random.Uint64()%60_000)
	random.Read(content)
	return &store.Body{Version: version, Coding: "gzip", Data: content}
}

// note notes an acknowledgement, if the line is one.
func note(acks []acknowledged, line string) bool {
	var n int
	var a acknowledged
	if _, err := fmt.Sscanf(line, "ack %d %d %d %d", &n, &a.granted, &a.version, &a.paused); err != nil {
		return false
	}
	if last := acks[n].granted; a.granted != last {
		if acks[n].before == nil {
			acks[n].before = make(map[uint64]bool)
		}
		acks[n].granted, acks[n].before[last] = a.granted, true
	}
	acks[n].version = max(acks[n].version, a.version)
	acks[n].paused = max(acks[n].paused, a.paused)
	return true
}

// verify opens the store and compares it with what was acknowledged.
func verify(t *testing.T, dir string, acks []acknowledged) {
	t.Helper()
	s := mustOpen(t, dir)
	defer s.Close()
	defer oneReader(s)()
	pauses, err := s.Pauses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	paused := make(map[int]uint64)
	for _, p := range pauses {
		var n int
		var number uint64
		if _, err := fmt.Sscanf(p.Site, "%d-%d", &n, &number); err == nil {
			paused[n] = max(paused[n], number)
		}
	}
	for n, a := range acks {
		if err := verifyFeed(t, s, n, a); err != nil {
			t.Errorf("feed %d, acknowledged %+v: %v", n, a, err)
		}
		if got := paused[n]; got < a.paused {
			t.Errorf("feed %d, acknowledged %+v: the pause is that of poll %d", n, a, got)
		}
	}
	n, err := s.database.number("select count(*) from body where id not in (select body from feed)")
	if err != nil || n > 0 {
		t.Errorf("%d bodies that no feed names, %v", n, err)
	}
}

// verifyFeed compares a feed, of which there must be no less than was acknowledged.
func verifyFeed(t *testing.T, s *Store, n int, a acknowledged) error {
	records, err := s.Lookup(t.Context(), []store.ID{numbered(n)})
	if err != nil || len(records) == 0 && a.granted == 0 {
		return err
	}
	if len(records) == 0 {
		return errors.New("not known")
	}
	r := records[0]
	if a.before[uint64(r.Token)] || r.Version < a.version || r.In < 600*time.Hour {
		return fmt.Errorf("token %d, version %d, in %v", r.Token, r.Version, r.In)
	}
	var version uint64
	if len(r.FeedState) > 0 {
		if _, err := fmt.Sscan(string(r.FeedState), &version); err != nil {
			return fmt.Errorf("memo %q: %w", r.FeedState, err)
		}
	}
	if version != r.Version {
		return fmt.Errorf("version %d with memo %q", r.Version, r.FeedState)
	}
	if r.Version == 0 {
		return nil
	}
	b, err := store.ReadBody(t.Context(), s, r.ID)
	if err != nil {
		return err
	}
	if want := crashBody(n, r.Version); b.Version != r.Version || !bytes.Equal(b.Data, want.Data) {
		return fmt.Errorf("body of version %d with record of version %d, or another content", b.Version, r.Version)
	}
	return nil
}

// TestLockedByAnotherProcess expects ErrLocked while a child has the store.
func TestLockedByAnotherProcess(t *testing.T) {
	if dir := os.Getenv(childDirectory); dir != "" {
		synctest.Test(t, func(*testing.T) { // Open waits a second for the lock
			_, err := Open(dir, Options{})
			fmt.Println("locked:", errors.Is(err, store.ErrLocked))
		})
		return
	}
	dir := directory(t)
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out, err := child(t, dir).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("locked: true")) {
		t.Errorf("the child said %q, %v", out, err)
	}
}
