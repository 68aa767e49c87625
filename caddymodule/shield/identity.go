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
// keys begin with it, so a changed origin block finds nothing that was stored before. Of the
// placeholders only {env.*} is replaced: others may have another value on each node, or at each
// start.
func identityOf(block any, varyIgnore []string) (string, error) {
	names := slices.Clone(varyIgnore)
	slices.Sort(names)
	text, err := json.Marshal([]any{block, names}) // with sorted keys
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
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
	if block = replaced(block, environment); inspect(block).invokes {
		return nil, errInvoke
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

// blockContent is what an origin block has and lacks.
type blockContent struct {
	invokes bool
	root    bool            // it sets the variable root
	sets    map[string]bool // variables, captures and logins that it sets: http.vars.x, http.regexp., http.auth.
	files   map[string]bool // handlers and matchers that need a root and have none of their own
	reads   map[string]bool // placeholders of variables, captures and logins
}

// inspect looks for what an origin block may expect from handlers before it.
func inspect(block any) *blockContent {
	in := &blockContent{sets: map[string]bool{}, files: map[string]bool{}, reads: map[string]bool{}}
	in.value("", block)
	return in
}

// placeholders are those that handlers before the shield set.
var placeholders = regexp.MustCompile(`\{(http\.(?:vars|regexp|auth)\.[^{}:]+)`)

// value inspects a value that a member of that name has.
func (in *blockContent) value(name string, value any) {
	switch v := value.(type) {
	case string:
		for _, m := range placeholders.FindAllStringSubmatch(v, -1) {
			in.reads[m[1]] = true
		}
	case []any:
		for _, item := range v {
			in.value(name, item)
		}
	case map[string]any:
		in.object(name, v)
		for member, of := range v {
			in.value(member, of)
		}
	}
}

// object inspects a handler, a set of matchers or a transport.
func (in *blockContent) object(name string, v map[string]any) {
	rootless := v["root"] == nil
	switch v["handler"] {
	case "invoke":
		in.invokes = true
	case "vars":
		for variable := range v {
			in.sets["http.vars."+variable] = true
			in.root = in.root || variable == "root"
		}
	case "authentication":
		in.sets["http.auth."] = true
	case "file_server":
		if rootless {
			in.files["file_server"] = true
		}
	case "templates":
		if v["file_root"] == nil {
			in.files["templates"] = true
		}
	}
	switch {
	case name == "transport" && v["protocol"] == "fastcgi" && rootless:
		in.files["php_fastcgi"] = true
	case name == "file" && v["handler"] == nil && rootless:
		in.files["file or try_files"] = true
	case strings.HasSuffix(name, "_regexp"):
		in.sets["http.regexp."] = true
	}
}

// errInvoke refuses named routes, which are not part of the block: a change there would leave
// feeds of the old origin in force.
var errInvoke = errors.New("origin: invoke is not possible here, because changes of a named route would go unnoticed: use a snippet, that is (name) and import name")

// warnings returns what the block needs and does not set, in sentences.
func (in *blockContent) warnings() (list []string) {
	if len(in.files) > 0 && !in.root {
		list = append(list, fmt.Sprintf("%s in origin finds no file, because no root is set in origin: write root * /srv/www there", strings.Join(slices.Sorted(maps.Keys(in.files)), ", ")))
	}
	for _, name := range slices.Sorted(maps.Keys(in.reads)) {
		group := name[:strings.IndexByte(name[len("http."):], '.')+len("http.")+1] // http.vars.
		known := name == "http.vars.client_ip" || name == "http.vars.trusted_proxy" || name == "http.vars.root"
		if !known && !in.sets[name] && !in.sets[group] {
			list = append(list, fmt.Sprintf("{%s} is empty in origin, because nothing in origin sets it: what handlers before the shield set does not count there", name))
		}
	}
	return list
}
