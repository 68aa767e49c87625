// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package docs checks that caddyfile.md and its two companions say what the doc comments of Pollard's Caddy
// modules say. To write it again:
//
//	go test ./docs -update
package docs

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the pages caddyfile*.md, and the table of failures.md")

const introduction = `<!-- Written by "go test ./docs -update" from doc comments of the Go code: edit those. -->

# Caddyfile reference

Pollard adds one global option and two directives to Caddy's
[Caddyfile](https://caddyserver.com/docs/caddyfile). Every line of them is optional, except a shield's ` + "`origin`" + `.
Its directives are [feed_gateway](caddyfile-gateway.md) and [feed_shield](caddyfile-shield.md).
[how-polls-are-decided.md](how-polls-are-decided.md) says how the next poll is decided.

- A ` + "`<duration>`" + ` is a number and a unit, such as ` + "`30s`, `15m`, `2h` or `1d`" + `.
- A ` + "`<size>`" + ` is a number of bytes with a unit, such as ` + "`64MiB` or `10GiB`" + `.
- A ` + "`<cidr>`" + ` is an address range such as ` + "`192.168.0.0/16`" + `, or one address.
- A ` + "`<host-pattern>`" + ` is ` + "`example.com`, or `*.example.com`" + ` for all hosts below it.
`

// written heads a page of which only the sections are told apart.
const written = `<!-- Written by "go test ./docs -update" from doc comments of the Go code: edit those. -->

`

// sections are the parts of the pages, each with the package and type that it is about and
// what to call it.
var sections = []struct{ page, title, module, name string }{
	{"caddyfile.md", "## Global option `pollard`", "poller.App", "`pollard`"},
	{"caddyfile.md", "## Policy lines", "config.Policy", "A policy"},
	{"caddyfile-gateway.md", "# Directive `feed_gateway`", "gateway.Gateway", "`feed_gateway`"},
	{"caddyfile-shield.md", "# Directive `feed_shield`", "shield.Shield", "`feed_shield`"},
}

// policyLines leads from the pages of the directives to the lines that all have.
var policyLines = strings.NewReplacer("(#policy-lines)", "(caddyfile.md#policy-lines)")

func TestCaddyfileReference(t *testing.T) {
	modules, err := readModules("poller", "config", "gateway", "shield")
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]*bytes.Buffer{"caddyfile.md": bytes.NewBufferString(introduction)}
	for _, s := range sections {
		page := pages[s.page]
		if page == nil {
			page = bytes.NewBufferString(written)
			pages[s.page] = page
		} else {
			page.WriteByte('\n')
		}
		fmt.Fprintf(page, "%s\n\n%s", s.title, modules.about(s.module, s.name))
		if err := modules.writeLines(page, s.module); err != nil {
			t.Fatalf("%s: %v", s.module, err)
		}
	}
	for name, page := range pages {
		text := page.String()
		if name != "caddyfile.md" {
			text = policyLines.Replace(text)
		}
		if *update {
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if was, err := os.ReadFile(name); err != nil || string(was) != text {
			t.Errorf("%s differs from the doc comments in caddymodule: run go test ./docs -update (%v)", name, err)
		}
	}
}

// module is a struct type with what its comments say.
type module struct {
	doc    string
	fields []field
	syntax string // of its Caddyfile lines; "" if it has none of its own
}

type field struct {
	name string // in JSON; "" if embedded
	of   string // its type without pointers and slices, as package.Type
	doc  string
}

type modules map[string]*module

// readModules reads packages of caddymodule.
func readModules(packages ...string) (modules, error) {
	all := make(modules)
	for _, name := range packages {
		files, err := filepath.Glob("../caddymodule/" + name + "/*.go")
		if err != nil {
			return nil, err
		}
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			for _, d := range file.Decls {
				all.add(name, d)
			}
		}
	}
	return all, nil
}

// add adds a declaration if it is a struct type or the method UnmarshalCaddyfile.
func (ms modules) add(pkg string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if spec, ok := spec.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					m := ms.of(pkg + "." + spec.Name.Name)
					m.doc = d.Doc.Text()
					for _, f := range s.Fields.List {
						m.addField(pkg, f)
					}
				}
			}
		}
	case *ast.FuncDecl:
		if d.Name.Name == "UnmarshalCaddyfile" {
			_, syntax, _ := strings.Cut(d.Doc.Text(), "Syntax:\n")
			ms.of(typeName(pkg, d.Recv.List[0].Type)).syntax = strings.TrimLeft(syntax, "\n")
		}
	}
}

func (ms modules) of(name string) *module {
	if ms[name] == nil {
		ms[name] = new(module)
	}
	return ms[name]
}

func (m *module) addField(pkg string, f *ast.Field) {
	added := field{of: typeName(pkg, f.Type), doc: f.Doc.Text()}
	if f.Tag != nil {
		tag, _ := strconv.Unquote(f.Tag.Value)
		added.name, _, _ = strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	}
	if added.name != "" || len(f.Names) == 0 {
		m.fields = append(m.fields, added)
	}
}

func typeName(pkg string, t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return typeName(pkg, t.X)
	case *ast.ArrayType:
		return typeName(pkg, t.Elt)
	case *ast.SelectorExpr:
		return t.X.(*ast.Ident).Name + "." + t.Sel.Name
	case *ast.Ident:
		return pkg + "." + t.Name
	}
	return ""
}

// field returns the field that a Caddyfile line sets, such as tokens for "token".
func (m *module) field(word string) (field, bool) {
	for _, f := range m.fields {
		if f.name != "" && (f.name == word || f.name == word+"s") {
			return f, true
		}
	}
	return field{}, false
}

// about returns what a type's doc comment says of it, under another name.
func (ms modules) about(module, name string) string {
	_, own, _ := strings.Cut(module, ".")
	if rest, ok := strings.CutPrefix(ms[module].doc, own+" "); ok {
		return name + " " + markdown(rest)
	}
	return markdown(ms[module].doc)
}

// writeLines writes the syntax of a module and what each of its lines means.
func (ms modules) writeLines(page *bytes.Buffer, name string) error {
	m := ms[name]
	if m.syntax == "" { // the syntax of a policy is part of the app's
		return ms.writePolicy(page, m)
	}
	syntax, _, _ := strings.Cut(m.syntax, "\n\n")
	syntax = strings.TrimSpace(syntax) + "\n"
	fmt.Fprintf(page, "\n```caddyfile\n%s```\n", strings.ReplaceAll(syntax, "\n\t", "\n"))
	inner := m // the module that lines at a depth of 2 belong to
	for line := range strings.Lines(syntax) {
		text := strings.TrimLeft(line, "\t")
		depth := len(line) - len(text) - 1
		text = strings.TrimRight(strings.Join(strings.Fields(text), " "), " {[")
		word, _, _ := strings.Cut(text, " ")
		of, heading := m, "###"
		if depth == 2 {
			of, heading = inner, "####"
		}
		switch {
		case depth < 1, strings.HasPrefix(text, "}"), word == "<directives>...":
			continue
		case word == "<policy":
			if doc := of.policy(); depth == 1 {
				fmt.Fprintf(page, "\n%s [Policy lines](#policy-lines)\n\n%s", heading, markdown(doc))
			}
			continue
		}
		f, ok := of.field(word)
		if !ok || f.doc == "" {
			return fmt.Errorf("no field with a doc comment for the line %q", text)
		}
		fmt.Fprintf(page, "\n%s `%s`\n\n%s", heading, text, markdown(f.doc))
		if depth == 2 {
			continue
		}
		if word == "store" {
			ms.writeStores(page)
		}
		if inner = ms[f.of]; inner != nil {
			ms.writeInner(page, word, text, f.of)
		}
	}
	return nil
}

var argument = regexp.MustCompile(`<([a-z_]+)>`)

// writeInner writes what is said of a line that sets a struct: its arguments, or else what
// the struct is.
func (ms modules) writeInner(page *bytes.Buffer, word, text, of string) {
	arguments := argument.FindAllStringSubmatch(text, -1)
	for _, arg := range arguments {
		if f, ok := ms[of].field(arg[1]); ok {
			fmt.Fprintf(page, "\n`<%s>`: %s", arg[1], markdown(f.doc))
		}
	}
	if len(arguments) == 0 {
		fmt.Fprintf(page, "\n%s", ms.about(of, "`"+word+"`"))
	}
}

// policy returns what a module says of the policy in it.
func (m *module) policy() string {
	for _, f := range m.fields {
		if f.name == "" && f.of == "config.Policy" {
			return f.doc
		}
	}
	return ""
}

// writePolicy writes the fields of a policy, with the lines that the app's syntax has for them.
func (ms modules) writePolicy(page *bytes.Buffer, policy *module) error {
	for _, f := range policy.fields {
		line := regexp.MustCompile(`(?m)^\t` + f.name + ` .*$`).FindString(ms["poller.App"].syntax)
		if line == "" {
			return fmt.Errorf("the syntax of the app has no line %s", f.name)
		}
		fmt.Fprintf(page, "\n### `%s`\n\n%s", strings.Join(strings.Fields(line), " "), markdown(f.doc))
	}
	return nil
}

// writeStores writes what the stores take, which are the other modules of the app's
// package that read lines.
func (ms modules) writeStores(page *bytes.Buffer) {
	for _, name := range slices.Sorted(maps.Keys(ms)) {
		m := ms[name]
		if m.syntax == "" || len(m.fields) == 0 || name == "poller.App" || !strings.HasPrefix(name, "poller.") {
			continue
		}
		fmt.Fprintf(page, "\n#### `store %s`\n\n%s", strings.TrimSpace(m.syntax), ms.about(name, "`"+strings.Fields(m.syntax)[0]+"`"))
		for _, f := range m.fields {
			fmt.Fprintf(page, "\n`<%s>`: %s", f.name, markdown(f.doc))
		}
	}
}

// markdown returns a doc comment as Markdown: its indented lines are a block of code.
func markdown(comment string) string {
	var text bytes.Buffer
	code := false
	for line := range strings.Lines(comment) {
		indented := strings.HasPrefix(line, "\t")
		if indented != code && (indented || line != "\n") {
			begin := "```caddyfile\n"
			if strings.HasPrefix(line, "\t{") {
				begin = "```json\n"
			}
			if !indented {
				text.Truncate(text.Len() - len("\n")) // the empty line is behind the code
				begin = "```\n\n"
			}
			text.WriteString(begin)
			code = indented
		}
		text.WriteString(strings.TrimPrefix(line, "\t"))
	}
	if code {
		text.WriteString("```\n")
	}
	return text.String()
}
