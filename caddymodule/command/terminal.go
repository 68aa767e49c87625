// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// lineWidth is how many columns a line may have; 0: any number, as no terminal
// shows it.
func lineWidth(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 80
	}
	return width
}

// table prints rows in columns of fixed widths. The last column takes what is left of the line.
type table struct {
	out    *bufio.Writer
	format string // of the columns before the last one
	last   int    // width of the last column; 0: any
}

// minLast is the least width of the last column, however narrow the terminal is.
const minLast = 20

func newTable(out io.Writer, format string, titles ...any) *table {
	t := &table{out: bufio.NewWriter(out), format: format}
	if width := lineWidth(out); width > 0 {
		t.last = max(width-len(fmt.Sprintf(format, titles[:len(titles)-1]...)), minLast) // titles are ASCII
	}
	t.row(titles...)
	return t
}

// row prints one row. A write that fails is reported by flush.
func (t *table) row(cells ...any) {
	last := len(cells) - 1
	padded := make([]any, last)
	for i := range padded {
		padded[i] = cell(fmt.Sprint(cells[i]))
	}
	fmt.Fprintf(t.out, t.format, padded...)
	fmt.Fprintln(t.out, cut(fmt.Sprint(cells[last]), t.last))
}

func (t *table) flush() error { return t.out.Flush() }

// cell is a text that is padded to the columns which it takes on a terminal, not to its characters.
type cell string

// Format implements [fmt.Formatter].
func (c cell) Format(f fmt.State, _ rune) {
	wanted, _ := f.Width()
	padding := strings.Repeat(" ", max(0, wanted-columns(string(c))))
	if f.Flag('-') {
		_, _ = io.WriteString(f, string(c)+padding)
	} else {
		_, _ = io.WriteString(f, padding+string(c))
	}
}

// columns returns how many columns a text takes.
func columns(s string) (n int) {
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	switch kind := width.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cut shortens a text to a number of columns by leaving out its middle: the ends of a URL tell
// more than that. 0 leaves it as it is.
func cut(s string, most int) string {
	if most <= 0 || columns(s) <= most {
		return s
	}
	head := (most - 1) * 2 / 3
	start, end, before, after := 0, len(s), 0, 0
	for _, r := range s {
		if before += columnsOf(r); before > head {
			break
		}
		start += utf8.RuneLen(r)
	}
	for end > start {
		r, n := utf8.DecodeLastRuneInString(s[:end])
		if after += columnsOf(r); after > most-1-head {
			break
		}
		end -= n
	}
	return s[:start] + "…" + s[end:]
}

// plain makes a stranger's text fit for a terminal: on one line, and without
// characters that would move the cursor, change colours or reverse the text.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return '\uFFFD'
	}, s)
}
