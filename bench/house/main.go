// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Command house measures how the code reads: lines, exported names and words of its own
// for each package, and how often comments use habits of speech that Go's standard
// library avoids.
//
//	go run ./bench/house [<directory>...]
//
// Without directories it measures the module that it runs in, and its anchors: net/http,
// Caddy and every other module directory named by -anchors.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"
)

func main() {
	anchors := flag.String("anchors", "net/http,github.com/caddyserver/caddy/v2,github.com/caddyserver/certmagic", "import paths to compare the prose with")
	words := flag.Bool("words", false, "list the words of its own")
	flag.Parse()
	dirs := flag.Args()
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	if err := run(dirs, strings.Split(*anchors, ","), *words); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(dirs, anchors []string, list bool) error {
	known, err := vocabulary()
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, dir := range dirs {
		tree, err := read(dir)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "package\tfiles\tlines\tcode\texported\town words\ttests\t\n")
		all := make(map[string]bool)
		var sum counts
		for _, p := range tree {
			own := p.own(known)
			for _, w := range own {
				all[w] = true
			}
			fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", p.path, p.files, p.lines, p.code, p.exported, len(own), p.tests)
			sum.add(p.counts)
		}
		fmt.Fprintf(out, "all of %s\t%d\t%d\t%d\t%d\t%d\t%d\t\n\n", dir, sum.files, sum.lines, sum.code, sum.exported, len(all), sum.tests)
		fmt.Fprintf(out, "own words per 1,000 lines of code\t%.1f\t\n\n", 1000*float64(len(all))/float64(max(1, sum.code)))
		if list {
			fmt.Fprintln(out, strings.Join(slices.Sorted(maps.Keys(all)), " "))
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return prose(dirs, anchors)
}

// counts are what is counted of a package.
type counts struct {
	files, lines, code, exported, tests int
}

func (c *counts) add(other counts) {
	c.files += other.files
	c.lines += other.lines
	c.code += other.code
	c.exported += other.exported
	c.tests += other.tests
}

type pkg struct {
	counts
	path  string
	names map[string]bool // words of declared names
}

// own returns the words of the package's names that are not known.
func (p *pkg) own(known map[string]bool) []string {
	var own []string
	for w := range p.names {
		if !known[stem(w)] {
			own = append(own, w)
		}
	}
	return own
}

// read reads the packages below a directory. Test files count lines alone.
func read(dir string) ([]*pkg, error) {
	packages := make(map[string]*pkg)
	err := walk(dir, func(path string) error {
		at, _ := filepath.Rel(dir, filepath.Dir(path))
		p := packages[at]
		if p == nil {
			p = &pkg{path: at, names: make(map[string]bool)}
			packages[at] = p
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines := strings.Count(string(src), "\n")
		if strings.HasSuffix(path, "_test.go") {
			p.tests += lines
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.files++
		p.lines += lines
		p.code += codeLines(fset, file, src)
		declared(file, func(name string, exported bool) {
			if exported {
				p.exported++
			}
			for _, w := range split(name) {
				p.names[w] = true
			}
		})
		return nil
	})
	return slices.SortedFunc(maps.Values(packages), func(a, b *pkg) int { return cmp.Compare(a.path, b.path) }), err
}

// walk calls see with each Go file of a tree, but for generated and vendored ones.
func walk(dir string, see func(path string) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != dir && (strings.HasPrefix(name, ".") || name == "testdata" || name == "vendor") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		return see(path)
	})
}

// codeLines counts the lines that hold a token.
func codeLines(fset *token.FileSet, file *ast.File, src []byte) int {
	lines := strings.Split(string(src), "\n")
	for _, group := range file.Comments {
		for _, c := range group.List {
			from, to := fset.Position(c.Pos()), fset.Position(c.End())
			lines[from.Line-1] = lines[from.Line-1][:min(len(lines[from.Line-1]), from.Column-1)]
			for i := from.Line; i < to.Line; i++ {
				lines[i] = ""
			}
		}
	}
	n := 0
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}

// declared calls see with each name that a file declares: types, functions, methods,
// fields, variables, constants and parameters. Only names at the top level count as exported.
func declared(file *ast.File, see func(name string, exported bool)) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			see(d.Name.Name, d.Recv == nil && d.Name.IsExported())
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					see(s.Name.Name, s.Name.IsExported())
				case *ast.ValueSpec:
					for _, n := range s.Names {
						see(n.Name, n.IsExported())
					}
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok {
			for _, name := range f.Names {
				see(name.Name, false)
			}
		}
		return true
	})
}

// vocabulary returns the stems of all identifiers in Go's standard library and Caddy.
func vocabulary() (map[string]bool, error) {
	known := make(map[string]bool)
	for _, path := range []string{"std", "github.com/caddyserver/caddy/v2"} {
		dir, err := source(path)
		if err != nil {
			return nil, err
		}
		err = walk(dir, func(path string) error {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil // some of Go's own files are wrong on purpose
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					for _, w := range split(id.Name) {
						known[stem(w)] = true
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return known, nil
}

// source returns the directory of a package or module; of "std", that of all of Go.
func source(path string) (string, error) {
	if path == "std" {
		out, err := exec.Command("go", "env", "GOROOT").Output()
		return filepath.Join(strings.TrimSpace(string(out)), "src"), err
	}
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", path, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// split returns the words of a name, in lower case: readHTTPHeader is read, http, header.
func split(name string) []string {
	var words []string
	r := []rune(name)
	from := 0
	for i := 1; i <= len(r); i++ {
		if i == len(r) || r[i] == '_' || unicode.IsUpper(r[i]) && (unicode.IsLower(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) || unicode.IsDigit(r[i]) != unicode.IsDigit(r[i-1]) {
			if w := strings.Trim(strings.ToLower(string(r[from:i])), "_"); len(w) > 2 && unicode.IsLetter(rune(w[0])) {
				words = append(words, w)
			}
			from = i
		}
	}
	return words
}

// stem cuts the usual endings off a word.
func stem(w string) string {
	for _, end := range []string{"ings", "ing", "ies", "ed", "es", "er", "ly", "s", "e", "y"} {
		if len(w) > len(end)+2 && strings.HasSuffix(w, end) {
			return strings.TrimSuffix(w, end)
		}
	}
	return w
}

// habits are what comments in Go's standard library hardly ever say.
var habits = []struct {
	name    string
	pattern *regexp.Regexp
}{
	{"where (for if)", regexp.MustCompile(`(?i)\bwhere (it|there|that|this|they|one|none|no|nothing)\b`)},
	{"tell, told", regexp.MustCompile(`(?i)\b(tells?|told)\b`)},
	{"nobody, somebody", regexp.MustCompile(`(?i)\b(nobody|somebody|anybody)\b`)},
	{"is no", regexp.MustCompile(`(?i)\b(is|are|was) no\b`)},
	{"What ... is", regexp.MustCompile(`(?m)(?:^|[.:] )What [^.]* (is|are|has|have|was)\b`)},
	{"whoever, who", regexp.MustCompile(`(?i)\b(whoever|who (asks|has|holds|have|ask))\b`)},
	{"anew, of late", regexp.MustCompile(`(?i)\b(anew|of late|at present|in so many words|cannot be meant)\b`)},
}

// prose compares how often comments have a habit, per 1,000 words.
func prose(dirs, anchors []string) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(out, "per 1,000 words of comments\twords\t")
	for _, h := range habits {
		fmt.Fprintf(out, "%s\t", h.name)
	}
	fmt.Fprintln(out)
	places := slices.Clone(dirs)
	for _, a := range anchors {
		dir, err := source(a)
		if err != nil {
			return err
		}
		places = append(places, dir)
	}
	for i, dir := range places {
		text, err := comments(dir)
		if err != nil {
			return err
		}
		name := dir
		if i >= len(dirs) {
			name = anchors[i-len(dirs)]
		}
		words := len(strings.Fields(text))
		fmt.Fprintf(out, "%s\t%d\t", name, words)
		for _, h := range habits {
			n := len(h.pattern.FindAllStringIndex(text, -1))
			fmt.Fprintf(out, "%.2f (%d)\t", 1000*float64(n)/float64(max(1, words)), n)
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

// comments returns the comments of a tree, each group as one line. Tests are left out.
func comments(dir string) (string, error) {
	var b strings.Builder
	err := walk(dir, func(path string) error {
		if strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil
		}
		for _, group := range file.Comments {
			b.WriteString(strings.Join(strings.Fields(group.Text()), " ") + "\n")
		}
		return nil
	})
	return b.String(), err
}
