// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/hex"
	"fmt"
)

// Fingerprint is a hash of what a document means: equal for documents that differ
// only in volatile parts. It is half of a SHA-256 and cannot be forged.
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
