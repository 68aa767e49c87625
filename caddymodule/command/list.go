// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/feedpollard/pollard/feedurl"
)

func listCommand() *cobra.Command {
	var o asking
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Lists the feeds of the running instance",
		Long: `Lists the feeds that the running instance knows: their state, when they will be
polled next and the hint that decided it, what the last poll came to, and since
when readers have had the version that they get.

Feeds are shown without credentials, and cut to the width of the terminal.
With --json they are shown as the admin API has them.`,
		Args: exactArgs(0, "flags only"),
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return o.list(cmd.Context(), cmd.OutOrStdout(), time.Now())
		}),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *asking) list(ctx context.Context, out io.Writer, now time.Time) error {
	i, err := o.instance()
	if err != nil {
		return err
	}
	resp, err := i.do(ctx, http.MethodGet, "/pollard/feeds", "")
	if err != nil {
		return err
	}
	if o.json {
		return copyJSON(out, resp)
	}
	defer resp.Body.Close()
	return writeFeeds(out, json.NewDecoder(resp.Body), now)
}

// states are the states of feeds, in the order in which people want to know of them.
var states = []string{"failing", "gone", "waiting", "due", "cold", "no-feed", "fresh"}

// writeFeeds prints the feeds of a JSON array as they arrive.
func writeFeeds(out io.Writer, dec *json.Decoder, now time.Time) error {
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("reading the list of feeds: %w", err)
	}
	count := map[string]int{}
	var t *table
	total := 0
	for ; dec.More(); total++ {
		var a account
		if err := dec.Decode(&a); err != nil {
			return fmt.Errorf("reading the list of feeds: %w", err)
		}
		if t == nil {
			t = newTable(out, column{"STATE", 7, false}, column{"NEXT POLL", 9, false}, column{"WHY", 13, false},
				column{"LAST", 8, false}, column{"CHANGED", 8, false}, column{title: "FEED"})
		}
		count[a.state()]++
		t.row(plain(a.state()), until(a.NextPoll, now), plain(a.Winner), plain(a.outcome()), ago(a.VersionSince, now),
			plain(feedurl.Redact(a.URL)))
	}
	if _, err := dec.Token(); err != nil { // the end of the array: what broke off is not the whole
		return fmt.Errorf("reading the list of feeds: %w", err)
	}
	if t == nil {
		_, err := fmt.Fprintln(out, "No feeds: nobody has asked for one yet.")
		return err
	}
	if err := t.flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s\n", summary(total, count))
	return err
}

// summary counts feeds by state in a sentence.
func summary(total int, count map[string]int) string {
	var parts []string
	for _, state := range states {
		if n := count[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", humanize.Comma(int64(n)), state))
		}
	}
	feeds := "feeds"
	if total == 1 {
		feeds = "feed"
	}
	if len(parts) == 0 {
		return fmt.Sprintf("%s %s.", humanize.Comma(int64(total)), feeds)
	}
	return fmt.Sprintf("%s %s: %s.", humanize.Comma(int64(total)), feeds, strings.Join(parts, ", "))
}
