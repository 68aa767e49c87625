// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/origintest"
)

const (
	floor = time.Hour
	day   = 24 * time.Hour
)

// resource is one URL of an origin, and what the origin does with it. The zero value of
// each field is what a good server does.
type resource struct {
	url         string
	format      origintest.Format
	every       time.Duration      // between two entries; 0: 20 h
	channel     string             // more elements of the channel
	dated       bool               // entries have dates, a day apart
	noisy       bool               // lastBuildDate is now
	header      []string           // of 200 and 304, name and value by turns
	on304       []string           // of 304, if it differs
	etag        func(*call) string // nil: one per version
	date        func(*call) string // nil: of the version
	never304    bool               // never answers 304
	ignoresETag bool               // compares no ETag
	doubted     bool               // answers only 304 for longer than a week
	coding      []string           // content codings of the body
	wait        time.Duration      // what its good answers ask for
	wait304     time.Duration      // the same of a 304; 0: wait
	retryAfter  time.Duration      // the same by Retry-After, which holds for polls by hand too
	pause       time.Duration      // what its good answers ask of the whole host
	hours       []int              // that it skips
	days        []time.Weekday     // that it skips
	slow        func(*call) time.Duration
	instead     func(*call) (reply, bool) // an answer other than the usual one, at times
	moves       bool                      // redirects lead to it or away from it
	quiet       bool                      // readers do not ask for it by itself
	target      bool                      // redirects of other feeds lead to it, which have validators of their own
	trap        bool                      // an adversary's: not all that its answers ask for is checked

	// What has happened so far, guarded by the mutex of the origins.
	asked, failures int
	errors          int  // answers in a row that were not good, as far as the gateway may know
	emptied         bool // the last document had no entries
	inFlight        int
	lastEnd         time.Time
	next, earliest  time.Time    // when it may be polled again: by itself, by hand
	sets            []validators // validators that the next request may carry
	given           []validators // all that were ever given
	known           bool         // the gateway has a version
	byHand          bool         // it is about to be polled by hand
	delivered       int          // version of the last good answer
	bodies          map[uint64]int
}

// reply is an answer and what it means.
type reply struct {
	status     int
	header     [][2]string
	body       []byte // as sent
	plain      []byte // without content codings
	delay      time.Duration
	drop       bool // the connection is closed without an answer
	cut        bool // the body breaks off
	good       bool // the gateway should accept it
	empty      bool // it has no entries, so it is accepted the second time in a row
	gone       bool
	version    int
	validators validators
	wait       time.Duration // before the URL is asked again
	retryAfter time.Duration // the same, for polls by hand too
	pause      time.Duration // before the host is asked again
}

// answer returns the resource's reply.
func (c *call) answer() reply {
	if c.instead != nil {
		if a, ok := c.instead(c); ok {
			return a
		}
	}
	return c.usual()
}

// usual is what a good server does: 304 if a validator matches, else 200.
func (c *call) usual() reply {
	a := reply{status: 200, good: true, version: c.version(), wait: c.wait, retryAfter: c.retryAfter, pause: c.pause}
	a.validators = validators{fmt.Sprintf(`"%s-%d"`, mustHost(c.url), a.version), c.published(a.version).Format(http.TimeFormat)}
	if c.etag != nil {
		a.validators.etag = c.etag(c)
	}
	if c.date != nil {
		a.validators.date = c.date(c)
	}
	if c.slow != nil {
		a.delay = c.slow(c)
	}
	header := c.resource.header
	if c.matches(a.validators) {
		a.status = http.StatusNotModified
		if c.on304 != nil {
			header = c.on304
		}
		if c.wait304 > 0 {
			a.wait = c.wait304
		}
	}
	a.set("Etag", a.validators.etag)
	a.set("Last-Modified", a.validators.date)
	for i := 0; i < len(header); i += 2 {
		a.set(header[i], strings.ReplaceAll(header[i+1], "{in 6h}", c.now.Add(6*time.Hour).UTC().Format(http.TimeFormat)))
	}
	if a.status == http.StatusOK {
		a.set("Content-Type", c.format.ContentType())
		a.plain = c.document(a.version)
		a.body = []byte(origintest.Encode(string(a.plain), c.coding...))
		if len(c.coding) > 0 {
			a.set("Content-Encoding", strings.Join(c.coding, ", "))
		}
	}
	return a
}

func (c *call) matches(current validators) bool {
	switch {
	case c.never304:
		return false
	case c.inm != "":
		return !c.ignoresETag && c.inm == current.etag
	}
	return c.ims != "" && c.ims == current.date
}

func (a *reply) set(name, value string) {
	if value != "" {
		a.header = append(a.header, [2]string{name, value})
	}
}

// version is the number of the newest entry, which counts up from 10.
func (c *call) version() int {
	every := c.every
	if every == 0 {
		every = 20 * time.Hour
	}
	// Each resource begins at another time of the day.
	shift := time.Duration(len(c.url)*7919%1000) * every / 1000
	if c.moves {
		shift = 0 // a feed has the same entries at its old and its new URL
	}
	return 10 + int((c.age+shift)/every)
}

func (c *call) published(version int) time.Time {
	every := c.every
	if every == 0 {
		every = 20 * time.Hour
	}
	return c.now.Add(-c.age).Add(time.Duration(version-11) * every).UTC()
}

// document is the feed at a version.
func (c *call) document(version int) []byte {
	d := origintest.Document{Format: c.format, Entries: version, Extra: c.channel}
	if c.noisy {
		d.Volatile = c.now.Format(time.RFC1123Z)
	}
	if c.dated {
		d.Newest = c.published(version)
	}
	return []byte(d.String())
}

// skips reports whether the resource asks not to be polled at a time.
func (r *resource) skips(t time.Time) bool {
	return slices.Contains(r.hours, t.UTC().Hour()) || slices.Contains(r.days, t.UTC().Weekday())
}
