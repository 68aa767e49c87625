// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package hostile attacks a whole Caddy with this module in it, and tests what SECURITY.md
// promises. It has tests only.
//
// If possible, an attack is a line in a table. Each Caddy is a process of its own, so that
// its memory and descriptors are measured from outside, and so that it can be killed.
package hostile
