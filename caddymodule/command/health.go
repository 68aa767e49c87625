// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	"github.com/spf13/cobra"
)

func healthCommand() *cobra.Command {
	var o asking
	var live bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Says whether the running instance can serve readers",
		Long: `Says whether the running instance can serve readers. It fails while the store is being
opened, or is away; with --live only if the instance does not answer. It is for health
checks of containers whose image has no other program.`,
		Args: exactArgs(0, "no arguments"),
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			path := "/pollard/health/ready"
			if live {
				path = "/pollard/health/live"
			}
			var answer struct{ Status string }
			out := cmd.OutOrStdout()
			return o.show(cmd.Context(), out, path, "", &answer, func() error {
				_, err := fmt.Fprintln(out, plain(answer.Status))
				return err
			})
		}),
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&live, "live", false, "ask only whether the instance answers")
	return cmd
}
