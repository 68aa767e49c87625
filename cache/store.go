// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"time"
)

// ID names a feed in the store: the first half of the SHA-256 of its canonical URL.
type ID [16]byte

// Errors of a [Store] that the engine decides on.
var (
	// ErrNoRecord says that the store does not know the feed.
	ErrNoRecord = errors.New("store: no record of this feed")
	// ErrNoBody says that the body is missing or damaged: the next poll must be
	// unconditional, or a 304 would leave the feed without a body for ever.
	ErrNoBody = errors.New("store: body is missing or damaged")
	// ErrFenced says that a commit came too late: somebody has reserved the feed
	// since. Nothing was written.
	ErrFenced = errors.New("store: a newer reservation exists")
	// ErrLocked says that another process holds the store.
	ErrLocked = errors.New("store: in use by another process")
)

// A Store is the durable record of feeds. Its methods may be called concurrently.
//
// A record is never torn: Reserve and Commit are one transaction each, durable
// when they return. Bodies are bound to the record by their version number.
type Store interface {
	// Reserve claims the next poll of each feed by compare-and-set on the token.
	// When it has granted a claim, no other claim with that token is granted,
	// whatever crashes. The grants are in the order of the claims; of several claims
	// of one feed in a call only the first can be granted. An error means that
	// nothing was granted: no poll may be made.
	Reserve(ctx context.Context, claims []Claim) ([]Grant, error)

	// Commit stores the outcome of a reserved poll: schedule, memo and, where there
	// is a new one, the body, in one atomic step. It fails with [ErrFenced] where
	// the token is no longer the record's, and where there is no record any more.
	Commit(ctx context.Context, o Outcome) error

	// Load reads one record, or fails with [ErrNoRecord].
	Load(ctx context.Context, id ID) (Record, error)

	// Body reads the body that the record names, or fails with [ErrNoBody].
	Body(ctx context.Context, id ID) (Body, error)

	// Scan visits every record in no particular order, until visit returns an error,
	// which Scan then returns. visit must not call the store.
	Scan(ctx context.Context, visit func(Record) error) error

	// Forget removes records and bodies. Unknown IDs are no error. The tokens of a
	// feed that comes back begin anew.
	Forget(ctx context.Context, ids []ID) error

	// Latest is the latest wall time that any Reserve or Commit has written, zero in
	// a new store: a clock that is behind it has been set back.
	Latest(ctx context.Context) (time.Time, error)

	Close() error
}

// Schedule is the part of a record that a reservation changes.
type Schedule struct {
	Next    time.Time // the earliest next poll, to the millisecond, rounded up; zero: at once
	Token   uint64    // grows by one with each grant; 0: never reserved
	Version uint64    // of the body; 0: none
}

// Record is what the store keeps of a feed, besides its body. The memo is
// opaque to the store; it is empty until the first Commit, and a Reserve keeps it.
type Record struct {
	ID ID
	Schedule
	URL  string
	Memo []byte
}

// Claim asks for the next poll of a feed.
type Claim struct {
	ID    ID
	URL   string    // kept in the record, so that a feed is known by name even before its first commit
	Token uint64    // of the record that the claim is based on
	Now   time.Time // wall time of the claim
	Next  time.Time // the record's next poll if the claim is granted and no commit follows
}

// Grant answers a claim.
type Grant struct {
	OK       bool
	Schedule Schedule // of the record as it stands now
}

// Outcome is what a poll changes.
type Outcome struct {
	ID    ID
	Token uint64 // of the grant
	Now   time.Time
	Next  time.Time
	Memo  []byte
	Body  *Body // nil: the stored body stays
}

// Body is a stored version: its representations by content coding. Which codings
// there are is the engine's business.
type Body struct {
	Version uint64 // at least 1
	Coded   map[string][]byte
}
