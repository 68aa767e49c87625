// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/feedpollard/pollard/internal/status"
)

func readersCommand() *cobra.Command {
	var o asking
	cmd := &cobra.Command{
		Use:   "readers [<URL>]",
		Short: "Lists the readers of shields, how often they request feeds, and how well",
		Long: `Lists the readers of all feeds of shields, or of one: requests and bytes, the share of
conditional requests, the usual time between two requests, and a score from A to F
with its reasons. Readers of the same kind are one line; --json lists each of them.
Of gateways, no reader is remembered.`,
		Args: rangeArgs(0, 1, "at most the URL of one feed"),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			var report status.ReaderReport
			out := cmd.OutOrStdout()
			return o.show(cmd.Context(), out, "/pollard/readers", strings.Join(args, ""), &report, func() error { return writeReaders(out, report) })
		}),
	}
	o.addFlags(cmd)
	return cmd
}

func writeReaders(out io.Writer, report status.ReaderReport) error {
	if len(report.Families) == 0 {
		_, err := fmt.Fprintln(out, "No shield has had a reader yet.")
		return err
	}
	t := newTable(out, "%-5s  %9s  %8s  %11s  %7s  %5s  %-24s  ", "SCORE", "REQUESTS", "BYTES", "CONDITIONAL", "REFUSED", "EVERY", "READER", "WHY")
	for _, row := range report.Families {
		every := "-"
		if row.MedianGap > 0 {
			every = status.Short(time.Duration(row.MedianGap))
		}
		t.row(row.Score, humanize.Comma(row.Requests), status.Size(row.Bytes),
			fmt.Sprintf("%.0f %%", 100*row.ShareConditional), humanize.Comma(row.Answers.Refusals()), every,
			cut(cmp.Or(plain(row.Family), "(no name)"), 24), plain(strings.Join(row.Reasons, "; ")))
	}
	if err := t.flush(); err != nil {
		return err
	}
	total := report.Total
	_, err := fmt.Fprintf(out, "\n%s, %s sent, %.0f %% conditional, %s refused.\n",
		status.Count(total.Requests, "request"), status.Size(total.Bytes), 100*total.ShareConditional, humanize.Comma(total.Answers.Refusals()))
	return err
}
