// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"net/netip"
	"sync"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// Key makes the hashes by which readers are recognized without being named: an HMAC with the
// secret of the store, so that all nodes have the same ones, and who has a hash alone cannot find
// its reader by trying. It is safe for concurrent use.
type Key struct{ macs sync.Pool }

// mac is an HMAC with room for a text and its sum.
type mac struct {
	hash.Hash
	text, result []byte
}

// NewKey returns the key with a secret.
func NewKey(secret []byte) *Key {
	return &Key{sync.Pool{New: func() any { return &mac{Hash: hmac.New(sha256.New, secret)} }}}
}

// Of returns the hash of a text.
func (k *Key) Of(text string) string {
	m := k.macs.Get().(*mac)
	defer k.macs.Put(m)
	m.text = append(m.text[:0], text...)
	return string(m.sum())
}

// Reader returns the hash of a reader: a User-Agent in a network. The digits of the User-Agent are
// ignored, so that a new version is not a new reader.
func (k *Key) Reader(userAgent string, client netip.Addr) uint64 {
	m := k.macs.Get().(*mac)
	defer k.macs.Put(m)
	m.text = m.text[:0]
	for i := range min(len(userAgent), maxAgent) {
		if c := userAgent[i]; (c < '0' || c > '9') && c != '.' {
			m.text = append(m.text, c)
		}
	}
	if network := feedurl.Network(client); network.IsValid() {
		address := network.Addr().As16()
		m.text = append(m.text, address[:]...)
	}
	return binary.BigEndian.Uint64(m.sum())
}

func (m *mac) sum() []byte {
	m.Reset()
	m.Write(m.text) //nolint:errcheck // it never fails
	m.result = m.Sum(m.result[:0])
	return m.result
}
