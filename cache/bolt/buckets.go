// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/feedpollard/pollard/cache"
)

const (
	bucketPoll  = "poll"  // ID to poll record: the only thing that a reservation changes
	bucketMeta  = "meta"  // ID to URL and memo
	bucketStore = "store" // keyLayout and keyLatest
	keyLayout   = "layout"
	keyLatest   = "latest" // ms since 1970
)

// buckets are the contents of feeds.db in one transaction. What they return must
// be copied before the transaction ends.
type buckets struct {
	poll, meta, store *bbolt.Bucket
}

func openBuckets(tx *bbolt.Tx) (buckets, error) {
	b := buckets{
		poll:  tx.Bucket([]byte(bucketPoll)),
		meta:  tx.Bucket([]byte(bucketMeta)),
		store: tx.Bucket([]byte(bucketStore)),
	}
	if b.poll == nil || b.meta == nil || b.store == nil {
		return buckets{}, fmt.Errorf("%w: a bucket is missing", errDamaged)
	}
	return b, nil
}

// viewBuckets runs read in a read transaction.
func viewBuckets(db *bbolt.DB, read func(buckets) error) error {
	return guard(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			b, err := openBuckets(tx)
			if err != nil {
				return err
			}
			return read(b)
		})
	})
}

// loadPoll reads the poll record of a feed; ok is false where there is none.
func (b buckets) loadPoll(id cache.ID) (p poll, ok bool, err error) {
	v := b.poll.Get(id[:])
	if v == nil {
		return poll{}, false, nil
	}
	p, err = decodePoll(v)
	return p, err == nil, err
}

// each visits every record, walking both buckets side by side: they have the
// same keys in the same order.
func (b buckets) each(visit func(cache.Record) error) error {
	polls, metas := b.poll.Cursor(), b.meta.Cursor()
	key, value := polls.First()
	other, meta := metas.First()
	for ; key != nil; key, value = polls.Next() {
		var id cache.ID
		if copy(id[:], key) != len(key) || len(key) != len(id) || !bytes.Equal(key, other) {
			return fmt.Errorf("%w: feed %x has half a record", errDamaged, key)
		}
		p, err := decodePoll(value)
		if err != nil {
			return fmt.Errorf("feed %s: %w", name(id), err)
		}
		r, err := join(id, p, meta)
		if err != nil {
			return fmt.Errorf("feed %s: %w", name(id), err)
		}
		if err := callback(visit, r); err != nil {
			return err
		}
		other, meta = metas.Next()
	}
	return nil
}

// latest is the latest wall time written, zero in a new store.
func (b buckets) latest() (time.Time, error) {
	v := b.store.Get([]byte(keyLatest))
	switch len(v) {
	case 0:
		return time.Time{}, nil
	case 8:
		return moment(int64(binary.BigEndian.Uint64(v))), nil
	}
	return time.Time{}, fmt.Errorf("%w: latest time of %d bytes", errDamaged, len(v))
}

// advance moves the latest wall time to now, never backwards.
func (b buckets) advance(now time.Time) error {
	before, err := b.latest()
	if err != nil {
		return err
	}
	ms := millis(now)
	if !moment(ms).After(before) {
		return nil
	}
	return b.store.Put([]byte(keyLatest), binary.BigEndian.AppendUint64(nil, uint64(ms)))
}

// foreignPanic carries a panic that is not bbolt's through guard.
type foreignPanic struct{ value any }

// callback calls visit so that guard does not take its panic for damage.
func callback(visit func(cache.Record) error, r cache.Record) error {
	defer func() {
		if v := recover(); v != nil {
			panic(foreignPanic{v})
		}
	}()
	return visit(r)
}

// guard turns what bbolt does on a damaged file into errors: it panics on pages
// that make no sense, and a file shorter than its pages faults when the missing
// part of the memory map is read.
func guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch v := recover().(type) {
		case nil:
		case foreignPanic:
			panic(v.value)
		default:
			err = fmt.Errorf("%w: %v", errDamaged, v)
		}
	}()
	err = do()
	if errors.Is(err, bbolterrors.ErrDatabaseNotOpen) {
		err = os.ErrClosed
	}
	return err
}
