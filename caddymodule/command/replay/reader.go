// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/binary"
	"net/http"
	"net/netip"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/feedpollard/pollard/internal/readers"
)

// reader is one reader of the log: a User-Agent at an address. It keeps the validators
// that the replay served to it, and sends them if its request in the log was conditional.
type reader struct {
	client      netip.Addr
	address     string // with a port, as in a request
	agent       string
	browser     bool     // by its User-Agent
	etag        []string // of the version that the replay last served to it; nil if none
	modified    []string // the Last-Modified of that version
	conditional bool     // the last request known to be either was conditional
	plain       bool     // the last answer known to be either was uncompressed
	got         *answers // of its family; nil: not counted
}

// answers counts the bytes and refusals that a family of readers got in the replay.
type answers struct {
	family         string
	bytes, refused int64
	asFleet        Fleet
}

const (
	// maxReaders bounds the readers that are remembered. A reader that was forgotten is
	// treated as new.
	maxReaders = 65536
	// maxText bounds the User-Agent that is kept of a reader, in bytes.
	maxText = 512
	// maxFamilies bounds the families whose answers are counted. A [readers.Statistics] of
	// the default size remembers fewer.
	maxFamilies = 1 << 14
)

// memory remembers the readers of the log.
type memory struct {
	readers  *simplelru.LRU[uint64, *reader]
	families map[string]*answers
}

func newMemory() memory {
	known, err := simplelru.NewLRU[uint64, *reader](maxReaders, nil)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return memory{known, make(map[string]*answers)}
}

// reader returns the reader that sent a line.
func (m *memory) reader(l *Line) *reader {
	userAgent := l.Header.Get("User-Agent")
	key := xxhash.Sum64String(userAgent + "\x00" + l.Remote)
	if v, ok := m.readers.Get(key); ok {
		return v
	}
	v := &reader{client: clientOf(l.Remote), agent: userAgent[:min(len(userAgent), maxText)]}
	v.address = netip.AddrPortFrom(v.client, 0).String()
	agent := readers.ParseAgent(v.agent)
	v.browser = agent.Kind == readers.KindBrowser
	if v.got = m.families[agent.Family]; v.got == nil && len(m.families) < maxFamilies {
		v.got = &answers{family: agent.Family}
		m.families[agent.Family] = v.got
	}
	m.readers.Add(key, v)
	return v
}

// clientOf parses an address. If the log has a name or a pseudonym instead, clientOf
// returns an address in a network of its own, from the private fd00::/8 (RFC 4193).
func clientOf(remote string) netip.Addr {
	if a, err := netip.ParseAddr(remote); err == nil {
		return a.Unmap()
	}
	a := [16]byte{0xfd}
	binary.BigEndian.PutUint64(a[1:], xxhash.Sum64String(remote)<<8)
	return netip.AddrFrom16(a)
}

// sizes are compared with the bytes of logged answers.
type sizes struct {
	packed    int64 // the feed with gzip
	plainFrom int64 // an answer of at least this size was uncompressed
}

// headroom exceeds the bytes of header fields and a TLS handshake, which some servers
// count with the body. Of a small feed it is half of what compression saves.
const headroom = 4096

// sizesOf derives sizes from the first edition. The logged feed may have been smaller, so
// an answer counts as uncompressed from 60 % of that edition's size.
func sizesOf(e *revision) sizes {
	packed, body := int64(len(e.packed)), int64(len(e.body))
	return sizes{packed, max(body*6/10, packed+min(headroom, (body-packed)/2))}
}

// header returns the header of a request: from the log if it has headers, or else inferred.
func (v *reader) header(l *Line, s sizes) http.Header {
	h := l.Header
	set := func(name string, value []string) {
		if delete(h, name); value != nil {
			h[name] = value
		}
	}
	if v.agent != "" {
		h["User-Agent"] = []string{v.agent}
	}
	switch {
	case !l.HasHeader:
		conditional, plain := v.infer(l, s)
		if !plain {
			h["Accept-Encoding"] = []string{"gzip"}
		}
		if conditional {
			set("If-None-Match", v.etag)
		}
	case l.Status == http.StatusNotModified:
		// Validators that matched are replaced by those that the replay served, because the
		// log's origin made them.
		byDate := h["If-Modified-Since"] != nil
		if h["If-None-Match"] != nil || !byDate {
			set("If-None-Match", v.etag)
		}
		if byDate {
			set("If-Modified-Since", v.modified)
		}
	}
	return h
}

// infer infers from the answer what the combined format lacks. A 304 means that the
// request was conditional, a 200 that it was not (so a change of the feed makes a good
// reader look unconditional, once). An answer of the size of the uncompressed feed means
// that the reader does not accept compression. Other answers change nothing: the reader
// is taken to ask as it did before.
func (v *reader) infer(l *Line, s sizes) (conditional, plain bool) {
	switch l.Status {
	case http.StatusNotModified:
		v.conditional = true
	case http.StatusOK:
		v.conditional = false
		if l.Method == http.MethodGet {
			v.plain = l.Bytes >= s.plainFrom
		}
	case http.StatusNotAcceptable:
		return false, true // refused because compression was not accepted
	}
	return v.conditional, v.plain
}
