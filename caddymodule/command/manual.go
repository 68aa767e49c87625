// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/feedpollard/pollard/caddymodule/poller"
)

// manualCommand writes the manual pages of all commands, for those who make packages.
// Caddy's own command for it signs them as Caddy's, and loses what stands in angle
// brackets.
func manualCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "manual <directory>",
		Short:  "Writes the manual pages",
		Hidden: true,
		Args:   exactArgs(1, "one directory"),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if root.Short == "" {
				root.Short = "feed gateway"
			}
			for _, child := range root.Commands() {
				if name := child.Name(); name == "upgrade" || name == "add-package" || name == "remove-package" {
					child.Hidden = true // the program refuses these commands of Caddy
				}
			}
			escapeMarkdown(root)
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Title: "POLLARD", Section: "8", Source: "Pollard " + poller.Version(), Manual: "Pollard"}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("writing the manual pages: %w", err)
			}
			return nil
		}),
	}
}

// escapeMarkdown protects the texts of a command and those below it from package doc,
// which takes them for Markdown.
func escapeMarkdown(cmd *cobra.Command) {
	cmd.Use = strings.ReplaceAll(cmd.Use, "<", `\<`)
	cmd.Short = strings.ReplaceAll(cmd.Short, "<", `\<`)
	var lines []string
	for line := range strings.SplitSeq(cmd.Long, "\n") {
		if !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "    ") { // those are code already
			line = strings.ReplaceAll(line, "<", `\<`)
		}
		lines = append(lines, line)
	}
	cmd.Long = strings.Join(lines, "\n")
	for _, child := range cmd.Commands() {
		escapeMarkdown(child)
	}
}
