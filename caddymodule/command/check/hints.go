// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// checkHints judges the hints of header and document.
func (x *checker) checkHints() {
	explicit := false
	for _, t := range x.decision.Considered {
		switch {
		case !policy.Explicit(t.Hint):
		case t.Seconds > 0:
			explicit = true
			raw := t.Raw
			if !strings.HasPrefix(strings.ToLower(raw), t.Hint) { // directives have their name with them
				raw = status.HintShort(t.Hint) + " " + raw
			}
			x.good("It says how often to ask: %s.", raw)
		case t.Hint == policy.HintSy && t.Note != "":
			x.find("hint-ignored", fmt.Sprintf("%s %s: %s", status.HintShort(t.Hint), t.Raw, t.Note))
		}
	}
	if !explicit {
		x.find("no-hint", x.cacheFields())
	}
	x.checkCacheControl()
	for _, t := range x.document.Malformed {
		x.find("malformed-hint", strings.TrimSpace(fmt.Sprintf("%s %s: %s", status.HintShort(t.Hint), strconv.Quote(t.Raw), t.Note)))
	}
	if self := x.document.Hints.Self; self != "" {
		x.checkSelf(self)
	}
	for _, hub := range x.document.Hints.Hubs {
		x.good("It names a WebSub hub: %s.", hub)
	}
}

// cacheFields returns the fields that could have a hint.
func (x *checker) cacheFields() string {
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

func (x *checker) checkCacheControl() {
	lines := x.first.Header.Values("Cache-Control")
	written := "Cache-Control: " + strings.Join(lines, ", ")
	control := policy.ParseCacheControl(lines)
	for _, directive := range control {
		if directive.Name != "max-age" && directive.Name != "s-maxage" {
			continue
		}
		if _, ok := policy.ParseNumber(directive.Argument); !ok {
			x.find("cache-control-syntax", written, directive.Name)
			return
		}
	}
	switch length, given := control.Seconds("max-age"); {
	case control.Has("no-store"), control.Has("private"):
		x.find("not-cacheable", written)
	case given && length > 7*24*time.Hour:
		x.find("long-lifetime", written, strconv.Itoa(int(length/(24*time.Hour))))
	}
	for _, value := range x.first.Header.Values("Expires") {
		if _, err := http.ParseTime(value); err != nil && value != "0" && value != "-1" {
			x.find("expires-syntax", "Expires: "+value)
		}
	}
}

// checkSelf compares the feed's own address with the URL that answered.
func (x *checker) checkSelf(self string) {
	own, err := feedurl.Parse(self)
	answered, err2 := feedurl.Parse(x.first.URL)
	if err == nil && err2 == nil && own != answered {
		x.find("other-self", "rel=\"self\" is "+feedurl.Redact(self)+", and "+feedurl.Redact(x.first.URL)+" answered.")
	}
}
