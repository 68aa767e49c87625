// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/upstream"
)

// notShared returns why a request cannot be answered with a shared response whatever the origin
// says: a method that may change something, credentials, or a body. It returns "" if it can.
func notShared(r *http.Request) string {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return "method"
	case r.Header["Authorization"] != nil:
		return "Authorization"
	case hasBody(r):
		return "body"
	}
	return ""
}

// bodyWait is how long the first byte of a body of unknown length may take.
const bodyWait = time.Second

// hasBody reports whether a request has a body. Over HTTP/1.1 its header says so (RFC 9112
// section 6.3). Over HTTP/2 and HTTP/3 a request without Content-Length has a body or none (RFC 9113
// section 8.1.1, RFC 9114 section 4.1.2), which only reading it shows.
func hasBody(r *http.Request) bool {
	if r.ContentLength >= 0 || r.ProtoMajor < 2 || r.Body == nil {
		return r.ContentLength != 0
	}
	body := &peekedBody{Closer: r.Body, reader: bufio.NewReader(r.Body), peeked: make(chan struct{})}
	go func() {
		defer close(body.peeked)
		_, body.err = body.reader.Peek(1)
	}()
	select {
	case <-body.peeked:
		if errors.Is(body.err, io.EOF) {
			r.Body, r.ContentLength = http.NoBody, 0
			return false
		}
	case <-time.After(bodyWait):
	}
	r.Body = body
	return true
}

// peekedBody is a body of which the first byte is read ahead. A read deadline would end the stream.
type peekedBody struct {
	io.Closer
	reader *bufio.Reader
	peeked chan struct{} // closed when that has been done
	err    error         // of that
}

func (b *peekedBody) Read(p []byte) (int, error) {
	if <-b.peeked; b.err != nil {
		return 0, b.err
	}
	return b.reader.Read(p)
}

// likely reports whether a request seems to be for a feed, by its path, its query or its Accept field.
// Others go straight to the origin; only the response may show that it is a feed.
func likely(r *http.Request) bool {
	file := strings.ToLower(path.Base(r.URL.Path))
	switch path.Ext(file) {
	case ".xml", ".rss", ".atom", ".rdf":
		return true
	}
	if file == "feed.json" || feedSegment.MatchString(r.URL.Path) || feedParameter.MatchString(r.URL.RawQuery) {
		return true
	}
	for _, accept := range r.Header["Accept"] {
		for _, media := range []string{"application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json"} {
			if strings.Contains(accept, media) {
				return true
			}
		}
	}
	return false
}

var (
	feedSegment   = regexp.MustCompile(`(?i)/(?:feeds?|rss2?|atom)(?:/|\.php|$)`)
	feedParameter = regexp.MustCompile(`(?i)(?:^|&)(?:feed(?:=|&|$)|[^&=]*=(?:rss2?|atom)(?:&|$))`)
)

// Vary says what to ignore of the origin's `Vary`.
type Vary struct {
	// The names of the header fields to ignore.
	Ignore []string `json:"ignore,omitempty"`
}

// differs returns the header field by which a request differs from the poll that brought the stored
// response, or "" if it may be answered with that (RFC 9111 section 4.1). vary names fields, and stored
// is the header of the response.
func differs(r *http.Request, vary []string, stored http.Header) string {
	for _, name := range vary {
		name = http.CanonicalHeaderKey(name)
		sent := strings.Join(r.Header[name], ",")
		switch name {
		case "Host", "X-Forwarded-Host", "X-Forwarded-Proto": // the key has them
		case "Accept":
			if sent != upstream.Accept {
				return name
			}
		case "User-Agent":
			return name // Pollard's own
		default:
			if sent != "" {
				return name
			}
		}
	}
	// A poll has no Origin. A site may give its readers on other sites what they need only if it sees one.
	if r.Header["Origin"] != nil && stored["Access-Control-Allow-Origin"] == nil {
		return "Origin"
	}
	return ""
}

// ignoreVary takes the ignored fields out of the Vary of a response.
func (s *Shield) ignoreVary(h http.Header) {
	names, any := httpfield.Vary(h)
	if any || len(s.Vary.Ignore) == 0 {
		return
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(s.Vary.Ignore, func(ignored string) bool { return strings.EqualFold(ignored, name) })
	})
	if delete(h, "Vary"); len(names) > 0 {
		h.Set("Vary", strings.Join(names, ", "))
	}
}

func checkVaryIgnore(names []string) error {
	for _, name := range names {
		switch {
		case name == "*":
			return errors.New("vary ignore: * cannot be ignored: such a response is for one request")
		case strings.EqualFold(name, "Authorization"):
			return errors.New("vary ignore: Authorization cannot be ignored: requests with it are never shared")
		case !httpguts.ValidHeaderFieldName(name):
			return errors.New("vary ignore: expected names of header fields, such as User-Agent, not " + name)
		}
	}
	return nil
}
