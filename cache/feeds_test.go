// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	"github.com/feedpollard/pollard/cache/store"
)

// A title is found in what is stored, whatever stands in it and around it.
func TestTitleInAMemo(t *testing.T) {
	for _, title := range []string{"", "A blog", `"quoted"`, `back\`, `\"`, `,"title":"another"`, "Bücher <b>\u2028", "\x00\xff"} {
		s := &state{feed: feedState{Alias: `https://a.example/,"title":"no"`}}
		s.feed.Version.Format, s.feed.Version.Title, s.feed.Version.Tag = "rss", title, `,"title":"no`
		stored, err := s.encodeFeedState()
		if err != nil {
			t.Fatal(err)
		}
		var again state
		if err := again.decode(store.Record{Memo: stored}); err != nil {
			t.Fatal(err)
		}
		want := again.feed.Version.Title
		if got := textIn(stored, "title"); got != want {
			t.Errorf("%q, want %q, in %s", got, want, stored)
		}
		for cut := range stored {
			textIn(stored[:cut], "title") // does not panic
		}
	}
}
