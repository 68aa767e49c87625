// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
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

	"github.com/feedpollard/pollard/internal/feedurl"
)

func showCommand() *cobra.Command {
	var o asking
	cmd := &cobra.Command{
		Use:   "show <URL>",
		Short: "Shows what the running instance knows of a feed, and why it waits",
		Long: `Shows what the running instance knows of a feed: when it will be polled next and
why, what the last poll came to, and which version readers get.

The feed is named by its own URL or by its address at the gateway
(http://feeds.home.arpa/https://example.com/feed.xml). Nothing is polled.`,
		Args: exactArgs(1, "the URL of one feed"),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			return o.show(cmd.Context(), http.MethodGet, "/pollard/feeds", args[0], cmd.OutOrStdout())
		}),
	}
	o.addFlags(cmd)
	return cmd
}

func refreshCommand() *cobra.Command {
	var o asking
	cmd := &cobra.Command{
		Use:   "refresh <URL>",
		Short: "Polls a feed of the running instance now",
		Long: `Polls a feed of the running instance now, as far as min_interval and its origin
allow, and shows what came of it. A feed of a shield is fetched anew when the next
reader asks for it.`,
		Args: exactArgs(1, "the URL of one feed"),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			return o.show(cmd.Context(), http.MethodPost, "/pollard/refresh", args[0], cmd.OutOrStdout())
		}),
	}
	o.addFlags(cmd)
	return cmd
}

func forgetCommand() *cobra.Command {
	var o asking
	cmd := &cobra.Command{
		Use:   "forget <URL>",
		Short: "Makes the running instance forget a feed",
		Long: `Makes the running instance forget a feed: its versions, its validators and its
schedule. A reader that asks for it afterwards starts a new feed.`,
		Args: exactArgs(1, "the URL of one feed"),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			return o.forget(cmd.Context(), args[0], cmd.OutOrStdout())
		}),
	}
	o.addFlags(cmd)
	return cmd
}

// show prints the feed that a request is answered with.
func (o *asking) show(ctx context.Context, method, path, feed string, out io.Writer) error {
	i, err := o.instance()
	if err != nil {
		return err
	}
	resp, err := i.doFeed(ctx, method, path, feed)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusNoContent { // a shield that keeps no account of what it caches
		resp.Body.Close()
		if o.json {
			return writeJSON(out, struct{}{})
		}
		_, err := fmt.Fprintln(out, "Done: the next reader gets it anew.")
		return err
	}
	if o.json {
		return copyJSON(out, resp)
	}
	var a account
	if err := decodeJSON(resp, &a); err != nil {
		return err
	}
	return a.writeText(out, time.Now())
}

func (o *asking) forget(ctx context.Context, feed string, out io.Writer) error {
	i, err := o.instance()
	if err != nil {
		return err
	}
	resp, err := i.doFeed(ctx, http.MethodDelete, "/pollard/feeds", feed)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if o.json {
		return writeJSON(out, map[string]bool{"forgotten": true})
	}
	_, err = fmt.Fprintln(out, "Forgotten.")
	return err
}

// writeText prints an account for people: the reason first, then the facts.
func (a *account) writeText(out io.Writer, now time.Time) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", plain(feedurl.Redact(a.URL)))
	fmt.Fprintf(&b, "%s. %s\n\n", capital(strings.ReplaceAll(plain(a.state()), "-", " ")), a.reason(now))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fact := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, plain(fmt.Sprintf(format, args...)))
	}
	if a.Title != "" {
		fact("title", "%s", a.Title)
	}
	if a.Alias != "" {
		fact("moved to", "%s", feedurl.Redact(a.Alias))
	}
	if !a.NextPoll.IsZero() {
		fact("next poll", "%s (%s)", a.NextPoll.In(time.Local).Format(time.DateTime+" MST"), until(a.NextPoll, now))
	}
	if !a.LastPoll.IsZero() {
		fact("last poll", "%s (%s): %s", a.LastPoll.In(time.Local).Format(time.DateTime+" MST"), ago(a.LastPoll, now), a.lastPoll())
	}
	if a.Version > 0 {
		fact("version", "the %s, since %s (%s), %s, %s, %s", humanize.Ordinal(int(a.Version)),
			a.VersionSince.In(time.Local).Format(time.DateTime+" MST"), ago(a.VersionSince, now),
			entries(a.Entries), humanize.IBytes(uint64(max(a.Size, 0))), a.ContentType)
	}
	if v := a.Validators; !v.Empty() {
		fact("validators", "%s", strings.TrimSpace(v.ETag+" "+v.LastModified))
	}
	fact("last asked", "%s", ago(a.LastAsked, now))
	w.Flush() // a Builder cannot fail
	a.writePolls(&b, now)
	e := explanation{Hints: a.Hints, Decision: decisionSummary{Considered: a.Considered}}
	if a.Version > 0 {
		e.writeHints(&b)
	}
	e.writeConsidered(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

// shownPolls is how many of the last polls are shown.
const shownPolls = 8

// writePolls lists the last polls, the newest first.
func (a *account) writePolls(b *strings.Builder, now time.Time) {
	if len(a.Polls) < 2 {
		return
	}
	b.WriteString("\nThe last polls:\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, p := range slices.Backward(a.Polls[max(0, len(a.Polls)-shownPolls):]) {
		status := "-"
		if p.Status != 0 {
			status = strconv.Itoa(p.Status)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%v\n", p.At.In(time.Local).Format(time.DateTime), ago(p.At, now),
			status, plain(p.Result), humanize.IBytes(uint64(max(p.Bytes, 0))), p.Took)
	}
	w.Flush() // a Builder cannot fail
}

// lastPoll says what the last poll came to.
func (a *account) lastPoll() string {
	text := a.LastResult
	if a.LastStatus != 0 {
		text = fmt.Sprintf("%d, %s", a.LastStatus, text)
	}
	if a.LastError != "" {
		text += ": " + a.LastError
	}
	return text
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
