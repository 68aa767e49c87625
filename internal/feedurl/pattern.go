// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedurl

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// ParsePattern checks a pattern of hosts and returns it in normal form. A pattern
// is a host, which covers that host alone; *.domain, which covers all hosts below
// the domain at any depth but not the domain itself (as in DNS, RFC 4592, and in
// certificates); or *, which covers all hosts.
func ParsePattern(pattern string) (string, error) {
	bad := func(why string) error {
		return fmt.Errorf("%q is no host pattern: %s: expected a host such as example.com, *.example.com for all hosts below it, or *", pattern, why)
	}
	name, wild := strings.CutPrefix(pattern, "*.")
	switch {
	case pattern == "*":
		return pattern, nil
	case strings.Contains(pattern, "/"):
		return "", bad("there is a slash in it")
	case strings.Contains(name, "*"):
		return "", bad("a star stands only at the beginning, for whole labels")
	}
	host, err := ParseHost(name)
	if err != nil {
		if strings.Contains(name, ":") {
			return "", bad("a port cannot be part of it")
		}
		return "", bad(strings.TrimPrefix(err.Error(), ErrInvalid.Error()+": "))
	}
	if !wild {
		return host, nil
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return "", bad("there is nothing below an address")
	}
	return "*." + host, nil
}

// HostTable maps patterns of hosts to values. It is safe for concurrent reads.
type HostTable[T any] struct {
	entries map[string]T // by pattern in normal form
}

// ErrDuplicate reports that a pattern is already in a table, maybe in another spelling.
var ErrDuplicate = errors.New("pattern is given twice")

// Add adds a pattern. It returns an error if the pattern is invalid, or [ErrDuplicate].
func (t *HostTable[T]) Add(pattern string, value T) error {
	normal, err := ParsePattern(pattern)
	if err != nil {
		return err
	}
	if _, known := t.entries[normal]; known {
		return fmt.Errorf("%w: %s", ErrDuplicate, pattern)
	}
	if t.entries == nil {
		t.entries = make(map[string]T)
	}
	t.entries[normal] = value
	return nil
}

// Find returns the value of the most specific pattern that covers a host in the form of
// [URL.Name]: the host itself, or else the longest *.domain, or else *.
func (t *HostTable[T]) Find(host string) (value T, found bool) {
	if len(t.entries) == 0 {
		return value, false
	}
	for pattern := host; ; pattern = wider(pattern) {
		if value, found = t.entries[pattern]; found || pattern == "*" {
			return value, found
		}
	}
}

// Covering returns the values of all patterns that cover a host or pattern in normal
// form, the widest first and its own last.
func (t *HostTable[T]) Covering(normal string) []T {
	var values []T
	for pattern := normal; ; pattern = wider(pattern) {
		if value, found := t.entries[pattern]; found {
			values = append(values, value)
		}
		if pattern == "*" {
			slices.Reverse(values)
			return values
		}
	}
}

// wider is the next wider pattern: *.b.c of a.b.c, *.c of *.b.c, * of *.c.
func wider(pattern string) string {
	_, parent, more := strings.Cut(strings.TrimPrefix(pattern, "*."), ".")
	if !more || strings.Contains(pattern, ":") {
		return "*"
	}
	return "*." + parent
}
