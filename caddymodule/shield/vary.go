// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/upstream"
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

// passed counts the requests for feeds that went to the origin, by the reason: a header field, body or
// method.
type passed struct {
	mu    sync.Mutex
	count map[string]int64
}

// maxReasons bounds the reasons that are counted one by one: an origin chooses the fields.
const maxReasons = 32

func (p *passed) add(reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count == nil {
		p.count = make(map[string]int64)
	}
	if _, known := p.count[reason]; !known && len(p.count) >= maxReasons {
		reason = "other fields"
	}
	p.count[reason]++
}

// all returns a copy of the counts.
func (p *passed) all() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.count)
}
