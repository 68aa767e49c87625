// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"regexp"
	"strconv"
)

// errNoVariant is returned if the response to a request cannot be shared.
var errNoVariant = errors.New("the site's response depends on the reader")

// inKey are request fields that polls do not send: the key contains their values.
var inKey = map[string]bool{
	"Host": true, "X-Forwarded-Host": true, "X-Forwarded-Proto": true, "X-Forwarded-Scheme": true, "X-Forwarded-Port": true,
}

// credentials matches the names of fields that identify a reader. A response that varies by one
// of them is for that reader only.
var credentials = regexp.MustCompile(`(?i)^(cookie|authorization|proxy-authorization|x-forwarded-for|forwarded|x-real-ip|via|connection|` +
	`range|if-range|if-match|if-none-match|if-modified-since|if-unmodified-since)$|key|token|auth|secret|session|passw|credential|signature`)

// variantOf returns the variant that a request is for, if the origin's responses vary by the
// named fields, and the fields that a poll for it sends. It is empty if the request has none of
// the fields. Values of readers' fields are neither stored nor shown: a variant is their hash,
// with a secret of the feed.
func variantOf(fields []string, secret []byte, h http.Header) (variant string, sent http.Header, err error) {
	sum := hmac.New(sha256.New, secret)
	sent = http.Header{}
	for _, name := range fields {
		name = http.CanonicalHeaderKey(name)
		values := h[name]
		if len(values) == 0 || inKey[name] {
			continue
		}
		if credentials.MatchString(name) {
			return "", nil, errNoVariant
		}
		sent[name] = append([]string(nil), values...)
		for _, part := range append([]string{name}, values...) { // each with its length: no two lists are one text
			sum.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
		}
		sum.Write([]byte{0})
	}
	switch {
	case len(sent) == 0:
		return "", nil, nil
	case len(secret) == 0:
		return "", nil, errNoVariant // the next poll makes one
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), sent, nil
}
