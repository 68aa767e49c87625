// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpfield

import "net/http"

// Size returns the size in bytes of the status line and the header fields of a response in
// HTTP/1.1 (RFC 9112 section 2.1). HTTP/2 needs fewer.
func Size(status int, h http.Header) int64 {
	n := len("HTTP/1.1 200 \r\n\r\n") + len(http.StatusText(status))
	for name, values := range h {
		for _, value := range values {
			n += len(name) + len(value) + len(": \r\n")
		}
	}
	return int64(n)
}
