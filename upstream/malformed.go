// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// malformed are the mistakes in answers that net/http refuses, by a part of its errors, which
// have no types. Some clients, such as curl, accept most of them.
var malformed = []struct{ part, mistake string }{
	{"malformed MIME header: missing colon", "a line of its header has no colon"},
	{"malformed MIME header initial line", "the first line of its header begins with a space"},
	{"server response headers exceeded", fmt.Sprintf("its header is larger than %d KiB", maxHeaderBytes>>10)},
	{"malformed HTTP ", "it does not begin with a line such as HTTP/1.1 200 OK"},
	{"multiple Content-Length", "it has several Content-Lengths, which differ"},
	{"Content-Length", "its Content-Length is not one number"},
	{"transfer encoding", "its Transfer-Encoding is not chunked alone"},
	{"chunk", "its chunks are broken"},
}

// mistake says what is wrong with an answer that net/http refuses, after a colon. It is empty if the error is
// another one. Of what the origin sent, it has the name of a field.
func mistake(err error) string {
	text := err.Error()
	if _, quoted, ok := strings.Cut(text, "malformed MIME header line: "); ok {
		line, err := strconv.Unquote(quoted)
		if err != nil {
			return ""
		}
		name, _, _ := strings.Cut(line, ":")
		shown := feedurl.OneLine(name[:min(len(name), maxFieldName)])
		if httpguts.ValidHeaderFieldName(name) { // RFC 9110 section 5.5
			return ": its field " + shown + " has a control character in it"
		}
		return ": a field has a name that is not allowed: " + strconv.Quote(shown)
	}
	for _, m := range malformed {
		if strings.Contains(text, m.part) {
			return ": " + m.mistake
		}
	}
	return ""
}

// maxFieldName is how much of the name of a malformed field is shown, in bytes.
const maxFieldName = 40
