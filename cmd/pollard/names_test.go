// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	docLink   = regexp.MustCompile(`\[\*?([A-Z]\w*(?:\.[A-Z]\w*)?|[a-z]\w*\.[A-Z]\w*(?:\.[A-Z]\w*)?)\](?:[^(\w]|$)`)
	camelCase = regexp.MustCompile(`(?:^|[\s("\x60])([a-z]+[A-Z]\w*)(?:[\s).,:;"\x60]|$)`)
)

// foreign are words of comments that look like names of Go and are not.
var foreign = strings.Fields(`isPermaLink lastBuildDate skipHours skipDays updatePeriod updateFrequency
	updateBase pubDate feedUrl remoteItem origLink xmlUrl htmlUrl userinfo`)

// TestNamesInComments fails if a comment speaks of a function, type, field or variable that
// does not exist, as comments do after a renaming.
func TestNamesInComments(t *testing.T) {
	out, err := exec.Command("git", "-C", "../..", "ls-files", "*.go").Output()
	if err != nil {
		t.Skip("this is no checkout of git")
	}
	known := make(map[string]bool)               // every word of the code
	declared := make(map[string]map[string]bool) // by the name of the package
	for _, word := range foreign {
		known[word] = true
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for path := range strings.FieldsSeq(string(out)) {
		file, err := parser.ParseFile(fset, filepath.Join("../..", path), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		known[file.Name.Name] = true
		if declared[file.Name.Name] == nil {
			declared[file.Name.Name] = make(map[string]bool)
		}
		for _, name := range declarations(file) {
			declared[file.Name.Name][name] = true
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				known[n.Name] = true
			case *ast.BasicLit:
				for _, word := range regexp.MustCompile(`\w+`).FindAllString(n.Value, -1) { // JSON names, SQL, fields
					known[word] = true
				}
			}
			return true
		})
	}
	for _, file := range files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				for _, m := range camelCase.FindAllStringSubmatch(c.Text, -1) {
					if !known[m[1]] {
						t.Errorf("%s: there is no %s", fset.Position(c.Pos()), m[1])
					}
				}
				for _, m := range docLink.FindAllStringSubmatch(c.Text, -1) {
					in, name, qualified := strings.Cut(m[1], ".")
					switch {
					case !qualified && !known[in], qualified && declared[in] != nil && !declared[in][strings.Split(name, ".")[0]]:
						t.Errorf("%s: there is no %s", fset.Position(c.Pos()), m[1])
					}
				}
			}
		}
	}
}

// declarations returns what a file declares for its package.
func declarations(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}
