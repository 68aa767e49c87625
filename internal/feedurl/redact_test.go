// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedurl

import (
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	for url, want := range map[string]string{
		"https://example.com/feed.xml":                                      "https://example.com/feed.xml",
		"https://example.com/feed?":                                         "https://example.com/feed?",
		"https://example.com/?format=rss&page=2&&x=":                        "https://example.com/?format=rss&page=2&&x=",
		"https://u:p@example.com/":                                          "https://***@example.com/",
		"https://u:p@w@example.com/a@b":                                     "https://***@example.com/a@b",
		"https://u:p/w@example.com/":                                        "https://***",
		"https://u:p?w@example.com/":                                        "https://***",
		"https://example.com/?key=abc&a=b":                                  "https://example.com/?key=***&a=b",
		"https://example.com/?access_token=x&auth=y&sig=z&password=1":       "https://example.com/?access_token=***&auth=***&sig=***&password=***",
		"https://example.com/?author=bob&design=x&keyword=y":                "https://example.com/?author=bob&design=x&keyword=y",
		"https://example.com/?channel_id=UCabcdefghijklmnop1234":            "https://example.com/?channel_id=***",
		"https://example.com/?q=a+long+sentence+of+many+words":              "https://example.com/?q=a+long+sentence+of+many+words",
		"https://example.com/?0123456789abcdef0123":                         "https://example.com/?***",
		"https://example.com/?x=0123456789abcdef":                           "https://example.com/?x=***",
		"https://example.com/?token=%zz":                                    "https://example.com/?token=***",
		"https://example.com/?a=1#token=abc":                                "https://example.com/?a=1",
		"https://example.com/a\r\nb":                                        "https://example.com/a  b",
		"https://a.example/?url=https%3A%2F%2Fu%3Ap%40b.example%2F%3Fk%3Dv": "https://a.example/?url=https%3A%2F%2F%2A%2A%2A%40b.example%2F%3Fk%3D%2A%2A%2A",
		"u:p@example.com/x":                                                 "***@example.com/x",
		"https://example.com/private-0123456789abcdef0123/basic.ics":        "https://example.com/private-***/basic.ics",
		"https://example.com/f/3f2a9c81-d0e5-4b7c-9a1e-0123456789ab.rss":    "https://example.com/f/***.rss",
		"https://example.com/2024-03-05-internationalization/comments2":     "https://example.com/2024-03-05-internationalization/comments2",
		"https://a.example/~x/https://u:p@b.example/@c":                     "https://a.example/~x/https://***@b.example/@c",
		"": "",
	} {
		if got := Redact(url); got != want {
			t.Errorf("Redact(%q) = %q, want %q", url, got, want)
		}
	}
}

// URLs within URLs are escaped once for each of those around them: a URL of 1 kB that
// is a chain of them had 16 kB in the log.
func TestRedactIsBounded(t *testing.T) {
	url := strings.Repeat("https://example.com/?x=", 50)
	if got := Redact(url); len(got) > len(url) {
		t.Errorf("%d bytes of %d: %s", len(got), len(url), got)
	}
	const want = "https://example.com/?x=https%3A%2F%2Fexample.com%2F%3Fx%3Dhttps%253A%252F%252Fexample.com%252F%253Fx%253D%252A%252A%252A"
	if got := Redact(url); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzRedact(f *testing.F) {
	for _, s := range []string{"https://example.com/", "http://@x", "?=", "a://b?c=d://e?f", "%", "https://example.com/?a=http%3A%2F%2Fx"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		const secret = "hunter2hunter2hunter2"
		for _, url := range []string{
			"https://user:" + secret + "@example.com/" + s,
			"https://example.com/" + strings.NewReplacer("#", "", "?", "").Replace(s) + "/" + secret + "/feed.xml",
			"https://example.com/?" + strings.NewReplacer("&", "", "=", "", "#", "").Replace(s) + "token=" + secret + "&" + s,
		} {
			got := Redact(url)
			if strings.Contains(got, secret) && !strings.Contains(s, secret) {
				t.Errorf("Redact(%q) = %q", url, got)
			}
			if strings.ContainsAny(got, "\r\n") {
				t.Errorf("Redact(%q) = %q: several lines", url, got)
			}
		}
	})
}

func TestShort(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"a\tfew\r\n  words ", "a few words"},
		{"exactly 12 c", "exactly 12 c"},
		{"more than twelve", "more than tw…"},
		{"twelve and a space", "twelve and a…"},
		{"a line after it", "a line after…"},
		{"\u202eback\x00wards\xff", "back wards"},
		{"\u0646\u0645\u06cc\u200c\u062e\u0648", "\u0646\u0645\u06cc\u200c\u062e\u0648"},
		{strings.Repeat(" ", 1<<20) + "x", "…"},
		{strings.Repeat("é", 1<<20), strings.Repeat("é", 12) + "…"},
	} {
		if got := Short(test.text, 12); got != test.want {
			t.Errorf("%.40q is shortened to %q, want %q", test.text, got, test.want)
		}
	}
}

// The example of how a password is written is not redacted.
func TestRedactText(t *testing.T) {
	for text, want := range map[string]string{
		"as in " + Example:                           "as in " + Example,
		"as in " + Example + "\nhttps://u:p@a.test/": "as in " + Example + " " + Redact("https://u:p@a.test/"),
	} {
		if got := RedactText(text); got != want || strings.Contains(got, "u:p@") {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
