// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A test that compares with a file which -update writes again says so when it fails.
func TestFailuresNameUpdate(t *testing.T) {
	says := regexp.MustCompile(`t\.(Error|Errorf|Fatal|Fatalf)\([^\n]*-update`)
	count := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "if *"+"update {") {
			return err
		}
		if count++; !says.Match(text) {
			t.Errorf("%s: no failure of its test says -update", path)
		}
		return nil
	})
	if err != nil || count < 4 {
		t.Errorf("%d tests have the flag -update (%v)", count, err)
	}
}
