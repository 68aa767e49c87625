// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package hostile

// raced is how much more memory and time a process takes with the race detector in it.
const raced = 8
