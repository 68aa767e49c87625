// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedpollard/pollard/cache/transfer"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/upstream"
)

// reportEvery is how often a long command says how far it is.
const reportEvery = 5 * time.Second

func exportCommand() *cobra.Command {
	var where storeFlags
	cmd := &cobra.Command{
		Use:   "export [--store sqlite:<directory> | postgres:<URL>]",
		Short: "Writes all feeds of a store as JSON lines",
		Long: `Writes all feeds of a store to the standard output, one line of JSON for each, with
their schedules, validators and stored versions. ` + "`feeds import`" + ` reads them into
another store: no feed is polled an extra time because of that. Statistics of readers
and polls stay where they are. A store without feeds is an error.

Without --store, the store is that of --config, or of the installed service. An SQLite
store can be read while no process uses it. A PostgreSQL database may be in use.
Feeds can have credentials in their URLs; keep the file as you keep the store.`,
		Example: `  sudo pollard feeds export > feeds.jsonl
  pollard feeds export --store sqlite:/var/lib/pollard | pollard feeds import --store 'postgres:postgres://pollard:{env.DB_PASSWORD}@db.example.net/pollard'`,
		Args: exactArgs(0, "no argument besides --store"),
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return exportFeeds(cmd.Context(), where, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	where.add(cmd)
	return cmd
}

func importCommand() *cobra.Command {
	var where storeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import [<file>] [--store sqlite:<directory> | postgres:<URL>]",
		Short: "Reads feeds from JSON lines into a store",
		Long: `Reads feeds into a store from a file or the standard input: the lines of
` + "`feeds export`" + `, or lines of your own with as little as

  {"url": "https://example.com/feed.xml"}

and, where another system knows it, the last answer of the site and when to poll next:

  {"url": "...", "next_poll": "2026-11-21T08:00:00Z", "last_poll": "2026-11-21T07:00:00Z",
   "etag": "\"abc\"", "last_modified": "Sat, 21 Nov 2026 06:00:00 GMT",
   "content_type": "application/rss+xml", "body": "<rss ..."}

Without next_poll, a feed is due. Without a body, the validators are of no use and left
out. With prefetch, feeds without a body are polled in the background, at the pace of
their hosts. Where the store knows a feed already, the later next poll counts; a line
without a body changes nothing then.

Lines that make no sense are named by their numbers; the others are imported. The exit
code is 1 then. An import that was interrupted can be repeated.

Without --store, the store is that of --config, or of the installed service. The process
that uses an SQLite store has to be stopped. Files that root makes belong to the owner of
the directory.`,
		Example: `  sudo pollard feeds import feeds.jsonl
  pollard feeds import --store 'postgres:postgres://pollard:{env.DB_PASSWORD}@db.example.net/pollard' < feeds.jsonl`,
		Args: rangeArgs(0, 1, "at most one file"),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			in := cmd.InOrStdin()
			if len(args) == 1 && args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			done, err := importFeeds(cmd.Context(), where, in, cmd.ErrOrStderr())
			if asJSON && done != nil {
				err = errors.Join(writeJSON(cmd.OutOrStdout(), done), err)
			}
			return err
		}),
	}
	where.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document when it is done")
	return cmd
}

func exportFeeds(ctx context.Context, where storeFlags, out, stderr io.Writer) (err error) {
	module, err := where.module()
	if err != nil {
		return err
	}
	db, err := openStore(ctx, module, false, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	p := newCounter(stderr, "exported", "feed")
	w := bufio.NewWriterSize(out, 1<<16)
	if err := errors.Join(transfer.Export(ctx, db, w, p.report), w.Flush()); err != nil {
		return err
	}
	if p.number == 0 {
		return fmt.Errorf("%s has no feeds: nothing was exported", module)
	}
	p.end("from " + module.String())
	return nil
}

type imported struct {
	Store    string `json:"store"`
	Imported int64  `json:"imported"` // feeds
	Refused  int64  `json:"refused"`  // lines
}

func importFeeds(ctx context.Context, where storeFlags, in io.Reader, stderr io.Writer) (done *imported, err error) {
	lines := bufio.NewReader(in)
	if _, err := lines.Peek(1); errors.Is(err, io.EOF) {
		return nil, errors.New("there is nothing to import: the export that should have written it may have failed")
	}
	module, err := where.module()
	if err != nil {
		return nil, err
	}
	db, err := openStore(ctx, module, true, stderr)
	if err != nil {
		return nil, err
	}
	defer func() {
		if failed := db.Close(); err == nil { // on a full disk it would repeat the error
			err = failed
		}
	}()
	p := newCounter(stderr, "imported", "feed")
	client := upstream.New()
	defer client.Close()
	var refused int64
	i := &transfer.Importer{
		Store: db, Host: client.Host, Shielded: func(key string) bool { _, ok := poller.ParseShieldKey(key); return ok }, Report: p.report,
		Refused: func(number int64, err error) {
			refused++
			fmt.Fprintf(stderr, "line %d: %s\n", number, plain(err.Error()))
		},
	}
	if _, err := i.Import(ctx, lines); err != nil {
		return nil, err
	}
	p.end("into " + module.String())
	done = &imported{module.String(), p.number, refused}
	if refused > 0 {
		return done, fmt.Errorf("%s not imported", status.Count(refused, "line"))
	}
	return done, nil
}

// counter reports how far a command is, every few seconds.
type counter struct {
	out               io.Writer
	done, what        string
	number            int64
	started, reported time.Time
}

func newCounter(out io.Writer, done, what string) *counter {
	now := time.Now()
	return &counter{out: out, done: done, what: what, started: now, reported: now}
}

func (p *counter) report(number int64) {
	p.number = number
	if now := time.Now(); now.Sub(p.reported) >= reportEvery {
		p.reported = now
		fmt.Fprintf(p.out, "%s %s\n", p.done, status.Count(number, p.what))
	}
}

func (p *counter) end(where string) {
	fmt.Fprintf(p.out, "%s %s %s in %s\n", p.done, status.Count(p.number, p.what), where, status.Short(time.Since(p.started)))
}
