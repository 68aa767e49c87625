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

// errPersonal says that a request is for its reader alone.
var errPersonal = errors.New("the site's answer depends on who asks")

// impersonal are fields of requests that shared ones have no use for: the key has
// what they say, or handlers make them.
var impersonal = map[string]bool{
	"Host": true, "X-Forwarded-Host": true, "X-Forwarded-Proto": true, "X-Forwarded-Scheme": true, "X-Forwarded-Port": true,
}

// credentials are names of fields that tell readers apart: what an answer with them
// says is for one of them.
var credentials = regexp.MustCompile(`(?i)^(cookie|authorization|proxy-authorization|x-forwarded-for|forwarded|x-real-ip|via|connection|` +
	`range|if-range|if-match|if-none-match|if-modified-since|if-unmodified-since)$|key|token|auth|secret|session|passw|credential|signature`)

// variantOf is which variant a request asks for, where the site tells readers apart by
// the fields named, and the values that the site is sent for it. It is empty for the
// plain feed: the request has none of the fields. The values of readers' fields are
// neither stored nor shown, so a variant is a hash of them with a secret of the feed.
func variantOf(fields []string, secret []byte, h http.Header) (variant string, sent http.Header, err error) {
	sum := hmac.New(sha256.New, secret)
	sent = http.Header{}
	for _, name := range fields {
		name = http.CanonicalHeaderKey(name)
		values := h[name]
		if len(values) == 0 || impersonal[name] {
			continue
		}
		if credentials.MatchString(name) {
			return "", nil, errPersonal
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
		return "", nil, errPersonal // it comes with the next poll
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), sent, nil
}
