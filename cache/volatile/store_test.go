// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package volatile_test

import (
	"testing"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/storetest"
	"github.com/feedpollard/pollard/cache/volatile"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) cache.Store { return new(volatile.Store) })
}
