// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// size is a number of bytes.
type size int64

// defaults are the values of the code, by the field whose comment says them.
func defaults() map[string]any {
	rules := policy.DefaultRules()
	spacing, concurrency := new(upstream.Settings).Pace("example.com")
	return map[string]any{
		"App.memory": size(cache.DefaultMemory), "App.disk": size(cache.DefaultDisk),
		"App.idle_after": time.Duration(cache.DefaultIdleAfter), "App.polls": cache.DefaultPolls,
		"App.spacing": spacing, "App.concurrency": concurrency, "Host.spacing": spacing, "Host.concurrency": concurrency,
		"Policy.min_interval": rules.MinInterval, "Policy.default_interval": rules.DefaultInterval, "Policy.max_interval": rules.MaxInterval,
		"Policy.unvalidated_interval": rules.UnvalidatedInterval, "Policy.jitter": rules.Jitter, "Policy.timeout": rules.Timeout, "Policy.max_body": size(rules.MaxBody),
		"Defend.unconditional": time.Duration(readers.DefaultUnconditional),
		"Gateway.clients":      "private", "Gateway.pages": true, // TestGatewayWithoutLines
		"App.store": "sqlite", // TestStoreWithoutLine of package poller
	}
}

// Comments of the configuration's fields, and with them the manual, name the defaults that hold.
func TestDefaultsInComments(t *testing.T) {
	want, words := defaults(), regexp.MustCompile("Default: `?([^`.,]+(?:\\.[0-9]+)?)")
	written := make(map[string]bool)
	forEachField(t, func(name, comment string) {
		found := words.FindStringSubmatch(strings.Join(strings.Fields(comment), " "))
		if found == nil {
			return
		}
		value, known := want[name]
		if written[name] = true; !known {
			if strings.Contains(found[0], "`") && found[1] != "false" || strings.ContainsAny(found[1], "0123456789") {
				t.Errorf("%s: the comment says %q: name in this test what the code has", name, found[0])
			}
			return
		}
		var err error
		says := any(found[1])
		switch value.(type) {
		case time.Duration:
			says, err = caddy.ParseDuration(found[1])
		case size:
			var n int64
			n, err = config.ParseSize(strings.ReplaceAll(found[1], " ", ""))
			says = size(n)
		case int:
			says, err = strconv.Atoi(found[1])
		case float64:
			says, err = strconv.ParseFloat(found[1], 64)
		case bool:
			says, err = strconv.ParseBool(found[1])
		}
		if err != nil || says != value {
			t.Errorf("%s: the comment says %q, and the code has %v (%v)", name, found[0], value, err)
		}
	})
	for name := range want {
		if !written[name] {
			t.Errorf("%s: there is no comment that says its default", name)
		}
	}
}

// forEachField calls a function for each field of the configuration, with its type, its name in JSON and its comment.
func forEachField(t *testing.T, do func(name, comment string)) {
	t.Helper()
	for _, dir := range []string{"poller", "config", "gateway", "shield"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				fields, ok := spec.Type.(*ast.StructType)
				if !ok {
					return true
				}
				for _, f := range fields.Fields.List {
					if f.Tag == nil {
						continue
					}
					tag, _ := strconv.Unquote(f.Tag.Value)
					name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
					do(spec.Name.Name+"."+name, f.Doc.Text())
				}
				return true
			})
		}
	}
}

// The rules of a shield are those of the comment of its policy.
func TestDefaultsOfAShield(t *testing.T) {
	r, comment := poller.ShieldRules(), ""
	file, err := parser.ParseFile(token.NewFileSet(), "shield/shield.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Comments {
		if strings.Contains(group.Text(), "the defaults are those for a site of your own") {
			comment = group.Text()
		}
	}
	for _, want := range []string{
		fmt.Sprintf("`min_interval` and `default_interval` are `%s`;", config.FormatDuration(r.MinInterval)),
		fmt.Sprintf("`max_interval`, which is `%s`.", config.FormatDuration(r.MaxInterval)),
	} {
		if !strings.Contains(comment, want) {
			t.Errorf("the comment of the policy of a shield does not say %q", want)
		}
	}
	if r.MinInterval != r.DefaultInterval {
		t.Errorf("min_interval is %v, and default_interval %v", r.MinInterval, r.DefaultInterval)
	}
}

// A gateway without lines has pages, for private addresses.
func TestGatewayWithoutLines(t *testing.T) {
	stage.RunGateways(t, nil, func(t *testing.T, s *stage.Stage) {
		s.MustLoadFeeds("", "", "")
		for client, want := range map[string]int{stage.Home: 200, "8.8.8.8": 403} {
			if w := stage.Get(t, "http://feeds.test/-/feeds", client, "Accept", "text/html"); w.Code != want {
				t.Errorf("%s gets %d, want %d", client, w.Code, want)
			}
		}
	})
}
