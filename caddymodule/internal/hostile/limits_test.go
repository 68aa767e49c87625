// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/origintest"
)

// The store keeps to its budget on the disk, however many feeds readers invent.
func TestHostileDisk(t *testing.T) {
	t.Parallel()
	words := make([]byte, 400<<10)
	for i := range words {
		words[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[rand.IntN(64)]
	}
	origin := &origintest.Origin{Answer: func(r *http.Request) origintest.Answer {
		return origintest.OK(strings.Replace(feed, "Good", r.URL.RequestURI()+string(words), 1))
	}}
	url := origin.Start(t).URL
	// The budget is for the bytes in use: free pages go back to the disk when they are more
	// than a quarter of the file, and are used first until then.
	const budget, most = 8, 8*4/3 + 4 // MiB
	c := start(t, setup{app: fmt.Sprintf("disk %dMiB\n%s", budget, impatient), site: "handle /shield/* {\nfeed_shield {\norigin {\nreverse_proxy " + strings.TrimPrefix(url, "http://") + "\n}\n}\n}\n" + gatewayByURL})
	feeds := 40
	if testing.Short() {
		feeds = 20
	}
	for i := range feeds {
		for _, path := range []string{feedAt(fmt.Sprintf("%s/%d", url, i)), fmt.Sprintf("/shield/feed?q=%d", i)} {
			if a := c.get(path); a.Status != http.StatusOK {
				t.Fatalf("%s: %v", path, a)
			}
		}
	}
	size := int64(1 << 40)
	for range 1200 { // it is tidied in the background
		if size = sizeOf(t, c.dir); size <= most<<20 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if size > most<<20 {
		t.Errorf("the store has %d MiB, the budget is %d MiB", size>>20, budget)
	}
	if a := c.get(feedAt(url + "/0")); a.Status != http.StatusOK && a.Status != http.StatusServiceUnavailable {
		t.Errorf("a feed whose body had to go: %v", a)
	}
	t.Logf("%d feeds of 0.3 MiB left %d KiB, the budget is %d MiB", 2*feeds, size>>10, budget)
}

func sizeOf(t *testing.T, dir string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(d.Name(), "-wal") {
			return nil // it has just been deleted, or is the log of SQLite, which is written over
		}
		if info, err := d.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// A process that is asked to end does so, even while polls hang.
func TestHostileEnd(t *testing.T) {
	t.Parallel()
	o := newHostileOrigin(t, []attack{{name: "hangs", send: hangs("")}})
	c := start(t, setup{app: impatient, site: gatewayByURL})
	const readers = 100
	for i := range readers {
		go func() { _, _ = c.ask("GET", feedAt(fmt.Sprintf("%s/cold/0/%d", o.address(&o.attacks[0]), i))) }() // it is cut off
	}
	for range 400 { // a gateway polls at most 64 feeds without readers at a time
		if o.total() >= 20 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if o.total() < 20 {
		t.Errorf("%d polls hang: the test has tested nothing", o.total())
	}
	took := c.end(syscall.SIGTERM)
	t.Logf("with %d polls that hang it took %v to end", o.total(), took.Round(time.Millisecond))
	if took > 15*time.Second { // 10 s are promised, and the machine may be busy
		t.Errorf("it took %v to end: systems kill what takes longer than 10 s", took)
	}
}
