// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestManual(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	root := &cobra.Command{Use: "pollard", Long: "Reads <this>.\n\n\t$ pollard <file>\n"}
	nothing := func(*cobra.Command, []string) {}
	root.AddCommand(manualCommand(), showCommand(), &cobra.Command{Use: "upgrade", Run: nothing}, &cobra.Command{Use: "run", Run: nothing})
	if out, code := runCommand(t, root, "", "manual", dir); code != exitDone || out != "" {
		t.Fatalf("exit code %d: %s", code, out)
	}
	for page, wants := range map[string][]string{
		"pollard.8":      {`.TH "POLLARD" "8"`, "pollard - feed gateway", "Reads <this>", "$ pollard <file>"},
		"pollard-show.8": {`\fBpollard show <URL> [flags]\fP`, `\fB--address\fP`},
	} {
		text, err := os.ReadFile(filepath.Join(dir, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%q is not in %s:\n%s", want, page, text)
			}
		}
	}
	for name, want := range map[string]bool{"run": true, "manual": false, "upgrade": false} { // one is hidden, one is refused
		if _, err := os.Stat(filepath.Join(dir, "pollard-"+name+".8")); (err == nil) != want {
			t.Errorf("the command %s has a page: %v, want %v", name, err == nil, want)
		}
	}
}
