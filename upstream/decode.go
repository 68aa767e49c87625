// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

var (
	errOversize = errors.New("larger than max_body")
	errCoding   = errors.New("content coding")
)

const (
	// maxCodings is how many codings may lie over one another. One is usual.
	maxCodings = 3
	// maxWindow bounds the memory of the zstd decoder, in bytes: RFC 9659 allows no
	// larger window in the content coding.
	maxWindow = 8 << 20
)

// codings reads Content-Encoding: the codings in the order in which they were
// applied (RFC 9110 section 8.4), without "identity". Those that are not known are
// often labels that mean nothing, such as "utf-8", or "aws-chunked" of an upload.
func codings(header http.Header) ([]string, error) {
	var list []string
	for coding := range strings.SplitSeq(strings.Join(header.Values("Content-Encoding"), ","), ",") {
		coding = strings.ToLower(strings.Trim(coding, " \t"))
		switch coding {
		case "", "identity":
		case "x-gzip": // RFC 9110 section 8.4.1.3
			list = append(list, "gzip")
		default:
			list = append(list, coding)
		}
	}
	if len(list) > maxCodings {
		return nil, fmt.Errorf("%w: %d of them over one another", errCoding, len(list))
	}
	return list, nil
}

// decode undoes codings while the body is read. No layer yields more than limit
// bytes, so that a small body can neither fill the memory nor keep
// the processor busy.
func decode(body io.Reader, codings []string, limit int64) (io.Reader, error) {
	r := bufio.NewReader(body)
	for _, coding := range slices.Backward(codings) {
		layer, err := open(r, coding)
		if err != nil {
			return nil, err
		}
		r = bufio.NewReader(capped(layer, limit))
	}
	// A body that was compressed before the server compressed it, or is a .gz file,
	// says so by itself: no document begins with these bytes, as neither XML (section
	// 2.2) nor JSON (RFC 8259 section 2) allows the first of them.
	for range maxCodings {
		if !begins(r, gzipMagic) {
			break
		}
		layer, err := newMembers(r)
		if err != nil {
			return nil, err
		}
		r = bufio.NewReader(capped(layer, limit))
	}
	return capped(r, limit), nil
}

var (
	gzipMagic = []byte{0x1f, 0x8b, 0x08}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

func begins(r *bufio.Reader, magic []byte) bool {
	head, _ := r.Peek(len(magic))
	return bytes.Equal(head, magic)
}

// open undoes one coding. A body that is labelled gzip or zstd, or something that is not
// known, and plainly is text, is let through: nothing is misread, as both have magic numbers
// that text cannot begin with. Brotli and deflate have none: there the label decides.
func open(r *bufio.Reader, coding string) (io.Reader, error) {
	if head, err := r.Peek(1); len(head) == 0 {
		if err != io.EOF {
			return nil, err
		}
		return r, nil // nothing, in any coding
	}
	switch coding {
	case "gzip":
		if !begins(r, gzipMagic) && plainText(r) {
			return r, nil
		}
		return newMembers(r)
	case "zstd":
		if !begins(r, zstdMagic) && plainText(r) {
			return r, nil
		}
		// Without concurrency it has no goroutines, so that it need not be closed.
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	case "br":
		return brotli.NewReader(r), nil
	}
	if coding != "deflate" {
		if plainText(r) || begins(r, gzipMagic) {
			return r, nil
		}
		return nil, fmt.Errorf("%w %.40q is not known", errCoding, coding)
	}
	// RFC 9110 section 8.4.1.2: deflate is the zlib format; some servers send it bare.
	if head, _ := r.Peek(2); len(head) == 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(r)
	}
	return flate.NewReader(r), nil
}

// plainText reports whether a body begins as a document does: with "<" or "{"
// after a byte order mark and white space.
func plainText(r *bufio.Reader) bool {
	head, _ := r.Peek(64)
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} {
		head = bytes.TrimPrefix(head, []byte(mark))
	}
	head = bytes.TrimLeft(head, " \t\r\n\x00") // NUL: the other half of a UTF-16 character
	return len(head) > 0 && (head[0] == '<' || head[0] == '{')
}

// members reads the members of a gzip file (RFC 1952 section 2.2). Bytes after the
// last one are padding: its checksum has shown that the document is complete.
type members struct {
	r *bufio.Reader
	z *gzip.Reader
}

func newMembers(r *bufio.Reader) (*members, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &members{r, z}, nil
}

func (m *members) Read(b []byte) (int, error) {
	for {
		n, err := m.z.Read(b)
		if n > 0 || err != io.EOF {
			if err == io.EOF {
				err = nil
			}
			return n, err
		}
		if head, err := m.r.Peek(len(gzipMagic)); !bytes.Equal(head, gzipMagic) {
			return 0, cmp.Or(err, io.EOF)
		}
		if err := m.z.Reset(m.r); err != nil {
			return 0, err
		}
		m.z.Multistream(false)
	}
}

// capped is a reader that fails with a [http.MaxBytesError] after limit bytes.
func capped(r io.Reader, limit int64) io.Reader {
	return http.MaxBytesReader(nil, io.NopCloser(r), limit)
}
