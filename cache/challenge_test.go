// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// A check for browsers is named to readers while the feed has no version. One that comes later
// is shown in its status, and readers keep the version.
func TestChallengeIsNamed(t *testing.T) {
	anubis := ok(`<html><script src="/.within.website/x/cmd/anubis/static/js/main.mjs"></script></html>`, "Content-Type", "text/html")
	cloudflare := policy.Answer{Failure: policy.FailureForbidden, Status: http.StatusForbidden, Header: http.Header{"Cf-Mitigated": {"challenge"}}}
	for name, answer := range map[string]policy.Answer{"Anubis": anubis, "Cloudflare": cloudflare} {
		bubble(t, name, func(t *testing.T) {
			g := newGateway(t, func(policy.Ask) policy.Answer { return answer }).open()
			if w := g.get("https://example.com/feed"); w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "check for browsers ("+name+")") {
				t.Errorf("the first reader got %d: %s", w.Code, w.Body)
			}
			g.origin.answers(func(policy.Ask) policy.Answer { return ok(rss(2, "")) })
			time.Sleep(25 * time.Hour)
			g.get("https://example.com/feed")
			g.origin.answers(func(policy.Ask) policy.Answer { return answer })
			time.Sleep(25 * time.Hour)
			g.get("https://example.com/feed")
			time.Sleep(time.Minute)
			if w := g.get("https://example.com/feed"); w.Code != http.StatusOK {
				t.Errorf("a reader got %d: %s", w.Code, w.Body)
			}
			if f := g.accounts()[0]; f.LastFailure != policy.FailureChallenge || !strings.Contains(f.LastError, name) {
				t.Errorf("the status has failure %q: %s", f.LastFailure, f.LastError)
			}
		})
	}
}
