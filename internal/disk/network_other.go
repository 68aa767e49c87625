// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package disk

// NetworkKind returns empty: what a directory is on is not known here.
func NetworkKind(string) string { return "" }
