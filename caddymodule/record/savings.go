// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"

	"github.com/feedpollard/pollard/caddymodule/pages"
)

// Savings implements [pages.Source].
func (s *Source) Savings(context.Context, int) (pages.Savings, error) { return pages.Savings{}, nil }
