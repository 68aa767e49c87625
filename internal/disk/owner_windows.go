// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package disk

// KeepOwner does nothing: files inherit their rights from their directory.
func KeepOwner(string, string) func() error { return func() error { return nil } }

// Owns reports false: rights do not depend on who owns a file.
func Owns(string) bool { return false }
