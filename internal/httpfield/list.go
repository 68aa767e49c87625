// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpfield

import "strings"

// SplitList splits a list at the commas outside of quoted strings. It removes the space
// around members, and empty members (RFC 9110 section 5.6.1.2).
func SplitList(text string) []string {
	var members []string
	for text != "" {
		var member string
		if member, text = cut(text, ','); member != "" {
			members = append(members, member)
		}
	}
	return members
}

// cut cuts off the first member of a list with a separator. A quoted string without an end
// extends to the end of the list.
func cut(list string, separator byte) (member, rest string) {
	end, quoted := 0, false
	for ; end < len(list); end++ {
		c := list[end]
		switch {
		case quoted && c == '\\':
			end++
			continue
		case c == '"':
			quoted = !quoted
		}
		if c == separator && !quoted {
			return strings.Trim(list[:end], " \t"), list[end+1:]
		}
	}
	return strings.Trim(list, " \t"), ""
}
