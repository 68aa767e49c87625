// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// cursor walks through one JSON text (RFC 8259) without building anything of it:
// a log of gigabytes is read for a dozen short fields of each line, for which
// encoding/json takes seven times as long. What is passed over is not checked beyond
// its brackets and quotation marks.
type cursor struct {
	b       []byte
	at      int
	broken  bool   // the text is no JSON: what was read is worth nothing
	scratch []byte // texts with escapes, decoded; good until reset
}

// maxDepth bounds brackets within brackets. Logs have five.
const maxDepth = 64

func (c *cursor) reset(b []byte) {
	c.b, c.at, c.broken, c.scratch = b, 0, false, c.scratch[:0]
}

// peek is the next byte that means something; 0 at the end.
func (c *cursor) peek() byte {
	for c.at < len(c.b) {
		switch b := c.b[c.at]; b {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return b
		}
	}
	return 0
}

// open steps into an object or an array; what is neither is passed over.
func (c *cursor) open(bracket byte) bool {
	if c.peek() != bracket {
		c.skip()
		return false
	}
	c.at++
	return true
}

// more reports whether another member or element follows in what began with
// open, and steps out of it where none does. first says that none was read yet.
func (c *cursor) more(first bool, bracket byte) bool {
	switch b := c.peek(); {
	case c.broken:
		return false
	case b == bracket:
		c.at++
		return false
	case first:
		return true
	case b == ',':
		c.at++
		return true
	}
	c.broken = true
	return false
}

// key reads a member's name.
func (c *cursor) key() []byte {
	name := c.text()
	if c.peek() != ':' {
		c.broken = true
		return nil
	}
	c.at++
	return name
}

// text reads a string; nil, and broken, where there is none.
func (c *cursor) text() []byte {
	if c.peek() != '"' {
		c.broken = true
		return nil
	}
	from := c.at + 1
	end, escaped := c.endOfText(from)
	if end < 0 {
		c.broken = true
		return nil
	}
	c.at = end + 1
	if escaped {
		return c.unescape(c.b[from:end])
	}
	return c.b[from:end]
}

// endOfText is where the string that begins at from ends; -1: nowhere.
func (c *cursor) endOfText(from int) (end int, escaped bool) {
	for {
		i := bytes.IndexByte(c.b[from:], '"')
		if i < 0 {
			return -1, false
		}
		j := bytes.IndexByte(c.b[from:from+i], '\\')
		if j < 0 {
			return from + i, escaped
		}
		escaped = true
		if from += j + 2; from > len(c.b) {
			return -1, false
		}
	}
}

// unescape decodes a string's escapes into the scratch memory.
func (c *cursor) unescape(b []byte) []byte {
	start := len(c.scratch)
	for len(b) > 0 {
		if b[0] != '\\' {
			n := bytes.IndexByte(b, '\\')
			if n < 0 {
				n = len(b)
			}
			c.scratch = append(c.scratch, b[:n]...)
			b = b[n:]
			continue
		}
		if len(b) < 2 {
			c.broken = true
			break
		}
		kind := b[1]
		b = b[2:]
		switch kind {
		case '"', '\\', '/':
			c.scratch = append(c.scratch, kind)
		case 'b', 'f', 'n', 'r', 't':
			c.scratch = append(c.scratch, ' ') // no control character means anything here
		case 'u':
			var r rune
			r, b = c.codePoint(b)
			c.scratch = utf8.AppendRune(c.scratch, r)
		default:
			c.broken = true
		}
	}
	return c.scratch[start:]
}

// codePoint reads what follows \u, and the second half of a surrogate pair.
func (c *cursor) codePoint(b []byte) (rune, []byte) {
	r, ok := hex4(b)
	if !ok {
		c.broken = true
		return utf8.RuneError, nil
	}
	b = b[4:]
	if utf16.IsSurrogate(r) && len(b) >= 6 && b[0] == '\\' && b[1] == 'u' {
		if second, ok := hex4(b[2:]); ok {
			if pair := utf16.DecodeRune(r, second); pair != utf8.RuneError {
				return pair, b[6:]
			}
		}
	}
	return r, b
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, d := range b[:4] {
		switch {
		case '0' <= d && d <= '9':
			r = r<<4 | rune(d-'0')
		case 'a' <= d|0x20 && d|0x20 <= 'f':
			r = r<<4 | rune(d|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// number reads a number.
func (c *cursor) number() float64 {
	b := c.scalar()
	n, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		c.broken = true
	}
	return n
}

// integer reads a number without fraction.
func (c *cursor) integer() int64 {
	b := c.scalar()
	n, ok := number(b)
	if !ok {
		c.broken = true
	}
	return n
}

// scalar cuts off what is neither string, object nor array.
func (c *cursor) scalar() []byte {
	c.peek()
	from := c.at
	for c.at < len(c.b) {
		switch c.b[c.at] {
		case ',', '}', ']', ' ', '\t', '\n', '\r', '"', '{', '[', ':':
			return c.b[from:c.at]
		}
		c.at++
	}
	return c.b[from:]
}

// skip passes over a value.
func (c *cursor) skip() {
	c.peek()
	depth, from := 0, c.at
	for ; c.at < len(c.b); c.at++ {
		switch c.b[c.at] {
		case '"':
			if c.at, _ = c.endOfText(c.at + 1); c.at < 0 {
				c.at, c.broken = len(c.b), true
				return
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				c.broken = true
				return
			}
			continue
		case '}', ']':
			if depth--; depth < 0 { // the end of what it is in
				c.broken = c.at == from
				return
			}
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				c.broken = c.at == from
				return
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			c.at++
			return
		}
	}
	c.broken = c.broken || depth > 0 || c.at == from
}
