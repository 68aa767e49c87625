// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each promise of SECURITY.md names tests, and they are there.
func TestPromisesHaveTests(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	tests := make(map[string]bool)
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, name := range declared.FindAllSubmatch(source, -1) {
			tests[string(name[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, promises, found := strings.Cut(string(text), "| promise | test |\n| --- | --- |\n")
	if !found {
		t.Fatal("SECURITY.md has no table of promises")
	}
	promises, _, _ = strings.Cut(promises, "\n\n")
	named := regexp.MustCompile("`(Test\\w+)`")
	for line := range strings.Lines(promises) {
		names := named.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test holds: %s", line)
		}
		for _, name := range names {
			if !tests[name[1]] {
				t.Errorf("there is no test %s, which holds: %s", name[1], line)
			}
		}
	}
}
