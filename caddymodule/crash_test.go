// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/standard"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
)

func TestMain(m *testing.M) { stage.Main(m) }

// crashFeeds is how many feeds there are: enough that some are being polled
// whenever the process dies.
const crashFeeds = 24

// crashFloor is the min_interval of the test, in real time.
const crashFloor = time.Second

// counter is an origin whose feeds change with each poll.
type counter struct {
	mu       sync.Mutex // guards what follows
	asked    [crashFeeds]int
	last     [crashFeeds]time.Time
	early    []string
	answered int
}

func (o *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	i, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil || i < 0 || i >= crashFeeds {
		http.NotFound(w, r)
		return
	}
	o.mu.Lock()
	o.asked[i]++
	n := o.asked[i]
	if gap := now.Sub(o.last[i]); n > 1 && gap < crashFloor {
		o.early = append(o.early, fmt.Sprintf("feed %d was polled again after %v", i, gap))
	}
	o.last[i] = now
	o.mu.Unlock()
	time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond) // an origin takes its time
	w.Header().Set("Content-Type", "application/rss+xml")
	w.Header().Set("ETag", strconv.Quote(strconv.Itoa(n)))
	fmt.Fprintf(w, `<rss version="2.0"><channel><title>T</title><item><title>Entry %d</title><guid isPermaLink="false">%d</guid><description>%s</description></item></channel></rss>`,
		n, n, strings.Repeat("words ", 500))
	o.mu.Lock()
	o.answered++
	o.mu.Unlock()
}

// acknowledged is the newest version of each feed that a reader has got.
type acknowledged struct {
	address string
	client  http.Client
	mu      sync.Mutex // guards what follows
	version [crashFeeds]int
	lost    []string
	answers int
}

// read asks for a feed. What happens to requests while the server dies is not
// held against it; what it answers is.
func (a *acknowledged) read(i int) {
	a.mu.Lock()
	before := a.version[i]
	a.mu.Unlock()
	resp, err := a.client.Get(fmt.Sprintf("http://%s/%d.xml", a.address, i))
	if err != nil {
		return
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers++
	if resp.StatusCode != http.StatusOK {
		if before > 0 {
			a.lost = append(a.lost, fmt.Sprintf("feed %d was served in version %d, now: %d %s", i, before, resp.StatusCode, body))
		}
		return
	}
	version := 0
	if found := newestEntry.FindSubmatch(body); found != nil {
		version, _ = strconv.Atoi(string(found[1]))
	}
	if version < before {
		a.lost = append(a.lost, fmt.Sprintf("feed %d was served in version %d, now in %d", i, before, version))
	}
	a.version[i] = max(a.version[i], version)
}

// A process that is killed at any moment, again and again, polls nothing too
// early afterwards and has every version that a reader has got.
func TestKilledProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds of real time")
	}
	o := new(counter)
	origin := httptest.NewServer(o)
	defer origin.Close()
	a := &acknowledged{address: loopback.FreeAddress(t), client: http.Client{Timeout: 5 * time.Second}}
	a.client.Transport = &http.Transport{DisableKeepAlives: true}
	file := crashCaddyfile(t, origin.URL, a.address)

	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Millisecond):
					a.read(rand.IntN(crashFeeds))
				}
			}
		})
	}
	const rounds = 10
	for round := range rounds {
		child, err := stage.StartProcess(t, file, t.TempDir(), a.address)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(300+rand.IntN(900)) * time.Millisecond)
		if round == rounds-1 {
			close(stop)
			readers.Wait()
			for i := range crashFeeds {
				a.read(i)
			}
		}
		child.End(syscall.SIGKILL)
	}
	for _, problem := range append(o.early, a.lost...) {
		t.Error(problem)
	}
	if o.answered < 2*crashFeeds || a.answers < 100 {
		t.Errorf("only %d polls and %d answers to readers: this shows nothing", o.answered, a.answers)
	}
	t.Logf("%d polls, %d answers to readers", o.answered, a.answers)
}

func crashCaddyfile(t *testing.T, origin, address string) string {
	t.Helper()
	var feeds strings.Builder
	for i := range crashFeeds {
		fmt.Fprintf(&feeds, "\t\tfeed /%d.xml %s/%d\n", i, origin, i)
	}
	text := fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	log {
		level ERROR
	}
	pollard {
		store bolt %s
		min_interval %v
		default_interval %v
		unvalidated_interval %v
		jitter 0
		private_upstreams 127.0.0.0/8
		host 127.0.0.1 {
			spacing 0
			concurrency %d
		}
		prefetch
	}
}
http://%s {
	feed_gateway {
%s	}
}
`, filepath.Join(t.TempDir(), "store"), crashFloor, crashFloor, crashFloor, crashFeeds, address, feeds.String())
	file := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
