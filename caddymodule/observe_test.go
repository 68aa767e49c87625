// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/feedpollard/pollard/readers"
)

// report is what the admin API tells of readers.
func report(t *testing.T, query string) (report readers.Report) {
	t.Helper()
	code, text := call(t, "GET", "/pollard/readers"+query)
	if err := json.Unmarshal([]byte(text), &report); code != 200 || err != nil {
		t.Fatalf("%d %v: %s", code, err, text)
	}
	return report
}

// The readers of a shield are told of, unless that is off. The defence goes on.
func TestShieldNotesReaders(t *testing.T) {
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprint("off ", off), func(t *testing.T) {
			onStage(t, defended("unconditional 4h"), feed(sample), func(s *stage) {
				e, _ := running()
				e.unobserved.Store(off)
				for i := range 3 {
					if w := (visitor{header: []string{"User-Agent", "Rude/1.0"}}).ask(s, "GET"); (w.Code == 429) != (i > 0) {
						t.Errorf("request %d got %d", i, w.Code)
					}
				}
				visitor{header: []string{"User-Agent", "Good/1.0"}}.ask(s, "GET", "If-None-Match", "*")
				s.send(request("POST", blog+"/feed"))
				want := readers.Answers{Full: 1, NotModified: 1, Limited: 2}
				if off {
					want = readers.Answers{}
				}
				for _, query := range []string{"", "?url=http://blog.test/feed", "?url=https://blog.test/feed"} {
					if got := report(t, query).Total.Answers; got != want {
						t.Errorf("%s: %+v, want %+v", query, got, want)
					}
				}
			})
		})
	}
}

// Those of a gateway as well, by the name of their token and not by the secret.
func TestGatewayNotesReaders(t *testing.T) {
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprint("off ", off), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, a, _ := gatewayOf(t, "feed /one.xml https://one.example/feed\nclients any\ntoken alice s3cret\ntoken bob 5ecret")
				a.NoReaders, a.settings.unobserved = off, off
				engines.LoadOrStore("test", a.engine)
				if err := a.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { a.Stop(); engines.Delete("test") })
				tag := ask(t, g, "GET", "/one.xml", home).Header().Get("Etag")
				ask(t, g, "GET", "/one.xml", home, "If-None-Match", tag)
				ask(t, g, "GET", "/~s3cret/https://one.example/feed", abroad)
				ask(t, g, "GET", "/~s3cret/https://two.example/gone", abroad)
				ask(t, g, "GET", "/~wrong/https://one.example/feed", abroad)
				got := report(t, "?url=https://one.example/feed")
				if off {
					if got.Total.Requests != 0 || len(got.Readers) != 0 {
						t.Errorf("%+v", got)
					}
					return
				}
				if want := (readers.Answers{Full: 2, NotModified: 1}); got.Total.Answers != want || got.Total.Conditions.Current != 1 {
					t.Errorf("%+v, want %+v", got.Total, want)
				}
				tokens := make(map[string]int64)
				for _, row := range got.Readers {
					tokens[row.Token] += row.Requests
				}
				if len(tokens) != 2 || tokens["alice"] != 1 || tokens[""] != 2 {
					t.Errorf("requests by token: %v", tokens)
				}
			})
		})
	}
}
