// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package store is the contract of the durable record of feeds.
package store

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// ID names a feed in the store: the first half of the SHA-256 of its key, which is
// its canonical URL or, behind a shield, what [github.com/feedpollard/pollard/caddymodule]
// makes of it.
type ID [16]byte

// Compare orders IDs as stores do.
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// Token names one grant. A store never gives the same token twice, not even after
// a feed was forgotten and has come back.
type Token uint64

// Ended is the time to the next poll of a feed that is not polled automatically any more.
const Ended = time.Duration(math.MaxInt64)

// MaxCounters is the largest size of a node's statistics, in bytes.
const MaxCounters = 8 << 20

// Errors of a [Store] that the engine decides on.
var (
	// ErrNoRecord reports that the store does not know the feed.
	ErrNoRecord = errors.New("store: no record of this feed")
	// ErrNoBody reports that a body is missing or damaged: the next poll must be
	// unconditional, or a 304 would leave the feed without a body for ever. Any other
	// error of [Store.Body] may pass.
	ErrNoBody = errors.New("store: body is missing or damaged")
	// ErrFenced reports that a commit came too late: the feed has been claimed again,
	// or forgotten, since. Nothing was written.
	ErrFenced = errors.New("store: the lease is not valid any more")
	// ErrCountersTooLarge reports that a node's statistics exceed [MaxCounters].
	ErrCountersTooLarge = errors.New("store: counters are too large")
	// ErrLocked reports that another process holds the store.
	ErrLocked = errors.New("store: in use by another process")
)

// A Store is the durable record of feeds and of the hosts that they come from. It
// owns the schedule: what is due is decided by the store's clock, and only
// durations cross this interface, always counted from the moment at which the store
// answers. Its methods may be called concurrently, by several nodes if the store
// is shared.
//
// A grant is durable when Claim, ClaimDue or Hop returns: whatever crashes, no other
// claim of the feed is granted before its Hold has passed.
type Store interface {
	// Claim asks for the right to poll named feeds. The leases are in the order of the
	// claims; each brings the record as it stands after the call, whether it was
	// granted or not. A feed that is not known gets a record, which is due at once,
	// even if a redirect has just been followed to its URL: a redirect decides nothing
	// about its target.
	// An error means that nothing was granted: no poll may be made.
	Claim(ctx context.Context, claims []Claim) ([]Lease, error)

	// ClaimDue grants up to q.Limit feeds that are due, the hosts that have waited the longest first, at
	// most one of a host and none of a host that has to be left alone. Feeds that
	// no reader has asked for in q.Idle are left out, whether configured or not, for a day or until
	// a reader asks; so are those without a version, unless they are configured. wait is when to
	// ask again, if fewer than q.Limit were granted.
	ClaimDue(ctx context.Context, q DueQuery) (leases []Lease, wait time.Duration, err error)

	// Hop asks for the right to follow a redirect of a claimed poll to another URL.
	Hop(ctx context.Context, hop Hop) (Passage, error)

	// Commit stores the outcome of a claimed poll in one atomic step: schedule, facts,
	// memo, body and pauses. It fails with [ErrFenced] if the token is not the
	// record's any more. It is durable when it returns only if it brings a body or a
	// pause, or puts the next poll off for much longer than its claim: any other outcome of the last second a crash may lose, as its claim
	// already keeps the feed from being polled too early. An outcome that has the feed
	// polled about when its claim did, and no later, may be lost for some minutes.
	Commit(ctx context.Context, o Outcome) error

	// Lookup reads the records of feeds. Those that are not known are left out.
	Lookup(ctx context.Context, ids []ID) ([]Record, error)

	// Body opens the body of a version, or fails with [ErrNoBody]. If another version has
	// followed, that one may come instead.
	Body(ctx context.Context, id ID, version uint64) (*StoredBody, error)

	// Records reads up to limit records in the order of their IDs, from the first
	// behind after. Fewer than limit means that there are no more.
	Records(ctx context.Context, after ID, limit int) ([]Record, error)

	// Touch records when readers asked for feeds last, and which owners did. The latest
	// moment of all nodes counts. IDs that are not known are ignored.
	Touch(ctx context.Context, asked map[ID]Asked) error

	// Forget removes the record and body of one feed, or fails with [ErrNoRecord]. A poll
	// under way is fenced off. The store remembers the last poll of the feed, and until when
	// its origin does not want another one, for as long as they count.
	Forget(ctx context.Context, id ID) error

	// Sweep removes the records that are not wanted any more, with their bodies, a few
	// at a time, so that no other call waits long. It returns the IDs of those that are
	// gone, also if it fails.
	Sweep(ctx context.Context, q SweepQuery) ([]ID, error)

	// Trim drops bodies until the store uses at most budget bytes, or only feeds of
	// [Operator] have bodies: those of the feeds that have the least claim to the store (see
	// [Owner]). Their records stay, without a version, due when they were. While the file
	// system is short of space, the budget is what the store used when that was noticed. It
	// returns like Sweep.
	Trim(ctx context.Context, budget int64) (trimmed []ID, err error)

	// Restore writes records as they are given, for an import. If there is a record
	// already, the later last poll and the later next poll count, and the rest is replaced. What
	// is remembered of a feed that was forgotten counts, too.
	Restore(ctx context.Context, saved []Saved) error

	// Pauses returns the pauses of hosts and domains that are in force.
	Pauses(ctx context.Context) ([]Pause, error)

	// Watch calls see for each change, those of this node included, until ctx ends or see
	// fails. The first is Lost: what has changed before is not known.
	Watch(ctx context.Context, see func(Change) error) error

	// Totals returns figures that the store keeps up to date; it counts nothing.
	Totals(ctx context.Context) (Totals, error)

	// SaveCounters replaces the statistics of a node. The store does not read them.
	// Empty data removes them. More than [MaxCounters] bytes are an error.
	SaveCounters(ctx context.Context, node string, data []byte) error

	// Counters returns the statistics that each node saved last.
	Counters(ctx context.Context) (map[string][]byte, error)

	Close() error
}

// Pages yields all records of a store in the order of their IDs, size at a time. It
// ends with the first error.
func Pages(ctx context.Context, s Store, size int) iter.Seq2[[]Record, error] {
	return func(yield func([]Record, error) bool) {
		var after ID
		for {
			records, err := s.Records(ctx, after, size)
			if !yield(records, err) || err != nil || len(records) < size {
				return
			}
			after = records[len(records)-1].ID
		}
	}
}

// Claim asks for the next poll of a feed.
type Claim struct {
	ID  ID
	URL string // the feed's key, kept in the record
	// Hold is how far the next poll moves if no commit follows. It covers the length
	// of the poll and the interval in force, back-off included.
	Hold time.Duration
	// Floor, if it is above 0, asks for a poll by hand: one that is granted before
	// the feed is due, if the last grant is at least so long ago.
	Floor time.Duration
	// Configured marks the feed as one that the operator has written down: it is
	// claimed by ClaimDue though it has no version.
	Configured bool
	// By is the owner for whom the poll is made; 0: it was not asked for.
	By Owner
	// Queue has the claim wait for its turn among the feeds of its host: if it is denied as
	// busy, the feed takes its place, and ClaimDue may grant it for the next minutes. Without
	// it, the claim is granted as soon as the host is free.
	Queue bool
	// Prefetch says that feeds that are due are claimed by ClaimDue: they have their turn, too.
	Prefetch bool
	// Host is whom the poll will ask. A claim is denied while the host has to be left alone.
	Host Host
}

// Host is whom a poll asks, and Pause a time in which it is left alone.
type (
	Host  = policy.Host
	Pause = policy.Pause
)

// Denial says why a claim or a hop was not granted. The empty one is a grant.
type Denial string

// The reasons for a denial.
const (
	DeniedNotDue Denial = "not-due" // the feed is not due, or the URL was asked a short time ago
	DeniedBusy   Denial = "busy"    // the host was asked less than its spacing ago
	DeniedPaused Denial = "paused"  // the host or its domain has asked for a pause
	DeniedTaken  Denial = "taken"   // of a hop: the URL is a feed with polls of its own
)

// Lease answers a claim.
type Lease struct {
	Record
	Denied Denial        // empty: granted
	Wait   time.Duration // of a denial: when the claim may be granted; before that it is denied again
	Why    string        // of a pause: which, as it was committed
}

// Record is what the store keeps of a feed, besides its body. Facts and Memo are
// opaque to the store.
type Record struct {
	ID    ID
	URL   string
	Token Token // of the last grant; 0: never granted
	// In is the time to the next poll: 0 or less if it is due, [Ended] if
	// automatic polling has ended.
	In     time.Duration
	Hold   time.Duration // what ClaimDue moves the next poll by
	Polled time.Duration // since the last grant; negative: never granted
	Asked  time.Duration // since a reader asked last, on any node; negative: never
	Hopped time.Duration // since a redirect was last followed to the URL; negative: never
	// NotBefore is how long the origin still asks not to be polled, whatever In is; 0: it
	// does not.
	NotBefore time.Duration
	Version   uint64 // of the body; 0: none
	State     State
	Facts     []byte // small, and changes with each poll
	Memo      []byte // changes seldom
	Host      Host   // as of the last claim or commit

	Configured  bool
	Established bool // configured, listed, or read on three of the last 30 days
}

// State is the condition that a feed is in, apart from whether it is due.
type State string

// The states of a feed.
const (
	StateCold    State = "cold"    // has no version, and is not configured or was never polled
	StateFresh   State = "fresh"   // has a version, and the last poll was good
	StateWaiting State = "waiting" // its site has asked for a pause
	StateFailing State = "failing" // the last poll failed
	StateGone    State = "gone"    // the origin said 410
)

// DueQuery asks for feeds that are due.
type DueQuery struct {
	Limit int
	// Except are hosts, by [Host].Name, that this node is busy with.
	Except []string
	// Idle leaves out feeds that no reader has asked for in so long.
	Idle time.Duration
	// Established leaves out feeds that are not established.
	Established bool
}

// Asked is who asked for a feed, and when.
type Asked struct {
	Ago time.Duration // since the last reader
	By  []Owner       // that have asked since the last Touch
	// Memo returns another memo for the record's, or nil to leave it. It may be called several
	// times. Nil: the memo stays.
	Memo func(memo []byte) []byte
}

// Hop asks to follow a redirect to a URL. It takes the slot of its host as a claim
// does. If it is granted, the URL counts as asked at this moment.
type Hop struct {
	ID ID // of the URL
	// From is the feed that is polled: the slot counts as its. If it is not established, the
	// hop is denied as busy while it is the turn of an established feed of the host. It waits for
	// no other feed, as it holds its place among the polls in flight meanwhile.
	From ID
	// Prefetch is that of [Claim].
	Prefetch bool
	// Floor is how long ago the URL must have been asked last, whether by its own
	// polls or by other hops.
	Floor time.Duration
	// Yield denies the hop if the URL is a feed with a record of its own, unless
	// that has ended: its polls must not depend on the feeds that redirect to it. Otherwise
	// the next poll of such a feed moves, so that it is Floor from now at least.
	Yield bool
	Host  Host
}

// Passage answers a hop.
type Passage struct {
	Denied Denial // empty: granted
	Wait   time.Duration
}

// Outcome is what a poll changes.
type Outcome struct {
	ID    ID
	Token Token // of the lease
	// In is the time to the next poll; [Ended]: there will be none.
	In      time.Duration
	Hold    time.Duration // of the next claim by ClaimDue
	Claimed time.Duration // the Hold of the lease; 0: not said
	// Returned says that nothing was sent. The token is spent all the same.
	Returned bool
	State    State
	Facts    []byte // nil: as they were
	Memo     []byte // nil: as it was
	// Body is a new version. Nil: the stored one stays.
	Body *Body
	// Withdraw drops the stored body, and with it the version.
	Withdraw bool
	Host     Host
	Pauses   []Pause // that hosts asked for in the poll
	Good     []Host  // that answered well in it: pauses of their domains do not hold for them for two days
	// NotBefore is how long the origin asks not to be polled. It counts even if the feed is
	// forgotten. 0: the origin does not ask for that.
	NotBefore time.Duration
}

// Body is a version to store: one representation, from which the engine makes others.
type Body struct {
	Version uint64 // at least 1, and greater than that of any body of the feed before
	Coding  string // its content coding: gzip or identity
	Data    []byte
}

// Saved is a record with its body, for an import.
type Saved struct {
	Record
	Body *Body // nil: none
	// New leaves a record alone that is there already.
	New bool
	// Pause is that of a host or domain, which is restored in place of a record. Nil: none.
	Pause *Pause
}

// SweepQuery says which records are not wanted any more. A feed that no reader has asked
// for yet counts as asked for when it was granted last; so it does for [Store.Trim].
type SweepQuery struct {
	// Idle is for how long no reader has asked for a feed.
	Idle time.Duration
	// Unread is the same for feeds that have no version and are not established, if they are
	// due, or their origin asked not to be polled yet.
	Unread time.Duration
	// Keep says which records stay whatever holds of them. Nil: none.
	Keep func(ID) bool
}

// Change is what Watch reports.
type Change struct {
	ID        ID
	Version   uint64 // that has been committed; 0: only the schedule or the condition has changed
	Token     Token  // of the commit that made the change; 0: it was no commit
	Forgotten bool
	// Lost says that changes before this one are not known: everything held in memory may
	// be out of date.
	Lost bool
}

// Totals are figures of a store.
type Totals struct {
	Feeds   map[State]int64
	Overdue int64 // of them, due at present
	Unread  int64 // of them, without a version and not configured
	Bytes   int64 // of bodies
	// Operator are the bytes of bodies of feeds that are configured or listed.
	Operator int64
	Used     int64 // bytes that the store uses, as [Store.Trim] counts
	Short    bool  // the file system is short of space
}
