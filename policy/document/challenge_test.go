// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document"
)

func TestChallenge(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		header http.Header
		body   string
		want   string
	}{
		{"Cloudflare", 403, http.Header{"Cf-Mitigated": {"challenge"}}, "", "Cloudflare"},
		{"Cloudflare's page", 200, nil, `<html><script>window._cf_chl_opt={cvId:"3"}</script>`, "Cloudflare"},
		{"Cloudflare's page of before", 503, http.Header{"Server": {"cloudflare-nginx"}}, `<form id="challenge-form" action="/cdn-cgi/l/chk_jschl"><input type="hidden" name="jschl_vc" value="0"/>`, "Cloudflare"},
		{"Cloudflare without a challenge", 403, http.Header{"Server": {"cloudflare"}}, `<script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js">`, ""},
		{"AWS", 202, http.Header{"X-Amzn-Waf-Action": {"challenge"}}, "", "AWS WAF"},
		{"Vercel", 429, http.Header{"X-Vercel-Mitigated": {"challenge"}}, "", "Vercel"},
		{"Vercel without a challenge", 403, http.Header{"X-Vercel-Mitigated": {"deny"}}, "", ""},
		{"DataDome", 403, http.Header{"X-Datadome": {"protected"}}, "", "DataDome"},
		{"another failure behind DataDome", 404, http.Header{"X-Datadome": {"protected"}}, "", ""},
		{"Anubis", 200, nil, `<html><head><title>Making sure you're not a bot!</title><link rel="stylesheet" href="/.within.website/x/xess/xess.min.css"><script src="/.within.website/x/cmd/anubis/static/js/main.mjs"></script>`, "Anubis"},
		{"Imperva", 200, nil, `<script src="/_Incapsula_Resource?SWJIYLWA=719d"></script>`, "Imperva"},
		{"a page", 200, http.Header{"Content-Type": {"text/html"}}, "<html><title>Log in</title>", ""},
		{"nothing", 500, nil, "", ""},
		{"far behind", 200, nil, strings.Repeat(" ", 1<<20) + "_cf_chl_opt", ""},
	} {
		err := document.Challenge(tt.status, tt.header, []byte(tt.body))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), "("+tt.want+")") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// What people learn of answers that bring no feed: who blocks them, or what the site should do.
func TestReasons(t *testing.T) {
	const rss = `<?xml version="1.0"?><rss version="2.0"><channel><title>t</title><item><title>a</title></item></channel></rss>`
	const page = "text/html"
	for _, tt := range []struct {
		name        string
		status      int
		kind, body  string
		failure     policy.Failure
		want, never string
	}{
		{"a feed with 404", 404, "text/xml", rss, policy.FailureNotFound, "status, though with a feed: the site has to send it with status 200", ""},
		{"a feed with 500", 500, page, rss, policy.FailureStatus, "though with a feed", ""},
		{"a feed with 202", 202, "application/atom+xml", `<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title></feed>`, policy.FailureStatus, "though with a feed", ""},
		{"the beginning of a long feed", 404, "text/xml", rss[:len(rss)-40], policy.FailureNotFound, "though with a feed", ""},
		{"a JSON feed", 404, "application/feed+json", `{"version":"https://jsonfeed.org/version/1.1","title":"t","items":[]}`, policy.FailureNotFound, "though with a feed", ""},
		{"a page", 404, page, "<!doctype html><title>Not found</title>", policy.FailureNotFound, "status", "feed"},
		{"a problem in JSON", 500, "application/json", `{"error":"no"}`, policy.FailureStatus, "status", "feed"},
		{"no page", 500, page, "", policy.FailureStatus, "status", "feed"},
		{"a check for browsers", 401, page, `<script src="/.within.website/x/cmd/anubis/static/js/main.mjs"></script>`, policy.FailureChallenge, "(Anubis)", ""},
		{"Cloudflare of before", 503, page, `<input name="jschl_vc"/>`, policy.FailureChallenge, "(Cloudflare)", ""},

		{"a page that leads on", 200, page, `<html><head><title>Moved</title><meta http-equiv="Refresh" content="0; URL='/new.xml?a=1&amp;b'"></head>`, policy.FailureNotFeed,
			`an HTML page titled "Moved", which sends browsers on to https://a.example/new.xml?a=1&b: if that is the feed, use its address`, ""},
		{"a page that leads on, without quotes", 200, page, `<html><meta http-equiv=refresh content=5;url=https://b.example/>`, policy.FailureNotFeed, "sends browsers on to https://b.example/:", ""},
		{"a page that is loaded again", 200, page, `<html><meta http-equiv="refresh" content="30">`, policy.FailureNotFeed, "an HTML page", "sends browsers"},
		{"a page that leads to itself", 200, page, `<html><meta http-equiv="refresh" content="30; url=https://a.example/f">`, policy.FailureNotFeed, "an HTML page", "sends browsers"},
		{"a log-in page", 200, page, `<html><title>Sign in</title><form><input name=u><INPUT TYPE=Password name=p></form>`, policy.FailureNotFeed, "asks for a password", ""},
		{"another page", 200, page, `<html><title>Home</title><input type=search>`, policy.FailureNotFeed, "an HTML page titled", "which"},
		{"no page at all", 200, page, `{"error":"password"}`, policy.FailureNotFeed, "JSON", "which asks"},
	} {
		a := policy.Answer{URL: "https://a.example/f", Status: tt.status, Header: http.Header{"Content-Type": {tt.kind}}}
		var failure policy.Failure
		var err error
		if tt.status == 200 {
			_, broken := document.Read([]byte(tt.body), tt.kind, time.Now())
			failure, err = document.Failure(broken, a, []byte(tt.body))
		} else {
			a.Page, a.Err, a.Failure = []byte(tt.body), errors.New("status"), tt.failure
			if tt.failure == policy.FailureChallenge {
				a.Failure = policy.FailureForbidden
			}
			failure, err = document.Refused(a)
		}
		if failure != tt.failure || err == nil || !strings.Contains(err.Error(), tt.want) || tt.never != "" && strings.Contains(err.Error(), tt.never) {
			t.Errorf("%s: %s, %v, want %s, %q", tt.name, failure, err, tt.failure, tt.want)
		}
	}
}
