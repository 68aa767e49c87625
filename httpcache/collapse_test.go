// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// crowd sends requests at the same time, and counts the bodies that come back.
func (b *bench) crowd(requests ...*http.Request) map[string]int {
	b.t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	bodies := make(map[string]int)
	for _, r := range requests {
		wg.Go(func() {
			answer, err := b.try(r)
			body := text(answer)
			if err != nil {
				body = err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			bodies[body]++
		})
	}
	wg.Wait()
	return bodies
}

// repeat makes n equal requests.
func repeat(n int, lines ...string) []*http.Request {
	var all []*http.Request
	for range n {
		all = append(all, request("GET", "/", lines...))
	}
	return all
}

// slow is an origin that takes its time.
func slow(d time.Duration, answer func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		select {
		case <-time.After(d):
			return answer(r)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

func TestCollapsing(t *testing.T) {
	for name, c := range map[string]struct {
		requests []*http.Request
		origin   func(*http.Request) (*http.Response, error)
		asked    int
	}{
		// RFC 9111 section 4.
		"a fresh answer is for all":            {repeat(50), says(200, "a", "Cache-Control: max-age=60"), 1},
		"so is a redirect":                     {repeat(50), says(302, "a", "Cache-Control: max-age=60"), 1},
		"one that may not be stored is not":    {repeat(50), says(200, "a", "Cache-Control: no-store"), 50},
		"nor one to be validated every time":   {repeat(50), says(200, "a", "ETag: \"e\""), 50},
		"nor one that is stale already":        {repeat(50), says(200, "a", "Cache-Control: max-age=60", "Age: 60"), 50},
		"except while it is revalidated":       {repeat(50), says(200, "a", "Cache-Control: max-age=0, stale-while-revalidate=9"), 1},
		"a failure is one for all":             {repeat(50), fails(errors.New("a")), 1},
		"who is authorized waits for nobody":   {repeat(50, "Authorization: x"), says(200, "a", "Cache-Control: max-age=60, public"), 50},
		"an answer that takes too long is not": {repeat(3), slow(collapseWait, says(200, "a", "Cache-Control: max-age=60")), 3},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bench) {
				b.origin(slow(time.Second, c.origin))
				if got := b.crowd(c.requests...); got["a"] != len(c.requests) {
					t.Errorf("got %v", got)
				}
				if n := len(b.requests()); n != c.asked {
					t.Errorf("the origin was asked %d times, want %d", n, c.asked)
				}
			})
		})
	}
}

// TestCollapsingByKind has a crowd of two kinds, before and after it is known that
// the answers differ.
func TestCollapsingByKind(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.origin(func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return says(200, r.Header.Get("Foo"), "Cache-Control: max-age=60", "Vary: Foo")(r)
		})
		for _, most := range []int{21, 2} {
			start := time.Now()
			if got := b.crowd(append(repeat(20, "Foo: 1"), repeat(20, "Foo: 2")...)...); got["1"] != 20 || got["2"] != 20 {
				t.Errorf("got %v", got)
			}
			if n := len(b.requests()); n > most {
				t.Errorf("the origin was asked %d times", n)
			}
			if took := time.Since(start); most == 2 && took != time.Second {
				t.Errorf("one kind waited for the other: %v", took)
			}
			time.Sleep(2 * time.Minute)
		}
	})
}

// TestNoWaitingInVain checks that the requests of a key whose answers can not be
// shared do not queue up.
func TestNoWaitingInVain(t *testing.T) {
	for _, line := range []string{"Cache-Control: no-store", "ETag: \"e\""} {
		bubble(t, func(t *testing.T, b *bench) {
			b.origin(slow(time.Second, says(200, "a", line)))
			b.crowd(repeat(5)...)
			for range 2 {
				start := time.Now()
				b.crowd(repeat(5)...)
				if took := time.Since(start); took != time.Second {
					t.Errorf("%s: the next crowd took %v, want 1s", line, took)
				}
			}
			b.origin(slow(time.Second, says(200, "a", "Cache-Control: max-age=60")))
			b.crowd(repeat(5)...)
			time.Sleep(2 * time.Minute)
			b.requests()
			b.crowd(repeat(5)...)
			if n := len(b.requests()); n != 1 {
				t.Errorf("%s: the origin was asked %d times, want 1: it changed its mind", line, n)
			}
		})
	}
}

// TestCollapsedRevalidation has a crowd arrive when something has just gone stale.
func TestCollapsedRevalidation(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		body   string
	}{
		"confirmed": {says(304, "", "X-A: 2"), "old"},
		"changed":   {says(200, "new", "Cache-Control: max-age=60", "ETag: \"f\""), "new"},
		"failed":    {says(503, "down"), "old"},
		"refused":   {fails(errors.New("refused")), "old"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bench) {
				b.run([]step{{origin: says(200, "old", "Cache-Control: max-age=60", "ETag: \"e\""), asked: true, body: "old"}})
				time.Sleep(time.Minute)
				b.origin(slow(time.Second, c.answer))
				if got := b.crowd(repeat(50)...); got[c.body] != 50 {
					t.Errorf("got %v, want only %q", got, c.body)
				}
				if asked := b.requests(); len(asked) != 1 || asked[0].Header.Get("If-None-Match") != "\"e\"" {
					t.Errorf("the origin was asked %d times, want once, with the validator", len(asked))
				}
			})
		})
	}
}

// TestOneRefresh has a crowd arrive within stale-while-revalidate.
func TestOneRefresh(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.run([]step{{origin: says(200, "old", "Cache-Control: max-age=60, stale-while-revalidate=60"), asked: true, body: "old"}})
		time.Sleep(time.Minute)
		b.origin(slow(time.Second, says(200, "new", "Cache-Control: max-age=60")))
		start := time.Now()
		if got := b.crowd(repeat(50)...); got["old"] != 50 || time.Since(start) != 0 {
			t.Errorf("got %v after %v, want the old one at once", got, time.Since(start))
		}
		time.Sleep(2 * time.Second)
		if n := len(b.requests()); n != 1 {
			t.Errorf("the origin was asked %d times, want 1", n)
		}
		b.run([]step{{body: "new"}})
	})
}

// TestReaderLeaves checks what becomes of a fetch whose reader has gone.
func TestReaderLeaves(t *testing.T) {
	leave := func(b *bench, r *http.Request) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		answer, err := b.try(within(ctx, r))
		if r.Method == http.MethodGet && (err != nil || answer.StatusCode != statusClientClosed) {
			b.t.Errorf("got %v, %d, want what is logged of readers who leave", err, answer.StatusCode)
		}
	}
	t.Run("others still wait", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *bench) {
			b.origin(slow(5*time.Second, says(200, "a", "Cache-Control: max-age=60")))
			go leave(b, request("GET", "/"))
			synctest.Wait()
			if got := b.crowd(repeat(5)...); got["a"] != 5 {
				t.Errorf("got %v", got)
			}
			if n := len(b.requests()); n != 1 {
				t.Errorf("the origin was asked %d times, want 1", n)
			}
		})
	})
	t.Run("what can be stored is", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *bench) {
			b.origin(slow(5*time.Second, says(200, "a", "Cache-Control: max-age=60")))
			leave(b, request("GET", "/"))
			time.Sleep(5 * time.Second)
			b.requests()
			b.run([]step{{body: "a"}})
		})
	})
	t.Run("but not for ever", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *bench) {
			b.origin(slow(2*detachedLimit, says(200, "a", "Cache-Control: max-age=60")))
			leave(b, request("GET", "/"))
			out := b.requests()[0]
			time.Sleep(detachedLimit - time.Millisecond)
			if out.Context().Err() != nil {
				t.Error("the fetch ended early")
			}
			time.Sleep(2 * time.Millisecond)
			if out.Context().Err() == nil {
				t.Error("the fetch goes on")
			}
		})
	})
	t.Run("an unsafe request ends", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *bench) {
			b.origin(slow(5*time.Second, says(200, "a")))
			leave(b, request("POST", "/"))
			if b.requests()[0].Context().Err() == nil {
				t.Error("the request goes on")
			}
		})
	})
}

// A failure is the answer to those who have waited for it. Who asks when it is known
// causes another fetch.
func TestFailureIsNotJoinedAfterwards(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		for i := range 3000 {
			failure := fmt.Errorf("failure %d", i)
			b.origin(fails(failure))
			if _, err := b.try(request("GET", "/")); !errors.Is(err, failure) {
				t.Fatalf("request %d got %v", i, err)
			}
		}
	})
}
