// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/feedpollard/pollard/caddymodule/pages"
)

// maxDays is how many days are shown.
const maxDays = 400

// Savings implements [pages.Source].
func (s *Source) Savings(ctx context.Context, limit int) (pages.Savings, error) {
	accounts := s.Engine.Traffic(ctx, s.Shield)
	saved := pages.Savings{Total: pages.Traffic(accounts.Total)}
	for origin, t := range accounts.Origins {
		saved.Origins = append(saved.Origins, pages.OriginTraffic{Origin: pages.Address(origin), Traffic: pages.Traffic(t)})
	}
	slices.SortFunc(saved.Origins, func(a, b pages.OriginTraffic) int {
		return cmp.Or(cmp.Compare(b.Spared(), a.Spared()), cmp.Compare(a.Origin, b.Origin))
	})
	saved.Origins = saved.Origins[:min(len(saved.Origins), limit)]
	var first, last time.Time
	for date := range accounts.Days {
		day, err := time.Parse(time.DateOnly, date)
		if err != nil {
			continue
		}
		if first.IsZero() || day.Before(first) {
			first = day
		}
		if day.After(last) {
			last = day
		}
	}
	if oldest := last.AddDate(0, 0, -maxDays); first.Before(oldest) {
		first = oldest
	}
	for day := first; !last.IsZero() && !day.After(last); day = day.AddDate(0, 0, 1) {
		t := pages.Traffic(accounts.Days[day.Format(time.DateOnly)])
		saved.Days = append(saved.Days, pages.DayTraffic{Day: day, Traffic: t})
	}
	return saved, nil
}
