// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// lines are the lines that a Caddyfile block may have, by their first word.
type lines map[string]line

// line is one of them. Its reader stands on the first word and takes the rest.
type line struct {
	read   func(d *caddyfile.Dispenser) error
	repeat bool // may occur more than once
}

// with returns the lines with others added.
func (ls lines) with(others lines) lines {
	all := maps.Clone(ls)
	maps.Copy(all, others)
	return all
}

// readBlock reads the block that may follow on the current line. What is wrong
// is told with what was expected, and with file and line.
func (ls lines) readBlock(d *caddyfile.Dispenser) error {
	seen := make(map[string]bool)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		l, ok := ls[name]
		if !ok {
			return d.Errf("unrecognized subdirective %q: expected one of %s",
				name, strings.Join(slices.Sorted(maps.Keys(ls)), ", "))
		}
		if seen[name] && !l.repeat {
			return d.Errf("%s is given twice in one block", name)
		}
		seen[name] = true
		if err := l.read(d); err != nil {
			return err
		}
	}
	return nil
}

// oneArg returns the one argument of the current line, which is described by expected.
func oneArg(d *caddyfile.Dispenser, expected string) (string, error) {
	args, err := someArgs(d, 1, 1, expected)
	if err != nil {
		return "", err
	}
	return args[0], nil
}

// someArgs returns the arguments of the current line: at least least of them and
// at most most, where that is not negative.
func someArgs(d *caddyfile.Dispenser, least, most int, expected string) ([]string, error) {
	name := d.Val()
	args := d.RemainingArgs()
	switch {
	case len(args) < least:
		return nil, d.Errf("%s: expected %s", name, expected)
	case most >= 0 && len(args) > most:
		if most == 0 {
			return nil, d.Errf("%s: unexpected %q: it takes no argument", name, args[0])
		}
		return nil, d.Errf("%s: unexpected %q: expected %s and nothing more", name, args[most], expected)
	}
	return args, nil
}

// flagLine reads a line that is a word alone.
func flagLine(to *bool) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		*to = true
		_, err := someArgs(d, 0, 0, "")
		return err
	}
}

// offLine reads a line that switches something off.
func offLine(to *bool) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		word, err := oneArg(d, "off")
		if err != nil {
			return err
		}
		if word != "off" {
			return d.Errf("%s: %q is not known: expected off", name, word)
		}
		*to = true
		return nil
	}
}

// textLine reads a line with one argument, as it is.
func textLine(to *string, expected string) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) (err error) {
		*to, err = oneArg(d, expected)
		return err
	}
}

// durationLine reads a line with a positive duration.
func durationLine(to *caddy.Duration) func(*caddyfile.Dispenser) error {
	return parsedLine(to, parseDuration, "a duration such as 30s, 15m, 2h or 1d")
}

// sizeLine reads a line with a number of bytes.
func sizeLine(to *int64) func(*caddyfile.Dispenser) error {
	return parsedLine(to, parseSize, "a size such as 64MiB")
}

// parsedLine reads a line with one argument of some form.
func parsedLine[T any](to *T, parse func(string) (T, error), expected string) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		text, err := oneArg(d, expected)
		if err != nil {
			return err
		}
		if *to, err = parse(text); err != nil {
			return d.Errf("%s: %v", name, err)
		}
		return nil
	}
}
