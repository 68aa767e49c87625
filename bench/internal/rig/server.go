// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Dir makes a directory for a server, whose workers may have another user.
func Dir(pattern string) string {
	dir := Must(os.MkdirTemp("", pattern))
	Check(os.Chmod(dir, 0o755))
	return dir
}

// Pollard returns the arguments of a Pollard with global options, lines of its app, and sites.
func Pollard(dir, options, app, sites string) []string {
	path := filepath.Join(dir, "Caddyfile")
	Check(os.WriteFile(path, fmt.Appendf(nil, `{
	auto_https off
	%s
	pollard {
		private_upstreams 127.0.0.0/8
		%s
	}
}
%s`, options, app, sites), 0o600))
	return []string{"run", "--config", path}
}

// Nginx returns the arguments of an nginx with directives of its block http.
func Nginx(dir, directives string) []string {
	var temporary strings.Builder
	for _, of := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temporary, "%s_temp_path %s/%[1]s;\n", of, dir)
	}
	path := filepath.Join(dir, "nginx.conf")
	Check(os.WriteFile(path, fmt.Appendf(nil, `daemon off; worker_processes 1; pid %[1]s/pid; error_log %[1]s/errors;
events { worker_connections 1024; }
http {
access_log off; keepalive_requests 100000000;
%[2]s%[3]s
}
`, dir, temporary.String(), directives), 0o600))
	return []string{"-c", path, "-p", dir}
}

// Table prints a table in Markdown. The first column names the rows.
func Table(head []string, rows [][]string) {
	fmt.Printf("| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat(" --- |", len(head)))
	for _, row := range rows {
		fmt.Printf("| %s |\n", strings.Join(row, " | "))
	}
	fmt.Println()
}
