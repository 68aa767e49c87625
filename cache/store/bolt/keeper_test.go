// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/internal/schedule"
)

// household is a store of feeds that are polled once an hour, and may be killed.
type household struct {
	*testing.T
	*Store
	dir string
}

func (h *household) open() {
	h.Helper()
	s, err := Open(h.dir, Options{})
	if err != nil {
		h.Fatal(err)
	}
	h.Store = s
}

// known begins with a feed that has been polled before.
func (h *household) known() {
	h.Helper()
	h.commit(h.claim(1), 0, "")
	time.Sleep(time.Second)
}

func (h *household) again() {
	h.Helper()
	h.kill()
	h.open()
}

// claim claims a poll.
func (h *household) claim(n int) store.Lease {
	h.Helper()
	leases, err := h.Claim(h.Context(), []store.Claim{{ID: numbered(n), URL: "https://example.com/", Hold: time.Hour}})
	if err != nil || leases[0].Denied != "" {
		h.Fatalf("%+v, %v", leases, err)
	}
	return leases[0]
}

// commit commits a poll that brought nothing new.
func (h *household) commit(l store.Lease, in time.Duration, facts string) {
	h.Helper()
	o := store.Outcome{ID: l.ID, Token: l.Token, In: in, Hold: time.Hour, State: store.StateFresh, Facts: []byte(facts)}
	if err := h.Store.Commit(h.Context(), o); err != nil {
		h.Fatal(err)
	}
}

func (h *household) want(n int, token store.Token, in time.Duration, facts string) {
	h.Helper()
	r, err := h.Lookup(h.Context(), []store.ID{numbered(n)})
	if err != nil || len(r) != 1 || r[0].Token != token || r[0].In.Round(time.Minute) != in || string(r[0].Facts) != facts {
		h.Errorf("%+v, %v, want token %d, in %v, facts %q", r, err, token, in, facts)
	}
}

// grants counts what is in the bucket of grants.
func (h *household) grants() (n int) {
	h.Helper()
	if err := h.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucketGranted)).ForEach(func(_, _ []byte) error { n++; return nil })
	}); err != nil {
		h.Fatal(err)
	}
	return n
}

func keepingHouse(t *testing.T, do func(h *household)) {
	dir := directory(t)
	synctest.Test(t, func(t *testing.T) {
		h := &household{T: t, dir: dir}
		h.open()
		do(h)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
}

// An outcome that leaves the schedule as its claim did waits for others. Until it is
// written a crash takes it back to the claim, and no further.
func TestOutcomeThatWaits(t *testing.T) {
	keepingHouse(t, func(h *household) {
		h.known()
		l := h.claim(1)
		h.commit(l, 50*time.Minute, "first")
		time.Sleep(time.Minute)
		h.want(1, l.Token, 49*time.Minute, "first")
		h.again()
		h.want(1, l.Token, 59*time.Minute, "")

		time.Sleep(time.Hour)
		l = h.claim(1)
		h.commit(l, 50*time.Minute, "second")
		time.Sleep(11 * time.Minute)
		if n := h.grants(); n != 0 {
			h.Errorf("%d grants are left", n)
		}
		h.again()
		h.want(1, l.Token, 39*time.Minute, "second")

		// What the record lacks is not lost with the next claim.
		time.Sleep(time.Hour)
		h.commit(h.claim(1), 50*time.Minute, "third")
		l = h.Store.insist(h, 1)
		h.again()
		h.want(1, l.Token, time.Hour, "third")
		l = h.Store.insist(h, 1)
		h.again()
		h.want(1, l.Token, time.Hour, "third")
	})
}

// insist claims a poll by hand.
func (s *Store) insist(h *household, n int) store.Lease {
	h.Helper()
	time.Sleep(time.Second)
	leases, err := s.Claim(h.Context(), []store.Claim{{ID: numbered(n), URL: "https://example.com/", Hold: time.Hour, Floor: time.Nanosecond}})
	if err != nil || leases[0].Denied != "" {
		h.Fatalf("%+v, %v", leases, err)
	}
	return leases[0]
}

// An outcome that asks for more than its claim has promised, or for much less, does not
// wait.
func TestOutcomeThatDoesNotWait(t *testing.T) {
	for in, waits := range map[time.Duration]bool{46 * time.Minute: true, time.Hour: true, 61 * time.Minute: false, 44 * time.Minute: false} {
		keepingHouse(t, func(h *household) {
			h.known()
			l := h.claim(1)
			h.commit(l, in, "facts")
			time.Sleep(time.Second)
			h.again()
			if waits {
				h.want(1, l.Token, time.Hour, "")
			} else {
				h.want(1, l.Token, in, "facts")
			}
		})
	}
}

// A grant does not come back when its feed has been forgotten, imported anew, or polled
// again.
func TestSpentGrants(t *testing.T) {
	anew := func(h *household) {
		if err := h.Restore(h.Context(), []store.Saved{{Record: store.Record{
			ID: numbered(1), URL: "https://example.com/", In: 2 * time.Hour, Hold: time.Hour, Polled: -1, Asked: -1, State: store.StateFresh, Facts: []byte("anew"),
		}}}); err != nil {
			h.Fatal(err)
		}
	}
	for name, do := range map[string]func(h *household){
		"forgotten": func(h *household) {
			if err := h.Forget(h.Context(), numbered(1)); err != nil {
				h.Fatal(err)
			}
			anew(h)
		},
		"restored": anew,
	} {
		for waited, some := range map[time.Duration]string{time.Second: "soon", 11 * time.Minute: "late"} {
			t.Run(name+", "+some, func(t *testing.T) {
				keepingHouse(t, func(h *household) {
					h.known()
					h.commit(h.claim(1), 30*time.Minute, "first") // does not wait
					time.Sleep(waited)
					do(h)
					h.again()
					h.want(1, 0, 2*time.Hour, "anew")
				})
			})
		}
	}
}

// Grants of an earlier version are by the IDs of their feeds, which may have no other
// record.
func TestGrantsOfAnEarlierVersion(t *testing.T) {
	keepingHouse(t, func(h *household) {
		l := h.claim(1)
		h.commit(l, 30*time.Minute, "facts")
		time.Sleep(time.Second)
		now := h.clock.now()
		if err := h.db.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(bucketGranted))
			for n := range 2 {
				id := numbered(1 + n)
				f := &schedule.Feed{Token: 7, Next: now.Add(5 * time.Hour), Hold: 5 * time.Hour, Polled: now, Asked: now, Facts: []byte("old"), State: store.StateFresh}
				if err := b.Put(id[:], encodeFeed(id, f)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			h.Fatal(err)
		}
		for range 2 {
			h.again()
			h.want(1, 7, 5*time.Hour, "old")
			h.want(2, 7, 5*time.Hour, "old")
		}
		time.Sleep(5 * time.Hour)
		l = h.claim(1)
		h.commit(l, time.Minute, "new")
		time.Sleep(time.Second)
		h.again()
		h.want(1, l.Token, time.Minute, "new")
		time.Sleep(11 * time.Minute)
		if n := h.grants(); n != 0 {
			h.Errorf("%d grants are left", n)
		}
	})
}
