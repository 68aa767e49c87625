// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedpollard/pollard/caddymodule/command/replay"
	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

func replayCommand() *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay --log <access.log> --feed <file>",
		Short: "Reports from an access log what an origin would have seen behind Pollard",
		Long: `Runs an access log through the real engine, on the log's own clock, and reports what
the origin would have seen and what readers would have received.

The log is in the combined format or in Caddy's JSON, plain or gzip; - is standard
input. Several logs are sorted by time. Lines for other paths than the feed's are
ignored. Without --path, the path is the one whose name looks like a feed's. If several do,
they are listed.

The origin is a model that serves the given feed, with an ETag and a Last-Modified
unless --header says otherwise ('ETag:' without a value removes it). It adds a new entry
at regular intervals. Its bytes are those of the status line, the header fields and the
compressed body, as HTTP/1.1 sends them. Those of readers are the same, without header
fields if the log counts only bodies.

The combined format does not record request headers. A 304 is taken for a conditional
request, a 200 for an unconditional one, and a response of at least 60 % of the feed's
size for a request without compression. Readers behave as in the log, whatever response
they get.

Without --config, the feed is behind a feed_shield without options. With it, the feed is
behind the first feed_shield of the Caddyfile whose path matcher matches --path, with its
policy lines and its defend block. If there is none, it is behind the feed_gateway that
has the feed, by the URL that the feed gives as its own.

For programs that look like a crawler with several addresses, the report says what a line
fleet in defend would refuse as well.`,
		Example: `  pollard feeds replay --log access.log --feed feed.xml --path /feed.xml
  zcat access.log.*.gz | pollard feeds replay --log - --feed feed.xml --config Caddyfile
  pollard feeds replay --log access.log --feed feed.xml --header 'Cache-Control: max-age=7200' --json`,
		Args: exactArgs(0, "flags only"),
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.logs, "log", nil, "an access log, or - for the standard input; repeatable, in any order")
	flags.StringVar(&o.feed, "feed", "", "a file with the feed")
	flags.StringVar(&o.path, "path", "", "the feed's path in the log; default: the one whose name looks like a feed's")
	flags.StringArrayVar(&o.headers, "header", nil, "a header field of the origin's responses, as 'Name: value'; repeatable")
	flags.StringVar(&o.changeEvery, "change-every", "30d", "how often the feed gets a new entry; 0: never")
	flags.StringVar(&o.config, "config", "", "a Caddyfile (or Caddy's JSON), for its rules")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	return cmd
}

// replayOptions are the flags of `feeds replay`, as given.
type replayOptions struct {
	logs        []string
	feed, path  string
	headers     []string
	changeEvery string
	config      string
	json        bool
}

func (o *replayOptions) run(ctx context.Context, stdin io.Reader, out, stderr io.Writer) error {
	r, err := o.resolve()
	if err != nil {
		return err
	}
	logs, done, err := openLogs(o.logs, stdin)
	if err != nil {
		return err
	}
	defer done()
	r.Progress = newCounter(stderr, "read", "line").report
	report, err := replay.Run(ctx, logs, r)
	if err != nil {
		if unclear, ok := errors.AsType[*replay.AmbiguousError](err); ok {
			for line := range strings.Lines(unclear.Suggestions) {
				fmt.Fprintln(stderr, plain(strings.TrimSuffix(line, "\n")))
			}
		}
		return err
	}
	return printAs(out, o.json, "report", report, report.WriteText)
}

func (o *replayOptions) resolve() (r replay.Options, err error) {
	switch {
	case len(o.logs) == 0:
		return r, wrongUsage("--log is missing: give an access log, or - for the standard input")
	case o.feed == "":
		return r, wrongUsage("--feed is missing: give a file with the feed that was asked for")
	case o.path != "" && !strings.HasPrefix(o.path, "/"):
		return r, wrongUsage("--path %q: expected one such as /feed.xml", o.path)
	}
	if o.changeEvery != "0" {
		every, err := config.ParseDuration(o.changeEvery)
		if err != nil {
			return r, wrongUsage("--change-every: %v", err)
		}
		r.ChangeEvery = time.Duration(every)
	}
	if r.Header, err = parseHeader(o.headers); err != nil {
		return r, err
	}
	r.Path, _, _ = strings.Cut(o.path, "?") // a line's own query does not matter either
	if r.Feed, err = os.ReadFile(o.feed); err != nil {
		return r, err // names the path already
	}
	r.Rules = poller.ShieldRules()
	if o.config != "" {
		err = o.configure(&r)
	}
	return r, err
}

// openLogs opens logs, and returns a function that closes them.
func openLogs(paths []string, stdin io.Reader) (logs []io.Reader, done func(), err error) {
	done = func() {
		for _, log := range logs {
			if f, ok := log.(*os.File); ok {
				f.Close() // it was only read
			}
		}
	}
	for _, path := range paths {
		if path == "-" {
			logs = append(logs, io.NopCloser(stdin))
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			done()
			return nil, nil, err // names the path already
		}
		logs = append(logs, f)
	}
	return logs, done, nil
}
