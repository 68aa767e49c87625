// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpfield

import (
	"strings"
	"testing"
)

func TestLink(t *testing.T) {
	for _, tt := range []struct{ field, hub, self string }{
		{`<https://hub.example/>; rel="hub"`, "https://hub.example/", ""},
		{`<https://hub.example/>;rel=hub, <https://a.example/feed?a=1,2>;rel=self`, "https://hub.example/", "https://a.example/feed?a=1,2"},
		{`<//hub.example>; title="a, <b>; rel=self"; REL="alternate Hub self"`, "//hub.example", "//hub.example"},
		{`</one>; rel=hub, </two>; rel=hub`, "/one", ""},
		{`</one>; rel=next; rel=hub, </two>; rel="hub"`, "/two", ""}, // RFC 8288 section 3.3
		{`</one>; rel=hub; anchor="#part"`, "", ""},
		{`</one>; rel=hubs; x=hub`, "", ""},
		{`< /one >;rel=hub`, "/one", ""},
		{`https://hub.example/; rel=hub`, "", ""},
		{`<https://hub.example/; rel=hub`, "", ""},
		{`</one>; rel="hub`, "/one", ""},
		{"", "", ""},
		{"</one>; rel=next\n</two>; rel=hub\n</three>; rel=self", "/two", "/three"},
		{strings.Repeat("</x>;rel=x,", maxLinks) + "</late>;rel=hub", "", ""},
	} {
		lines := strings.Split(tt.field, "\n")
		if hub, self := Link(lines, "hub"), Link(lines, "self"); hub != tt.hub || self != tt.self {
			t.Errorf("%s: hub %q, self %q, want %q, %q", tt.field, hub, self, tt.hub, tt.self)
		}
	}
}
