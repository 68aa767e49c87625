// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/feedpollard/pollard/feedurl"

// Redact is [feedurl.Redact].
func Redact(raw string) string { return feedurl.Redact(raw) }

// OneLine is [feedurl.OneLine].
func OneLine(s string) string { return feedurl.OneLine(s) }
