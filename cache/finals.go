// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "sync"

// finals tells which feed's polls end at a URL by redirects: canonical URL to
// *Feed. Where those of several do, it names one, and that one polls for all.
type finals struct{ sync.Map }

// poller is the feed other than f that polls a URL; nil: there is none.
func (c *Cache) poller(url string, f *Feed) *Feed {
	switch other := c.known(url); other {
	case nil:
		return c.finals.of(url, f)
	case f:
		return nil
	default:
		return other
	}
}

// of is the feed other than f whose polls end at a URL; nil: there is none, or it
// fails on its way there.
func (t *finals) of(url string, f *Feed) *Feed {
	v, ok := t.Load(url)
	if !ok {
		return nil
	}
	if other := v.(*Feed); other != f && other.leads() {
		return other
	}
	return nil
}

// leads reports whether the feed's polls still get to where they ended last.
func (f *Feed) leads() bool {
	s := f.state.Load()
	return !f.forgotten.Load() && s.Version != 0 && s.memo.History.Failures == 0
}

// claim notes where a feed's polls end by now. It leaves alone what another feed
// has claimed before, as long as that one gets there.
func (t *finals) claim(f *Feed, before, after *state) {
	if before.memo.Final != after.memo.Final {
		t.release(f, before)
	}
	url, err := Canonical(after.memo.Final)
	if err != nil || url == f.url || f.shielded() {
		return
	}
	if v, claimed := t.LoadOrStore(url, f); claimed && v != f && !v.(*Feed).leads() {
		t.CompareAndSwap(url, v, f)
	}
}

// release takes the claim of a feed back.
func (t *finals) release(f *Feed, s *state) {
	if url, err := Canonical(s.memo.Final); err == nil {
		t.CompareAndDelete(url, f)
	}
}
