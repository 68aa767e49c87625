// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory is what a process holds, in bytes.
type Memory struct {
	RSS       int64
	Anonymous int64 // of it, what is not the page cache's of a file
}

// Memory is what the process itself holds.
func (p *Process) Memory() (m Memory, err error) {
	if m.RSS, err = p.value("status", "VmRSS", 1024); err != nil {
		return m, err
	}
	m.Anonymous, err = p.value("status", "RssAnon", 1024)
	return m, err
}

// Written is how many bytes the process has handed to write calls and to the pages of
// files.
func (p *Process) Written() (int64, error) { return p.value("io", "write_bytes", 1) }

// value reads a line of a file of /proc.
func (p *Process) value(file, name string, unit int64) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return n * unit, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/%s has no %s", p.cmd.Process.Pid, file, name)
}
