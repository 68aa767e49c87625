// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/bolt"
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
	reserved  uint64 // highest token granted
	committed uint64 // highest token committed
	version   uint64 // of the last commit with a body
}

// TestKill kills a process in the midst of reservations and commits, many times
// on one store, and expects everything it acknowledged.
func TestKill(t *testing.T) {
	if dir := os.Getenv(childDirectory); dir != "" {
		work(t, dir)
		return
	}
	const rounds = 20
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(2026, 11))
	acks := make([]acknowledged, crashFeeds)
	for range rounds {
		killAfter(t, child(t, dir), 1+random.IntN(200), acks)
		verify(t, dir, acks)
	}
	for n, a := range acks {
		if a.reserved == 0 {
			t.Errorf("feed %d was never reserved: the test has tested nothing", n)
		}
	}
}

// work is the child: each feed is polled for ever by a goroutine of its own.
func work(t *testing.T, dir string) {
	s, err := bolt.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for n := range crashFeeds {
		go func() { done <- poll(t, s, n) }()
	}
	t.Fatal(<-done)
}

// poll reserves and commits a feed and says so, one line each.
func poll(t *testing.T, s *bolt.Store, n int) error {
	id := cache.ID(idOf(n))
	r, err := s.Load(t.Context(), id)
	if err != nil && !errors.Is(err, cache.ErrNoRecord) {
		return err
	}
	token, version := r.Token, r.Version
	for {
		now := time.Unix(int64(token+1), 0)
		grants, err := s.Reserve(t.Context(), []cache.Claim{{ID: id, URL: "https://example.com/", Token: token, Now: now, Next: now}})
		if err != nil || !grants[0].OK {
			return fmt.Errorf("reserving: %v, %w", grants, err)
		}
		token++
		fmt.Printf("ack %d %d 0 %d\n", n, token, version)

		o := cache.Outcome{ID: id, Token: token, Now: now, Next: now}
		if token%3 != 0 {
			version = token
			o.Body = crashBody(n, version)
		}
		o.Memo = fmt.Appendf(nil, "%d %d", token, version)
		if err := s.Commit(t.Context(), o); err != nil {
			return err
		}
		fmt.Printf("ack %d %d %d %d\n", n, token, token, version)
	}
}

// crashBody is the content of a version, up to 60 KB.
func crashBody(n int, version uint64) *cache.Body {
	random := rand.NewChaCha8([32]byte{byte(n), byte(version), byte(version >> 8), byte(version >> 16)})
	content := make([]byte, random.Uint64()%60_000)
	random.Read(content)
	return &cache.Body{Version: version, Coded: map[string][]byte{"": content, "gzip": content[:len(content)/3]}}
}

// killAfter runs the child until so many acknowledgements have come, kills it
// (kill -9) and notes all that it said.
func killAfter(t *testing.T, c *exec.Cmd, count int, acks []acknowledged) {
	t.Helper()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	seen := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var n int
		var a acknowledged
		if _, err := fmt.Sscanf(lines.Text(), "ack %d %d %d %d", &n, &a.reserved, &a.committed, &a.version); err != nil {
			said.WriteString(lines.Text() + "\n")
			continue
		}
		acks[n].reserved = max(acks[n].reserved, a.reserved)
		acks[n].committed = max(acks[n].committed, a.committed)
		acks[n].version = max(acks[n].version, a.version)
		if seen++; seen == count {
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.Wait(); err == nil || seen < count {
		t.Fatalf("the child ended by itself after %d acknowledgements: %v\n%s", seen, err, said.String())
	}
}

// verify opens the store and compares it with what was acknowledged.
func verify(t *testing.T, dir string, acks []acknowledged) {
	t.Helper()
	s, err := bolt.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if left, err := os.ReadDir(filepath.Join(dir, "bodies", "tmp")); err != nil || len(left) != 0 {
		t.Errorf("temporary files: %v, %v", left, err)
	}
	latest, err := s.Latest(t.Context())
	if err != nil {
		t.Error(err)
	}
	for n, a := range acks {
		// What was found once must be there ever after, so it is the next round's start:
		// each round may leave one operation per feed that it did not acknowledge.
		if acks[n], err = verifyFeed(t, s, n, a); err != nil {
			t.Errorf("feed %d, acknowledged %+v: %v", n, a, err)
		}
		if latest.Before(time.Unix(int64(a.reserved), 0)) {
			t.Errorf("feed %d, acknowledged %+v: the latest time is %v", n, a, latest)
		}
	}
}

// verifyFeed returns what the store has of a feed, which must be no less than a.
func verifyFeed(t *testing.T, s *bolt.Store, n int, a acknowledged) (found acknowledged, err error) {
	r, err := s.Load(t.Context(), cache.ID(idOf(n)))
	if errors.Is(err, cache.ErrNoRecord) && a.reserved == 0 {
		return a, nil
	}
	if err != nil {
		return a, err
	}
	found = acknowledged{reserved: r.Token, version: r.Version}
	// One operation may have been durable without its acknowledgement.
	if r.Token < a.reserved || r.Token > a.reserved+1 || r.Version < a.version {
		return found, fmt.Errorf("token %d, version %d", r.Token, r.Version)
	}
	var version uint64
	if len(r.Memo) > 0 {
		if _, err := fmt.Sscan(string(r.Memo), &found.committed, &version); err != nil {
			return found, fmt.Errorf("memo %q: %w", r.Memo, err)
		}
	}
	if found.committed < a.committed || found.committed > r.Token || version != r.Version {
		return found, fmt.Errorf("version %d with memo %q", r.Version, r.Memo)
	}
	if r.Version == 0 {
		return found, nil
	}
	b, err := s.Body(t.Context(), r.ID)
	if err != nil {
		return found, err
	}
	want := crashBody(n, r.Version)
	if b.Version != r.Version || !bytes.Equal(b.Coded[""], want.Coded[""]) || !bytes.Equal(b.Coded["gzip"], want.Coded["gzip"]) {
		return found, fmt.Errorf("body of version %d with record of version %d, or another content", b.Version, r.Version)
	}
	return found, nil
}

// TestLockedByAnotherProcess expects ErrLocked while a child has the store.
func TestLockedByAnotherProcess(t *testing.T) {
	if dir := os.Getenv(childDirectory); dir != "" {
		synctest.Test(t, func(*testing.T) { // Open waits a second for the lock
			_, err := bolt.Open(dir)
			fmt.Println("locked:", errors.Is(err, cache.ErrLocked))
		})
		return
	}
	dir := t.TempDir()
	open(t, dir)
	out, err := child(t, dir).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("locked: true")) {
		t.Errorf("the child said %q, %v", out, err)
	}
}
