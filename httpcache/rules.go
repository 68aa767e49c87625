// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"net/textproto"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// rules are what a response says about its own storage and reuse.
type rules struct {
	lifetime time.Duration // how long it is fresh, from age 0
	explicit bool          // the lifetime was told, not guessed

	noStore        bool
	private        bool // for one reader only, as a whole
	public         bool
	mustUnderstand bool
	authorized     bool // may be stored though the request carried Authorization
	noCache        bool // never without validation
	strict         bool // not without validation once it is stale

	whileRevalidate time.Duration // stale-while-revalidate; 0: not allowed
	ifError         time.Duration // stale-if-error
	ifErrorGiven    bool

	omitted []string // fields that are not to be stored
}

// rulesOf reads the rules of a response that came at a given time.
func rulesOf(status int, header http.Header, received time.Time) rules {
	control, targeted := controlOf(header)
	r := rules{
		noStore:        control.Has("no-store"),
		public:         control.Has("public"),
		mustUnderstand: control.Has("must-understand"),
		noCache:        whole(control, "no-cache"),
		private:        whole(control, "private"),
		// RFC 9111 section 5.2.2.10: s-maxage includes proxy-revalidate.
		strict: control.Has("must-revalidate") || control.Has("proxy-revalidate") || control.Has("s-maxage"),
		// RFC 9111 section 3.5.
		authorized: control.Has("public") || control.Has("must-revalidate") || control.Has("s-maxage"),
	}
	for _, directive := range []string{"no-cache", "private"} {
		for _, name := range control.Fields(directive) {
			r.omitted = append(r.omitted, textproto.CanonicalMIMEHeaderKey(name))
		}
	}
	r.whileRevalidate, _ = control.Seconds("stale-while-revalidate")
	r.ifError, r.ifErrorGiven = control.Seconds("stale-if-error")
	r.lifetime, r.explicit = explicitLifetime(header, control, targeted, received)
	if !r.explicit {
		r.lifetime = heuristicLifetime(status, header, r.public, received)
	}
	return r
}

// whole reports whether no-cache or private is there for the whole response, and
// not only for fields that it names (RFC 9111 sections 5.2.2.4 and 5.2.2.7).
func whole(control policy.CacheControl, directive string) bool {
	return control.HasBare(directive) || control.Has(directive) && len(control.Fields(directive)) == 0
}
