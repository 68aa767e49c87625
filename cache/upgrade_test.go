// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/policy"
)

// TestUpgrade opens stores of version 1 of the tables, with all sites away. Every feed that has a version is
// served, but for one whose record is damaged.
func TestUpgrade(t *testing.T) {
	for _, how := range []string{"closed", "killed"} {
		g := &gateway{t: t, dir: t.TempDir(), origin: &script{answer: func(policy.Ask) policy.Answer {
			return policy.Answer{Failure: policy.FailureConnect, Err: io.ErrUnexpectedEOF}
		}}}
		for _, part := range []string{"", "-wal"} {
			packed, err := os.Open(filepath.Join("store", "sqlite", "testdata", "version1-"+how+".sqlite"+part+".gz"))
			if os.IsNotExist(err) {
				continue
			}
			data := must(io.ReadAll(must(gzip.NewReader(packed))))
			if err := os.WriteFile(filepath.Join(g.dir, "feeds.sqlite"+part), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		g.rules(policy.DefaultRules())
		g.open()
		served := 0
		for _, a := range g.accounts() {
			url := string(a.URL)
			w := g.get(url)
			switch {
			case a.Version == 0, strings.Contains(url, "large.test"): // that one has no description that fits
			case w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "<rss"):
				t.Errorf("%s: %s: %d %.80q", how, url, w.Code, w.Body)
			default:
				served++
				if again := g.get(url, "If-None-Match", w.Header().Get("ETag")); again.Code != http.StatusNotModified {
					t.Errorf("%s: %s: %d to its ETag", how, url, again.Code)
				}
			}
		}
		if served != 23 {
			t.Errorf("%s: %d feeds were served", how, served)
		}
		g.close()
	}
}
