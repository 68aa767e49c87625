// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"
)

const (
	spacing  = 2 * time.Second
	operator = Owner(1)
	alice    = Owner(2)
	bob      = Owner(3)
	carol    = Owner(4)
)

// feedOf is a feed with a short name, which is its ID.
func feedOf(name, site string, owner Owner, due time.Duration) Feed {
	var id ID
	copy(id[:], name)
	return Feed{ID: id, Site: site, Owner: owner, Due: due}
}

func newFeedOf(name, site string, owner Owner, due time.Duration) Feed {
	f := feedOf(name, site, owner, due)
	f.New = true
	return f
}

func nameOf(f Feed) string { return strings.TrimRight(string(f.ID[:]), "\x00") }

func numbered(n int) (id ID) {
	binary.BigEndian.PutUint64(id[:], uint64(n))
	return id
}

// drain takes feeds until nothing waits or the moment has come. Each is asked for. It returns their names.
func drain(q *Queue, until time.Duration) string {
	var names []string
	for now := q.When(0); now < until; now = q.When(now) {
		for _, f := range q.Next(now, 100) {
			names = append(names, nameOf(f))
			q.Asked(f.Site, f.Owner, now, now+spacing)
		}
	}
	return strings.Join(names, " ")
}

func TestOrderAtASite(t *testing.T) {
	for _, tt := range []struct {
		name string
		put  func(q *Queue)
		want string
	}{
		{
			name: "those due the longest first",
			put: func(q *Queue) {
				q.Due(feedOf("b", "s", alice, 2), feedOf("c", "s", alice, 3), feedOf("a", "s", alice, -1))
			},
			want: "a b c",
		},
		{
			name: "the operator every second one, others in turn",
			put: func(q *Queue) {
				for i, n := range []string{"1", "2", "3", "4"} {
					due := time.Duration(i)
					q.Due(feedOf("a"+n, "s", alice, due), feedOf("b"+n, "s", bob, due), feedOf("c"+n, "s", carol, due))
					q.Due(feedOf("o"+n, "s", operator, 9+due))
				}
			},
			want: "o1 a1 o2 b1 o3 c1 o4 a2 b2 c2 a3 b3 c3 a4 b4 c4",
		},
		{
			name: "who waits first, in the order in which they were asked for",
			put: func(q *Queue) {
				q.Due(feedOf("a", "s", alice, 0))
				q.Wait(feedOf("c", "s", alice, 5))
				q.Wait(feedOf("b", "s", alice, 1))
				q.Wait(feedOf("c", "s", alice, 5))
			},
			want: "c b a",
		},
		{
			name: "of feeds without a version the one asked for most recently",
			put: func(q *Queue) {
				q.Wait(newFeedOf("a", "s", alice, 0))
				q.Wait(newFeedOf("b", "s", alice, 0))
				q.Wait(newFeedOf("c", "s", alice, 0))
				q.Wait(newFeedOf("a", "s", alice, 0))
			},
			want: "a c b",
		},
		{
			name: "no reader waits any more",
			put: func(q *Queue) {
				q.Due(feedOf("a", "s", alice, 0), feedOf("b", "s", alice, 1))
				q.Wait(feedOf("b", "s", alice, 1))
				q.Wait(feedOf("c", "s", alice, 1))
				q.Leave(feedOf("b", "", 0, 0).ID)
				q.Leave(feedOf("c", "", 0, 0).ID)
				q.Leave(feedOf("c", "", 0, 0).ID)
			},
			want: "a b",
		},
		{
			name: "what paused the site last",
			put: func(q *Queue) {
				q.Paused(feedOf("o", "", 0, 0).ID)
				q.Paused(feedOf("a", "", 0, 0).ID)
				q.Answered(feedOf("a", "", 0, 0).ID)
				q.Wait(feedOf("o", "s", operator, 0))
				q.Due(feedOf("a", "s", alice, 0), feedOf("b", "s", alice, 1))
			},
			want: "a b o",
		},
		{
			name: "a pause of new ones",
			put: func(q *Queue) {
				q.Hold("s", true, 5*time.Second, 0)
				q.Wait(newFeedOf("n", "s", operator, 0))
				q.Due(feedOf("a", "s", alice, 0), feedOf("b", "s", alice, 1), feedOf("c", "s", alice, 2), feedOf("d", "s", alice, 3))
			},
			want: "a b c n d",
		},
		{
			name: "while new ones are paused, what paused the site last",
			put: func(q *Queue) {
				q.Hold("s", true, time.Second, 0)
				q.Paused(feedOf("a", "", 0, 0).ID)
				q.Due(feedOf("a", "s", alice, 0), newFeedOf("n", "s", alice, 0), feedOf("b", "s", alice, 1))
			},
			want: "b n a",
		},
		{
			name: "nothing else than what paused the site",
			put: func(q *Queue) {
				q.Hold("s", true, time.Second, 0)
				q.Paused(feedOf("a", "", 0, 0).ID)
				q.Due(feedOf("a", "s", alice, 0), newFeedOf("n", "s", alice, 0))
			},
			want: "a n",
		},
		{
			name: "with and without a version by the time that they have been due",
			put: func(q *Queue) {
				q.Due(newFeedOf("c", "s", bob, 3), feedOf("b", "s", bob, 2), newFeedOf("a", "s", bob, 1), feedOf("d", "s", bob, 4))
				q.Due(newFeedOf("h", "", bob, 3), feedOf("g", "", bob, 2), newFeedOf("f", "", bob, 1), feedOf("i", "", bob, 4))
				q.Due(newFeedOf("3", "t", operator, 3), feedOf("2", "t", operator, 2), newFeedOf("1", "t", operator, 1), feedOf("4", "t", operator, 4))
			},
			want: "1 a f g h i 2 b 3 c 4 d",
		},
		{
			name: "who waits for feeds without a site first",
			put: func(q *Queue) {
				q.Due(feedOf("c", "", alice, 2), feedOf("b", "", alice, 1))
				q.Wait(newFeedOf("a", "", alice, 3))
			},
			want: "a b c",
		},
		{
			name: "whose URL caused the pause of new ones comes last of them, for an hour",
			put: func(q *Queue) {
				q.Hold("s", true, time.Minute, alice)
				q.Next(59*time.Minute, 1) // forgets what need not be known
				q.Due(newFeedOf("a", "s", alice, 0), newFeedOf("b", "s", bob, 0), newFeedOf("c", "s", bob, 1), feedOf("d", "s", alice, 1))
			},
			want: "d b c a",
		},
		{
			name: "an hour later it does not",
			put: func(q *Queue) {
				q.Hold("s", true, -time.Hour, alice)
				q.Due(newFeedOf("a", "s", alice, 0), newFeedOf("b", "s", bob, 0), newFeedOf("c", "s", bob, 1), feedOf("d", "s", alice, 1))
			},
			want: "a b d c",
		},
		{
			name: "before those that pause the site it does not either",
			put: func(q *Queue) {
				q.Hold("s", true, -time.Minute, alice)
				q.Paused(feedOf("b", "", 0, 0).ID)
				q.Due(newFeedOf("a", "s", alice, 1), newFeedOf("b", "s", bob, 0))
			},
			want: "a b",
		},
		{
			name: "only due ones are dropped",
			put: func(q *Queue) {
				for i, name := range strings.Split("abcdefghijklmnopqrst", "") {
					q.Due(feedOf(name, "s", alice, -time.Duration(i)))
					q.Wait(feedOf(name, "s", alice, 0))
				}
				for _, name := range strings.Split("acegdb", "") {
					q.Leave(feedOf(name, "", 0, 0).ID)
				}
				q.DropDue()
			},
			want: "f h i j k l m n o p q r s t",
		},
		{
			name: "dropped and read again",
			put: func(q *Queue) {
				q.Due(feedOf("a", "s", alice, 0), feedOf("b", "t", alice, 0), feedOf("c", "", alice, 0))
				q.Wait(feedOf("w", "s", alice, 0))
				q.DropDue()
				if q.DueLen() != 0 {
					panic("some are due")
				}
				q.Due(feedOf("b", "s", alice, 0))
			},
			want: "w b",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := New(operator)
			tt.put(q)
			if got := drain(q, time.Hour); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			checkEmpty(t, q)
		})
	}
}

// checkEmpty checks that a queue of which all feeds were taken remembers nothing, later.
func checkEmpty(t *testing.T, q *Queue) {
	t.Helper()
	const later = 1000 * time.Hour
	if got := q.When(later); got != math.MaxInt64 {
		t.Errorf("something waits until %v", got)
	}
	if got := q.Next(later, 10); len(got) > 0 {
		t.Errorf("left over: %v", got)
	}
	if n := len(q.sites) + len(q.owners) + len(q.active) + len(q.waiters) + len(q.idle) + len(q.timed) + q.due; n > 0 {
		t.Errorf("%d things are remembered: %+v", n, q)
	}
}

// Only so many feeds are remembered as have paused their site, and the oldest are forgotten.
func TestMarks(t *testing.T) {
	const all = 3*maxMarks + 10
	q := New(operator)
	for i := range all {
		q.Paused(numbered(i))
		if n := len(q.paused.recent) + len(q.paused.older); n > maxMarks {
			t.Fatalf("%d are remembered", n)
		}
	}
	for i := range maxMarks / 2 {
		if id := numbered(all - 1 - i); !q.paused.has(id) {
			t.Fatalf("of the last, %d is forgotten", i)
		}
	}
	for i := range all {
		if q.Answered(numbered(i)); q.paused.has(numbered(i)) {
			t.Fatalf("%d is still remembered", i)
		}
	}
}
