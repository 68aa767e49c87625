// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/hex"
	"fmt"
)

// Fingerprint is a hash of a document without its volatile parts. It is the first half
// of a SHA-256, so that two documents with the same one cannot be made.
type Fingerprint [16]byte

// MarshalText writes the fingerprint in hexadecimal.
func (f Fingerprint) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, f[:]), nil }

// UnmarshalText reads what MarshalText has written.
func (f *Fingerprint) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(f) {
		return fmt.Errorf("a fingerprint has %d hexadecimal digits, not %d", 2*len(f), len(text))
	}
	_, err := hex.Decode(f[:], text)
	return err
}
