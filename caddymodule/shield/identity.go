// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// identityOf returns the identity of a shield: a hash of what decides about shared responses. Its
// keys begin with it. Of the placeholders only {env.*} is replaced: others may have another value on
// each node, or at each start.
func identityOf(block any, varyIgnore []string) (string, error) {
	names := slices.Clone(varyIgnore)
	slices.Sort(names)
	normalize(block, make(map[string]string))
	text, err := json.Marshal([]any{block, names}) // with sorted keys
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// normalize removes from a decoded block what Caddy's adapter puts there from the rest of the Caddyfile:
// it numbers the groups of routes through the whole file, and has file_server hide the files that it
// has read. groups are the new names of groups.
func normalize(value any, groups map[string]string) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			normalize(item, groups)
		}
	case map[string]any:
		if v["handler"] == "file_server" {
			delete(v, "hide")
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if routes, ok := v[name].([]any); ok && name == "routes" {
				nameGroups(routes, groups)
			}
			normalize(v[name], groups)
		}
	}
}

// nameGroups names the groups of routes in the order in which they appear in the block.
func nameGroups(routes []any, groups map[string]string) {
	for _, item := range routes {
		route, _ := item.(map[string]any)
		name, ok := route["group"].(string)
		if !ok {
			continue
		}
		if groups[name] == "" {
			groups[name] = fmt.Sprint(len(groups) + 1)
		}
		route["group"] = groups[name]
	}
}

// block returns the origin block as decoded JSON, with {env.*} replaced. The modules in it must not be
// loaded yet.
func (s *Shield) block() (any, error) {
	text, err := json.Marshal(s.Origin)
	if err != nil {
		return nil, fmt.Errorf("origin: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var block any
	if err := decoder.Decode(&block); err != nil {
		return nil, fmt.Errorf("origin: %w", err)
	}
	environment := caddy.NewEmptyReplacer()
	environment.Map(func(key string) (any, bool) {
		name, ok := strings.CutPrefix(key, "env.")
		return os.Getenv(name), ok
	})
	if block = replaced(block, environment); inspect(block).handlers["invoke"] {
		// A named route is not part of the block: a change there would leave feeds of the old origin in force.
		return nil, errors.New("origin: invoke is not possible here, because changes of a named route would go unnoticed: use a snippet, that is (name) and import name")
	}
	return block, nil
}

// replaced returns a decoded JSON value with the known placeholders of its texts replaced.
func replaced(value any, repl *caddy.Replacer) any {
	switch v := value.(type) {
	case string:
		return repl.ReplaceKnown(v, "")
	case []any:
		for i := range v {
			v[i] = replaced(v[i], repl)
		}
	case map[string]any:
		for name := range v {
			v[name] = replaced(v[name], repl)
		}
	}
	return value
}

// blockContent is what an origin block consists of.
type blockContent struct {
	handlers map[string]bool // and transports
	members  map[string]bool // names of the members of all objects, variables that it sets among them
	reads    map[string]bool // placeholders of variables, captures and logins

	upstreams []string
}

// inspect looks for what an origin block may expect from handlers before it.
func inspect(block any) *blockContent {
	in := &blockContent{handlers: map[string]bool{}, members: map[string]bool{}, reads: map[string]bool{}}
	in.add(block)
	return in
}

// placeholders are those that handlers before the shield set.
var placeholders = regexp.MustCompile(`\{(http\.(?:vars|regexp|auth)\.[^{}:]+)`)

func (in *blockContent) add(value any) {
	switch v := value.(type) {
	case string:
		for _, m := range placeholders.FindAllStringSubmatch(v, -1) {
			in.reads[m[1]] = true
		}
	case []any:
		for _, item := range v {
			in.add(item)
		}
	case map[string]any:
		for name, member := range v {
			in.members[name] = true
			if text, ok := member.(string); ok && (name == "handler" || name == "protocol") {
				in.handlers[text] = true
			} else if ok && name == "dial" {
				in.upstreams = append(in.upstreams, text)
			}
			in.add(member)
		}
	}
}

// sets reports whether the block may set a placeholder itself.
func (in *blockContent) sets(placeholder string) bool {
	switch group, name, _ := strings.Cut(strings.TrimPrefix(placeholder, "http."), "."); group {
	case "vars":
		return name == "client_ip" || name == "trusted_proxy" || name == "root" || in.members[name]
	case "auth":
		return in.handlers["authentication"]
	default:
		return in.members["path_regexp"] || in.members["header_regexp"] || in.members["vars_regexp"]
	}
}

// warnings returns what the block needs and does not set, in sentences.
func (in *blockContent) warnings() (list []string) {
	var files []string
	for _, of := range []struct {
		name  string
		found bool
	}{
		{"file or try_files", in.members["file"]}, {"file_server", in.handlers["file_server"]},
		{"php_fastcgi", in.handlers["fastcgi"]}, {"templates", in.handlers["templates"]},
	} {
		if of.found {
			files = append(files, of.name)
		}
	}
	if len(files) > 0 && !in.members["root"] && !in.members["file_root"] {
		list = append(list, fmt.Sprintf("%s in origin finds no file, because no root is set in origin: write root * /srv/www there", strings.Join(files, ", ")))
	}
	for _, name := range slices.Sorted(maps.Keys(in.reads)) {
		if !in.sets(name) {
			list = append(list, fmt.Sprintf("{%s} is empty in origin, because nothing in origin sets it: what handlers before the shield set does not count there", name))
		}
	}
	return list
}
