// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// slowWriter is a reader that does not take its response until it is freed.
type slowWriter struct {
	*httptest.ResponseRecorder
	stuck chan struct{}
	free  chan struct{}
	once  sync.Once
}

func (w *slowWriter) Write(b []byte) (int, error) {
	w.once.Do(func() { close(w.stuck) })
	<-w.free
	return len(b), nil
}

// Readers who take their time hold a part each of large versions that do not fit into memory,
// whether it has to be decoded for them or not. If these are too many, the others get a 503.
func TestSlowReadersHoldAPartEach(t *testing.T) {
	slow(t)
	const size, feeds, readers, bound = 4 << 20, 2, 160, 80 << 20
	bodies := make(map[string]string)
	r := rand.New(rand.NewPCG(1, 2))
	for n := range feeds {
		var doc strings.Builder
		fmt.Fprintf(&doc, `<rss version="2.0"><channel><title>%d `, n)
		for range size {
			doc.WriteByte("abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[r.IntN(64)])
		}
		doc.WriteString(`</title><item><guid>1</guid></item></channel></rss>`)
		bodies[fmt.Sprintf("https://origin%d.test/", n)] = doc.String()
	}
	g := newGateway(t, func(ask policy.Ask) policy.Answer { return ok(bodies[ask.URL.String()]) })
	g.dir = t.TempDir()
	g.open()
	for url, body := range bodies {
		if w := g.get(url); w.Code != 200 || w.Body.String() != body {
			t.Fatalf("got %d, %d bytes", w.Code, w.Body.Len())
		}
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, free := heap(), make(chan struct{})
	var all sync.WaitGroup
	sent, refused := 0, 0
	for n := range readers {
		w := &slowWriter{httptest.NewRecorder(), make(chan struct{}), free, sync.Once{}}
		failed := make(chan error, 1)
		all.Go(func() {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			if n%2 == 0 {
				r.Header.Set("Accept-Encoding", "gzip")
			}
			failed <- g.serve(w, r, 0, fmt.Sprintf("https://origin%d.test/", n%feeds))
		})
		select {
		case <-w.stuck:
			sent++
		case err := <-failed:
			if u, ok := err.(*cache.Unavailable); !ok || u.Status != 503 || u.RetryAfter == 0 {
				t.Fatal(err)
			}
			refused++
		}
	}
	if grown := heap() - before; grown > bound || sent < 100 {
		t.Errorf("%d slow readers hold %d MiB, and %d were refused", sent, grown>>20, refused)
	}
	close(free)
	all.Wait()
	for url, body := range bodies {
		if w := g.get(url); w.Code != 200 || w.Body.String() != body {
			t.Errorf("afterwards: got %d, %d bytes", w.Code, w.Body.Len())
		}
	}
}

// cutter is a reader during whose first part something happens.
type cutter struct {
	*httptest.ResponseRecorder
	once sync.Once
	do   func()
}

func (w *cutter) Write(b []byte) (int, error) {
	w.once.Do(w.do)
	return w.ResponseRecorder.Write(b)
}

// A body that is lost while it is sent ends the response as broken, whatever its coding, and the
// next poll fetches it again. One that is replaced is sent to its end.
func TestBodyThatGoesWhileItIsSent(t *testing.T) {
	slow(t)
	noise := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{1}).Read(noise) //nolint:errcheck // it never fails
	for _, accept := range []string{"gzip", ""} {
		synctest.Test(t, func(t *testing.T) {
			entries := 1
			g := newGateway(t, func(ask policy.Ask) policy.Answer {
				if !ask.Validators.Empty() {
					return unchanged()
				}
				return ok(rss(entries, fmt.Sprintf("%x", noise)), "ETag", `"v"`)
			})
			g.budget = 1000
			g.open()
			want := g.get(feedURL, "Accept-Encoding", accept)
			get := func(do func()) (w *cutter, broken any) {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r.Header.Set("Accept-Encoding", accept)
				w = &cutter{ResponseRecorder: httptest.NewRecorder(), do: do}
				defer func() { broken = recover() }()
				return w, g.serve(w, r, 0, feedURL)
			}
			w, broken := get(func() {
				time.Sleep(time.Second)
				id := store.IDOf(feedURL)
				leases, err := g.store.Claim(t.Context(), []store.Claim{{ID: id, URL: feedURL, Hold: time.Hour, Floor: time.Nanosecond}})
				if err != nil || leases[0].Denied != "" {
					t.Fatal(leases, err)
				}
				same, err := store.ReadBody(t.Context(), &g.store, id)
				if same.Version = 2; err == nil {
					err = g.store.Commit(t.Context(), store.Outcome{ID: id, Token: leases[0].Token, In: time.Hour, Body: &same})
				}
				if err != nil {
					t.Fatal(err)
				}
			})
			if broken != nil || w.Body.String() != want.Body.String() {
				t.Errorf("%q: replaced while it was sent: %d of %d bytes, %v", accept, w.Body.Len(), want.Body.Len(), broken)
			}
			w, broken = get(func() {
				if ids, err := g.store.Sweep(t.Context(), store.SweepQuery{Disk: 1}); err != nil || len(ids) != 1 {
					t.Fatal(ids, err)
				}
			})
			if broken != http.ErrAbortHandler || w.Body.Len() >= want.Body.Len() {
				t.Errorf("%q: lost while it was sent: %d of %d bytes, %v", accept, w.Body.Len(), want.Body.Len(), broken)
			}
			time.Sleep(25 * time.Hour)
			if w := g.get(feedURL, "Accept-Encoding", accept); w.Body.String() != want.Body.String() {
				t.Errorf("%q: afterwards %d bytes", accept, w.Body.Len())
			}
		})
	}
}

// Readers for whom a version is decoded on its way are counted, also if memory has it.
func TestReadersForWhomVersionsAreDecoded(t *testing.T) {
	slow(t)
	var doc strings.Builder
	doc.WriteString(`<rss version="2.0"><channel><title>T</title>`)
	for n := range 20_000 {
		fmt.Fprintf(&doc, `<item><guid>%d</guid><title>%x</title></item>`, n, n*n)
	}
	doc.WriteString(`</channel></rss>`)
	g := newGateway(t, func(policy.Ask) policy.Answer { return ok(doc.String()) })
	g.budget = 32 << 20
	g.open()
	if w := g.get(feedURL); w.Code != 200 {
		t.Fatal(w.Code)
	}
	const readers = 1100 // of one network, for whom it is decoded: a thousand are served
	free, refused := make(chan struct{}), 0
	var all sync.WaitGroup
	for range readers {
		w, failed := &slowWriter{httptest.NewRecorder(), make(chan struct{}), free, sync.Once{}}, make(chan error, 1)
		all.Go(func() { failed <- g.serve(w, httptest.NewRequest(http.MethodGet, "/", nil), 0, feedURL) })
		select {
		case <-w.stuck:
		case err := <-failed:
			if u, ok := err.(*cache.Unavailable); !ok || u.Status != 503 || u.RetryAfter == 0 || !u.Busy {
				t.Fatal(err)
			}
			refused++
		}
	}
	close(free)
	all.Wait()
	if refused != readers-64<<20/(64<<10) {
		t.Errorf("%d of %d slow readers were refused", refused, readers)
	}
}
