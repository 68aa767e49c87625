// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/json"
	"net/http"
)

// JSON is text, and what header fields hold is octets: obs-text (RFC 9110 section
// 5.5) is seldom UTF-8, and JSON would put U+FFFD in its place. So validators and
// fields are kept as ISO 8859-1, in which each octet is a character.

// encode is the memo as it is stored.
func (m memo) encode() ([]byte, error) {
	m.convert(widen)
	return json.Marshal(&m)
}

// decode is the inverse of encode.
func (m *memo) decode(stored []byte) error {
	if err := json.Unmarshal(stored, m); err != nil {
		return err
	}
	m.convert(narrow)
	return nil
}

func (m *memo) convert(octets func(string) string) {
	m.Validators.ETag, m.Validators.LastModified = octets(m.Validators.ETag), octets(m.Validators.LastModified)
	m.Version.OriginTag = octets(m.Version.OriginTag)
	if m.Version.Header == nil {
		return
	}
	header := make(http.Header, len(m.Version.Header)) // the old one belongs to a published state
	for name, values := range m.Version.Header {
		for _, v := range values {
			header[name] = append(header[name], octets(v))
		}
	}
	m.Version.Header = header
}

// widen makes a character of each octet.
func widen(octets string) string {
	text := make([]rune, len(octets))
	for i := range len(octets) {
		text[i] = rune(octets[i])
	}
	return string(text)
}

// narrow makes an octet of each character.
func narrow(text string) string {
	octets := make([]byte, 0, len(text))
	for _, r := range text {
		octets = append(octets, byte(r))
	}
	return string(octets)
}
