// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/feedpollard/pollard/internal/status"
)

func listCommand() *cobra.Command {
	var o asking
	var all bool
	var state string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Lists the feeds of the running instance",
		Long: `Lists the feeds of the running instance: their state, the time of the next poll and
the hint that decided it, the result of the last poll, and the age of the version
that readers get.

URLs are shown without credentials. Lines are cut to the width of the terminal.
Unread addresses (a home page, an icon) never gave a feed. They are only counted, unless
--all or --state unread is given. --json prints all of them, as the admin API does.`,
		Args: exactArgs(0, "flags only"),
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			if s := status.State(state); s != "" && !s.Valid() {
				return wrongUsage("--state %q: expected one of %s", state, strings.Join(stateNames(), ", "))
			}
			return o.list(cmd.Context(), cmd.OutOrStdout(), time.Now(), all, status.State(state))
		}),
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "list unread addresses too")
	cmd.Flags().StringVar(&state, "state", "", "list the feeds in this state: "+strings.Join(stateNames(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(stateNames(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

func (o *asking) list(ctx context.Context, out io.Writer, now time.Time, all bool, only status.State) error {
	i, err := o.instance()
	if err != nil {
		return err
	}
	resp, err := i.do(ctx, "/pollard/feeds", "")
	if err != nil {
		return err
	}
	if o.json {
		return copyJSON(out, resp)
	}
	defer resp.Body.Close()
	return writeFeeds(out, json.NewDecoder(resp.Body), now, all, only)
}

func stateNames() []string {
	names := make([]string, 0, len(status.States))
	for _, s := range status.States {
		names = append(names, string(s))
	}
	return names
}

// writeFeeds prints the feeds of a JSON array as they arrive. Unread addresses are
// counted, and printed if all is true. If only is not empty, only feeds in that state are
// printed.
func writeFeeds(out io.Writer, dec *json.Decoder, now time.Time, all bool, only status.State) error {
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("reading the list of feeds: %w", err)
	}
	count := map[status.State]int64{}
	var t *table
	var unread int64
	for dec.More() {
		var f status.Feed
		if err := dec.Decode(&f); err != nil {
			return fmt.Errorf("reading the list of feeds: %w", err)
		}
		if only != "" && f.State != only {
			continue
		}
		if !all && only == "" && f.State == status.StateUnread {
			unread++
			continue
		}
		if t == nil {
			t = newTable(out, column{"STATE", 7, false}, column{"NEXT POLL", 9, false}, column{"WHY", 13, false},
				column{"LAST", 8, false}, column{"CHANGED", 8, false}, column{title: "FEED"})
		}
		count[f.State]++
		t.row(plain(string(f.State)), status.Until(f.NextPoll, now), plain(f.Winner), plain(outcome(f)), status.Ago(f.VersionSince, now),
			plain(strings.TrimSpace(f.Address+" "+f.URL.String())))
	}
	if _, err := dec.Token(); err != nil { // the end of the array: what broke off is not the whole
		return fmt.Errorf("reading the list of feeds: %w", err)
	}
	end := "No feeds: no reader has asked for one yet.\n"
	if t != nil {
		if err := t.flush(); err != nil {
			return err
		}
		end = fmt.Sprintf("\n%s\n", status.Summary{Feeds: count}.Sentence())
	} else if unread > 0 {
		end = "No feeds.\n"
	}
	if unread > 0 {
		end += fmt.Sprintf("%s never gave a feed: --all lists %s.\n",
			humanize.Comma(unread)+" "+status.Plural(unread, "address", "addresses"), status.Plural(unread, "it", "them"))
	}
	_, err := io.WriteString(out, end)
	return err
}

// outcome is the result of the last poll, in one word.
func outcome(f status.Feed) string {
	switch {
	case f.LastPoll.IsZero():
		return "-"
	case f.LastStatus != 0:
		return strconv.Itoa(f.LastStatus)
	}
	return cmp.Or(string(f.LastFailure), string(f.LastResult), "-")
}
