// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/internal/origintest"
)

// Validators are those of the URL that gave them, which a temporary redirect changes.
func TestValidatorsOfRedirects(t *testing.T) {
	l := newLife(t)
	for n := range 3 {
		a := given(origintest.Feed(2, ""), "ETag", `"1"`, "Last-Modified", "Mon, 02 Mar 2026 09:00:00 GMT")
		a.URL = fmt.Sprint("https://origin.test/signed?", n)
		l.poll(a)
		if sent := l.sent(); sent.ETag != `"1"` || sent.URL != a.URL {
			t.Fatalf("after %d polls it has %+v", n+1, sent)
		}
	}
}

func TestStandingOfValidators(t *testing.T) {
	l := newLife(t)
	l.poll(given(origintest.Feed(1, ""), "ETag", `"1"`))
	first := l.state.Feed.Version
	l.poll(given(origintest.Feed(2, ""), "ETag", `"2"`))
	second := l.state.Feed.Version
	for name, c := range map[string]struct {
		tag, date string
		want      version.Standing
	}{
		"none":             {"", "", version.Unconditional},
		"tag":              {second.Tag, "", version.Current},
		"date":             {"", second.LastModified.Format(http.TimeFormat), version.Current},
		"origin's tag":     {"2", "", version.Unknown},
		"earlier tag":      {first.Tag, "", version.Earlier},
		"earlier date":     {"", first.LastModified.Format(http.TimeFormat), version.Earlier},
		"invented tag":     {"x", "", version.Unknown},
		"invented date":    {"", "Thu, 01 Jan 1970 00:00:00 GMT", version.Unknown},
		"unreadable date":  {"", "now", version.Unknown},
		"old tag new date": {first.Tag, second.LastModified.Format(http.TimeFormat), version.Earlier},
	} {
		h := http.Header{}
		if c.tag != "" {
			h.Set("If-None-Match", fmt.Sprintf("%q", c.tag))
		}
		if c.date != "" {
			h.Set("If-Modified-Since", c.date)
		}
		if got := l.state.Standing(h, epoch.Add(l.now)); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
