// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/feedpollard/pollard/internal/markup"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document/site"
)

// challenges are the checks that some sites make before they answer: a script or a puzzle
// that feed readers cannot solve. Each is recognized by a field of its responses or by a text
// in its page. Texts that occur in ordinary pages of such sites do not count.
var challenges = []struct {
	name         string
	status       int    // of responses that the field makes a challenge; 0: any failure
	field, value string // an empty value: any
	page         string
}{
	{name: "Cloudflare", field: "Cf-Mitigated", value: "challenge", page: "_cf_chl_opt"},
	{name: "Cloudflare", page: `name="jschl_vc"`}, // as it was until 2022
	{name: "AWS WAF", field: "X-Amzn-Waf-Action", page: ".token.awswaf.com/"},
	{name: "Vercel", field: "X-Vercel-Mitigated", value: "challenge", page: "<title>Vercel Security Checkpoint</title>"},
	// DataDome has its field in good responses too.
	{name: "DataDome", status: http.StatusForbidden, field: "X-Datadome", page: "captcha-delivery.com/"},
	{name: "Sucuri", field: "X-Sucuri-Block", page: "sucuri_cloudproxy_js"},
	{name: "Anubis", page: "/.within.website/x/cmd/anubis/"},
	{name: "Imperva", page: "/_Incapsula_Resource?"},
	{name: "HUMAN", page: `id="px-captcha"`},
	{name: "DDoS-Guard", page: "/.well-known/ddos-guard/"},
}

// maxChallenge is how much of a page is searched, in bytes. Pages of challenges are short.
const maxChallenge = 64 << 10

// Failure returns why a response brings no feed, if the body that it has cannot be read: err says so.
func Failure(err error, a policy.Answer, body []byte) (policy.Failure, error) {
	if errors.Is(err, markup.ErrTruncated) { // the program that makes the feed has failed
		return policy.FailureTruncated, err
	}
	if challenge := Challenge(a.Status, a.Header, body); challenge != nil {
		return policy.FailureChallenge, challenge
	}
	if !errors.Is(err, ErrNotFeed) {
		return policy.FailureNotFeed, err
	}
	switch page := site.Read(body, a.Header.Get("Content-Type"), a.URL); {
	case page.Onward != "":
		err = fmt.Errorf("%w, which sends browsers on to %s: if that is the feed, use its address", err, page.Onward)
	case page.Password:
		err = fmt.Errorf("%w, which asks for a password: the site gives the feed only after a log-in, or at an address with a key for readers", err)
	}
	return policy.FailureNotFeed, err
}

// Refused returns why a response with the status of a failure brings no feed, by what is known of its page.
func Refused(a policy.Answer) (policy.Failure, error) {
	if challenge := Challenge(a.Status, a.Header, a.Page); challenge != nil {
		return policy.FailureChallenge, challenge
	}
	if len(a.Page) > 0 {
		if _, err := Read(a.Page, a.Header.Get("Content-Type"), a.At); !errors.Is(err, ErrNotFeed) {
			return a.Failure, fmt.Errorf("%w, though with a feed: the site has to send it with status 200", a.Err)
		}
	}
	return a.Failure, a.Err
}

// Challenge returns an error that names the challenge that a response is, and nil if it is
// not one. The response has failed, or its body is not a feed.
func Challenge(status int, header http.Header, body []byte) error {
	body = body[:min(len(body), maxChallenge)]
	for _, c := range challenges {
		value := header.Get(c.field) // none has an empty name
		marked := value != "" && (c.value == "" || strings.EqualFold(value, c.value)) && (c.status == 0 || c.status == status)
		if marked || bytes.Contains(body, []byte(c.page)) {
			return fmt.Errorf("the site sends a check for browsers (%s) in place of the feed, which feed readers cannot pass: ask the site to let them through", c.name)
		}
	}
	return nil
}
