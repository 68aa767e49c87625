// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"strconv"
	"sync/atomic"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/readers"
)

// Mark returns the hash of a text by the store's key, which is the same on all nodes. It is "" before the
// store is open.
func (e *Engine) Mark(text string) string {
	if e.cache.Load() == nil {
		return ""
	}
	return e.counters.key.Load().Of(text)
}

// Asker names the readers that are admitted in one way: by a token of a gateway, or by its line clients. 0 are
// strangers.
type Asker uint64

// AskerOf returns the asker of a text, which cannot be read from it.
func AskerOf(text string) Asker {
	sum := sha256.Sum256([]byte(text))
	return Asker(binary.BigEndian.Uint64(sum[:]))
}

// OwnerOf returns the owner for whom readers ask for feeds. The store has a hash of it by its own key.
func (e *Engine) OwnerOf(a Asker) store.Owner {
	if a == 0 {
		return store.Any
	}
	return e.counters.key.Load().ownerOf(a)
}

// ownerKey is the store's key, with the owners of the askers that were asked for: each reader by URL is one of these.
type ownerKey struct {
	*readers.Key
	owners atomic.Pointer[map[Asker]store.Owner] // replaced as a whole, never nil
}

func newOwnerKey(secret []byte) *ownerKey {
	k := &ownerKey{Key: readers.NewKey(secret)}
	k.owners.Store(new(map[Asker]store.Owner))
	return k
}

func (k *ownerKey) ownerOf(a Asker) store.Owner {
	known := *k.owners.Load()
	owner, ok := known[a]
	if !ok {
		owner = store.OwnerOfHash(store.KindNamed, binary.BigEndian.Uint64([]byte(k.Of(strconv.FormatUint(uint64(a), 16)))))
		more := map[Asker]store.Owner{a: owner}
		maps.Copy(more, known)
		k.owners.Store(&more) // one that another request has added meanwhile is lost, and added again
	}
	return owner
}

// OwnersOf returns the owners that a feed has of askers: as it is recorded now, and as the edition before last did.
func (e *Engine) OwnersOf(a Asker) []store.Owner {
	if a == 0 {
		return nil
	}
	return []store.Owner{e.OwnerOf(a), store.OwnerOfHash(store.KindNamed, uint64(a))}
}
