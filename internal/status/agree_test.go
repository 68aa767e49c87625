// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/internal/status/statustest"
	"github.com/feedpollard/pollard/policy"
)

// No sentence about a feed contradicts another fact of it, whatever was answered to its polls.
func TestSentencesAgreeWithFacts(t *testing.T) {
	now := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	won, count, said := make(map[string]bool), 0, make(map[string]bool)
	for name, f := range statustest.Feeds(now) {
		count++
		won[f.Winner] = true
		texts := []string{f.Reason.String(), f.Headline(now), f.Next(now), f.Remedy()}
		for kind, is := range map[status.IncidentKind]bool{
			status.IncidentGone: f.LastFailure == policy.FailureGone, status.IncidentMoved: f.Alias != "", status.IncidentFailing: f.Failures > 0 && f.LastFailure != policy.FailureGone,
		} {
			if incident := (status.Incident{Kind: kind, Began: now.Add(-8 * 24 * time.Hour)}); is && !f.Shield { // shields show none
				texts = append(texts, incident.Sentences(f, now))
			}
		}
		for i, part := range f.Reason {
			if want := momentAfter(f, f.Reason[:i]); !part.At.IsZero() && !part.At.Equal(want) && !said[f.Winner+part.Text] {
				said[f.Winner+part.Text] = true
				t.Errorf("%s: %s is not %s: %s", name, part.At, want, f.Reason)
			}
		}
		for _, text := range texts {
			if wrong := statustest.Contradiction(&f, text, now); wrong != "" && !said[f.Winner+wrong] {
				said[f.Winner+wrong] = true // once each
				t.Errorf("%s: %s: %s", name, wrong, text)
			}
		}
	}
	if count < 10_000 {
		t.Errorf("only %d feeds were made", count)
	}
	for _, hint := range status.HintNames() {
		if never := []string{policy.HintCacheControl, policy.HintInterval, policy.HintStuck, policy.HintJitter, policy.HintWindow, policy.HintUpdateFrequency}; !won[hint] && !slices.Contains(never, hint) {
			t.Errorf("no feed waits because of %s", hint)
		}
	}
}

// momentAfter is the time that is meant after the first parts of a reason: that of the version, or of the next poll.
func momentAfter(f status.Feed, parts status.Reason) time.Time {
	if strings.HasSuffix(parts.String(), "the version of ") {
		return f.VersionSince
	}
	return f.NextPoll
}

// A new failure needs a case in the test above.
func TestEveryFailureIsTried(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../policy/policy.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	tried, count := statustest.Failures(), 0
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Failure") {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if count++; err != nil || !slices.Contains(tried, policy.Failure(value)) {
				t.Errorf("statustest has no case of %s (%v)", spec.Names[0].Name, err)
			}
		}
		return true
	})
	if count < 20 {
		t.Errorf("only %d failures were found", count)
	}
}
