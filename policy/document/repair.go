// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"

	"github.com/feedpollard/pollard/internal/markup"
)

// closedBy reports whether text ends with the end tag of an element, or with
// its start tag if it is empty.
func closedBy(text []byte, name string) bool {
	tag := text[bytes.LastIndexByte(text, '<')+1:]
	if bytes.HasSuffix(tag, []byte("/>")) {
		return true
	}
	tag = bytes.TrimRight(bytes.TrimSuffix(tag, []byte(">")), markup.Space)
	return bytes.HasPrefix(tag, []byte("/")) && bytes.HasSuffix(tag, []byte(name))
}

// withoutMisc removes the white space, comments and processing instructions that may
// follow a root element (XML 1.0 section 2.8). The rest does not belong there.
func withoutMisc(rest []byte) []byte {
	for {
		rest = bytes.TrimLeft(rest, markup.Space)
		end := -1
		switch {
		case bytes.HasPrefix(rest, []byte("<!--")):
			end = bytes.Index(rest, []byte("-->"))
		case bytes.HasPrefix(rest, []byte("<?")) && markup.Begin(rest) == 0:
			end = bytes.Index(rest, []byte("?>"))
		}
		if end < 0 {
			return rest
		}
		rest = rest[end+bytes.IndexByte(rest[end:], '>')+1:]
	}
}
