// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"

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

// Readers that take their time share one copy of a large version that does not fit into memory.
func TestSlowReadersShareACopy(t *testing.T) {
	const size, readers = 6 << 20, 30
	r := rand.New(rand.NewPCG(1, 2))
	var doc bytes.Buffer
	doc.WriteString(`<rss version="2.0"><channel><title>`)
	for range size {
		doc.WriteByte("abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[r.IntN(64)])
	}
	doc.WriteString(`</title><item><guid>1</guid></item></channel></rss>`)
	body := doc.String()
	g := newGateway(t, t.TempDir(), func(policy.Ask) policy.Answer { return ok(body) })
	g.budget = 1 << 20
	g.open()
	defer g.close()
	if c := g.get(feedURL).Code; c != 200 {
		t.Fatal(c)
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
	for range readers {
		w := &slowWriter{httptest.NewRecorder(), make(chan struct{}), free, sync.Once{}}
		all.Go(func() {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			f, err := g.Feed(r.Context(), feedURL)
			if err == nil {
				f.Ask(0)
				_, err = f.Serve(w, r)
			}
			if err != nil {
				t.Error(err)
			}
		})
		<-w.stuck
		heap() // as happens often while a slow reader reads
	}
	if grown := heap() - before; grown > 3*size {
		t.Errorf("%d slow readers of one feed of %d MiB hold %d MiB; the budget of memory is 1 MiB", readers, size>>20, grown>>20)
	}
	close(free)
	all.Wait()
}
