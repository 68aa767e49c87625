// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap"
)

// Whatever stands in the list of databases, a node goes on with it.
func TestListOfDatabasesThatIsNone(t *testing.T) {
	for _, text := range []string{"", "{", "null", "[]", `{"place": 1}`, "\x00"} {
		k := knownDatabases{file: filepath.Join(t.TempDir(), "below", "databases.json"), log: zap.NewNop()}
		if err := k.use("place", "none"); err != nil || k.used("place") != "none" { // there is no file yet
			t.Errorf("at first: %q, %v", k.used("place"), err)
		}
		if err := os.WriteFile(k.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := k.used("place"); got != "" {
			t.Errorf("%q: the database %q was used", text, got)
		}
		if err := k.use("place", "one"); err != nil || k.used("place") != "one" {
			t.Errorf("%q: afterwards %q, %v", text, k.used("place"), err)
		}
	}
}
