// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

// SumOfServer is for tests that change the time.
var SumOfServer = sumOfServer

// LookBack is how long a transaction may take for its changes to be seen.
const LookBack = lookBack
