// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// isTerminal reports whether a person watches what is written.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// lineWidth is how many columns a line may have; 0: any number, as no terminal
// shows it.
func lineWidth(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if !isTerminal(w) {
		return 0
	}
	width, _, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil {
		return 80
	}
	return width
}

// column is a column of a table.
type column struct {
	title string
	width int  // of cells; those of the last column take what is left of the line
	right bool // aligned, as numbers are
}

// table prints rows as they come. Columns have fixed widths, so that a million rows
// need no memory.
type table struct {
	out     *bufio.Writer
	columns []column
	last    int // width of the last column; 0: any
}

// minLast is the least width of the last column, however narrow the terminal is.
const minLast = 20

func newTable(out io.Writer, columns ...column) *table {
	t := &table{out: bufio.NewWriter(out), columns: columns}
	if width := lineWidth(out); width > 0 {
		for _, c := range columns[:len(columns)-1] {
			width -= c.width + 2
		}
		t.last = max(width, minLast)
	}
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	t.row(titles...)
	return t
}

// row prints one row. A write that fails is reported by flush.
func (t *table) row(cells ...string) {
	last := len(t.columns) - 1
	for i, c := range t.columns[:last] {
		padding := strings.Repeat(" ", max(c.width-utf8.RuneCountInString(cells[i]), 0))
		if c.right {
			t.out.WriteString(padding + cells[i] + "  ")
		} else {
			t.out.WriteString(cells[i] + padding + "  ")
		}
	}
	t.out.WriteString(cut(cells[last], t.last) + "\n")
}

func (t *table) flush() error { return t.out.Flush() }

// cut shortens a text to a width by leaving out its middle: the ends of a URL tell
// more than that. 0 leaves it as it is.
func cut(s string, width int) string {
	runes := []rune(s)
	if width <= 0 || len(runes) <= width {
		return s
	}
	head := (width - 1) * 2 / 3
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
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
