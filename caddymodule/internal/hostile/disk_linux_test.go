// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/feedpollard/pollard/internal/origintest"
)

func init() {
	// A system may allow only the parent to trace a process.
	_ = unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0)
}

// hangDisk has all system calls of a process that write to its store, or sync it, hang until
// free is called.
func hangDisk(t *testing.T, c *child) (free func()) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed: nothing holds system calls up")
	}
	const calls = "fsync,fdatasync,pwrite64"
	hold := exec.Command(strace, "-f", "-o", os.DevNull, "-p", strconv.Itoa(c.process.ID()), "-e", "trace="+calls, "-e", "inject="+calls+":delay_enter=3600s")
	out, err := hold.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	free = func() {
		once.Do(func() {
			_ = hold.Process.Signal(syscall.SIGTERM) // it lets go of the process
			_ = hold.Wait()
		})
	}
	t.Cleanup(free)
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(said, "attached") {
		free()
		if !strings.Contains(said, "not permitted") && !strings.Contains(said, "not implemented") {
			t.Fatalf("strace: %v: %s", err, said)
		}
		t.Skipf("no process may be traced here: %s", said)
	}
	go func() { // what it says later
		for s := bufio.NewScanner(out); s.Scan(); {
		}
	}()
	return free
}

// While the disk hangs, no poll is sent, because its claim cannot be written. Readers are
// served from memory, readers of new feeds get 503, the number of waiting goroutines is
// bounded, and all goes on when the disk does.
func TestHostileDiskThatHangs(t *testing.T) {
	t.Parallel()
	const known, unknown = 20, 100
	var version atomic.Int64
	origin := &origintest.Origin{Answer: func(*http.Request) origintest.Answer { // each poll has a body to write
		return origintest.OK(strings.Replace(feed, "Good", fmt.Sprint("Entry ", version.Add(1)), 1))
	}}
	url := origin.Start(t).URL
	times := func(path string) int { return len(origin.For(url + path)) }
	c := start(t, setup{app: impatient + "\nprefetch", site: gatewayByURL})
	path := func(i int) string { return fmt.Sprintf("/known/%d", i) }
	round := func() (got [known]string) {
		t.Helper()
		var all sync.WaitGroup
		for i := range known {
			all.Go(func() {
				a := c.get(feedAt(url + path(i)))
				if got[i] = a.Body; a.Status != 200 || !strings.Contains(a.Body, "Entry") {
					t.Errorf("a known feed: %v", a)
				}
			})
		}
		all.Wait()
		return got
	}
	round()
	before := c.descriptors()

	free := hangDisk(t, c)
	var then [known]int
	for i := range known {
		then[i] = times(path(i))
	}
	statuses := make(chan answered, unknown)
	for i := range unknown {
		go func() {
			a, err := c.askOnce("GET", feedAt(fmt.Sprintf("%s/unknown/%d", url, i)))
			if err != nil {
				t.Error(err)
			}
			statuses <- a
		}()
	}
	var old [known]string
	begun, rounds := time.Now(), 0
	hang := 15 * time.Second
	if *campaign {
		hang = 3 * time.Minute
	}
	for time.Since(begun) < hang {
		old = round()
		rounds++
		time.Sleep(100 * time.Millisecond)
	}
	for range unknown { // their patience ends before the hang does
		if a := <-statuses; a.Status != http.StatusServiceUnavailable && !queued(a.Header) {
			t.Errorf("a reader of a new feed: %v", a)
		}
	}
	for i := range known {
		// A feed that had been claimed before may be polled, once.
		if n := times(path(i)) - then[i]; n > 1 {
			t.Errorf("%s was polled %d times while no claim could be written", path(i), n)
		}
	}
	for i := range unknown {
		if n := times(fmt.Sprintf("/unknown/%d", i)); n > 0 {
			t.Errorf("new feed %d was polled %d times, though no claim could be written", i, n)
		}
	}
	if text := c.api("GET", "/pollard/stats").Body; !strings.Contains(text, "outage") {
		t.Errorf("the statistics for the operator are %s", text)
	}
	goroutines, descriptors := c.goroutines(), c.descriptors()
	if goroutines > 120+unknown || descriptors > before+40 {
		t.Errorf("%d goroutines and %d descriptors while the disk hangs, %d before", goroutines, descriptors, before)
	}

	held := version.Load()
	free()
	late := time.Now()
	for i, now := 0, round(); i < known; { // each is polled again, and readers get what that brings
		if now[i] != old[i] {
			i++
			continue
		}
		if time.Since(late) > 4*time.Minute {
			t.Fatalf("%s is as old as it was before the disk hung", path(i))
		}
		time.Sleep(200 * time.Millisecond)
		now = round()
	}
	for i := range unknown {
		if a := c.get(feedAt(fmt.Sprintf("%s/unknown/%d", url, i))); a.Status != 200 {
			t.Errorf("a new feed, when the disk is back: %v", a)
		}
	}
	c.settle(60, before+20)
	t.Logf("%v: %d rounds of %d readers, %d goroutines and %d descriptors; then %d polls, and all was new after %v; peak %d MiB",
		hang, rounds, known, goroutines, descriptors, version.Load()-held, time.Since(late).Round(time.Second), c.peak())
}
