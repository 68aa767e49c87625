// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedurl

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden replaces removed parts of a URL.
const hidden = "***"

var (
	// secretNames are the names of parameters that carry credentials.
	secretNames = regexp.MustCompile(`(?i)token|secret|passw|pwd|session|credential|bearer|jwt|signature|` +
		`(key|auth|sig|hash|code|access)$|^(auth[_-].*|sid|pass|pw|t|k|u|uid|user|login|email|hmac|otp|pin)$`)
	// secretValue matches generated credentials: long, without spaces or dots of a host name.
	secretValue = regexp.MustCompile(`^[A-Za-z0-9_\-+/=~]{16,}$`)
	// secretRun matches them in a path, which also has words, dates and identifiers: one
	// long run, or a UUID (RFC 9562).
	secretRun = regexp.MustCompile(`[A-Za-z0-9]{16,}|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`)
	digit     = regexp.MustCompile(`[0-9]`)
	letter    = regexp.MustCompile(`[A-Za-z]`)
)

// Redact returns a URL, canonical or not, for logs and pages: without credentials, and
// without the parameters and parts of the path that look like credentials. Every URL that
// leaves the program other than in a request goes through it.
func Redact(raw string) string { return redact(raw, maxNested) }

// maxNested is how many URLs within URLs are shown. Each doubles the escapes of those
// within it, so the result would grow without bound.
const maxNested = 2

func redact(raw string, nested int) string {
	raw, _, _ = strings.Cut(raw, "#")
	rest, query, asked := strings.Cut(raw, "?")
	if scheme, after, ok := strings.Cut(rest, "://"); ok {
		authority, path, slash := strings.Cut(after, "/")
		if _, err := url.Parse("http://" + authority); err != nil {
			return OneLine(scheme) + "://" + hidden // a password with a slash or question mark in it, for example
		}
		if i := strings.LastIndexByte(authority, '@'); i >= 0 {
			authority = hidden + authority[i:]
		}
		if rest = scheme + "://" + authority; slash {
			rest += "/" + redactPath(path)
		}
	} else if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = hidden + redactPath(rest[i:]) // not a URL: the text before an @ may be a password
	} else {
		rest = redactPath(rest)
	}
	if !asked {
		return OneLine(rest)
	}
	parameters := strings.Split(query, "&")
	for i, p := range parameters {
		parameters[i] = redactParameter(p, nested)
	}
	return OneLine(rest + "?" + strings.Join(parameters, "&"))
}

func redactPath(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		// The authority of a URL within the URL.
		if at := strings.LastIndexByte(segment, '@'); at > 0 && strings.Contains(segment[:at], ":") {
			segment = hidden + segment[at:]
		}
		segments[i] = secretRun.ReplaceAllStringFunc(segment, func(run string) string {
			if digit.MatchString(run) && letter.MatchString(run) {
				return hidden
			}
			return run
		})
	}
	return strings.Join(segments, "/")
}

func redactParameter(p string, nested int) string {
	name, value, ok := strings.Cut(p, "=")
	if !ok {
		if looksSecret(p) {
			return hidden
		}
		return p
	}
	plain, err := url.QueryUnescape(value)
	if err != nil {
		plain = value
	}
	switch {
	case value == "":
		return p
	case secretNames.MatchString(name), looksSecret(plain), strings.Contains(plain, "://") && nested == 0:
		return name + "=" + hidden
	case strings.Contains(plain, "://"):
		return name + "=" + url.QueryEscape(redact(plain, nested-1)) // a URL within the URL
	}
	return p
}

func looksSecret(value string) bool {
	return secretValue.MatchString(value) && digit.MatchString(value) && letter.MatchString(value)
}

// Short converts a foreign text to one line of at most so many characters, and an ellipsis
// if it is cut. It leaves out what cannot be printed, such as marks that change the direction
// of the text, but not those that join letters or keep them apart.
func Short(s string, most int) string {
	cut := len(s) > 8*most // texts of origins may have megabytes
	if cut {
		s = s[:8*most]
	}
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), isControl(r):
			return ' '
		case r == utf8.RuneError, !unicode.IsPrint(r) && r != '\u200c' && r != '\u200d':
			return -1
		}
		return r
	}, s)), " ")
	if runes := []rune(s); len(runes) > most {
		return strings.TrimRight(string(runes[:most]), " ") + "…"
	}
	if cut {
		s += "…"
	}
	return s
}

// Message returns the text of an error as one line of at most 400 characters: it may quote whatever an
// origin has sent.
func Message(text string) string { return Short(text, 400) }

// OneLine keeps a foreign text on one line, and makes it valid UTF-8.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if isControl(r) || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, s)
}

// Redacted is a URL that hides what may be a credential when it is printed or encoded.
type Redacted string

// String returns the URL without credentials.
func (r Redacted) String() string { return Redact(string(r)) }

// MarshalText implements [encoding.TextMarshaler]. It leaves out credentials.
func (r Redacted) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Open reports whether the URL has nothing to hide.
func (r Redacted) Open() bool { return r.String() == string(r) }

var inText = regexp.MustCompile(`https?://[^\s"'<>]+`)

// Example shows how a name and a password are written.
const Example = "https://name:password@example.com/feed"

// RedactText hides credentials in the URLs of a text but [Example], and keeps it on one line.
func RedactText(text string) string {
	return inText.ReplaceAllStringFunc(OneLine(text), func(u string) string {
		if strings.TrimRight(u, ".,;:)") == Example {
			return u
		}
		return Redact(u)
	})
}
