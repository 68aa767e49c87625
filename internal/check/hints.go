// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// judgeHints looks at what header and document say about polling.
func (x *examination) judgeHints() {
	h := policy.History{}.Learn(x.first, x.document, false)
	d := policy.Decide(x.Rules, h, x.first, x.first.At, 0)
	explicit := false
	for _, t := range d.Considered {
		switch t.Hint {
		case policy.HintSMaxAge, policy.HintMaxAge, policy.HintExpires, policy.HintTTL, policy.HintSy, policy.HintUpdateFrequency:
			if t.Seconds > 0 {
				explicit = true
				x.good("It says how often to ask: %s %s.", t.Hint, t.Raw)
			} else if t.Hint == policy.HintSy && t.Note != "" {
				x.find(Advice, "hint-ignored", "A hint says nothing", fmt.Sprintf("%s %s: %s", t.Hint, t.Raw, t.Note),
					"State how often the feed really changes, or leave it out.")
			}
		}
	}
	if !explicit {
		x.find(Advice, "no-hint", "Nothing says how often to ask", x.cacheFields(),
			"Send Cache-Control: max-age=3600 (an hour, or whatever suits you): good readers obey, and so do gateways. In RSS, <ttl>60</ttl> says the same.")
	}
	x.judgeCacheControl()
	for _, t := range x.document.Malformed {
		x.find(Problem, "malformed-hint", "A hint in the document is malformed", strings.TrimSpace(fmt.Sprintf("%s %s: %s", t.Hint, strconv.Quote(t.Raw), t.Note)),
			"Correct it, or leave it out: it is ignored.")
	}
	if self := x.document.Hints.Self; self != "" {
		x.judgeSelf(self)
	}
	for _, hub := range x.document.Hints.Hubs {
		x.good("It names a WebSub hub: %s.", hub)
	}
}

// cacheFields are the fields that could have said how often to ask.
func (x *examination) cacheFields() string {
	var fields []string
	for _, name := range []string{"Cache-Control", "Expires", "Pragma"} {
		for _, value := range x.first.Header.Values(name) {
			fields = append(fields, name+": "+value)
		}
	}
	if len(fields) == 0 {
		return "There is neither a Cache-Control nor an Expires, and the document has no hint."
	}
	return strings.Join(fields, ", ")
}

func (x *examination) judgeCacheControl() {
	lines := x.first.Header.Values("Cache-Control")
	written := "Cache-Control: " + strings.Join(lines, ", ")
	control := policy.ParseCacheControl(lines)
	for _, directive := range control {
		if directive.Name != "max-age" && directive.Name != "s-maxage" {
			continue
		}
		if _, err := strconv.ParseUint(directive.Argument, 10, 64); err != nil {
			x.find(Problem, "cache-control-syntax", "The Cache-Control is malformed", written,
				"Write the length in seconds, without a unit, as in "+directive.Name+"=3600.")
			return
		}
	}
	switch length, given := control.Seconds("max-age"); {
	case control.Has("no-store"), control.Has("private"):
		x.find(Advice, "not-cacheable", "Caches may not store the feed", written,
			"Allow it, as in Cache-Control: max-age=3600, unless each reader gets another feed.")
	case given && length > 7*24*time.Hour:
		x.find(Advice, "long-lifetime", "Readers may come late", written,
			"This tells readers not to ask for "+strconv.Itoa(int(length/(24*time.Hour)))+" days. An hour to a day suits most feeds.")
	}
	for _, value := range x.first.Header.Values("Expires") {
		if _, err := policy.ParseHTTPDate(value, x.first.At); err != nil && value != "0" && value != "-1" {
			x.find(Problem, "expires-syntax", "The Expires is malformed", "Expires: "+value,
				"Write it as in Expires: Sat, 21 Nov 2026 08:00:00 GMT, or use Cache-Control: max-age.")
		}
	}
}

// judgeSelf compares the address that the feed gives as its own with the one that
// answered.
func (x *examination) judgeSelf(self string) {
	own, err := feedurl.Parse(self)
	answered, err2 := feedurl.Parse(x.first.URL)
	if err == nil && err2 == nil && own != answered {
		x.find(Advice, "other-self", "The feed gives another address as its own",
			"rel=\"self\" is "+feedurl.Redact(self)+", and "+feedurl.Redact(x.first.URL)+" answered.",
			"Name the address that is to be subscribed to: some readers move there.")
	}
}
