// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every hint that sets an interval is an explicit one, whichever field of a header or of a document it is in:
// the judgement of `feeds check` and the sentences about overruled hints rely on it. Those of a header are named by the field.
func TestExplicitHints(t *testing.T) {
	at := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	for _, header := range []http.Header{{"Cache-Control": {"s-maxage=60"}}, {"Cache-Control": {"max-age=60"}}, {"Expires": {at.Add(time.Hour).Format(http.TimeFormat)}}} {
		if w, ok := FreshnessOf(header, at).candidate(); !ok || !Explicit(w.hint) {
			t.Errorf("%s sets an interval, and is not an explicit hint: see term.go", w.hint)
		}
	}
}

// Those of a document are named where the candidate is made.
func TestCandidatesAreExplicit(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("term.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "var explicit = []string{")
	list, _, _ = strings.Cut(list, "}")
	made := 0
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			pair, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			key, _ := pair.Key.(*ast.Ident)
			hint, _ := pair.Value.(*ast.Ident)
			if key == nil || key.Name != "hint" || hint == nil || hint.Name == "HintRhythm" {
				return true
			}
			if made++; !slices.Contains(strings.Split(list, ", "), hint.Name) {
				t.Errorf("%s makes a candidate of %s, which is not in the list of explicit hints: see term.go", path, hint.Name)
			}
			return true
		})
	}
	if made < 3 {
		t.Errorf("only %d candidates were found", made)
	}
}
