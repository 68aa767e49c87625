// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frames is a server of HTTP/2 that writes what it likes.
type frames struct {
	*http2.Framer
	net.Conn
	block   bytes.Buffer
	encoder *hpack.Encoder
}

// fields encodes header fields, given as names and values.
func (f *frames) fields(pairs ...string) []byte {
	f.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		_ = f.encoder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]}) // to memory
	}
	return bytes.Clone(f.block.Bytes())
}

// header sends an answer's header on the only stream.
func (f *frames) header(end bool, pairs ...string) error {
	return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.fields(pairs...), EndHeaders: true, EndStream: end})
}

// open sends the header of a good answer.
func (f *frames) open(more ...string) error {
	return f.header(false, append([]string{":status", "200", "content-type", "application/rss+xml"}, more...)...)
}

// flood repeats something until the other side has left.
func (f *frames) flood(piece func() error) {
	for i := 0; i < 2_000_000 && piece() == nil; i++ {
	}
}

// frameAttack is what a server does when it has the request's header.
type frameAttack struct {
	name string
	send func(f *frames)
	slow bool // only the timeout ends it
}

// frameAttacks are for what Pollard adds to the HTTP/2 client: timeouts, limits, and one
// request for each poll. The client has tests of its own for malformed frames.
var frameAttacks = []frameAttack{
	// The client may repeat these requests on its own (RFC 9113 section 8.7).
	{name: "REFUSED_STREAM", send: func(f *frames) { _ = f.WriteRSTStream(1, http2.ErrCodeRefusedStream) }},
	{name: "a reset: use HTTP/1.1", send: func(f *frames) { _ = f.WriteRSTStream(1, http2.ErrCodeHTTP11Required) }},
	{name: "GOAWAY before the stream", send: func(f *frames) { _ = f.WriteGoAway(0, http2.ErrCodeNo, nil) }},
	{name: "GOAWAY: calm down", send: func(f *frames) {
		_ = f.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings"))
	}},
	{name: "421", send: func(f *frames) { _ = f.header(true, ":status", "421") }},

	{name: "a flood of settings", slow: true, send: func(f *frames) { f.flood(func() error { return f.WriteSettings() }) }},
	{name: "a flood of pings", slow: true, send: func(f *frames) { f.flood(func() error { return f.WritePing(false, [8]byte{}) }) }},
	{name: "a flood of window updates", slow: true, send: func(f *frames) { f.flood(func() error { return f.WriteWindowUpdate(0, 1) }) }},
	{name: "a flood of empty data", slow: true, send: func(f *frames) { _ = f.open(); f.flood(func() error { return f.WriteData(1, false, nil) }) }},
	{name: "a flood of padding", slow: true, send: func(f *frames) {
		_ = f.open()
		f.flood(func() error { return f.WriteDataPadded(1, false, nil, make([]byte, 255)) })
	}},
	{name: "a flood of data, whatever the window", slow: true, send: func(f *frames) {
		_ = f.open()
		f.flood(func() error { return f.WriteData(1, false, make([]byte, 16384)) })
	}},
	{name: "a flood of continuations", slow: true, send: func(f *frames) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.fields(":status", "200")})
		f.flood(func() error { return f.WriteContinuation(1, false, f.fields("x-a", strings.Repeat("a", 1000))) })
	}},
	{name: "a flood of interim answers", slow: true, send: func(f *frames) {
		f.flood(func() error { return f.header(false, ":status", "103", "link", "</a>; rel=preload") })
	}},
	{name: "10,000 fields", send: func(f *frames) { f.manyFields(10_000, "x-a", "b") }},
	{name: "fields of 4 MB", send: func(f *frames) { f.manyFields(64, "x-a", strings.Repeat("é", 32<<10)) }},
	{name: "a field in one byte, a million times", send: func(f *frames) {
		// The table has it once, and each byte refers to it: small to send, large to hold.
		first := f.fields(":status", "200", "x-a", strings.Repeat("a", 3000))
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: first})
		for range 60 {
			if f.WriteContinuation(1, false, bytes.Repeat([]byte{0xbe}, 16384)) != nil {
				return
			}
		}
		_ = f.WriteContinuation(1, true, nil)
	}},
	{name: "a bomb in gzip", send: func(f *frames) { f.bomb("gzip") }},
	{name: "a bomb in zstd", send: func(f *frames) { f.bomb("zstd") }},

	{name: "no window for the request", slow: true, send: func(f *frames) {
		_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	}},
	{name: "half a header, then nothing", slow: true, send: func(f *frames) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.fields(":status", "200")})
	}},
	{name: "a header, then nothing", slow: true, send: func(f *frames) { _ = f.open() }},
	{name: "a dripping body", slow: true, send: func(f *frames) {
		_ = f.open()
		for i := range feed {
			time.Sleep(100 * time.Millisecond)
			if f.WriteData(1, false, []byte(feed[i:i+1])) != nil {
				return
			}
		}
	}},
	{name: "half a body, then nothing", slow: true, send: func(f *frames) { _ = f.open(); _ = f.WriteData(1, false, []byte(feed[:50])) }},
	{name: "half a body, then a reset", send: func(f *frames) {
		_ = f.open()
		_ = f.WriteData(1, false, []byte(feed[:50]))
		_ = f.WriteRSTStream(1, http2.ErrCodeInternal)
	}},
	{name: "half a body, then GOAWAY", send: func(f *frames) {
		_ = f.open()
		_ = f.WriteData(1, false, []byte(feed[:50]))
		_ = f.WriteGoAway(1, http2.ErrCodeInternal, []byte("hunter2"))
		_ = f.Conn.Close()
	}},
	{name: "half a body, then the end", send: func(f *frames) { _ = f.open(); _ = f.WriteData(1, true, []byte(feed[:50])) }},
	{name: "a byte too few for the length", send: func(f *frames) {
		_ = f.open("content-length", strconv.Itoa(len(feed)+1))
		_ = f.WriteData(1, true, []byte(feed))
	}},
	{name: "a redirect to metadata", send: func(f *frames) { _ = f.header(true, ":status", "301", "location", "https://169.254.169.254/") }},
	{name: "a page", send: func(f *frames) { _ = f.open(); _ = f.WriteData(1, true, []byte("<html><title>hunter2</title>")) }},
}

// manyFields sends a field so many times, in as many frames as it takes.
func (f *frames) manyFields(n int, name, value string) {
	if f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.fields(":status", "200")}) != nil {
		return
	}
	for range n {
		for b := f.fields(name, value); len(b) > 0; {
			part := b[:min(len(b), 16384)]
			b = b[len(part):]
			if f.WriteContinuation(1, false, part) != nil {
				return
			}
		}
	}
	_ = f.WriteContinuation(1, true, nil)
}

func (f *frames) bomb(coding string) {
	if f.open("content-encoding", coding) != nil {
		return
	}
	for b := []byte(pack(coding, bomb())); len(b) > 0; {
		part := b[:min(len(b), 16384)]
		b = b[len(part):]
		if f.WriteData(1, len(b) == 0, part) != nil {
			return
		}
	}
}

// serve runs the attack over TLS. Each request but the first one of the connection is
// reported to again.
func (a *frameAttack) serve(config *tls.Config) func(conn net.Conn, again func()) {
	return func(conn net.Conn, again func()) {
		server := tls.Server(conn, config)
		_ = server.SetDeadline(time.Now().Add(20 * time.Second))
		if server.Handshake() != nil {
			return
		}
		defer server.Close()
		f := &frames{Framer: http2.NewFramer(server, server), Conn: server}
		f.encoder = hpack.NewEncoder(&f.block)
		f.AllowIllegalWrites = true
		if _, err := io.ReadFull(server, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		_ = f.WriteSettings()
		done, sent := make(chan struct{}), false
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				break
			}
			if _, is := frame.(*http2.HeadersFrame); !is {
				continue
			}
			if sent {
				again()
				continue
			}
			sent = true
			go func() { defer close(done); a.send(f) }() // a flood goes on reading what comes back
		}
		if sent {
			server.Close()
			<-done
		}
	}
}

// frameAttacksOver returns the attacks as those of origins that speak TLS.
func frameAttacksOver(a *authority) (attacks []attack) {
	config := &tls.Config{Certificates: a.good(), NextProtos: []string{"h2"}}
	for i := range frameAttacks {
		f := &frameAttacks[i]
		attacks = append(attacks, attack{name: f.name, raw: f.serve(config), slow: f.slow})
	}
	return attacks
}
