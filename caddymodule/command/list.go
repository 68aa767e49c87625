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

	"github.com/feedpollard/pollard/internal/feedurl"
)

func listCommand() *cobra.Command {
	var o asking
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Lists the feeds of the running instance",
		Long: `Lists the feeds that the running instance knows: their state, when they will be
polled next and the hint that decided it, what the last poll came to, and since
when readers have had the version that they get.

Feeds are shown without credentials, and cut to the width of the terminal.
Addresses that readers have asked for and that never gave a feed (a home page, an icon)
are counted only, unless --all is given. With --json all are shown, as the admin API
has them.`,
		Args: exactArgs(0, "flags only"),
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return o.list(cmd.Context(), cmd.OutOrStdout(), time.Now(), all)
		}),
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "list the addresses that never gave a feed as well")
	return cmd
}

func (o *asking) list(ctx context.Context, out io.Writer, now time.Time, all bool) error {
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
	return writeFeeds(out, json.NewDecoder(resp.Body), now, all)
}

// states are the states of feeds, in the order in which people want to know of them.
var states = []string{"failing", "gone", "waiting", "due", "cold", stateNoFeed, "fresh"}

// writeFeeds prints the feeds of a JSON array as they arrive. What never gave a feed is
// counted, and printed if all are wanted.
func writeFeeds(out io.Writer, dec *json.Decoder, now time.Time, all bool) error {
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("reading the list of feeds: %w", err)
	}
	count := map[string]int{}
	var t *table
	total, noFeeds := 0, 0
	for dec.More() {
		var a account
		if err := dec.Decode(&a); err != nil {
			return fmt.Errorf("reading the list of feeds: %w", err)
		}
		if !all && a.state() == stateNoFeed {
			noFeeds++
			continue
		}
		total++
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
	end := "No feeds: nobody has asked for one yet.\n"
	if t != nil {
		if err := t.flush(); err != nil {
			return err
		}
		end = fmt.Sprintf("\n%s\n", summary(total, count))
	} else if noFeeds > 0 {
		end = "No feeds.\n"
	}
	switch {
	case noFeeds == 1:
		end += "1 address never gave a feed: --all lists it.\n"
	case noFeeds > 1:
		end += fmt.Sprintf("%s addresses never gave a feed: --all lists them.\n", humanize.Comma(int64(noFeeds)))
	}
	_, err := io.WriteString(out, end)
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
