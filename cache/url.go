// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"crypto/sha256"

	"github.com/feedpollard/pollard/feedurl"
)

// ErrNotFeedURL is [feedurl.ErrInvalid].
var ErrNotFeedURL = feedurl.ErrInvalid

// Canonical is the text of [feedurl.Parse]: the form of a feed's URL under which it is known.
func Canonical(raw string) (string, error) {
	u, err := feedurl.Parse(raw)
	return u.String(), err
}

// idOf names the feed of a canonical URL.
func idOf(canonical string) ID {
	sum := sha256.Sum256([]byte(canonical))
	return ID(sum[:16])
}
