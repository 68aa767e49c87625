// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// ErrNotFeedURL says that a text cannot be the URL of a feed.
var ErrNotFeedURL = errors.New("not a feed URL")

// maxURL is the longest URL accepted, in bytes.
const maxURL = 4096

// Canonical returns the form of a feed's URL under which it is known: scheme and
// host in lower case, without a default port and fragment. Path and query stay
// byte for byte what they are, as an origin may tell them apart.
func Canonical(raw string) (string, error) {
	if len(raw) > maxURL {
		return "", fmt.Errorf("%w: longer than %d bytes", ErrNotFeedURL, maxURL)
	}
	if i := strings.IndexByte(raw, '#'); i >= 0 {
		raw = raw[:i]
	}
	for i := range len(raw) {
		if raw[i] <= ' ' || raw[i] == 0x7f {
			return "", fmt.Errorf("%w: white space or a control character in it", ErrNotFeedURL)
		}
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotFeedURL, errors.Unwrap(err))
	}
	scheme := strings.ToLower(u.Scheme)
	if scheme != "http" && scheme != "https" {
		return "", fmt.Errorf("%w: it must begin with http:// or https://", ErrNotFeedURL)
	}
	host := strings.TrimSuffix(strings.ToLower(u.Host), ":"+map[string]string{"http": "80", "https": "443"}[scheme])
	switch {
	case u.Hostname() == "":
		return "", fmt.Errorf("%w: it names no host", ErrNotFeedURL)
	case strings.Contains(host, "%"):
		// A zone (RFC 6874) means something on one machine only.
		return "", fmt.Errorf("%w: an address with a zone in it", ErrNotFeedURL)
	}
	// The target is cut out of the text, not rebuilt from the parts: rebuilding
	// would normalise escapes.
	rest := raw[strings.Index(raw, "//")+2:]
	target := "/"
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		target = rest[i:]
		if target[0] == '?' {
			target = "/" + target
		}
	}
	user := ""
	if u.User != nil {
		user = u.User.String() + "@"
	}
	return scheme + "://" + user + host + target, nil
}

// idOf names the feed of a canonical URL.
func idOf(canonical string) ID {
	sum := sha256.Sum256([]byte(canonical))
	return ID(sum[:16])
}
