// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"net/http"
	"strings"

	"github.com/feedpollard/pollard/policy"
)

// LookElsewhere is what to do about an address that has no feed.
const LookElsewhere = "The feed may have another address now: look for it at the site."

// Remedy says what a person can do about a feed that fails. It is empty if the error says it, or if
// there is nothing to do here.
func (f *Feed) Remedy() string {
	switch {
	case f.Failures == 0, f.Site, strings.Contains(f.LastError, ", though "), strings.Contains(f.LastError, ", which "):
		return ""
	case f.LastFailure == policy.FailureNotFound, f.LastFailure == policy.FailureGone, f.LastFailure == policy.FailureNotFeed:
		return f.address(LookElsewhere)
	case f.LastFailure == policy.FailureDNS && strings.Contains(f.LastError, "no such host"):
		return "Look whether the name of the host is right: there may be no such site any more."
	case f.LastFailure == policy.FailureProxy:
		return "The proxy of this configuration failed: look whether it runs."
	case f.LastFailure == policy.FailureConnect, f.LastFailure == policy.FailureTimeout, f.LastFailure == policy.FailureStatus && f.LastStatus >= http.StatusInternalServerError:
		return f.address("If the site comes back, nothing needs to be done: polls go on.")
	}
	return ""
}
