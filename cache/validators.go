// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"time"

	"github.com/feedpollard/pollard/policy"
)

// validators are those to be sent: none without a body that a 304 could confirm.
func (s *state) validators(now time.Time) policy.Validators {
	v := s.memo.Validators
	if s.version == 0 {
		return policy.Validators{}
	}
	// An origin that alters ETags when it compresses (Apache's "-gzip") never
	// matches its own. If-None-Match would override If-Modified-Since there (RFC
	// 9110 section 13.1.3), so the date goes alone for a while.
	if v.LastModified != "" && now.Before(s.memo.Muted) {
		v.ETag = ""
	}
	return v
}

// learnValidators keeps the origin's validators. A 200 replaces the whole set, also
// where it brought nothing new: they are for the origin, not for readers.
func (s *state) learnValidators(v verdict) {
	a, m, f := v.answer, &s.memo, &s.facts
	if a.Status != 200 {
		f.Unmatched = 0
		return
	}
	fresh := policy.ValidatorsOf(a)
	if v.sameBytes && fresh.ETag != "" && fresh.ETag == m.Validators.ETag && !a.Asked.Before(m.Muted) {
		f.Unmatched++
	} else {
		f.Unmatched = 0
	}
	if f.Unmatched >= 3 && fresh.LastModified != "" {
		m.Muted, f.Unmatched = a.At.Add(7*24*time.Hour).Round(0).UTC(), 0
	}
	m.Validators = fresh
}
