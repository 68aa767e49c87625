// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// A cache can be closed while readers, and whoever purges it, go on asking.
func TestCloseWhileInUse(t *testing.T) {
	for range 10 {
		c, err := New(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t: t, cache: c, answer: says(200, "hello", "Cache-Control: max-age=60")}
		b.serve(request("GET", "/"))
		var users sync.WaitGroup
		var turns [4]atomic.Int64
		var closed atomic.Bool
		use := func(i int, once func()) {
			users.Go(func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("panic: %v", p)
						turns[i].Add(1000)
					}
				}()
				for !closed.Load() {
					once()
					turns[i].Add(1)
				}
			})
		}
		for i := range 3 {
			use(i, func() {
				w := httptest.NewRecorder()
				if err := b.send(w, request("GET", "/")); err != nil || w.Code != 200 {
					t.Errorf("%d %v", w.Code, err)
				}
			})
		}
		use(3, func() { c.PurgeURL(home + "/other") })
		for i := range turns {
			for turns[i].Load() < 20 {
				runtime.Gosched()
			}
		}
		c.Close()
		closed.Store(true)
		users.Wait()
		if t.Failed() {
			return
		}
	}
}
