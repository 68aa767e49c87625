// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"

	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document"
	"github.com/feedpollard/pollard/policy/document/site"
)

// feedsOn reads what is no feed for the feeds that it names; nil where it names none. A
// person has asked for a site, or a reader wants to find its feeds: they need not be
// told apart by a second request. Where there is a version, it is a mishap instead.
func (f *Feed) feedsOn(s *state, a policy.Answer, err error) *site.Page {
	if s.version != 0 || f.key.shielded() || !errors.Is(err, document.ErrNotFeed) {
		return nil
	}
	page := site.Read(a.Body, a.Header.Get("Content-Type"), a.URL)
	if len(page.Feeds) == 0 {
		return nil
	}
	return &page
}
