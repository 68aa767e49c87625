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
	"path/filepath"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/upstream"
)

// tellEvery is how often a transfer says how far it is.
const tellEvery = 5 * time.Second

func exportCommand() *cobra.Command {
	var where string
	var figures bool
	cmd := &cobra.Command{
		Use:   "export --store sqlite:<directory> | postgres:<URL>",
		Short: "Writes all feeds of a store as JSON lines",
		Long: `Writes all feeds of a store to the standard output, one line of JSON for each, with
their schedules, validators and stored versions. ` + "`feeds import`" + ` reads them into
another store: no feed is polled an extra time because of that. Statistics of readers
and polls stay where they are.

An SQLite store can be read while no process uses it. A PostgreSQL database may be in use.
Feeds can have credentials in their URLs; keep the file as you keep the store.`,
		Example: `  pollard feeds export --store sqlite:/var/lib/pollard > feeds.jsonl
  pollard feeds export --store sqlite:/var/lib/pollard | pollard feeds import --store 'postgres:postgres://pollard:{env.DB_PASSWORD}@db.example.net/pollard'`,
		Args: exactArgs(0, "no argument besides --store"),
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			if figures {
				return wrongUsage("--figures was removed: statistics are not exported, they stay in the store that counted them")
			}
			return exportFeeds(cmd.Context(), where, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	addStore(cmd, &where)
	cmd.Flags().BoolVar(&figures, "figures", false, "")
	_ = cmd.Flags().MarkHidden("figures") // it exists
	return cmd
}

func importCommand() *cobra.Command {
	var where string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import [<file>] --store sqlite:<directory> | postgres:<URL>",
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
code is 1 then. An import that was interrupted can be repeated.`,
		Example: `  pollard feeds import --store sqlite:/var/lib/pollard feeds.jsonl
  pollard feeds import --store 'postgres:postgres://pollard:{env.DB_PASSWORD}@db.example.net/pollard' < feeds.jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError(cmd, fmt.Errorf("expected at most one file, got %d", len(args)))
			}
			return nil
		},
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
	addStore(cmd, &where)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document when it is done")
	return cmd
}

func addStore(cmd *cobra.Command, where *string) {
	cmd.Flags().StringVar(where, "store", "", "sqlite:<directory>, or postgres:<URL>; placeholders such as {env.DB_PASSWORD} and {file.<path>} are replaced")
}

// openStore opens a store that was named on the command line.
func openStore(ctx context.Context, where string, stderr io.Writer) (db store.Store, shown string, err error) {
	if where == "" {
		return nil, "", wrongUsage("--store is missing: expected sqlite:<directory> or postgres:<URL>")
	}
	kind, rest, _ := strings.Cut(where, ":")
	var module interface {
		poller.Store
		caddy.Provisioner
	}
	switch {
	case rest == "":
		return nil, "", wrongUsage("--store %q: expected sqlite:<directory> or postgres:<URL>", where)
	case kind == "sqlite":
		module = &poller.SQLite{Directory: rest}
	case strings.HasPrefix(rest, "//") && (kind == "postgres" || kind == "postgresql"):
		module = &poller.Postgres{URL: where}
	case kind == "postgres":
		module = &poller.Postgres{URL: rest}
	default:
		return nil, "", wrongUsage("--store: a store %q is not known: expected sqlite:<directory> or postgres:<URL>", kind)
	}
	if err := module.Provision(caddy.Context{}); err != nil {
		return nil, "", &usage{fmt.Errorf("--store: %w", err)}
	}
	db, err = module.Open(ctx, warnings(stderr))
	if errors.Is(err, store.ErrLocked) {
		err = fmt.Errorf("%s is in use by another process: stop that one before (%w)", module, err)
	}
	return db, module.String(), err
}

// warnings is a log of what is wrong with a store, for people.
func warnings(stderr io.Writer) *zap.Logger {
	form := zapcore.EncoderConfig{MessageKey: "msg", LevelKey: "level", EncodeLevel: zapcore.LowercaseLevelEncoder}
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(form), zapcore.AddSync(stderr), zap.WarnLevel))
}

func exportFeeds(ctx context.Context, where string, out, stderr io.Writer) (err error) {
	if dir, ok := strings.CutPrefix(where, "sqlite:"); ok && dir != "" && !strings.Contains(dir, "{") {
		if err := exists(dir); err != nil { // opening it would make it
			return err
		}
	}
	db, shown, err := openStore(ctx, where, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	of := ""
	if totals, err := db.Totals(ctx); err == nil {
		var all int64
		for _, n := range totals.Feeds {
			all += n
		}
		of = fmt.Sprintf(" of %d", all)
	}
	p := newTransfer(stderr, "exported", of)
	w := bufio.NewWriterSize(out, 1<<16)
	if err := errors.Join(cache.Export(ctx, db, w, p.tell), w.Flush()); err != nil {
		return err
	}
	p.end("from " + shown)
	return nil
}

// exists returns an error if a directory has no store. It names one below it that has.
func exists(dir string) error {
	if sqlite.Exists(dir) || sqlite.Refuse(dir) != nil { // opening it says why not
		return nil
	}
	for _, below := range []string{"pollard", "caddy/pollard"} {
		if near := filepath.Join(dir, below); sqlite.Exists(near) {
			return fmt.Errorf("there is no store in %s: did you mean sqlite:%s?", dir, near)
		}
	}
	return fmt.Errorf("there is no store in %s: name the directory of feeds.sqlite", dir)
}

// imported is what an import came to.
type imported struct {
	Store    string `json:"store"`
	Imported int64  `json:"imported"` // feeds
	Refused  int64  `json:"refused"`  // lines
}

func importFeeds(ctx context.Context, where string, in io.Reader, stderr io.Writer) (done *imported, err error) {
	db, shown, err := openStore(ctx, where, stderr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	p := newTransfer(stderr, "imported", "")
	client := upstream.New()
	defer client.Close()
	var refused int64
	i := &cache.Importer{
		Store: db, Host: client.Host, Shielded: func(key string) bool { _, ok := poller.ParseShieldKey(key); return ok }, Tell: p.tell,
		Refused: func(number int64, err error) {
			refused++
			fmt.Fprintf(stderr, "line %d: %s\n", number, plain(err.Error()))
		},
	}
	if _, err := i.Import(ctx, in); err != nil {
		return nil, err
	}
	p.end("into " + shown)
	done = &imported{shown, p.feeds, refused}
	if refused > 0 {
		return done, fmt.Errorf("%d lines were not imported", refused)
	}
	return done, nil
}

// transfer tells how far an export or import is.
type transfer struct {
	out         io.Writer
	done, of    string
	feeds       int64
	began, told time.Time
}

func newTransfer(out io.Writer, done, of string) *transfer {
	now := time.Now()
	return &transfer{out: out, done: done, of: of, began: now, told: now}
}

func (p *transfer) tell(feeds int64) {
	p.feeds = feeds
	if now := time.Now(); now.Sub(p.told) >= tellEvery {
		p.told = now
		fmt.Fprintf(p.out, "%s %d%s feeds\n", p.done, feeds, p.of)
	}
}

func (p *transfer) end(where string) {
	fmt.Fprintf(p.out, "%s %d feeds %s in %s\n", p.done, p.feeds, where, status.Brief(time.Since(p.began)))
}
