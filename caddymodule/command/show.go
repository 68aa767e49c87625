// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/feedpollard/pollard/internal/status"
)

// oneFeed is what commands about a feed expect.
const oneFeed = "the URL of one feed, such as https://example.com/feed.xml"

func feedCommand(use, short, long string, do func(o *asking, cmd *cobra.Command, feed string) error) *cobra.Command {
	var o asking
	cmd := &cobra.Command{
		Use: use + " <URL>", Short: short, Long: long,
		Example: "  pollard feeds " + use + " https://example.com/feed.xml\n  pollard feeds " + use + " /rachel.xml",
		Args:    exactArgs(1, oneFeed),
		RunE:    run(func(cmd *cobra.Command, args []string) error { return do(&o, cmd, args[0]) }),
	}
	o.addFlags(cmd)
	return cmd
}

func showCommand() *cobra.Command {
	return feedCommand("show", "Shows what the running instance knows about a feed, and why it waits",
		`Shows what the running instance knows about a feed: the time of the next poll and
the reason, the result of the last poll, and the version that readers get.

The feed is named by its own URL, by its path at a gateway (/rachel.xml), or by its
address there (http://feeds.home.arpa/https://example.com/feed.xml). Nothing is polled.`,
		func(o *asking, cmd *cobra.Command, feed string) error { return o.print(cmd, "/pollard/feeds", feed) })
}

func refreshCommand() *cobra.Command {
	return feedCommand("refresh", "Polls a feed of the running instance now",
		`Polls a feed of the running instance now, if min_interval and its origin allow it,
and shows the result. A feed that may not be polled yet is polled as soon as it may be.
A feed of a shield is polled whatever min_interval says.`,
		func(o *asking, cmd *cobra.Command, feed string) error { return o.refresh(cmd, feed) })
}

// refresh has a feed polled, and prints what has become of it, or when it is polled.
func (o *asking) refresh(cmd *cobra.Command, feed string) error {
	i, err := o.instance()
	if err != nil {
		return err
	}
	resp, err := i.do(cmd.Context(), "/pollard/refresh", feed)
	out, early := cmd.OutOrStdout(), err == nil && resp.StatusCode == http.StatusAccepted
	if err != nil || o.json {
		if err == nil {
			err = copyJSON(out, resp)
		}
		return err
	}
	var f status.Feed
	if err := decodeJSON(resp, &f); err != nil {
		return err
	}
	now := time.Now()
	if early {
		if _, err := fmt.Fprintf(out, "Not polled yet. It is polled %s.\n\n", status.Until(f.NextPoll, now)); err != nil {
			return err
		}
	}
	return writeFeed(out, f, now)
}

func forgetCommand() *cobra.Command {
	return feedCommand("forget", "Removes a feed from the running instance",
		`Removes a feed from the running instance, with its versions and validators. Its site is
not polled sooner because of that: until the next poll may be made, readers get 503.`,
		func(o *asking, cmd *cobra.Command, feed string) error {
			i, err := o.instance()
			if err != nil {
				return err
			}
			resp, err := i.do(cmd.Context(), "/pollard/forget", feed)
			if err != nil {
				return err
			}
			resp.Body.Close()
			if o.json {
				return writeJSON(cmd.OutOrStdout(), map[string]bool{"forgotten": true})
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "Forgotten.")
			return err
		})
}

// print sends a request about a feed, and prints the feed in the response.
func (o *asking) print(cmd *cobra.Command, path, feed string) error {
	var f status.Feed
	out := cmd.OutOrStdout()
	return o.show(cmd.Context(), out, path, feed, &f, func() error { return writeFeed(out, f, time.Now()) })
}

// writeFeed prints a feed for people: the reason first, then the facts.
func writeFeed(out io.Writer, f status.Feed, now time.Time) error {
	var b strings.Builder
	if f.Address != "" {
		fmt.Fprintf(&b, "%s\n", plain(f.Address))
	}
	fmt.Fprintf(&b, "%s\n", plain(f.URL.String()))
	fmt.Fprintf(&b, "%s. %s\n\n", status.Capitalize(plain(f.State.Word())), plain(f.Explain(now, time.Local).String()))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fact := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, plain(fmt.Sprintf(format, args...)))
	}
	if f.Title != "" {
		fact("title", "%s", f.Title)
	}
	if f.Alias != "" {
		fact("moved to", "%s", f.Alias)
	}
	if f.OverHTTP {
		fact("over http", "its address redirects from https to http: others can read and change it on its way")
	}
	if !f.NextPoll.IsZero() {
		fact("next poll", "%s (%s)", local(f.NextPoll), status.Until(f.NextPoll, now))
	}
	if f.Pause != nil && f.Pause.URL != "" {
		fact("refused", "%s", f.Pause.URL)
	}
	if !f.LastPoll.IsZero() {
		fact("last poll", "%s (%s): %s", local(f.LastPoll), status.Ago(f.LastPoll, now), lastPoll(f))
	}
	if f.Version > 0 {
		fact("version", "the %s, since %s (%s), %s, %s, %s", humanize.Ordinal(int(f.Version)),
			local(f.VersionSince), status.Ago(f.VersionSince, now), entries(f.Entries), status.Size(int64(f.Size)), f.ContentType)
	}
	if v := f.Validators; !v.Empty() {
		fact("validators", "%s", strings.TrimSpace(v.ETag+" "+v.LastModified))
	}
	if f.Push != nil {
		fact("push", "%s: %s", f.Push.Hub, f.Push.Sentence(now))
	}
	if !f.LastAsked.IsZero() || !f.Configured {
		fact("last asked", "%s", status.Ago(f.LastAsked, now))
	}
	if len(f.Polls) > 0 {
		fact("answered", "%s of %s", status.Uptime(f.Polls), status.Last(f.Polls))
	}
	w.Flush() // a Builder cannot fail
	writePolls(&b, f.Polls, now)
	e := explanation{Hints: f.Hints, Decision: decisionSummary{Considered: f.Considered}}
	if f.Version > 0 {
		e.writeHints(&b)
	}
	e.writeConsidered(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func local(t time.Time) string { return t.In(time.Local).Format(time.DateTime + " MST") }

// shownPolls is how many of the last polls are shown.
const shownPolls = 8

// writePolls lists the last polls, the newest first.
func writePolls(b *strings.Builder, polls []status.Poll, now time.Time) {
	if len(polls) < 2 {
		return
	}
	b.WriteString("\nThe last polls:\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, p := range slices.Backward(polls[max(0, len(polls)-shownPolls):]) {
		code := "-"
		if p.Status != 0 {
			code = strconv.Itoa(p.Status)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%v\n", p.At.In(time.Local).Format(time.DateTime), status.Ago(p.At, now),
			code, plain(string(p.Result)), status.Size(p.Bytes), time.Duration(p.Took))
	}
	w.Flush() // a Builder cannot fail
}

func lastPoll(f status.Feed) string {
	text := string(f.LastResult)
	if f.LastStatus != 0 {
		text = fmt.Sprintf("%d, %s", f.LastStatus, text)
	}
	if f.LastError != "" {
		text += ": " + f.LastError
	}
	return text
}
