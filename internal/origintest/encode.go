// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package origintest

import (
	"bytes"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// Encode encodes a text in content codings, the first one first. Origins send zlib and flate as
// deflate.
func Encode(text string, codings ...string) string {
	for _, coding := range codings {
		var b bytes.Buffer
		var w io.WriteCloser
		switch coding {
		case "gzip":
			w = gzip.NewWriter(&b)
		case "br":
			w = brotli.NewWriterLevel(&b, 1)
		case "zstd":
			w, _ = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20)) // the options are valid
		case "zlib":
			w = zlib.NewWriter(&b)
		case "flate":
			w, _ = flate.NewWriter(&b, 6) // the level is valid
		default:
			panic(coding)
		}
		_, _ = io.WriteString(w, text) // to memory
		_ = w.Close()
		text = b.String()
	}
	return text
}
