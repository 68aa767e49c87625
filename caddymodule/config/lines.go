// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// Lines are the lines that a Caddyfile block may have, by first word.
type Lines map[string]Line

// Line is a line of a block. Read is called with the dispenser at the first word, and consumes
// the line.
type Line struct {
	Read    func(d *caddyfile.Dispenser) error
	Repeat  bool   // may occur more than once
	Removed string // what to do instead of a line that older versions had; empty: the line exists
	Unused  string // why a line without arguments, which the version before had, does nothing
	Belongs string // where to write the line, if it does not belong in this block
}

// names returns the lines that may be written, in order.
func (ls Lines) names() (names []string) {
	for name, l := range ls {
		if l.Removed == "" && l.Unused == "" && l.Belongs == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// With returns these lines and others.
func (ls Lines) With(others Lines) Lines {
	all := maps.Clone(ls)
	maps.Copy(all, others)
	return all
}

// Belong returns lines of the same names that do not belong in a block, and where to write
// them instead.
func (ls Lines) Belong(where string) Lines {
	return BelongTo(where, slices.Collect(maps.Keys(ls))...)
}

// BelongTo returns lines that do not belong in a block, and where to write them instead.
func BelongTo(where string, names ...string) Lines {
	lines := make(Lines, len(names))
	for _, name := range names {
		lines[name] = Line{Belongs: where}
	}
	return lines
}

// OfSite are lines that belong in the block of the site, and that people write into that of a directive.
func OfSite(directive string) Lines {
	return BelongTo("in the block of the site, outside of "+directive, "basic_auth", "bind", "encode", "handle_errors", "header", "log", "redir", "tls")
}

// ReadBlock parses the block that may follow on the current line. Errors say what was expected,
// with file and line.
func (ls Lines) ReadBlock(d *caddyfile.Dispenser) error {
	seen := make(map[string]bool)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		l, ok := ls[name]
		if !ok {
			names := ls.names()
			if similar := Nearest(name, names); similar != "" {
				return d.Errf("unrecognized subdirective %q: did you mean %s? Expected one of %s", name, similar, strings.Join(names, ", "))
			}
			return d.Errf("unrecognized subdirective %q: expected one of %s", name, strings.Join(names, ", "))
		}
		if l.Removed != "" {
			return d.Errf("%s was removed: %s", name, l.Removed)
		}
		if l.Belongs != "" {
			return d.Errf("%s does not belong here: write it %s", name, l.Belongs)
		}
		if seen[name] && !l.Repeat {
			return d.Errf("%s is given twice in one block", name)
		}
		seen[name] = true
		if l.Unused != "" {
			Warn(d, "%s does nothing any more: %s; delete the line", name, l.Unused)
			l.Read = FlagLine(new(bool))
		}
		if err := l.Read(d); err != nil {
			return err
		}
	}
	return nil
}

// Warn logs a warning about the current line: it is accepted, and does not do what it seems to.
func Warn(d *caddyfile.Dispenser, format string, args ...any) {
	caddy.Log().Named("pollard").Warn(fmt.Sprintf(format, args...) + fmt.Sprintf(", at %s:%d", d.File(), d.Line()))
}

// OneArg returns the only argument of the current line. Expected describes it in errors.
func OneArg(d *caddyfile.Dispenser, expected string) (string, error) {
	args, err := SomeArgs(d, 1, 1, expected)
	if err != nil {
		return "", err
	}
	return args[0], nil
}

// SomeArgs returns the arguments of the current line, of which there are at least least and, if
// most is not negative, at most most. Expected describes them in errors.
func SomeArgs(d *caddyfile.Dispenser, least, most int, expected string) ([]string, error) {
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
	for _, m := range envPlaceholder.FindAllStringSubmatch(strings.Join(args, " "), -1) {
		if os.Getenv(m[1]) == "" {
			Warn(d, "%s is empty here: set it in the environment of the service, and restart the service", m[0])
		}
	}
	return args, nil
}

var envPlaceholder = regexp.MustCompile(`\{env\.([^{}:]+)\}`)

// FlagLine reads a line without arguments, which sets a flag.
func FlagLine(to *bool) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		*to = true
		name := d.Val()
		if args := d.RemainingArgs(); len(args) == 1 && args[0] == "off" {
			return d.Errf("%s: leave the line out to switch it off", name)
		} else if len(args) > 0 {
			return d.Errf("%s: unexpected %q: it takes no argument", name, args[0])
		}
		return nil
	}
}

// ParseOff parses the word off for a flag whose default is true.
func ParseOff(text string) (*bool, error) {
	if text != "off" {
		return nil, fmt.Errorf("%q is not known: expected off", text)
	}
	return new(false), nil
}

// TextLine reads a line with one argument.
func TextLine(to *string, expected string) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) (err error) {
		*to, err = OneArg(d, expected)
		return err
	}
}

// DurationLine reads a line with a positive duration.
func DurationLine(to *caddy.Duration) func(*caddyfile.Dispenser) error {
	return ParsedLine(to, Replaced(ParseDuration), "a duration such as 30s, 15m, 2h or 1d")
}

// SizeLine reads a line with a number of bytes.
func SizeLine(to *int64) func(*caddyfile.Dispenser) error {
	return ParsedLine(to, Replaced(ParseSize), "a size such as 64MiB")
}

// ParsedLine reads a line with one argument, which parse parses.
func ParsedLine[T any](to *T, parse func(string) (T, error), expected string) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		text, err := OneArg(d, expected)
		if err != nil {
			return err
		}
		if *to, err = parse(text); err != nil {
			return d.Errf("%s: %v", name, err)
		}
		return nil
	}
}

// Pointer returns a function that parses a value of which nil is the default.
func Pointer[T any](parse func(string) (T, error)) func(string) (*T, error) {
	return func(text string) (*T, error) {
		value, err := parse(text)
		return &value, err
	}
}

// Replaced returns a function that replaces placeholders, such as {env.INTERVAL}, before parse. It
// is for values that must be known when the Caddyfile is parsed.
func Replaced[T any](parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) {
		if HasPlaceholder(text) {
			replaced, err := Replace(caddy.NewReplacer(), text)
			if err != nil {
				var none T
				return none, err
			}
			text = strings.TrimSpace(replaced) // a file ends with a line break
		}
		return parse(text)
	}
}

// HasPlaceholder reports whether a text may contain a placeholder.
func HasPlaceholder(text string) bool { return strings.Contains(text, "{") }

// Replace returns a text with its placeholders replaced. One that is not known or empty is an error.
func Replace(repl *caddy.Replacer, text string) (string, error) {
	replaced, err := repl.ReplaceOrErr(text, true, true)
	if err != nil && strings.Contains(text, "{env.") {
		return "", fmt.Errorf("%w: set it in the environment of the service, and restart the service: a reload does not read its environment again", err)
	}
	return replaced, err
}

// Words returns arguments with their placeholders replaced. A placeholder may stand for several
// words.
func Words(repl *caddy.Replacer, args []string) ([]string, error) {
	var words []string
	for _, arg := range args {
		text, err := Replace(repl, arg)
		if err != nil {
			return nil, err
		}
		if text == arg {
			words = append(words, arg)
		} else {
			words = append(words, strings.Fields(text)...)
		}
	}
	return words, nil
}

// Nearest returns the name that is most similar to a mistyped one, or "" if none is
// similar enough.
func Nearest(wrong string, names []string) (match string) {
	best := max(1, len(wrong)/3) + 1
	for _, name := range names {
		if d := distance(wrong, name); d < best {
			match, best = name, d
		}
	}
	return match
}

// distance returns how many letters must be added, removed, changed or swapped with
// their neighbour to turn one word into another (the optimal string alignment distance).
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		older := before
		before, row = row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(before[j+1]+1, row[j]+1, before[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
