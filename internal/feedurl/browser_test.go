// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedurl

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	whatwg "github.com/nlnwa/whatwg-url/url"
	"pgregory.net/rapid"
)

// hosts are those of one URL: as Pollard reads it, and as the URL standard
// (https://url.spec.whatwg.org/#host-parsing) does, by which browsers go. Empty: refused.
type hosts struct{ raw, ours, standard string }

// browserDifferences are the ways in which the two may differ.
var browserDifferences = []struct {
	why     string
	example string
	is      func(h hosts) bool
}{
	{"a trailing dot makes no other host", "example.com.", func(h hosts) bool {
		return h.ours == strings.TrimSuffix(strings.Replace(h.standard, ".:", ":", 1), ".")
	}},
	{"an IPv6 address that stands for an IPv4 address is one", "[::ffff:1.2.3.4]", func(h hosts) bool {
		return strings.HasPrefix(h.raw, "[::") && address(h.ours).Is4() && address(h.standard).Unmap() == address(h.ours)
	}},
	{"a name in ASCII is looked up as written, even if it decodes to nothing", "xn--127", func(h hosts) bool {
		host := strings.FieldsFunc(h.raw, func(r rune) bool { return strings.ContainsRune("/?#@", r) })
		return h.standard == "" && strings.Contains(h.ours, "xn--") && slices.ContainsFunc(host, isASCII)
	}},
	{"whatwg-url takes a sign, and too many digits, for those of a number, and the label for an address", "0x-1", func(h hosts) bool {
		name, _, _ := strings.Cut(h.ours, ":")
		label := name[strings.LastIndex(name, ".")+1:]
		return label != "" && '0' <= label[0] && label[0] <= '9' && (h.standard == "" || address(h.standard).Is4())
	}},
	{"the brackets of an IPv6 address may be escaped", "%5b::1%5d", func(h hosts) bool {
		return h.standard == "" && strings.Contains(h.raw, "%5") && address(h.ours).Is6()
	}},
	{"white space behind a pasted URL", "a #", func(h hosts) bool {
		pasted, _, cut := strings.Cut(h.raw, "#")
		return h.standard == "" && cut && pasted != trim(pasted)
	}},

	// The rest is refused: it would only be guessed what a person meant.
	{"control characters and backslashes", "a\\b", func(h hosts) bool {
		return h.ours == "" && strings.ContainsFunc(h.raw, func(r rune) bool { return isControl(r) || r == '\\' })
	}},
	{"a number, or parts of an IPv4 address in other notations", "0x7f.1", func(h hosts) bool {
		return h.ours == "" && address(h.standard).Is4()
	}},
	{"no host, and labels that no server of names knows", "a..b", func(h hosts) bool {
		name, _, _ := strings.Cut(h.standard, ":")
		return h.ours == "" && !isName(name)
	}},
	{"hyphens and underscores where RFC 5891 forbids them in an international name", "\u00fc-", func(h hosts) bool {
		return h.ours == "" && !isASCII(h.raw) && strings.ContainsAny(h.raw, "-_")
	}},
	{"port 0, at which no server can be", "a:0", func(h hosts) bool { return h.ours == "" && strings.HasSuffix(h.standard, ":0") }},
	{"credentials that must be escaped", "a|b@c", func(h hosts) bool { return h.ours == "" && strings.Contains(h.raw, "@") }},
	{"slashes before the host", "/a", func(h hosts) bool { return h.ours == "" && strings.HasPrefix(h.raw, "/") }},
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 })
}

// address returns the address in a host with or without port.
func address(host string) netip.Addr {
	if u, err := Parse("http://" + host); err == nil {
		return u.Addr()
	}
	return netip.Addr{}
}

// checkHost fails if a browser would read another host in the URL http://<raw>/, or refuse it, or read one where
// there is none, without a reason in browserDifferences. It returns these reasons.
func checkHost(t rapid.TB, raw string) (reasons []string) {
	h := hosts{raw: raw}
	if u, err := Parse("http://" + raw + "/"); err == nil {
		h.ours = u.HostPort()
	}
	if u, err := whatwg.Parse("http://" + raw + "/"); err == nil {
		h.standard = u.Host()
	}
	if h.ours == h.standard {
		return nil
	}
	for _, d := range browserDifferences {
		if d.is(h) {
			reasons = append(reasons, d.why)
		}
	}
	if len(reasons) == 0 {
		t.Errorf("the host of %q is %q, and in browsers %q", raw, h.ours, h.standard)
	}
	return reasons
}

// Of a URL that a person or a site has written, the host that is polled is the one that a browser would ask.
func TestHostsOfBrowsers(t *testing.T) {
	for _, raw := range []string{
		"example.com", "EXAMPLE.com:80", "b\u00fccher.example", "B\u00dcCHER.example", "stra\u00dfe.example", "xn--bcher-kva.example", "\u0130stanbul.example", "\u017f.example", "\u212a.example",
		"a\u3002b", "a\uff0eb", "\uff11\uff12\uff17.0.0.1", "a\u00adb", "a\u200db", "\u05d0.example", "1.2.3.4", "[2001:DB8::1]:8080", "[::]", "a%2eb", "u:p@a", "u@b@c", "a:80:80", "[::1", "a b", "%00", "a%", "a\xbb", "a%bb", "%d4\xb6", "a\ufffd",
	} {
		if reasons := checkHost(t, raw); len(reasons) > 0 && raw != "u@b@c" {
			t.Errorf("%q differs: %s", raw, reasons)
		}
	}
	for _, d := range browserDifferences {
		found := false
		for _, why := range checkHost(t, d.example) {
			found = found || why == d.why
		}
		if !found {
			t.Errorf("%q is no longer an example for: %s", d.example, d.why)
		}
	}

	pieces := []string{"a", "B", "xn--", "xn--bcher-kva", "\u00fc", "\u00df", "\u3002", "\uff0e", "1", "0", "127", "0x", "7f", "256", ".", "-", "_", "@", ":", "[", "]", "::", "%", "%2e", "%41", "%5B",
		"\\", "/", "?", "#", " ", "\t", "\x00", "\xff", "!", "+", "*", "~", "|", "ffff:", "80", "\u200d", "\u00ad", "\uff11", "\u0130", "\u017f", "\u212a", "\u0301", "\u05d0"}
	rapid.Check(t, func(t *rapid.T) {
		checkHost(t, strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 8).Draw(t, "pieces"), ""))
	})
}

// FuzzHostsOfBrowsers is the same for any text.
func FuzzHostsOfBrowsers(f *testing.F) {
	for _, d := range browserDifferences {
		f.Add(d.example)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if len(raw) < 200 {
			checkHost(t, raw)
		}
	})
}
