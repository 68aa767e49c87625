// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package bolt

// systemBoot knows nothing: the wall clock has to do.
func systemBoot() Boot { return Boot{} }
