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

	"golang.org/x/term"
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
		t.last = max(width-len(fmt.Sprintf(format, titles[:len(titles)-1]...)), minLast)
	}
	t.row(titles...)
	return t
}

// row prints one row. A write that fails is reported by flush.
func (t *table) row(cells ...any) {
	last := len(cells) - 1
	fmt.Fprintf(t.out, t.format, cells[:last]...)
	fmt.Fprintln(t.out, cut(fmt.Sprint(cells[last]), t.last))
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
