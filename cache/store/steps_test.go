// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Each step from version 3 on renames the column that claims and commits write, so that nodes of the version before stop
// rather than damage rows. No step but the first writes a row, drops a table or column, or adds a column that may not be null.
// Other programs learn of the columns from README.md.
func TestStepsOfTables(t *testing.T) {
	written := func(version int) string { return fmt.Sprint("tables_", version) }
	for i, statements := range versions {
		version := i + 1
		if before := written(version - 1); version == 3 && !strings.Contains(statements, "to "+written(3)) ||
			version > 3 && !strings.Contains(statements, "alter table feed rename column "+before+" to "+written(version)) {
			t.Errorf("the step of version %d does not rename the column %s of feed to %s", version, before, written(version))
		}
		if version == 1 {
			continue
		}
		if wrong := regexp.MustCompile(`(?im)^[ \t]*(update|insert|delete|drop table|alter table \w+ drop column|alter table \w+ add column .*not null).*`).FindString(statements); wrong != "" {
			t.Errorf("the step of version %d has %q", version, wrong)
		}
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range feedColumns {
		if !strings.Contains(string(readme), "`"+c.name+"`") {
			t.Errorf("README.md does not have the column %s of feed", c.name)
		}
	}
}
