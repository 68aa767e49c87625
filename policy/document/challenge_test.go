// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"net/http"
	"strings"
	"testing"

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
