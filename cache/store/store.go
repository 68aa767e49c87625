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
// lease has a random token. An outcome is what the poll changes. To commit it ends the lease.
//
// A site is what polls ask, and is paced and paused as one. It is left alone for the spacing after each
// poll and each hop of a redirect, and for the pauses that its refusals begin.
//
// An owner is a party that feeds count for. Owners share the store's space.
//
// The store remembers when a URL and its site may be asked next. Whose turn it is, memory decides
// (package queue).
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

// Token names one grant. It is random, and above 0.
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

// Claim asks for the next poll of a feed, or for a hop of a poll.
type Claim struct {
	ID  ID     // [IDOf] its URL
	URL string // the feed's key, kept in the record
	// Hold is the time to the next poll if no commit follows. It covers the length of the poll
	// and the interval in force, with its backoff.
	Hold time.Duration
	// Floor, if above 0, asks for a poll before the feed is due: it is granted if the URL was asked so long ago.
	Floor time.Duration
	// Configured says that the node has the feed in its configuration, or one that points to it. It is
	// configured for two days then.
	Configured bool
	// By are the owners that have asked for the feed since the last Touch. A grant
	// counts as asked for now if there are any.
	By []Owner
	// Own says that a reader has asked for it at its own address, not only at one that points to it.
	Own bool
	// Host is the host that is to be asked. A claim is refused while its site has to be left alone.
	Host Host
	// Hop says that a redirect of a poll leads to the URL. Only the site's last request is recorded then, and the
	// lease has no record and no token. A hop is refused for the pauses of site and URL, and the spacing of the site.
	Hop bool
	// New says that the feed has no version whose poll makes the hop.
	New bool
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
	DeniedBusy   Refusal = "busy"    // the site was asked less than the host's spacing ago
	DeniedPaused Refusal = "paused"  // the site has asked for a pause
)

// Lease answers a claim.
type Lease struct {
	Record
	Denied Refusal       // empty: granted
	Wait   time.Duration // of a refusal: when the claim may be granted; before that it is refused again
	Pause  Pause         // of DeniedPaused: the longest that holds for the feed; that of its URL has no site
	Poked  bool          // of a grant: a poke waited for it, which is done with it
}

// Record is what the store keeps of a feed, besides its body. The store does not read PollState and
// FeedState.
type Record struct {
	ID    ID
	URL   string
	Token Token // of the last grant; 0 if it was never granted
	// In is the time to the next poll: 0 or less if it is due, [Ended] if automatic polling has ended.
	// A poke counts. Of a forgotten feed, it is for how long its decision counts.
	In time.Duration
	// Poked says that In is that of a poke, and not of the last decision.
	Poked  bool
	Polled time.Duration // since the last grant; negative if it was never granted
	Asked  time.Duration // since a reader asked last, on any node; negative if none has
	First  time.Duration // since a reader first asked at the feed's own address; negative if none has
	// NotBefore is how long the origin still asks not to be polled, whatever In is; 0 if it does not.
	NotBefore time.Duration
	Version   uint64 // of the body; 0 if there is none
	State     State
	PollState []byte // small, and changes with each poll
	FeedState []byte // changes seldom
	Site      string // as of the last claim or commit: see [policy.Host]
	Points    string // URL to which the feed's own redirects permanently; empty if it does not

	Configured bool
	// Renew says that Configured ends within a day, unless a node says again that it has the feed.
	Renew bool
	Owner Owner // that it counts for

	// Askers are the owners that asked in the last 30 days.
	Askers []Asker
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
	From  Cursor // where the query before ended; the zero Cursor is the beginning
	Limit int
	// Idle leaves out feeds that no reader has asked for in so long, and that are not poked; 0 leaves out none.
	Idle time.Duration
	// Poked asks for all feeds alone that are due because of a poke. From is ignored.
	Poked bool
}

// Cursor is a place among feeds in the order of their next polls.
type Cursor struct {
	next Time
	n    int64
}

// Due are feeds that are due.
type Due struct {
	Feeds []DueFeed
	To    Cursor
	// Wait is how long to wait until another feed is due; 0 or less if more are due than the limit, which feeds that
	// are poked do not have.
	Wait time.Duration
}

// DueFeed is a feed that is due.
type DueFeed struct {
	ID    ID
	Site  string // empty if it is not paced
	Owner Owner
	New   bool          // it has no version
	For   time.Duration // it has been due
}

// Asked is when readers asked for a feed, and of which owners they are.
type Asked struct {
	Ago time.Duration // since the last reader; negative: none has asked
	Own bool          // one has asked at the feed's own address since the last Touch
	By  []Owner       // that have asked since the last Touch
	// FeedState returns another one for the record's, or nil to leave it. It may be called several
	// times. If it is nil, the state stays.
	FeedState func(state []byte) []byte
	Poke      *Poke // nil if there is none
}

// Poke has a feed polled before its next poll is due, once. Of two that wait the earlier counts.
type Poke struct {
	// In is the least time until the poll, and Floor the least one since the last poll.
	In, Floor time.Duration
	// Patient says that a feed that fails keeps the time of its next poll.
	Patient bool
}

// Outcome is what a poll changes.
type Outcome struct {
	ID    ID
	Token Token // of the lease
	// In is the time to the next poll; [Ended]: there will be none. A poke since the claim counts besides.
	In        time.Duration
	Claimed   time.Duration // the Hold of the claim; 0 if it is not known
	State     State
	PollState []byte // nil: as they were
	FeedState []byte // nil: as it was
	// Body is a new version. Nil: the stored one stays.
	Body *Body
	// Withdraw drops the stored body, and with it the version.
	Withdraw bool
	Site     string // see [policy.Host]
	// Points is the URL to which the feed's own redirects permanently; empty if it does not. Nil: as it was.
	Points *string
	// Pauses are what sites asked for in the poll: see [siteRow.refused] and [siteRow.limited].
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
	// Hold is the decision of a feed that is not known: after what is remembered of its last poll, it waits so long.
	Hold time.Duration
	// Pause is that of a site, which is restored in place of a record. Nil: none.
	Pause *Pause
}

// SweepQuery says which records are not wanted any more. A feed that no reader has asked
// for yet counts as asked for when it was granted last.
type SweepQuery struct {
	// Idle is for how long no reader has asked for a feed. 0 forgets none for that.
	Idle time.Duration
	// Unread is the same for feeds that have no version.
	Unread time.Duration
	// Shielded is the same for feeds behind shields, and ShieldKeys how many of each shield are kept that were not
	// asked for again an hour after they were first asked for; 0 means no limit.
	Shielded   time.Duration
	ShieldKeys int
	// Disk, if above 0, is how many bytes the store may use, and nothing else is looked for. Beyond, feeds are forgotten
	// by the shares of their owners, until only those of [Operator] are left.
	Disk int64
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
	Used     int64 // bytes that the store uses, as [SweepQuery].Disk counts
	Short    bool  // the file system is short of space
	// Crowded says that what is remembered of forgotten feeds of [Any] takes all the space that it may take, so that
	// no more of them can be added.
	Crowded bool
	// Sites are those with the most feeds, and those that refuse polls again and again while they answer others:
	// 20 at most of each. They are those of this node's last Sweep.
	Sites []SiteTotals
}

// SiteTotals are sums over the feeds of a site.
type SiteTotals struct {
	Site    string
	Feeds   int64
	Refuses bool // it refused more than one poll of the last day, and answered others well
}

// Store is the durable record of feeds and of their sites. Its methods may be called
// concurrently, and by several nodes if the store is shared.
//
// The store's clock decides which feeds are due. Only durations cross this interface. They
// count from the moment at which the store answers.
//
// If a record is damaged, its feed starts afresh as one that was polled when that was noticed and then forgotten.
type Store interface {
	// Claim asks for the right to poll feeds, and answers each claim with a lease, in one transaction. The lease has
	// the record as it is after the call, granted or not. A feed that is not known gets a record and is due at once.
	// A grant is durable when Claim returns: after a crash, no other claim of the feed is granted before its
	// Hold has passed, and no site is asked within its spacing. After an error no poll may be made.
	Claim(ctx context.Context, claims []Claim) ([]Lease, error)

	// Commit stores the outcome of a poll in one atomic step. It fails with [ErrFenced] if the
	// token is not the record's any more. The outcome is durable when Commit returns if it has a
	// body or a pause, or puts the next poll off for much longer than the claim did. A
	// crash may lose others, as the claim keeps the feed from being polled too early. While the file
	// system is short of space, the body of a feed that has none and is not [Operator]'s is left out,
	// and Commit returns [ErrShort] after all else was stored.
	Commit(ctx context.Context, o Outcome) error

	// Due reads feeds that are due, in the order of their next polls. It leaves out feeds that have no version and are
	// not configured, unless they are poked.
	Due(ctx context.Context, q DueQuery) (Due, error)

	// Lookup reads the records of feeds. Those that are not known are left out.
	Lookup(ctx context.Context, ids []ID) ([]Record, error)

	// Records reads up to limit records in the order of their IDs, beginning after an ID. If
	// it returns fewer than limit, these are the last. With forgotten, it reads what is remembered of feeds that
	// were forgotten, and of URLs that only redirects led to. These have no URL.
	Records(ctx context.Context, after ID, limit int, forgotten bool) ([]Record, error)

	// Body opens the body of a version, or of one that has followed. It fails with [ErrNoBody]
	// if there is none.
	Body(ctx context.Context, id ID) (*StoredBody, error)

	// Touch records when readers last asked for feeds, which owners did, and pokes. Of several nodes
	// the latest moment counts. IDs that are not known are ignored. A poke is durable when Touch returns; a crash
	// may lose the rest.
	Touch(ctx context.Context, asked map[ID]Asked) error

	// Forget removes the record and body of a feed, or fails with [ErrNoRecord]. The outcome
	// of a poll under way cannot be committed. The store remembers the last poll of the feed, its decision, and
	// until when its origin does not want another one, for as long as they count. It is durable when it returns.
	Forget(ctx context.Context, id ID) error

	// Sweep forgets the feeds that are not wanted any more, but for configured ones. It does so in small steps, so that
	// no other call waits long, and returns the IDs of those that are gone, also if it fails. After a crash the
	// rest is swept by the next one.
	Sweep(ctx context.Context, q SweepQuery) ([]ID, error)

	// Restore writes records as they are given, for an import, for configured feeds and for the targets of redirects. If
	// there is a record already, it is replaced, but the later last poll and the later next poll count, and its
	// askers stay. A feed that was forgotten keeps its last poll, its decision and its pause, too. A record without a
	// URL adds to what is remembered. It is durable when it returns; after an error or a crash some may be there.
	Restore(ctx context.Context, saved []Saved) error

	// Pauses returns the pauses of sites that are in force.
	Pauses(ctx context.Context) ([]Pause, error)

	// Watch calls see for each change of any node until ctx ends or see fails. The first is
	// Lost, as earlier changes are not known.
	Watch(ctx context.Context, see func(Change) error) error

	// Totals returns sums over all feeds. They may be some minutes old.
	Totals(ctx context.Context) (Totals, error)

	// Secret returns the random key of the store, which is the same for all nodes. The first call
	// makes it. It is in no export.
	Secret(ctx context.Context) ([]byte, error)
}

// Counters keeps the statistics of nodes, which it does not read.
type Counters interface {
	// SaveCounters replaces the statistics of a node. Empty data removes them. More than [MaxCounters] bytes
	// are an error.
	SaveCounters(ctx context.Context, node string, data []byte) error

	// Counters returns the statistics that each node saved last.
	Counters(ctx context.Context) (map[string][]byte, error)
}

// Pages yields all records in the order of their IDs, size at a time; with forgotten, what is remembered of
// those that were forgotten. It ends with the first error.
func Pages(ctx context.Context, s Store, size int, forgotten bool) iter.Seq2[[]Record, error] {
	return func(yield func([]Record, error) bool) {
		var after ID
		for {
			records, err := s.Records(ctx, after, size, forgotten)
			if !yield(records, err) || err != nil || len(records) < size {
				return
			}
			after = records[len(records)-1].ID
		}
	}
}
