// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package hostile attacks a whole Caddy with this module in it, and holds what
// SECURITY.md promises. It has tests only, one file for each front.
//
// Cases are data where they can be: an attack is a line in a table. Each Caddy is a
// process of its own, so that its memory, its descriptors and its death are measured
// from outside.
package hostile
