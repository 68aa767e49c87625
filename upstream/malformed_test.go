// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/policy"
)

// Answers that are not quite HTTP: what can be read is, and the error of the others says what is wrong.
func TestMalformedAnswers(t *testing.T) {
	const status, length = "HTTP/1.1 200 OK\r\n", "Content-Length: 12\r\n"
	body := func(head string) string { return head + "\r\n<rss></rss>\n" }
	chunked := func(body string) string { return status + "Transfer-Encoding: chunked\r\n\r\n" + body }
	for _, tt := range []struct{ name, answer, problem string }{
		{"lines that end in LF alone", strings.ReplaceAll(body(status+length), "\r\n", "\n"), ""},
		{"no reason phrase", body("HTTP/1.1 200\r\n" + length), ""},
		{"a field of Latin-1", body(status + "X-A: caf\xe9\r\n" + length), ""},
		{"a space before the colon", body(status + "X-A : b\r\n" + length), ""},
		{"a space in the name", body(status + "X A: b\r\n" + length), ""},
		{"a folded field", body(status + "X-A: b\r\n c\r\n" + length), ""},
		{"one length twice", body(status + length + length), ""},
		{"a length beside chunks", status + length + "Transfer-Encoding: chunked\r\n\r\nc\r\n<rss></rss>\n\r\n0\r\n\r\n", ""},
		{"spaces in a chunk's length", chunked("c  \r\n<rss></rss>\n\r\n0\r\n\r\n"), ""},
		{"an interim answer before", "HTTP/1.1 100 Continue\r\n\r\n" + body(status+length), ""},
		{"HTTP/1.0 without a length", body("HTTP/1.0 200 OK\r\n"), ""},
		{"more than its length", body(status+length) + "and more", ""},
		{"203", body("HTTP/1.1 203 Non-Authoritative Information\r\n" + length), ""},

		{"a control character", body(status + "X-A: a\x01b\r\n" + length), "its field X-A has a control character in it"},
		{"a carriage return", body(status + "X-A: a\rb\r\n" + length), "its field X-A has a control character in it"},
		{"a name with brackets", body(status + "X(Foo): a\r\n" + length), `a field has a name that is not allowed: "X(Foo)"`},
		{"no name", body(status + ": a\r\n" + length), `a field has a name that is not allowed: ""`},
		{"a long name", body(status + strings.Repeat("(", 99) + ": a\r\n" + length), `not allowed: "` + strings.Repeat("(", 40) + `"`},
		{"no colon", body(status + "Warning\r\n" + length), "a line of its header has no colon"},
		{"a space before the first field", body(status + " X-A: b\r\n" + length), "the first line of its header begins with a space"},
		{"two lengths", body(status + length + "Content-Length: 13\r\n"), "it has several Content-Lengths, which differ"},
		{"a length with a sign", body(status + "Content-Length: +12\r\n"), "its Content-Length is not one number"},
		{"a list of lengths", body(status + "Content-Length: 12, 12\r\n"), "its Content-Length is not one number"},
		{"an empty length", body(status + "Content-Length:\r\n"), "its Content-Length is not one number"},
		{"another transfer coding", body(status + "Transfer-Encoding: identity\r\n" + length), "its Transfer-Encoding is not chunked alone"},
		{"chunked twice", body(status + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), "its Transfer-Encoding is not chunked alone"},
		{"no space before the status", body("HTTP/1.1 200OK\r\n" + length), "it does not begin with a line such as HTTP/1.1 200 OK"},
		{"another version", body("HTTP/2 200 OK\r\n" + length), "it does not begin with a line such as HTTP/1.1 200 OK"},
		{"an empty line first", body("\r\n" + status + length), "it does not begin with a line such as HTTP/1.1 200 OK"},
		{"chunks with LF alone", chunked("c\n<rss></rss>\n\n0\n\n"), "the body broke off after 0 bytes: its chunks are broken"},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var n memnet
			n.say("example.com:80", tt.answer)
			a := n.client(t, Settings{}).Poll(t.Context(), ask("http://example.com/"))
			if tt.problem == "" {
				if a.Failure != policy.FailureNone || a.Status != 200 || string(a.Body) != "<rss></rss>\n" {
					t.Errorf("failure %q (%v), status %d, body %q", a.Failure, a.Err, a.Status, a.Body)
				}
				return
			}
			if got := fmt.Sprint(a.Err); a.Failure == policy.FailureNone || !strings.HasSuffix(got, tt.problem) {
				t.Errorf("failure %q: %s, want %s", a.Failure, got, tt.problem)
			}
		})
	}
}
