// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/internal/status"
)

// The pages have each metric and each event of the program, and no other.
func TestMetricsAndEvents(t *testing.T) {
	page := allPages(t)
	metric, event := regexp.MustCompile(`^pollard_[a-z_]+$`), regexp.MustCompile(`^pollard\.[a-z_]+$`)
	inCode, metrics := make(map[string]bool), 0
	for name, in := range literals(t) {
		switch {
		case event.MatchString(name) && strings.HasPrefix(in, "event"): // a constant eventUpdated
		case metric.MatchString(name) && (in == "Name" || strings.HasSuffix(in, "Desc")):
			metrics++
		default:
			continue
		}
		inCode[name] = true
		if !regexp.MustCompile("(?m)^\\| .*`" + regexp.QuoteMeta(name) + "[`{].* \\|$").MatchString(page) {
			t.Errorf("no page has a row for %s", name)
		}
	}
	if metrics < 10 || len(inCode)-metrics < 5 {
		t.Errorf("only %d metrics and events were found: %v", len(inCode), slices.Sorted(maps.Keys(inCode)))
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`pollard[._][^|]*) \\|").FindAllStringSubmatch(page, -1) {
		for _, name := range regexp.MustCompile(`pollard[._][a-z_]+`).FindAllString(row[1], -1) {
			if !inCode[name] {
				t.Errorf("a page has a row for %s, which the program does not have", name)
			}
		}
	}
	for row, words := range map[string][]string{"pollard_polls_total{outcome}": texts(status.Results), "pollard_feeds{state}": texts(status.States)} {
		line := regexp.MustCompile("(?m)^.*" + regexp.QuoteMeta(row) + ".*$").FindString(page)
		for _, word := range words {
			if !strings.Contains(line, "`"+word+"`") {
				t.Errorf("the row of %s does not have `%s`", row, word)
			}
		}
	}
}

// allPages returns the pages of this directory, one after the other.
func allPages(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(append(text, '\n'))
	}
	return all.String()
}

func texts[T ~string](values []T) (list []string) {
	for _, v := range values {
		list = append(list, string(v))
	}
	return list
}

// literals are the texts in the code of caddymodule that are given to a name: to a field, constant or variable, in a
// call or not.
func literals(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../caddymodule/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	take := func(value ast.Expr, name string) {
		if call, ok := value.(*ast.CallExpr); ok && len(call.Args) > 0 {
			value = call.Args[0]
		}
		if lit, ok := value.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, _ := strconv.Unquote(lit.Value)
			found[text] = name
		}
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, value := range n.Values {
					take(value, n.Names[i].Name)
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok {
					take(n.Value, key.Name)
				}
			}
			return true
		})
	}
	return found
}
