// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/binary"
	"net/http"
	"net/netip"

	"github.com/cespare/xxhash/v2"

	"github.com/feedpollard/pollard/internal/readers"
)

// visitor is one reader of the log: a User-Agent at an address. It keeps the validators
// that the replay served to it, and sends them if its request in the log was conditional.
type visitor struct {
	client      netip.Addr
	address     string // with a port, as in a request
	agent       []string
	browser     bool     // by its User-Agent
	etag        []string // of the version that the replay last served to it; nil if none
	modified    []string // the Last-Modified of that version
	conditional bool     // the last request known to be either was conditional
	plain       bool     // the last answer known to be either was uncompressed
	given       *given   // the counts of its family; nil: not counted

	// The last header fields. Most readers repeat theirs, so the header and its values
	// are reused.
	coding, match, since, accept, mode []string
	header                             http.Header
	form                               form
}

// form determines the header of a request in the combined format.
type form struct {
	conditional, plain, referer bool // with a Referer, which is not compared
	etag                        string
}

const (
	// maxVisitors is the size of a generation: at most twice as many visitors are
	// remembered. A visitor that was forgotten is treated as new.
	maxVisitors = 32768
	// maxText bounds the User-Agent that is kept of a visitor, in bytes.
	maxText = 512
)

// visitors remembers visitors in two generations. When the young one is full, it becomes
// the old one, and visitors that were only in the old one are forgotten.
type visitors struct {
	young, old map[uint64]*visitor
	families   map[string]*given
}

// given counts the bytes and refusals that a family of readers got in the replay.
type given struct{ bytes, refused int64 }

// maxFamilies bounds the families that are counted. A [readers.Statistics] of the
// default size remembers fewer.
const maxFamilies = 1 << 14

func (vs *visitors) of(l *Line) *visitor {
	key := xxhash.Sum64(l.UserAgent)*0x9e3779b97f4a7c15 ^ xxhash.Sum64(l.Remote)
	v, ok := vs.young[key]
	if ok {
		return v
	}
	if v, ok = vs.old[key]; !ok {
		agent := readers.ParseAgent(cut(l.UserAgent))
		v = newVisitor(l)
		v.given, v.browser = vs.family(agent), agent.Kind == readers.KindBrowser
	}
	if len(vs.young) >= maxVisitors || vs.young == nil {
		vs.old, vs.young = vs.young, make(map[uint64]*visitor)
	}
	vs.young[key] = v
	return v
}

// family returns the counts of a User-Agent's family, or nil if too many are counted.
func (vs *visitors) family(agent readers.Agent) *given {
	name := agent.Family
	g := vs.families[name]
	if g == nil && len(vs.families) < maxFamilies {
		if vs.families == nil {
			vs.families = make(map[string]*given)
		}
		g = new(given)
		vs.families[name] = g
	}
	return g
}

func newVisitor(l *Line) *visitor {
	v := &visitor{client: clientOf(l.Remote)}
	v.address = netip.AddrPortFrom(v.client, 0).String()
	if len(l.UserAgent) > 0 {
		v.agent = []string{cut(l.UserAgent)}
	}
	return v
}

// clientOf parses an address. If the log has a name or a pseudonym instead, clientOf
// returns an address in a network of its own, from the private fd00::/8 (RFC 4193).
func clientOf(remote []byte) netip.Addr {
	if a, err := netip.ParseAddr(string(remote)); err == nil {
		return a.Unmap()
	}
	a := [16]byte{0xfd}
	binary.BigEndian.PutUint64(a[1:], xxhash.Sum64(remote)<<8)
	return netip.AddrFrom16(a)
}

func cut(b []byte) string { return string(b[:min(len(b), maxText)]) }

// renew returns the value of a header field. It allocates only if the value has changed.
func renew(last *[]string, value []byte) []string {
	if len(value) == 0 {
		return nil
	}
	if len(*last) == 0 || (*last)[0] != string(value) {
		*last = []string{string(value)}
	}
	return *last
}

// gzipAccepted is the Accept-Encoding of readers that are taken to accept compression.
var gzipAccepted = []string{"gzip"}

// sizes are compared with the bytes of logged answers.
type sizes struct {
	packed    int64 // the feed with gzip
	plainFrom int64 // an answer of at least this size was uncompressed
}

// headroom exceeds the bytes of header fields and a TLS handshake, which some servers
// count with the body.
const headroom = 4096

// sizesOf derives sizes from the first edition. The logged feed may have been smaller, so
// an answer counts as uncompressed from 60 % of that edition's size.
func sizesOf(e *edition) sizes {
	packed := int64(len(e.packed))
	return sizes{packed, max(int64(len(e.body))*6/10, packed+headroom)}
}

// dress returns the header of a request: from the log if it has headers, or else inferred.
func (v *visitor) dress(l *Line, s sizes) http.Header {
	if l.Known {
		v.begin()
		v.dressKnown(l)
		v.form = form{etag: "(of a log with headers)"} // no other form is equal
		return v.header
	}
	f := form{referer: len(l.Referer) > 0}
	f.conditional, f.plain = v.infer(l, s)
	if f.conditional && v.etag != nil {
		f.etag = v.etag[0]
	}
	if v.header != nil && f == v.form {
		return v.header
	}
	v.begin()
	v.form = f
	if !f.plain {
		v.header["Accept-Encoding"] = gzipAccepted
	}
	if f.etag != "" {
		v.header["If-None-Match"] = v.etag
	}
	return v.header
}

// begin starts a header with the fields that both kinds of log have.
func (v *visitor) begin() {
	if v.header == nil {
		v.header = make(http.Header)
	}
	clear(v.header)
	if v.agent != nil {
		v.header["User-Agent"] = v.agent
	}
}

// infer infers from the answer what the combined format lacks. A 304 means that the
// request was conditional, a 200 that it was not (so a change of the feed makes a good
// reader look unconditional, once). An answer of the size of the uncompressed feed means
// that the reader does not accept compression. Other answers change nothing: the reader
// is taken to ask as it did before.
func (v *visitor) infer(l *Line, s sizes) (conditional, plain bool) {
	switch l.Status {
	case http.StatusNotModified:
		v.conditional = true
	case http.StatusOK:
		v.conditional = false
		if string(l.Method) == http.MethodGet {
			v.plain = l.Bytes >= s.plainFrom
		}
	case http.StatusNotAcceptable:
		return false, true // refused because compression was not accepted
	}
	return v.conditional, v.plain
}

// dressKnown copies the header from the log, except validators that matched (304). They
// are replaced by those that the replay served, because the log's origin made them.
func (v *visitor) dressKnown(l *Line) {
	set := func(name string, values []string) {
		if values != nil {
			v.header[name] = values
		}
	}
	set("Accept-Encoding", renew(&v.coding, l.AcceptEncoding))
	set("Accept", renew(&v.accept, l.Accept))
	set("Sec-Fetch-Mode", renew(&v.mode, l.FetchMode))
	if l.Status != http.StatusNotModified {
		set("If-None-Match", renew(&v.match, l.IfNoneMatch))
		set("If-Modified-Since", renew(&v.since, l.IfModifiedSince))
		return
	}
	if len(l.IfNoneMatch) > 0 || len(l.IfModifiedSince) == 0 {
		set("If-None-Match", v.etag)
	}
	if len(l.IfModifiedSince) > 0 {
		set("If-Modified-Since", v.modified)
	}
}
