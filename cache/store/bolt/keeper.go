// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"sync"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/internal/schedule"
)

const (
	bucketFeeds   = "feeds"   // ID to feed: what polls change
	bucketGranted = "granted" // token and ID to feed, instead of the other one while it is polled
	bucketTexts   = "texts"   // ID to URL and memo
	bucketNotes   = "notes"   // of the schedule
	bucketStore   = "store"   // the keys below
	keyLayout     = "layout"
	keyClock      = "clock" // stamp of the last transaction
	keyBoot       = "boot"  // its machine's life
	keyToken      = "token" // the last that was given
)

// keeper keeps the feeds of a schedule: in the bbolt file, and in memory what has
// still to be written there. Only the writer changes it; everybody may read.
//
// A grant is written to a bucket of its own, in the order of tokens and without what a
// grant does not change, so that some twenty share a page. The outcome goes to the bucket
// of all feeds, one of whose many pages it changes. Where its grant says as much of the
// schedule, it waits, with many others, so that those of neighbours share a page as well.
// A grant is obsolete when the other bucket knows its token, and removed some time later.
type keeper struct {
	db *bbolt.DB

	lazy    bool                             // what comes need not be written for some minutes
	damaged func(id store.ID) *schedule.Feed // what a walk takes for a record that cannot be read; nil: it is left out
	ruined  func()                           // is told of pages that cannot be read; nil: nobody is

	mu      sync.RWMutex                // guards all below
	flushed int                         // how often what has been pending was written
	pending map[store.ID]*schedule.Feed // nil: removed
	late    map[store.ID]*schedule.Feed // pending too, but of little worth
	fresh   map[store.ID]bool           // of what is pending, grants
	granted map[store.ID]grant          // what is in the bucket
	spent   [][]byte                    // keys of what is there, and counts no more
	anew    bool                        // a feed that may have some is removed, or replaced
	texts   map[store.ID]schedule.Text
	notes   map[string][]byte // nil: removed
}

// grant is a feed in the bucket of grants.
type grant struct {
	key  []byte
	feed *schedule.Feed
}

// grantKey is where a grant is put: behind all others.
func grantKey(id store.ID, f *schedule.Feed) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(f.Token)), id[:]...)
}

func newKeeper(db *bbolt.DB) *keeper {
	return &keeper{
		db:      db,
		pending: make(map[store.ID]*schedule.Feed), late: make(map[store.ID]*schedule.Feed),
		fresh: make(map[store.ID]bool), granted: make(map[store.ID]grant),
		texts: make(map[store.ID]schedule.Text), notes: make(map[string][]byte),
	}
}

// Put implements [schedule.Keeper].
func (k *keeper) Put(id store.ID, f *schedule.Feed, granted bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, soon := k.pending[id]; k.lazy && !soon {
		k.late[id] = f
		return
	}
	// A grant stands for the record in the file, if nothing else of that is out of date.
	apart := granted && !k.unwritten(id) && len(k.granted) < maxGranted
	delete(k.late, id)
	k.pending[id] = f
	delete(k.fresh, id)
	if apart {
		k.fresh[id] = true
	}
	if f == nil {
		delete(k.texts, id)
	}
	if f == nil || f.Token == 0 {
		k.anew = true
	}
}

// unwritten reports whether the bucket of all feeds lacks more of a feed than a grant.
func (k *keeper) unwritten(id store.ID) bool {
	_, soon := k.pending[id]
	_, late := k.late[id]
	return soon && !k.fresh[id] || late
}

// foresees reports whether a feed that is polled would be polled next at about a time, and
// not before it, if no more came of it than its grant.
func (k *keeper) foresees(id store.ID, next schedule.Time) bool {
	g, ok := k.granted[id]
	return ok && next <= g.feed.Next && g.feed.Next.Sub(next) <= g.feed.Hold/4
}

// maxGranted bounds the feeds that are kept apart. Some of them may be polls of which
// no outcome ever came.
const maxGranted = 2 * maxLate

// PutText implements [schedule.Keeper].
func (k *keeper) PutText(id store.ID, text schedule.Text) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.texts[id] = text
}

// Note implements [schedule.Keeper].
func (k *keeper) Note(key string, value []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notes[key] = value
}

// Get implements [schedule.Keeper].
func (k *keeper) Get(id store.ID) (f *schedule.Feed, err error) {
	err = k.view(func(b buckets) (err error) {
		f, err = k.feed(b, id)
		return err
	})
	return f, err
}

// Text implements [schedule.Keeper].
func (k *keeper) Text(id store.ID) (text schedule.Text, err error) {
	err = k.view(func(b buckets) error {
		text = k.text(b.texts.Get, id)
		return nil
	})
	return text, err
}

// feed is the feed in memory, or else the one in the file.
func (k *keeper) feed(b buckets, id store.ID) (*schedule.Feed, error) {
	if f, ok := k.inMemory(id); ok {
		return f, nil
	}
	v := b.feeds.Get(id[:])
	if v == nil {
		return nil, nil
	}
	f := new(schedule.Feed)
	if err := decodeFeed(id, v, f); err != nil {
		return nil, fmt.Errorf("feed %s: %w", name(id), err)
	}
	return f, nil
}

func (k *keeper) inMemory(id store.ID) (f *schedule.Feed, ok bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if f, ok = k.pending[id]; ok {
		return f, true
	}
	if f, ok = k.late[id]; ok {
		return f, true
	}
	g, ok := k.granted[id]
	return g.feed, ok
}

// text is the text in memory, or else the one that get reads from its bucket.
func (k *keeper) text(get func(key []byte) []byte, id store.ID) schedule.Text {
	k.mu.RLock()
	text, ok := k.texts[id]
	f, soon := k.pending[id]
	k.mu.RUnlock()
	if ok || soon && f == nil {
		return schedule.Text{URL: text.URL, Memo: bytes.Clone(text.Memo)}
	}
	return decodeText(id, get(id[:]))
}

// view calls read with a transaction, and again where what was in memory has been
// written meanwhile: the transaction does not have it yet, and memory not any more.
func (k *keeper) view(read func(buckets) error) (err error) {
	for range 100 { // a long walk may find no quiet moment, and does not need one
		before := k.generation()
		if err = k.transaction(read); k.generation() == before {
			break
		}
	}
	return err
}

func (k *keeper) generation() int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.flushed
}

func (k *keeper) transaction(read func(buckets) error) error {
	err := viewDB(k.db, func(tx *bbolt.Tx) error {
		b, err := openBuckets(tx)
		if err != nil {
			return err
		}
		return read(b)
	})
	if errors.Is(err, errDamaged) && k.ruined != nil {
		k.ruined()
	}
	return err
}

// chunk is how many feeds a transaction writes at most. The pages that it replaces are
// free afterwards, and each later transaction writes the list of free pages, which is
// to fit into one or two.
const chunk = 256

// sorted returns the IDs of feeds that wait to be written in their order, in which
// neighbours share pages.
func sorted(feeds map[store.ID]*schedule.Feed) []store.ID {
	return slices.SortedFunc(maps.Keys(feeds), store.ID.Compare)
}

// write puts feeds that are pending into a transaction, with all notes and what else
// has to be known after a crash. It may remove grants that are spent: if they are many,
// most pages have no others. Those of a feed must not outlive its record.
func (k *keeper) write(tx *bbolt.Tx, feeds map[store.ID]*schedule.Feed, ids []store.ID, at stamp, token store.Token, tidy bool) error {
	b, err := openBuckets(tx)
	if err != nil {
		return err
	}
	b.granted.FillPercent = 1 // it grows at its end
	for _, id := range ids {
		if err := k.writeFeed(b, id, feeds[id]); err != nil {
			return err
		}
		// A text does not change without its feed.
		if text, ok := k.texts[id]; ok && feeds[id] != nil {
			if err := b.texts.Put(id[:], encodeText(id, text)); err != nil {
				return err
			}
		}
	}
	if tidy || k.anew {
		for _, key := range append(k.spent, k.spentBy(ids)...) {
			if err := b.granted.Delete(key); err != nil {
				return err
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(k.notes)) {
		if err := put(b.notes, []byte(key), k.notes[key]); err != nil {
			return err
		}
	}
	if err := errors.Join(put(b.store, []byte(keyClock), at.encode()), put(b.store, []byte(keyBoot), at.encodeBoot())); err != nil {
		return err
	}
	return put(b.store, []byte(keyToken), binary.BigEndian.AppendUint64(nil, uint64(token)))
}

// recall reads the feeds that were being polled when the store was closed.
func (k *keeper) recall(b buckets, now schedule.Time) error {
	return b.granted.ForEach(func(key, value []byte) error {
		var id store.ID
		if copy(id[:], key[max(0, len(key)-len(id)):]) != len(id) {
			return nil
		}
		g := grant{bytes.Clone(key), new(schedule.Feed)}
		damaged := decodeFeed(id, value, g.feed) != nil
		if damaged {
			g.feed = presumed(now)
			g.feed.Token = tokenOf(key)
		}
		var known schedule.Feed
		v := b.feeds.Get(id[:])
		switch {
		case v == nil || decodeFeed(id, v, &known) != nil:
			k.pending[id] = g.feed // as an earlier version has left it, or damaged
		case g.feed.Token != 0 && known.Token >= g.feed.Token:
			k.spent = append(k.spent, g.key)
			return nil
		case g.feed.Facts == nil && !damaged:
			g.feed.Facts = known.Facts
		}
		k.grant(id, g)
		return nil
	})
}

// tokenOf is the token in the key of a grant; 0: an earlier version has made it, without.
func tokenOf(key []byte) store.Token {
	if len(key) < 8+len(store.ID{}) {
		return 0
	}
	return store.Token(binary.BigEndian.Uint64(key))
}

// grant notes that the bucket has a grant. Another one of the feed is spent.
func (k *keeper) grant(id store.ID, g grant) {
	if before, ok := k.granted[id]; ok {
		if before.feed.Token > g.feed.Token {
			before, g = g, before
		}
		k.spent = append(k.spent, before.key)
	}
	k.granted[id] = g
}

// spentBy returns the keys of grants that are spent when feeds are written.
func (k *keeper) spentBy(ids []store.ID) (keys [][]byte) {
	for _, id := range ids {
		if g, ok := k.granted[id]; ok && !k.fresh[id] {
			keys = append(keys, g.key)
		}
	}
	return keys
}

// written forgets what a transaction has written.
func (k *keeper) written(feeds map[store.ID]*schedule.Feed, ids []store.ID, tidied bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flushed++
	k.spent = append(k.spent, k.spentBy(ids)...)
	if tidied || k.anew {
		k.spent, k.anew = nil, false
	}
	for _, id := range ids {
		if k.fresh[id] {
			k.grant(id, grant{grantKey(id, feeds[id]), feeds[id]})
		} else {
			delete(k.granted, id)
		}
		delete(k.fresh, id)
		delete(feeds, id)
		delete(k.texts, id)
	}
	clear(k.notes)
}

func (k *keeper) writeFeed(b buckets, id store.ID, f *schedule.Feed) error {
	var err error
	if g, ok := k.granted[id]; ok && (f == nil || f.Token < g.feed.Token) {
		err = b.granted.Delete(g.key) // of a feed that is removed, and may have come back
	}
	if f == nil {
		return errors.Join(err, b.feeds.Delete(id[:]), b.texts.Delete(id[:]))
	}
	if k.fresh[id] && b.feeds.Get(id[:]) == nil {
		delete(k.fresh, id) // of a new feed
	}
	if k.fresh[id] {
		changed := *f
		changed.Facts = nil
		return errors.Join(err, b.granted.Put(grantKey(id, f), encodeFeed(id, &changed)))
	}
	return errors.Join(err, b.feeds.Put(id[:], encodeFeed(id, f)))
}

// put puts a value under seal, or removes it where it is nil.
func put(b *bbolt.Bucket, key, value []byte) error {
	if value == nil {
		return b.Delete(key)
	}
	return b.Put(key, seal(key, slices.Clip(value)))
}

// get returns a value of some size that was put; nil: there is none, or it is damaged.
// Those of the first layout have no seal.
func get(b *bbolt.Bucket, key string, size int) []byte {
	v := b.Get([]byte(key))
	if len(v) == size {
		return v
	}
	if value, ok := unseal([]byte(key), v); ok && len(value) == size {
		return value
	}
	return nil
}

// buckets are the contents of the file in one transaction. What they return must be
// copied before the transaction ends.
type buckets struct{ feeds, granted, texts, notes, store *bbolt.Bucket }

func openBuckets(tx *bbolt.Tx) (buckets, error) {
	b := buckets{
		feeds: tx.Bucket([]byte(bucketFeeds)), granted: tx.Bucket([]byte(bucketGranted)), texts: tx.Bucket([]byte(bucketTexts)),
		notes: tx.Bucket([]byte(bucketNotes)), store: tx.Bucket([]byte(bucketStore)),
	}
	if b.feeds == nil || b.granted == nil || b.texts == nil || b.notes == nil || b.store == nil {
		return b, fmt.Errorf("%w: a bucket is missing", errDamaged)
	}
	return b, nil
}

// guard turns what bbolt does on a damaged file into errors: it panics on pages
// that make no sense, and a file shorter than its pages faults when the missing
// part of the memory map is read.
func guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", errDamaged, v)
		}
	}()
	err = do()
	switch {
	case errors.Is(err, bbolterrors.ErrDatabaseNotOpen):
		err = os.ErrClosed
	case errors.Is(err, bbolterrors.ErrIncompatibleValue): // a record that says of itself that it is a bucket
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return err
}

// viewDB and updateDB are transactions under guard.
func viewDB(db *bbolt.DB, do func(*bbolt.Tx) error) error {
	return guard(func() error { return db.View(do) })
}

func updateDB(db *bbolt.DB, do func(*bbolt.Tx) error) error {
	return guard(func() error { return db.Update(do) })
}

// errDamaged marks data that this package cannot have written as it stands.
var errDamaged = errors.New("damaged")
