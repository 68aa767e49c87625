// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/origintest"
)

// killedFeeds is the number of feeds: enough that some are being polled whenever a process
// is killed.
const killedFeeds = 24

// newestEntry finds the newest entry of an [origintest.Document]: its version.
var newestEntry = regexp.MustCompile(`Entry (\d+)`)

// changing is an origin whose feeds change with each poll, and which allows one a second.
type changing struct {
	mu    sync.Mutex // guards what follows
	polls [killedFeeds]int
	last  [killedFeeds]time.Time
	early []string
}

func (c *changing) answer(r *http.Request) origintest.Answer {
	i, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil {
		return origintest.Status(http.StatusNotFound)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if gap := now.Sub(c.last[i]); gap < time.Second {
		c.early = append(c.early, fmt.Sprintf("feed %d was polled again after %v", i, gap))
	}
	c.polls[i], c.last[i] = c.polls[i]+1, now
	document := origintest.Document{Entries: c.polls[i], Text: strings.Repeat("words ", 50)}
	return origintest.OK(document.String(), "ETag", fmt.Sprintf("%q", fmt.Sprint(c.polls[i]))).After(rand.N(120 * time.Millisecond))
}

func (c *changing) polled() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, polls := range c.polls {
		n += polls
	}
	return n
}

// served is what readers got.
type served struct {
	mu      sync.Mutex // guards what follows
	newest  [killedFeeds]int
	answers int
	lost    []string // versions that were served once, and then not
}

// ask asks for a feed. It must not be older than before, by this process or an earlier one.
func (s *served) ask(c *child, i int) {
	s.mu.Lock()
	before := s.newest[i]
	s.mu.Unlock()
	a, err := c.askOnce("GET", fmt.Sprintf("/%d.xml", i))
	if err != nil {
		return // what happens to requests while a process dies is not its fault
	}
	version := 0
	if found := newestEntry.FindStringSubmatch(a.Body); found != nil {
		version, _ = strconv.Atoi(found[1])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < before {
		s.lost = append(s.lost, fmt.Sprintf("feed %d was served in version %d, now: %v", i, before, a))
	}
	if version > 0 {
		s.answers++
	}
	s.newest[i] = max(s.newest[i], version)
}

func (s *served) answered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers
}

// A process that is killed again and again, at any moment, polls nothing too early
// afterwards and has every version that a reader got from it. It runs alone: the readers must get
// their turn.
func TestKilledProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds of real time")
	}
	origin, readers := new(changing), new(served)
	url := (&origintest.Origin{Answer: origin.answer}).Start(t).URL
	var feeds strings.Builder
	for i := range killedFeeds {
		fmt.Fprintf(&feeds, "feed /%d.xml %s/%d\n", i, url, i)
	}
	app := strings.Replace(quick, "max_interval 1s", "max_interval 10s", 1) + "\nprefetch"
	n := configure(t, setup{app: app, site: "feed_gateway {\n" + feeds.String() + "}"})
	over := make(chan struct{})
	var crowd sync.WaitGroup
	for range 3 {
		crowd.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(2*time.Millisecond + rand.N(10*time.Millisecond)):
					readers.ask(n, rand.IntN(killedFeeds))
				}
			}
		})
	}
	for life := range 10 {
		n.start()
		for begun := time.Now(); readers.answered() < 10*(life+1) || origin.polled() < 5*(life+1); time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > 3*time.Minute {
				t.Fatalf("%d polls and %d answers to readers: the test proves nothing", origin.polled(), readers.answered())
			}
		}
		time.Sleep(rand.N(900 * time.Millisecond))
		n.end(syscall.SIGKILL)
	}
	close(over)
	crowd.Wait()
	n.start()
	for i := range killedFeeds {
		readers.ask(n, i)
	}
	t.Logf("%d polls, %d answers to readers", origin.polled(), readers.answered())
	origin.mu.Lock()
	defer origin.mu.Unlock()
	for _, problem := range append(origin.early, readers.lost...) {
		t.Error(problem)
	}
}
