// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package rig starts the servers that are measured, loads them, and reads from /proc what
// they cost. It needs Linux. An error ends the command, as with [log.Fatal]: servers end with it, and
// their directories stay, with the logs.
package rig

import (
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Must returns v. If err is not nil, the command ends.
func Must[T any](v T, err error) T {
	Check(err)
	return v
}

// Check ends the command if err is not nil.
func Check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Process is a server that has been started, with the processes that it has started.
type Process struct{ cmd *exec.Cmd }

// Start runs a server whose log is in a directory, and waits until it accepts connections at its addresses.
func Start(dir string, addresses []string, name string, args ...string) *Process {
	f := Must(os.Create(filepath.Join(dir, "log")))
	defer f.Close()
	p := &Process{exec.Command(name, args...)}
	p.cmd.Stdout, p.cmd.Stderr = f, f
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	Check(p.cmd.Start())
	for began := time.Now(); len(addresses) > 0; time.Sleep(2 * time.Millisecond) {
		if c, err := net.Dial("tcp", addresses[0]); err == nil {
			c.Close()
			addresses = addresses[1:]
		} else if time.Since(began) > 10*time.Minute {
			log.Fatalf("%s: %v: see %s", p.cmd.Path, err, f.Name())
		}
	}
	return p
}

// Stop ends the server, and waits for its end.
func (p *Process) Stop() { p.End(syscall.SIGTERM) }

// End sends the server a signal, and waits for its end.
func (p *Process) End(signal syscall.Signal) {
	if p != nil && p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Signal(signal)
		_ = p.cmd.Wait()
	}
}

// CPU is the CPU time of the process and of those below it.
func (p *Process) CPU() (total time.Duration) {
	all := usages()
	for pid, u := range all {
		for at := pid; at > 1; at = all[at].parent {
			if at == p.cmd.Process.Pid {
				total += u.cpu
				break
			}
		}
	}
	return total
}

// CPUOf is the CPU time of all processes of a name, those that they have outlived included.
func CPUOf(name string) (total time.Duration) {
	for _, u := range usages() {
		if u.name == name {
			total += u.cpu + u.ended
		}
	}
	return total
}

// usage is what a process has used.
type usage struct {
	name   string
	parent int
	cpu    time.Duration
	ended  time.Duration // of children that have ended
}

// usages are all processes.
func usages() map[int]usage {
	// The unit of /proc/<pid>/stat is USER_HZ, which is 100 on all of Linux's architectures that matter here.
	const tick = 10 * time.Millisecond
	all := make(map[int]usage)
	for _, e := range Must(os.ReadDir("/proc")) {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// The second field is the name in parentheses, which may hold anything.
		text := string(stat)
		from, to := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
		fields := strings.Fields(text[to+1:])
		number := func(i int) int { n, _ := strconv.Atoi(fields[i]); return n }
		all[pid] = usage{
			name: text[from+1 : to], parent: number(1),
			cpu: time.Duration(number(11)+number(12)) * tick, ended: time.Duration(number(13)+number(14)) * tick,
		}
	}
	return all
}

// Memory is how many bytes the process itself holds, and how many of them are not the page
// cache's of a file.
func (p *Process) Memory() (rss, anonymous int64) {
	return p.value("status", "VmRSS") << 10, p.value("status", "RssAnon") << 10
}

// Written is how many bytes the process has handed to write calls and to the pages of
// files.
func (p *Process) Written() int64 { return p.value("io", "write_bytes") }

// value reads a line of a file of /proc.
func (p *Process) value(file, name string) int64 {
	path := fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file)
	for line := range strings.Lines(string(Must(os.ReadFile(path)))) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return Must(strconv.ParseInt(strings.Fields(value)[0], 10, 64))
		}
	}
	log.Fatalf("%s has no %s", path, name)
	return 0
}

// FreeAddress is an address on loopback on which no server listens.
func FreeAddress() string {
	l := Must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	return l.Addr().String()
}
