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

// visitor is one reader of the log: a User-Agent at an address. What it has been
// given in the replay it holds, and sends back where the log has it ask
// conditionally.
type visitor struct {
	client      netip.Addr
	address     string // with a port, as in a request
	agent       []string
	etag        []string // of the version that the replay served to it last; nil: none
	modified    []string // that version's Last-Modified
	conditional bool     // its last request that tells was conditional
	plain       bool     // its last answer that tells was uncompressed
	given       *given   // what its family got in the replay; nil: nobody counts

	// What it sent last. Most readers send the same again and again, so that
	// neither texts nor the header have to be made anew.
	coding, match, since, accept, mode []string
	header                             http.Header
	form                               form
}

// form is what the header of a request in the combined format depends on.
type form struct {
	conditional, plain, referer bool
	etag                        string
}

const (
	// maxVisitors is how many visitors are remembered at least; at most twice as
	// many are. Whoever was forgotten is met like a new one.
	maxVisitors = 32768
	// maxText bounds a text that is kept of a visitor, in bytes.
	maxText = 512
)

// visitors remembers visitors in two generations: when the young one is full, it
// becomes the old one, and who was in the old one and has not come since is forgotten.
type visitors struct {
	young, old map[uint64]*visitor
	families   map[string]*given
}

// given is what a family of readers got in the replay.
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
		v.given = vs.family(agent)
	}
	if len(vs.young) >= maxVisitors || vs.young == nil {
		vs.old, vs.young = vs.young, make(map[uint64]*visitor)
	}
	vs.young[key] = v
	return v
}

// family is where to count what the family of a User-Agent gets.
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

// clientOf reads an address. Where the log holds names or pseudonyms instead, each
// has an address in a network of its own, out of the private fd00::/8 (RFC 4193).
func clientOf(remote []byte) netip.Addr {
	if a, err := netip.ParseAddr(string(remote)); err == nil {
		return a.Unmap()
	}
	a := [16]byte{0xfd}
	binary.BigEndian.PutUint64(a[1:], xxhash.Sum64(remote)<<8)
	return netip.AddrFrom16(a)
}

func cut(b []byte) string { return string(b[:min(len(b), maxText)]) }

// renew returns the value of a header field, allocating only where it changes.
func renew(last *[]string, value []byte) []string {
	if len(value) == 0 {
		return nil
	}
	if len(*last) == 0 || (*last)[0] != string(value) {
		*last = []string{string(value)}
	}
	return *last
}

// gzipAccepted is what readers are taken to send that accepted compression.
var gzipAccepted = []string{"gzip"}

// sizes are what the bytes of a logged answer are compared with.
type sizes struct {
	packed    int64 // the feed with gzip
	plainFrom int64 // so many bytes and more: it was sent uncompressed
}

// headroom is more than header fields and a TLS handshake take, in bytes: some
// servers log them with the body.
const headroom = 4096

// sizesOf is by the first edition; the log's own may have been another one, so
// six tenths of it do.
func sizesOf(e *edition) sizes {
	packed := int64(len(e.packed))
	return sizes{packed, max(int64(len(e.body))*6/10, packed+headroom)}
}

// dress returns the header with which the visitor asked, as far as the log tells.
func (v *visitor) dress(l *Line, s sizes) http.Header {
	if l.Known {
		v.begin(len(l.Referer) > 0)
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
	v.begin(f.referer)
	v.form = f
	if !f.plain {
		v.header["Accept-Encoding"] = gzipAccepted
	}
	if f.etag != "" {
		v.header["If-None-Match"] = v.etag
	}
	return v.header
}

// begin begins a header with what both kinds of log tell.
func (v *visitor) begin(referer bool) {
	if v.header == nil {
		v.header = make(http.Header)
	}
	clear(v.header)
	if v.agent != nil {
		v.header["User-Agent"] = v.agent
	}
	if referer {
		v.header["Referer"] = someReferer
	}
}

// someReferer stands for any: what it is does not matter, and may be long.
var someReferer = []string{"https://referer.invalid/"}

// infer guesses what the combined format does not hold, from the answer: a 304
// means a conditional request, a 200 one without conditions (so that a change of
// the feed in the log makes a good reader look unconditional, once), and as many
// bytes as an uncompressed feed has mean that compression was not accepted. Where
// the answer tells nothing, the reader is taken to ask as it did before.
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
		return false, true // refused for want of compression; it may send both kinds of requests
	}
	return v.conditional, v.plain
}

// dressKnown takes the header out of the log. Validators are the exception: they
// are of the log's origin and not of the replay's. One that had matched there is
// replaced by what the visitor holds; one that had not stays as it is.
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
