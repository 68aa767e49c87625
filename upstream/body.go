// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// wire is the body as it is received. It keeps the first error, which says more than
// the error of a decoder.
type wire struct {
	r     io.Reader
	count int64
	err   error // neither nil nor io.EOF: the body broke off
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	w.count += int64(n)
	if err != nil && err != io.EOF && w.err == nil {
		w.err = err
	}
	return n, err
}

// wireLimit is the longest encoded form of a body: no sane coding makes a document longer.
func wireLimit(maxBody int64) int64 { return maxBody + maxBody/16 + 4<<10 }

// readBody reads and decodes the whole body of a 200. An incomplete one is a failure: what has arrived of it
// is returned as well, as the document may end before it breaks off.
func (c *Client) readBody(resp *http.Response, maxBody int64, room func(size int64) error) (body []byte, count int64, failure policy.Failure, err error) {
	list, err := codings(resp.Header)
	if err != nil {
		return nil, 0, policy.FailureProtocol, err
	}
	limit := wireLimit(maxBody)
	if resp.ContentLength > limit {
		return nil, 0, policy.FailureOversize, fmt.Errorf("a body of %d bytes is %w", resp.ContentLength, errOversize)
	}
	w := &wire{r: resp.Body}
	arriving := capped(w, limit)
	size := maxBody
	if len(list) == 0 && resp.ContentLength > 0 {
		size = resp.ContentLength
	}
	body, err = c.decodeAll(arriving, list, maxBody, size, room)
	if err == nil {
		// Bytes that a decoder did not need still have to arrive: only its end shows that the
		// message is complete (RFC 9112 section 8).
		_, err = io.Copy(io.Discard, arriving)
		err = cmp.Or(err, w.err)
	}
	if err == nil && resp.ContentLength > w.count {
		err = io.ErrUnexpectedEOF // a transport that does not watch the length
	}
	switch {
	case err == nil && len(body) == 0:
		return nil, w.count, policy.FailureNotFeed, errors.New("status 200 without a body")
	case err == nil:
		return body, w.count, policy.FailureNone, nil
	case errors.Is(err, errNoRoom):
		return nil, w.count, policy.FailureTimeout, err
	case has[*http.MaxBytesError](err):
		return nil, w.count, policy.FailureOversize, fmt.Errorf("the body is %w", errOversize)
	case w.err != nil:
		return body, w.count, policy.FailureTruncated, plain(fmt.Sprintf("the body broke off after %d bytes%s", w.count, cmp.Or(reason(w.err), mistake(w.err))), w.err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return body, w.count, policy.FailureTruncated, fmt.Errorf("the body broke off after %d bytes", w.count)
	case errors.Is(err, errCoding):
		return nil, w.count, policy.FailureProtocol, err
	}
	return nil, w.count, policy.FailureProtocol, fmt.Errorf("%w is broken: %w", errCoding, err)
}

// How much of the page of a failing status is read, as sent and decoded in bytes, and how long. It says
// what has failed.
const (
	maxPageWire = 16 << 10
	maxPage     = 64 << 10
	maxPageTime = 2 * time.Second
)

// readPage returns the beginning of the body of a status that is a failure, as far as it came and can be
// decoded.
func (p *poll) readPage(resp *http.Response) []byte {
	if p.pause() {
		p.started = p.client.now()
		p.timer.Reset(min(p.left, maxPageTime))
	}
	wire, _ := io.ReadAll(io.LimitReader(resp.Body, maxPageWire))
	p.answer.Wire += int64(len(wire))
	list, err := codings(resp.Header)
	if err != nil || len(wire) == 0 {
		return nil
	}
	p.client.decoding.Lock()
	defer p.client.decoding.Unlock()
	d, err := decode(bytes.NewReader(wire), list, maxPage)
	if err != nil {
		return nil
	}
	page, _ := io.ReadAll(d)
	return page
}

// errNoRoom: the gateway has no memory for the body, which is larger than usual feeds.
var errNoRoom = errors.New("the gateway had no room for so large a body in time")

// maxGrown is up to how many bytes a buffer grows at once.
const maxGrown = 16 << 20

// decodeAll reads and decodes a whole body of a size that is likely to be the largest that it can
// have. An origin can make a decoder take 16 MiB with ten bytes, and then send no more.
// So a small body is decoded once it has arrived, and a large one only with room for it. While a poll
// waits for either, it holds what it has received.
func (c *Client) decodeAll(r io.Reader, codings []string, limit, size int64, room func(size int64) error) ([]byte, error) {
	first, broken := io.ReadAll(io.LimitReader(r, policy.SmallBody))
	if len(first) < policy.SmallBody {
		small := min(int64(policy.SmallBody), limit)
		body, err := c.decodeSmall(first, codings, small)
		if small == limit || !has[*http.MaxBytesError](err) {
			return body, cmp.Or(broken, err)
		}
	}
	if err := room(size); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRoom, err)
	}
	d, err := decode(io.MultiReader(bytes.NewReader(first), r), codings, limit)
	if err != nil {
		return nil, err
	}
	// As much as was asked for, at once: a buffer that doubled would leave as much behind as it holds.
	whole := bytes.NewBuffer(make([]byte, 0, min(size, maxGrown)+bytes.MinRead))
	_, err = whole.ReadFrom(d)
	return whole.Bytes(), err
}

// decodeSmall decodes a body of at most limit bytes. There is one decoder at a time, and none of them has much
// to do.
func (c *Client) decodeSmall(body []byte, codings []string, limit int64) ([]byte, error) {
	c.decoding.Lock()
	defer c.decoding.Unlock()
	d, err := decode(bytes.NewReader(body), codings, limit)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(d)
}
