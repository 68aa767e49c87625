// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package store is the contract of the durable record of feeds, and the rules that its
// implementations in SQL share.
//
// A feed is one origin URL and all that is known about it. Its record is what the store keeps of
// it, but for the body of its version. A version is one content of a feed, and its body is
// that content.
//
// A claim asks for the right to poll a feed. A lease answers it. If the claim is granted, the
// lease has a token, which is never given again. An outcome is what the poll changes. To commit it
// ends the lease.
//
// A site is what polls ask, and is paced and paused as one. It is left alone for the spacing after each
// poll and each hop of a redirect, and for the pauses that its refusals begin.
//
// An owner is a party that feeds count for. Owners share the site's polls and the store's space.
package store

import (
	"bytes"
	"context"
	"crypto/sha256"
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

// IDOf returns the ID of the feed with a key.
func IDOf(key string) ID {
	sum := sha256.Sum256([]byte(key))
	return ID(sum[:len(ID{})])
}

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
	// ErrShort reports that a body was not stored, as the file system is short of space.
	ErrShort = errors.New("store: the disk is nearly full, and the body was not stored")
	// ErrCountersTooLarge reports that a node's statistics exceed [MaxCounters].
	ErrCountersTooLarge = errors.New("store: counters are too large")
	// ErrLocked reports that another process holds the store.
	ErrLocked = errors.New("store: in use by another process")
)

// Claim asks for the next poll of a feed.
type Claim struct {
	ID  ID     // [IDOf] its URL
	URL string // the feed's key, kept in the record
	// Hold is the time to the next poll if no commit follows. It covers the length of the poll
	// and the interval in force, with its backoff.
	Hold time.Duration
	// Floor, if above 0, asks for a poll by hand or because of a push: it is granted before the feed is
	// due if the URL was asked so long ago.
	Floor time.Duration
	// Configured says that the node has the feed in its configuration. It is configured for two days then,
	// and ClaimDue grants it though it has no version.
	Configured bool
	// By is the owner that has asked for the feed; 0: none has.
	By Owner
	// Own says that a reader has asked for it at its own address, not only at one that points to it.
	Own bool
	// Queue has the claim wait for its turn among the feeds of its host. If it is denied as
	// busy, ClaimDue may grant it in the next minutes. Without Queue, the claim is granted as
	// soon as the host is free.
	Queue bool
	// Prefetch says that ClaimDue is called, so that all feeds that are due have their turn.
	Prefetch bool
	// Host is the host that the poll asks. A claim is denied while it has to be left alone.
	Host Host
}

// Host is a host that polls ask, and Pause a time in which it is left alone.
type (
	Host  = policy.Host
	Pause = policy.Pause
)

// Refusal says why a claim was not granted. The empty one is a grant.
type Refusal string

// The reasons for a refusal.
const (
	DeniedNotDue Refusal = "not-due" // the feed is not due
	DeniedBusy   Refusal = "busy"    // the host was asked less than its spacing ago
	DeniedPaused Refusal = "paused"  // the host has asked for a pause
)

// Lease answers a claim.
type Lease struct {
	Record
	Denied Refusal       // empty: granted
	Wait   time.Duration // of a refusal: when the claim may be granted; before that it is refused again
	Pause  Pause         // of DeniedPaused: the longest that holds for the feed
}

// Record is what the store keeps of a feed, besides its body. The store does not read PollState and
// FeedState.
type Record struct {
	ID    ID
	URL   string
	Token Token // of the last grant; 0: never granted
	// In is the time to the next poll: 0 or less if it is due, [Ended] if
	// automatic polling has ended. Of a forgotten feed, it is for how long the record is kept.
	In     time.Duration
	Hold   time.Duration // what ClaimDue moves the next poll by
	Polled time.Duration // since the last grant; negative: never granted
	Asked  time.Duration // since a reader asked last, on any node; negative: never
	// NotBefore is how long the origin still asks not to be polled, whatever In is; 0: it
	// does not.
	NotBefore time.Duration
	Version   uint64 // of the body; 0: none
	State     State
	PollState []byte // small, and changes with each poll
	FeedState []byte // changes seldom
	Host      Host   // as of the last claim or commit
	Points    string // URL to which the feed's own redirects permanently; empty if it does not

	Configured bool
	Rank       Rank
	Owner      Owner // that it counts for

	// Askers are the owners that are remembered of those that asked, and Days the days on which the feed
	// was read, as bits: bit 0 is the day of the last reader. A lease has neither.
	Askers []Asker
	Days   uint32
}

// Asker is an owner that asked for a feed, and how many days ago it did last.
type Asker struct {
	Owner Owner
	Ago   int64
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
	// Short says that places are short: feeds of rank 3 and below are left out.
	Short bool
}

// Asked is when readers asked for a feed, and of which owners they are.
type Asked struct {
	Ago time.Duration // since the last reader; negative: none has asked
	Own bool          // one has asked at the feed's own address since the last Touch
	By  []Owner       // that have asked since the last Touch
	// FeedState returns another one for the record's, or nil to leave it. It may be called several
	// times. Nil: it stays.
	FeedState func(state []byte) []byte
}

// Hop asks to follow a redirect of a poll.
type Hop struct {
	To   ID   // [IDOf] the URL to which it leads
	New  bool // the feed that is polled has no version
	Host Host // of that URL
}

// Outcome is what a poll changes.
type Outcome struct {
	ID    ID
	Token Token // of the lease
	// In is the time to the next poll; [Ended]: there will be none.
	In        time.Duration
	Hold      time.Duration // of the next claim by ClaimDue
	Claimed   time.Duration // the Hold of the lease; 0: not said
	State     State
	PollState []byte // nil: as they were
	FeedState []byte // nil: as it was
	// Body is a new version. Nil: the stored one stays.
	Body *Body
	// Withdraw drops the stored body, and with it the version.
	Withdraw bool
	Host     Host
	// Points is the URL to which the feed's own redirects permanently; empty if it does not. Nil: as it was.
	Points *string
	// Pauses are what sites asked for in the poll: see [hostRow.refused] and [hostRow.limited].
	Pauses []Pause
	// Good are the sites that answered well in it.
	Good []string
	// Hops are how long URLs to which redirects led asked not to be asked again.
	Hops map[ID]time.Duration
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
	// New leaves a record alone that is there already. If it is Configured, that feed is as well, for two days.
	New bool
	// Pause is that of a host, which is restored in place of a record. Nil: none.
	Pause *Pause
}

// SweepQuery says which records are not wanted any more. A feed that no reader has asked
// for yet counts as asked for when it was granted last; so it does for [Store.Trim].
type SweepQuery struct {
	// Idle is for how long no reader has asked for a feed.
	Idle time.Duration
	// Unread is the same for feeds that have no version and are not established, if they are
	// due, or their origin asked not to be polled yet, or their polling has ended.
	Unread time.Duration
	// Shielded is the same for feeds behind shields. 0: as for others.
	Shielded time.Duration
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

// Totals are sums over all feeds.
type Totals struct {
	Feeds   map[State]int64
	Overdue int64 // of them, due now
	Due     int64 // of those, fresh
	Unread  int64 // of the cold ones, not configured
	Bytes   int64 // of bodies
	// Operator are the bytes of bodies of feeds that are configured or listed.
	Operator int64
	Used     int64 // bytes that the store uses, as [Store.Trim] counts
	Short    bool  // the file system is short of space
	// Crowded says that what is remembered of feeds of public networks that had to give way takes all
	// the space that such feeds may take, so that no more of them can be added.
	Crowded bool
}

// Store is the durable record of feeds and of their hosts. Its methods may be called
// concurrently, and by several nodes if the store is shared.
//
// The store's clock decides which feeds are due. Only durations cross this interface. They
// count from the moment at which the store answers.
//
// A grant is durable when Claim, ClaimDue or Hop returns: after a crash, no other claim of the
// feed is granted before its Hold has passed. If a record is damaged, its feed starts afresh as
// one that was polled when that was noticed and then forgotten.
type Store interface {
	// Claim asks for the right to poll a feed. The lease has the record as it is after the call,
	// granted or not. A feed that is not known gets a record and is due at once. After an error no poll may be made.
	Claim(ctx context.Context, c Claim) (Lease, error)

	// ClaimDue grants up to q.Limit feeds that are due: at most one of each host, and the
	// hosts first that have waited the longest. It leaves out feeds that no reader has asked for
	// in q.Idle, for a day or until a reader asks, and feeds that have no version and are
	// not configured. If it grants fewer than q.Limit, wait is when to ask again.
	ClaimDue(ctx context.Context, q DueQuery) (leases []Lease, wait time.Duration, err error)

	// Hop records a request to a site for a redirect. If the site or the URL must not be asked now, it returns when to
	// ask again.
	Hop(ctx context.Context, hop Hop) (wait time.Duration, err error)

	// Commit stores the outcome of a poll in one atomic step. It fails with [ErrFenced] if the
	// token is not the record's any more. The outcome is durable when Commit returns if it has a
	// body or a pause, or puts the next poll off for much longer than the claim did. A
	// crash may lose others, as the claim keeps the feed from being polled too early. While the file
	// system is short of space, the body of a feed that has none and is not [Operator]'s is left out,
	// and Commit returns [ErrShort] after all else was stored.
	Commit(ctx context.Context, o Outcome) error

	// Lookup reads the records of feeds. Those that are not known are left out.
	Lookup(ctx context.Context, ids []ID) ([]Record, error)

	// Body opens the body of a version, or of one that has followed. It fails with [ErrNoBody]
	// if there is none.
	Body(ctx context.Context, id ID) (*StoredBody, error)

	// Records reads up to limit records in the order of their IDs, beginning after an ID. If
	// it returns fewer than limit, these are the last.
	Records(ctx context.Context, after ID, limit int) ([]Record, error)

	// Forgotten reads what is remembered of feeds that were forgotten, and of URLs that only redirects led
	// to, as Records does. These have no URL.
	Forgotten(ctx context.Context, after ID, limit int) ([]Record, error)

	// Touch records when readers last asked for feeds, and which owners did. Of several nodes
	// the latest moment counts. IDs that are not known are ignored.
	Touch(ctx context.Context, asked map[ID]Asked) error

	// Forget removes the record and body of a feed, or fails with [ErrNoRecord]. The outcome
	// of a poll under way cannot be committed. The store remembers the last poll of the feed, and
	// until when its origin does not want another one, for as long as they count.
	Forget(ctx context.Context, id ID) error

	// Configured returns the IDs, in order, of the feeds that are configured for a day at least.
	Configured(ctx context.Context) ([]ID, error)

	// Sweep removes the records that are not wanted any more, with their bodies, but for configured ones. Feeds
	// of which no node has said for two days that they are configured are so no more. It does so in
	// small steps, so that no other call waits long, and returns the IDs of those that are gone,
	// also if it fails.
	Sweep(ctx context.Context, q SweepQuery) ([]ID, error)

	// Trim has feeds give way, by their [Rank], until the store uses at most budget bytes or only those of
	// [Operator] are left. A feed loses its version first, and is due when it was; if that does not suffice, it is
	// forgotten, as one of [RankPublicNew] is at once. It returns as Sweep does.
	Trim(ctx context.Context, budget int64) (trimmed []ID, err error)

	// Restore writes records as they are given, for an import. If there is a record already, it
	// is replaced, but the later last poll and the later next poll count, and its askers stay. A feed that
	// was forgotten keeps its last poll and its pause, too. A record without a URL adds to what is
	// remembered.
	Restore(ctx context.Context, saved []Saved) error

	// Pauses returns the pauses of hosts that are in force.
	Pauses(ctx context.Context) ([]Pause, error)

	// Watch calls see for each change of any node until ctx ends or see fails. The first is
	// Lost, as earlier changes are not known.
	Watch(ctx context.Context, see func(Change) error) error

	// Totals returns sums over all feeds. They may be some minutes old.
	Totals(ctx context.Context) (Totals, error)
	// Slow returns sites of whose feeds one poll each takes longer, at their spacing, and sites that refuse
	// polls again and again while they answer others: 20 at most.
	Slow(ctx context.Context, longest time.Duration) ([]SlowSite, error)

	// Secret returns the random key of the store, which is the same for all nodes. The first call
	// makes it. It is in no export.
	Secret(ctx context.Context) ([]byte, error)

	// SaveCounters replaces the statistics of a node. The store does not read them.
	// Empty data removes them. More than [MaxCounters] bytes are an error.
	SaveCounters(ctx context.Context, node string, data []byte) error

	// Counters returns the statistics that each node saved last.
	Counters(ctx context.Context) (map[string][]byte, error)

	Close() error
}

// Pages yields all records that read reads, in the order of their IDs, size at a time. It
// ends with the first error.
func Pages(ctx context.Context, read func(ctx context.Context, after ID, limit int) ([]Record, error), size int) iter.Seq2[[]Record, error] {
	return func(yield func([]Record, error) bool) {
		var after ID
		for {
			records, err := read(ctx, after, size)
			if !yield(records, err) || err != nil || len(records) < size {
				return
			}
			after = records[len(records)-1].ID
		}
	}
}
