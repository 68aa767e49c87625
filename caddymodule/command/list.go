// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/feedpollard/pollard/internal/status"
)

func listCommand() *cobra.Command {
	var o asking
	q := status.Query{Limit: math.MaxInt - 1} // all
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Lists the feeds of the running instance",
		Long: `Lists the feeds of the running instance, those that need attention first: their state,
the time of the next poll and what decided it, the result of the last poll, and the age
of the version that readers get. If no site or not the store can be reached, it says so.

URLs are shown without credentials. Lines are cut to the width of the terminal.
Addresses that never gave a feed (a home page, an icon) are only counted, unless --all or
--state unread is given. --json prints the feeds in the same order, these addresses too.`,
		Args: exactArgs(0, "flags only"),
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			if q.State != "" && !q.State.Valid() {
				return wrongUsage("--state %q: expected one of %s", q.State, strings.Join(names(status.States), ", "))
			}
			if q.Sort != "" && !slices.Contains(status.Sorts, q.Sort) {
				return wrongUsage("--sort %q: expected one of %s", q.Sort, strings.Join(names(status.Sorts), ", "))
			}
			return o.list(cmd.Context(), cmd.OutOrStdout(), time.Now(), q)
		}),
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&q.Unread, "all", false, "list addresses that never gave a feed too")
	choice(cmd, (*string)(&q.State), "state", "list the feeds in this state", names(status.States))
	choice(cmd, (*string)(&q.Sort), "sort", "the order", names(status.Sorts))
	return cmd
}

// choice adds a flag with its values.
func choice(cmd *cobra.Command, value *string, name, usage string, values []string) {
	cmd.Flags().StringVar(value, name, "", usage+": "+strings.Join(values, ", "))
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

func names[T ~string](values []T) (texts []string) {
	for _, v := range values {
		texts = append(texts, string(v))
	}
	return texts
}

func (o *asking) list(ctx context.Context, out io.Writer, now time.Time, q status.Query) error {
	i, err := o.instance()
	if err != nil {
		return err
	}
	resp, err := i.do(ctx, "/pollard/feeds", "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if o.json {
		var unread int64
		q.Unread = true // a program tells them by their state
		list, err := status.Select(listed(resp, &unread), q)
		if err != nil {
			return err
		}
		return writeJSON(out, list.Feeds)
	}
	var sums status.Summary
	if stats, err := i.do(ctx, "/pollard/stats", ""); err == nil {
		_ = decodeJSON(stats, &sums) // the list is useful without it
	}
	for _, notice := range sums.Notices(now, time.Local) {
		if _, err := fmt.Fprintf(out, "%s\n\n", plain(notice.String())); err != nil {
			return err
		}
	}
	return writeFeeds(out, resp, now, q)
}

// listed decodes a JSON array of feeds, and counts unread addresses.
func listed(resp *http.Response, unread *int64) iter.Seq2[status.Feed, error] {
	return func(yield func(status.Feed, error) bool) {
		dec := json.NewDecoder(resp.Body)
		_, err := dec.Token()
		for err == nil && dec.More() {
			var f status.Feed
			if err = dec.Decode(&f); err != nil {
				break
			}
			if f.State == status.StateUnread {
				*unread++
			}
			if !yield(f, nil) {
				return
			}
		}
		if err == nil {
			_, err = dec.Token() // the end of the array: without it, the list is not the whole
		}
		if err != nil {
			yield(status.Feed{}, fmt.Errorf("reading the list of feeds: %w", err))
		}
	}
}

// lines leaves out of feeds what a line of text does not show: there may be very many.
func lines(feeds iter.Seq2[status.Feed, error]) iter.Seq2[status.Feed, error] {
	return func(yield func(status.Feed, error) bool) {
		for f, err := range feeds {
			f.Considered, f.Polls, f.Reason = nil, nil, nil
			if !yield(f, err) {
				return
			}
		}
	}
}

func writeFeeds(out io.Writer, resp *http.Response, now time.Time, q status.Query) error {
	var unread int64
	list, err := status.Select(lines(listed(resp, &unread)), q)
	if err != nil {
		return err
	}
	count := map[status.State]int64{}
	end := "No feeds: no reader has asked for one yet.\n"
	switch {
	case q.State != "":
		end = fmt.Sprintf("No feed is %s.\n", q.State)
		if q.State == status.StateUnread {
			end = "Each address has given a feed.\n"
		}
	case unread > 0:
		end = "No feeds.\n"
	}
	if len(list.Feeds) > 0 {
		t := newTable(out, "%-7s  %-9s  %-20s  %-11s  %-11s  %-24s  ", "STATE", "NEXT POLL", "WHY", "LAST", "CHANGED", "TITLE", "FEED")
		for _, f := range list.Feeds {
			count[f.State]++
			name := strings.TrimSpace(f.Address + " " + f.URL.String())
			if f.Shield {
				name += " (shield)"
			}
			t.row(plain(f.State.Word()), status.Until(f.NextPoll, now), plain(f.Why()), plain(cmp.Or(f.Outcome(), "-")), status.Ago(f.VersionSince, now),
				cut(plain(f.Title), 24), plain(name))
		}
		if err := t.flush(); err != nil {
			return err
		}
		end = fmt.Sprintf("\n%s\n", status.Summary{Feeds: count}.Sentence())
		if count[status.StateUnread] == int64(len(list.Feeds)) {
			end = "\nNone of these addresses has given a feed yet.\n"
		}
	}
	if unread > 0 && !q.Unread && q.State == "" {
		end += fmt.Sprintf("%s never gave a feed: --all lists %s.\n",
			humanize.Comma(unread)+" "+status.Plural(unread, "address", "addresses"), status.Plural(unread, "it", "them"))
	}
	_, err = io.WriteString(out, end)
	return err
}
