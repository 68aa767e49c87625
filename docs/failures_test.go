// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// The page on failures has each of them once, with what happens next.
func TestFailures(t *testing.T) {
	const page, heading = "failures.md", "## When a poll fails\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), heading)
	if !found {
		t.Fatalf("%s has no section %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	written := map[policy.Failure]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| (\\w+)[^|]* \\| [^|]+ \\|$").FindAllStringSubmatch(section, -1) {
		if _, twice := written[policy.Failure(row[1])]; twice {
			t.Errorf("%s has two rows for %s", page, row[1])
		}
		written[policy.Failure(row[1])] = row[2]
	}
	want := map[policy.Failure]string{}
	for _, failure := range failures(t) {
		want[failure] = after(failure)
	}
	for _, failure := range slices.Sorted(maps.Keys(want)) {
		if written[failure] != want[failure] {
			t.Errorf("%s: the row of %s says %q in its third column, and the policy %q", page, failure, written[failure], want[failure])
		}
		delete(written, failure)
	}
	for failure := range written {
		t.Errorf("%s has a row for %s, which package policy does not know", page, failure)
	}
}

// failures returns the constants of package policy, without that of a poll that did not fail.
func failures(t *testing.T) (all []policy.Failure) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../policy/policy.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Failure") {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if text != "" {
			all = append(all, policy.Failure(text))
		}
		return true
	})
	if len(all) == 0 {
		t.Fatal("package policy has no failures")
	}
	return all
}

// after says in the words of the page when a feed is polled after a first failure.
func after(failure policy.Failure) string {
	const own = 8 * time.Hour
	now := time.Date(2026, time.May, 1, 0, 0, 0, 0, time.UTC)
	rules := policy.Rules{MinInterval: time.Hour, MaxInterval: 24 * time.Hour, DefaultInterval: own}
	answer := policy.Answer{At: now, Asked: now, Status: http.StatusOK, Failure: failure}
	switch failure {
	case policy.FailureNotStarted:
		answer.Asked = time.Time{}
	case policy.FailureStore:
		answer.Failure = policy.FailureNone // it comes after the decision, which stands
	}
	decision := policy.Decide(rules, policy.History{Interval: own, Failures: 1, Validated: true}, answer, 0)
	switch {
	case decision.Next.Equal(policy.Never):
		return "never"
	case decision.Interval < own:
		return "soon"
	case decision.Interval > own:
		return "later"
	}
	return "usual"
}
