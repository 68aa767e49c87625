// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/idna"
)

// HostTable finds what is said of a host by the most specific of its patterns:
// its own name, or else the longest *.domain that covers it. A pattern *.domain
// covers all hosts below the domain, not the domain itself.
type HostTable[T any] struct {
	names   map[string]T
	domains map[string]T // without the "*."
}

// Add enters a pattern and returns whether it was new.
func (t *HostTable[T]) Add(pattern string, value T) (added bool, err error) {
	normal, err := ParseHostPattern(pattern)
	if err != nil {
		return false, err
	}
	if t.names == nil {
		t.names, t.domains = make(map[string]T), make(map[string]T)
	}
	into, name := t.names, normal
	if domain, ok := strings.CutPrefix(normal, "*."); ok {
		into, name = t.domains, domain
	}
	if _, known := into[name]; known {
		return false, nil
	}
	into[name] = value
	return true, nil
}

// Find returns what the most specific pattern for a host says. The host is one
// that NormalHost returned.
func (t *HostTable[T]) Find(host string) (value T, ok bool) {
	if value, ok = t.names[host]; ok {
		return value, true
	}
	if len(t.domains) == 0 {
		return value, false
	}
	for {
		_, rest, more := strings.Cut(host, ".")
		if !more {
			return value, false
		}
		if value, ok = t.domains[rest]; ok {
			return value, true
		}
		host = rest
	}
}

// Covering returns what is said of hosts by all patterns that cover a pattern or
// host, itself included, the widest first.
func (t *HostTable[T]) Covering(normal string) []T {
	var found []T
	if value, ok := t.names[normal]; ok {
		found = append(found, value)
	}
	host, wild := strings.CutPrefix(normal, "*.")
	for more := true; more; {
		if wild {
			if value, ok := t.domains[host]; ok {
				found = append(found, value)
			}
		}
		_, host, more = strings.Cut(host, ".")
		wild = true
	}
	slices.Reverse(found)
	return found
}

// ParseHostPattern checks a host pattern and returns it in normal form.
func ParseHostPattern(pattern string) (string, error) {
	bad := func(why string) error {
		return fmt.Errorf("%q is no host pattern: %s: expected a host such as example.com, or *.example.com for all hosts below it", pattern, why)
	}
	switch {
	case strings.Contains(pattern, "/"):
		return "", bad("it holds a slash")
	case strings.HasPrefix(pattern, "*") && !strings.HasPrefix(pattern, "*."):
		return "", bad("a star stands for whole labels")
	}
	name, wild := strings.CutPrefix(pattern, "*.")
	if strings.Contains(name, "*") {
		return "", bad("a star stands only at the beginning")
	}
	if address := strings.Trim(name, "[]"); !wild {
		if ip, err := netip.ParseAddr(address); err == nil {
			return ip.String(), nil
		}
	}
	if strings.Contains(name, ":") {
		return "", bad("a port cannot be part of it")
	}
	normal := NormalHost(name)
	if !IsHostName(normal) {
		return "", bad("it is no host name")
	}
	if wild {
		return "*." + normal, nil
	}
	return normal, nil
}

// SamePattern reports whether two valid patterns are spellings of one.
func SamePattern(a, b string) bool {
	a, errA := ParseHostPattern(a)
	b, errB := ParseHostPattern(b)
	return errA == nil && errB == nil && a == b
}

// NormalHost returns a host, without port, in the one form in which hosts are
// compared: what a connection would be made to. Otherwise "Example.COM.", or the
// same in other letters of Unicode, would slip by a rule for example.com.
func NormalHost(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if strings.HasPrefix(host, "xn--") || !isASCII(host) || strings.Contains(host, ".xn--") {
		if ascii, err := idna.Lookup.ToASCII(host); err == nil {
			host = strings.TrimSuffix(ascii, ".")
		}
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	return host
}

// HostOf returns the normal host of a canonical URL, "" where it cannot be told.
func HostOf(canonical string) string {
	u, err := url.Parse(canonical)
	if err != nil {
		return ""
	}
	return NormalHost(u.Hostname())
}

// IsHostName reports whether a name in normal form could be a host's: labels of
// letters, digits, hyphens and underscores.
func IsHostName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			c := label[i]
			if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
				return false
			}
		}
	}
	return true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
