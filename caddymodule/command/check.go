// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedpollard/pollard/caddymodule/command/check"
	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// checkSpacing is the pause between the polls of a check.
const checkSpacing = 3 * time.Second

func checkCommand() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check <URL>",
		Short: "Examines a feed for its publisher",
		Long: `Polls a feed at most four times, a few seconds apart, and reports what its publisher
can repair. Each finding has its evidence and a remedy. It checks whether conditional
requests work, also with compression; whether validators change although the feed does
not; malformed hints; content type, compression and redirects; entries that confuse
readers; and what a reader that polls every hour costs in a month.

These polls do not go through the running instance.`,
		Example: `  pollard feeds check https://example.com/feed.xml
  pollard feeds check example.com/feed.xml --json`,
		Args: exactArgs(1, oneFeed),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	cmd.Flags().StringVar(&o.config, "config", "", "a Caddyfile (or Caddy's JSON), for its rules and its contact")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	return cmd
}

// checkOptions are the flags of `feeds check`, as given.
type checkOptions struct {
	config     string
	json       bool
	cancelOnce bool // in tests: no pauses
}

func (o *checkOptions) run(ctx context.Context, argument string, out, stderr io.Writer) error {
	feed, err := feedArgument(argument)
	if err != nil {
		return err
	}
	app, err := appOrDefault(o.config)
	if err != nil {
		return err
	}
	spacing := checkSpacing
	var options []upstream.Option
	if o.cancelOnce {
		spacing, options = 0, append(options, upstream.WithoutPacing())
	}
	compressed, plain := newClient(app, options...), newClient(app, append(options, upstream.WithTransport(uncompressed()))...)
	defer compressed.Close()
	defer plain.Close()
	n := 0
	report, err := check.Run(ctx, check.Options{
		URL: feed, Rules: app.RulesFor(feed), Spacing: spacing,
		Poll: func(ctx context.Context, ask policy.Ask, compression bool) policy.Answer {
			if compression {
				return compressed.Poll(ctx, ask)
			}
			return plain.Poll(ctx, ask)
		},
		Progress: func(step string) {
			n++
			fmt.Fprintf(stderr, "poll %d of at most %d: %s\n", n, check.MaxPolls, step)
		},
	})
	if err != nil {
		return err
	}
	err = printAs(out, o.json, "report", report, func(out io.Writer) error {
		_, err := io.WriteString(out, checkText(report))
		return err
	})
	return cmp.Or(err, problem(report.Problem))
}

// newClient is a client for polls by hand. Private addresses may be reached: here it
// is the operator who asks, not a reader of a gateway.
func newClient(app *poller.App, options ...upstream.Option) *upstream.Client {
	client := upstream.New(options...)
	s := app.Upstream()
	s.Private = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	client.Apply(s)
	return client
}

// uncompressed sends requests as they are, but that they ask for no compression.
func uncompressed() http.RoundTripper {
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, ForceAttemptHTTP2: true}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Accept-Encoding", "identity")
		return transport.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func checkText(r *check.Report) string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(plain(fmt.Sprintf(format, args...)) + "\n") }
	line("%s", feedurl.Redact(r.URL))
	if r.Problem != "" {
		return b.String()
	}
	e := explanation{Format: r.Format, Version: r.Version}
	line("%s, %s, %s.", e.formatName(), entries(r.Entries), status.Size(int64(r.Size)))
	if len(r.Findings) == 0 {
		b.WriteString("\n")
		line("Nothing to mend.")
	}
	for i, f := range r.Findings {
		b.WriteString("\n")
		line("%d. %s (%s)", i+1, f.Title, f.Grade)
		line("   Seen:   %s", feedurl.OneLine(f.Evidence))
		line("   Remedy: %s", f.Remedy)
	}
	if len(r.Good) > 0 {
		b.WriteString("\n")
		line("Good:")
	}
	for _, good := range r.Good {
		line("   %s", good)
	}
	if p := r.Readers; p != nil && p.Error == "" {
		b.WriteString("\n")
		line("Many readers see: %q, %s.", p.Title, entries(p.Entries))
	}
	if c := r.Cost; c != nil {
		b.WriteString("\n")
		line("A reader that polls every hour costs, in a month of %d polls and %d changes:", c.Polls, c.Changes)
		line("   %9s  asking whether the feed has changed", status.Size(int64(c.With304)))
		line("   %9s  downloading it each time", status.Size(int64(c.Without304)))
		line("   %9s  and without compression", status.Size(int64(c.Plain)))
	}
	b.WriteString("\n")
	line("Pollard would poll it again after %s. %s", config.FormatDuration(r.Next.Round(time.Second)), r.Reason)
	return b.String()
}
