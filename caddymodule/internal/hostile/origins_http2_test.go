// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
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

// raw sends a frame that [http2.Framer] would not.
func (f *frames) raw(kind http2.FrameType, flags http2.Flags, stream uint32, payload string) error {
	b := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), byte(kind), byte(flags)}
	_, err := f.Write(append(binary.BigEndian.AppendUint32(b, stream), payload...))
	return err
}

// Write is the connection's: [http2.Framer] has no such method.
func (f *frames) Write(b []byte) (int, error) { return f.Conn.Write(b) }

// Close is the connection's as well.
func (f *frames) Close() error { return f.Conn.Close() }

// flood repeats something until nobody wants more of it.
func (f *frames) flood(piece func() error) {
	for i := 0; i < 2_000_000 && piece() == nil; i++ {
	}
}

// frameAttack is what a server does when it has the request's header, or before that.
type frameAttack struct {
	name   string
	send   func(f *frames)
	before bool // in place of the settings, before the request
	slow   bool // nothing but the timeout ends it
}

var frameAttacks = []frameAttack{
	{name: "no settings", before: true, slow: true, send: func(*frames) {}},
	{name: "HTTP/1.1 in place of settings", before: true, send: func(f *frames) { _, _ = io.WriteString(f, ok("", feed)) }},
	{name: "a ping in place of settings", before: true, send: func(f *frames) { _ = f.WritePing(false, [8]byte{}) }},
	{name: "data in place of settings", before: true, send: func(f *frames) { _ = f.raw(http2.FrameData, 0, 1, "a") }},
	{name: "GOAWAY in place of settings", before: true, send: func(f *frames) { _ = f.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil) }},
	{name: "settings on a stream", before: true, send: func(f *frames) { _ = f.raw(http2.FrameSettings, 0, 1, "") }},
	{name: "settings of five bytes", before: true, send: func(f *frames) { _ = f.raw(http2.FrameSettings, 0, 0, "12345") }},
	{name: "acknowledgement with settings", before: true, send: func(f *frames) { _ = f.raw(http2.FrameSettings, http2.FlagSettingsAck, 0, "123456") }},
	{name: "settings: frames of a byte", before: true, send: func(f *frames) { _ = f.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1}) }},
	{name: "settings: frames of 4 GB", before: true, send: func(f *frames) {
		_ = f.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1<<32 - 1})
	}},
	{name: "settings: window of 4 GB", before: true, send: func(f *frames) {
		_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<32 - 1})
	}},
	{name: "settings: push", before: true, send: func(f *frames) { _ = f.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 7}) }},
	{name: "settings: no streams", before: true, slow: true, send: func(f *frames) {
		_ = f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
	}},
	{name: "settings: no window", slow: true, send: func(f *frames) {
		_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	}},
	{name: "settings: headers of a byte", before: true, slow: true, send: func(f *frames) {
		_ = f.WriteSettings(http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: 1})
	}},
	{name: "settings: a table of 4 GB", slow: true, send: func(f *frames) {
		_ = f.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 1<<32 - 1})
	}},
	{name: "settings: a thousand unknown ones", slow: true, send: func(f *frames) {
		var list []http2.Setting
		for i := range 1000 {
			list = append(list, http2.Setting{ID: http2.SettingID(1000 + i), Val: 1})
		}
		_ = f.WriteSettings(list...)
	}},
	{name: "a flood of settings", slow: true, send: func(f *frames) { f.flood(func() error { return f.WriteSettings() }) }},
	{name: "a flood of acknowledgements", slow: true, send: func(f *frames) { f.flood(f.WriteSettingsAck) }},
	{name: "a flood of pings", slow: true, send: func(f *frames) { f.flood(func() error { return f.WritePing(false, [8]byte{}) }) }},
	{name: "a flood of pongs", slow: true, send: func(f *frames) { f.flood(func() error { return f.WritePing(true, [8]byte{}) }) }},
	{name: "a flood of window updates", slow: true, send: func(f *frames) { f.flood(func() error { return f.WriteWindowUpdate(0, 1) }) }},
	{name: "a flood of priorities", slow: true, send: func(f *frames) {
		f.flood(func() error { return f.WritePriority(1, http2.PriorityParam{StreamDep: 3}) })
	}},
	{name: "a flood of resets of other streams", slow: true, send: func(f *frames) {
		f.flood(func() error { return f.WriteRSTStream(3, http2.ErrCodeCancel) })
	}},
	{name: "a flood of GOAWAY", slow: true, send: func(f *frames) { f.flood(func() error { return f.WriteGoAway(1, http2.ErrCodeNo, nil) }) }},
	{name: "a flood of unknown frames", slow: true, send: func(f *frames) { f.flood(func() error { return f.WriteRawFrame(99, 0, 1, make([]byte, 16000)) }) }},
	{name: "a flood of ALTSVC", slow: true, send: func(f *frames) {
		f.flood(func() error { return f.WriteRawFrame(10, 0, 0, []byte("\x00\x00h3=\":443\"")) })
	}},
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
	{name: "a flood of empty continuations", slow: true, send: func(f *frames) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.fields(":status", "200")})
		f.flood(func() error { return f.WriteContinuation(1, false, nil) })
	}},
	{name: "a flood of interim answers", slow: true, send: func(f *frames) {
		f.flood(func() error { return f.header(false, ":status", "103", "link", "</a>; rel=preload") })
	}},
	{name: "a flood of promises", slow: true, send: func(f *frames) {
		id := uint32(0)
		f.flood(func() error {
			id += 2
			return f.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: id, BlockFragment: f.fields(":method", "GET", ":path", "/"), EndHeaders: true})
		})
	}},
	{name: "continuation of nothing", send: func(f *frames) { _ = f.WriteContinuation(1, true, f.fields(":status", "200")) }},
	{name: "header that another frame breaks into", send: func(f *frames) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.fields(":status", "200")})
		_ = f.WritePing(false, [8]byte{})
	}},
	{name: "10,000 fields", send: func(f *frames) { f.manyFields(10_000, "x-a", "b") }},
	{name: "fields of 4 MB", send: func(f *frames) { f.manyFields(64, "x-a", strings.Repeat("é", 32<<10)) }},
	{name: "a field in one byte, a million times", send: func(f *frames) {
		// The table has it once, and each byte names it: what is small to send is large to hold.
		first := f.fields(":status", "200", "x-a", strings.Repeat("a", 3000))
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: first})
		for range 60 {
			if f.WriteContinuation(1, false, bytes.Repeat([]byte{0xbe}, 16384)) != nil {
				return
			}
		}
		_ = f.WriteContinuation(1, true, nil)
	}},
	{name: "an index of nothing", send: func(f *frames) { f.block16("\xff\xff\xff\xff\x0f") }},
	{name: "an index without end", send: func(f *frames) { f.block16("\xff" + strings.Repeat("\xff", 100)) }},
	{name: "index zero", send: func(f *frames) { f.block16("\x80") }},
	{name: "Huffman code of nothing", send: func(f *frames) { f.block16("\x00\x84\xff\xff\xff\xff\x01a") }},
	{name: "a string longer than its block", send: func(f *frames) { f.block16("\x00\x7f\xff\x7f") }},
	{name: "a table of 1 GB", send: func(f *frames) { f.block16("\x3f\xe1\xff\xff\xff\x03") }},
	{name: "table sizes, a thousand times", slow: true, send: func(f *frames) { f.block16(strings.Repeat("\x20\x3f\xe1\x1f", 1000)) }},
	{name: "no status", send: func(f *frames) { _ = f.header(true, "content-type", "text/xml") }},
	{name: "two statuses", send: func(f *frames) { _ = f.header(true, ":status", "200", ":status", "404") }},
	{name: "status of letters", send: func(f *frames) { _ = f.header(true, ":status", "abc") }},
	{name: "status of four digits", send: func(f *frames) { _ = f.header(true, ":status", "2000") }},
	{name: "status after a field", send: func(f *frames) { _ = f.header(true, "x-a", "b", ":status", "200") }},
	{name: "a request's pseudo-field", send: func(f *frames) { _ = f.header(true, ":status", "200", ":path", "/") }},
	{name: "a field in capitals", send: func(f *frames) { _ = f.header(true, ":status", "200", "X-A", "b") }},
	{name: "a field with a new line", send: func(f *frames) { _ = f.header(true, ":status", "200", "x-a", "b\r\nset-cookie: c") }},
	{name: "a field with a NUL", send: func(f *frames) { _ = f.header(true, ":status", "200", "x\x00a", "b") }},
	{name: "a field without a name", send: func(f *frames) { _ = f.header(true, ":status", "200", "", "b") }},
	{name: "status 101", slow: true, send: func(f *frames) { _ = f.header(false, ":status", "101") }},
	{name: "interim answer that ends the stream", send: func(f *frames) { _ = f.header(true, ":status", "103") }},
	{name: "answer on a stream of the future", slow: true, send: func(f *frames) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 7, BlockFragment: f.fields(":status", "200"), EndHeaders: true})
	}},
	{name: "answer on an even stream", slow: true, send: func(f *frames) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2, BlockFragment: f.fields(":status", "200"), EndHeaders: true})
	}},
	{name: "answer on stream 0", send: func(f *frames) { _ = f.raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 0, "\x88") }},
	{name: "header that depends on itself", slow: true, send: func(f *frames) { _ = f.raw(http2.FrameHeaders, 0x24, 1, "\x00\x00\x00\x01\x00\x88") }},
	{name: "data before the header", send: func(f *frames) { _ = f.WriteData(1, true, []byte(feed)) }},
	{name: "data on stream 0", send: func(f *frames) { _ = f.open(); _ = f.raw(http2.FrameData, 0, 0, feed) }},
	{name: "data after its end", send: func(f *frames) { _ = f.header(true, ":status", "200"); _ = f.WriteData(1, true, []byte(feed)) }},
	{name: "more padding than data", send: func(f *frames) { _ = f.open(); _ = f.raw(http2.FrameData, http2.FlagDataPadded, 1, "\xffa") }},
	{name: "a byte too few for the length", send: func(f *frames) {
		_ = f.open("content-length", strconv.Itoa(len(feed)+1))
		_ = f.WriteData(1, true, []byte(feed))
	}},
	{name: "a byte too many for the length", send: func(f *frames) {
		_ = f.open("content-length", strconv.Itoa(len(feed)-1))
		_ = f.WriteData(1, true, []byte(feed))
	}},
	{name: "two lengths", send: func(f *frames) {
		_ = f.open("content-length", "5", "content-length", strconv.Itoa(len(feed)))
		_ = f.WriteData(1, true, []byte(feed[:5]))
	}},
	{name: "an empty body", send: func(f *frames) { _ = f.header(true, ":status", "200") }},
	{name: "half a body, then nothing", slow: true, send: func(f *frames) { _ = f.open(); _ = f.WriteData(1, false, []byte(feed[:50])) }},
	{name: "half a body, then a reset", send: func(f *frames) {
		_ = f.open()
		_ = f.WriteData(1, false, []byte(feed[:50]))
		_ = f.WriteRSTStream(1, http2.ErrCodeInternal)
	}},
	{name: "half a body, then the reset of no error", send: func(f *frames) {
		_ = f.open()
		_ = f.WriteData(1, false, []byte(feed[:50]))
		_ = f.WriteRSTStream(1, http2.ErrCodeNo)
	}},
	{name: "half a body, then GOAWAY", send: func(f *frames) {
		_ = f.open()
		_ = f.WriteData(1, false, []byte(feed[:50]))
		_ = f.WriteGoAway(1, http2.ErrCodeInternal, []byte("hunter2"))
		f.Close()
	}},
	{name: "half a body, then the end", send: func(f *frames) { _ = f.open(); _ = f.WriteData(1, true, []byte(feed[:50])) }},
	{name: "half a frame, then nothing", slow: true, send: func(f *frames) { _ = f.open(); _, _ = f.Write([]byte{0, 1, 0, 0, 0}) }},
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
	{name: "trailers that are pseudo-fields", send: func(f *frames) {
		_ = f.open()
		_ = f.WriteData(1, false, []byte(feed))
		_ = f.header(true, ":status", "404")
	}},
	{name: "trailers that do not end the stream", send: func(f *frames) {
		_ = f.open()
		_ = f.WriteData(1, false, []byte(feed))
		_ = f.header(false, "x-a", "b")
	}},
	{name: "trailers of 4 MB", send: func(f *frames) {
		_ = f.open()
		_ = f.WriteData(1, false, []byte(feed[:50]))
		f.manyFields(64, "x-a", strings.Repeat("é", 32<<10))
	}},
	{name: "REFUSED_STREAM", send: func(f *frames) { _ = f.WriteRSTStream(1, http2.ErrCodeRefusedStream) }},
	{name: "a reset", send: func(f *frames) { _ = f.WriteRSTStream(1, http2.ErrCodeCancel) }},
	{name: "a reset: use HTTP/1.1", send: func(f *frames) { _ = f.WriteRSTStream(1, http2.ErrCodeHTTP11Required) }},
	{name: "a reset of stream 0", send: func(f *frames) { _ = f.raw(http2.FrameRSTStream, 0, 0, "\x00\x00\x00\x00") }},
	{name: "a reset of three bytes", send: func(f *frames) { _ = f.raw(http2.FrameRSTStream, 0, 1, "\x00\x00\x00") }},
	{name: "GOAWAY before the stream", send: func(f *frames) { _ = f.WriteGoAway(0, http2.ErrCodeNo, nil) }},
	{name: "GOAWAY: calm down", send: func(f *frames) {
		_ = f.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings"))
	}},
	{name: "GOAWAY of 16 KB", send: func(f *frames) { _ = f.WriteGoAway(0, http2.ErrCodeInternal, bytes.Repeat([]byte("hunter2 "), 2000)) }},
	{name: "GOAWAY that takes back", send: func(f *frames) {
		_ = f.WriteGoAway(1, http2.ErrCodeNo, nil)
		_ = f.WriteGoAway(0, http2.ErrCodeNo, nil)
		_ = f.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
	}},
	{name: "a window update of nothing", send: func(f *frames) { _ = f.raw(http2.FrameWindowUpdate, 0, 0, "\x00\x00\x00\x00") }},
	{name: "a window above 2 GB", send: func(f *frames) { _ = f.WriteWindowUpdate(0, 1<<31-1); _ = f.WriteWindowUpdate(0, 1<<31-1) }},
	{name: "a window update of three bytes", send: func(f *frames) { _ = f.raw(http2.FrameWindowUpdate, 0, 0, "\x00\x00\x00") }},
	{name: "a ping of seven bytes", send: func(f *frames) { _ = f.raw(http2.FramePing, 0, 0, "1234567") }},
	{name: "a ping on a stream", send: func(f *frames) { _ = f.raw(http2.FramePing, 0, 1, "12345678") }},
	{name: "a promise", send: func(f *frames) {
		_ = f.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, BlockFragment: f.fields(":method", "GET", ":path", "/"), EndHeaders: true})
	}},
	{name: "a frame of 16 MB", send: func(f *frames) {
		_, _ = f.Write([]byte("\xff\xff\xff\x00\x00\x00\x00\x00\x01"))
		_, _ = f.Write(make([]byte, 1<<20))
	}},
	{name: "settings of 16 MB", send: func(f *frames) {
		_, _ = f.Write([]byte("\xff\xff\xff\x04\x00\x00\x00\x00\x00"))
		_, _ = f.Write(make([]byte, 1<<20))
	}},
	{name: "rubbish", send: func(f *frames) { _, _ = f.Write(bytes.Repeat([]byte("rubbish"), 1000)) }},
	{name: "a bomb in gzip", send: func(f *frames) { f.bomb("gzip") }},
	{name: "a bomb in brotli", send: func(f *frames) { f.bomb("br") }},
	{name: "a bomb in zstd", send: func(f *frames) { f.bomb("zstd") }},
	{name: "a redirect to itself", send: func(f *frames) { _ = f.header(true, ":status", "302", "location", "") }},
	{name: "a redirect to plain HTTP", send: func(f *frames) { _ = f.header(true, ":status", "301", "location", "http://127.0.0.1/hunter2") }},
	{name: "a redirect to metadata", send: func(f *frames) { _ = f.header(true, ":status", "301", "location", "https://169.254.169.254/") }},
	{name: "421", send: func(f *frames) { _ = f.header(true, ":status", "421") }},
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

// block16 sends a header of these bytes behind a good status.
func (f *frames) block16(rest string) {
	_ = f.raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, "\x88"+rest)
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

// serve runs the attack over TLS.
func (a *frameAttack) serve(config *tls.Config) func(net.Conn) {
	return func(conn net.Conn) {
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
		done := make(chan struct{})
		if a.before {
			a.send(f)
		} else {
			_ = f.WriteSettings()
		}
		sent := false
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				break
			}
			if header, is := frame.(*http2.HeadersFrame); is {
				conn.(interface{ count() }).count()
				if header.StreamID == 1 && !a.before && !sent {
					sent = true
					// What floods must go on reading what comes back.
					go func() { defer close(done); a.send(f) }()
				}
			}
		}
		if sent {
			server.Close()
			<-done
		}
	}
}

// attackByFrames has origins break and flood HTTP/2.
func attackByFrames(t *testing.T) {
	a := newAuthority(t)
	config := &tls.Config{Certificates: []tls.Certificate{a.good()}, NextProtos: []string{"h2"}}
	var attacks []tlsAttack
	for i := range frameAttacks {
		f := &frameAttacks[i]
		attacks = append(attacks, tlsAttack{name: f.name, serve: f.serve(config), slow: f.slow, asked: 1})
	}
	attackByTLS(t, a, attacks, &tls.Config{Certificates: config.Certificates})
}
