// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package command is the command feeds of the command line. Some of its commands ask
// the running instance through the admin API; the others need none.
package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// The exit codes of the commands below `feeds`.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "feeds",
		Usage: "<command>",
		Short: "Lists, explains and checks feeds",
		Long: `Lists, explains and checks feeds. Each command has its own help.

list, show, refresh, forget, readers and health send requests to the running instance,
through Caddy's admin endpoint. explain does so too if an instance runs.

Exit codes: 0 done, 1 failed, 2 wrong usage.`,
		CobraFunc: func(feeds *cobra.Command) {
			feeds.Args = cobra.ArbitraryArgs
			feeds.RunE = func(cmd *cobra.Command, args []string) error {
				if len(args) == 0 {
					return cmd.Help()
				}
				if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
					return usageError(cmd, fmt.Errorf("unknown command %q: did you mean `pollard feeds %s`?", args[0], near[0]))
				}
				return usageError(cmd, fmt.Errorf("unknown command %q: see `pollard feeds --help`", args[0]))
			}
			feeds.SetFlagErrorFunc(usageError)
			feeds.SetHelpTemplate(feeds.HelpTemplate()) // not Caddy's, which points to its own documentation
			feeds.DisableFlagsInUseLine, feeds.SuggestionsMinimumDistance = true, 2
			feeds.AddCommand(
				listCommand(), showCommand(), refreshCommand(), forgetCommand(), readersCommand(), healthCommand(),
				explainCommand(), checkCommand(), opmlCommand(), replayCommand(),
				manualCommand(),
				exportCommand(), importCommand(),
			)
		},
	})
}

// run makes a command's function of one that returns an exit code. An error
// without a code of its own means that the command failed.
func run(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := f(cmd, args)
		code := exitDone
		if err != nil {
			code = exitFailed
		}
		if _, wrong := errors.AsType[*usage](err); wrong {
			code = exitUsage
		}
		return exit(cmd, code, err)
	}
}

type usage struct{ error }

func wrongUsage(format string, args ...any) error {
	return &usage{fmt.Errorf(format, args...)}
}

// exactArgs is [cobra.ExactArgs] with the right exit code.
func exactArgs(n int, expected string) cobra.PositionalArgs { return rangeArgs(n, n, expected) }

// rangeArgs is [cobra.RangeArgs] with the right exit code.
func rangeArgs(least, most int, expected string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if slices.Contains(args, "") {
			return usageError(cmd, fmt.Errorf("expected %s, got an empty argument", expected))
		}
		if least <= len(args) && len(args) <= most {
			return nil
		}
		return usageError(cmd, fmt.Errorf("expected %s, got %d arguments", expected, len(args)))
	}
}

func usageError(cmd *cobra.Command, err error) error { return exit(cmd, exitUsage, err) }

// exit reports an error in one line on the standard error, and returns the error
// that makes Caddy's main function end with the code. Only Caddy's own wrapper can
// make one for codes above 1.
func exit(cmd *cobra.Command, code int, err error) error {
	if err == nil {
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "pollard: %s\n", plain(err.Error()))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if code == exitFailed {
		return err
	}
	return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return code, nil })(cmd, nil)
}

// printAs prints v as JSON, or by text for people. what names it in an error.
func printAs(out io.Writer, asJSON bool, what string, v any, text func(io.Writer) error) error {
	err := error(nil)
	if asJSON {
		err = writeJSON(out, v)
	} else {
		err = text(out)
	}
	if err != nil {
		return fmt.Errorf("writing the %s: %w", what, err)
	}
	return nil
}

func problem(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

func writeJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "\t")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
