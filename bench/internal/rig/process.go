// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package rig starts the servers that are measured, loads them, and reads from /proc what
// they cost. It needs Linux.
package rig

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a server that has been started, with the processes that it has started.
type Process struct {
	cmd    *exec.Cmd
	output *os.File
}

// tick is the unit of /proc/<pid>/stat: USER_HZ, which is 100 on all of Linux's
// architectures that matter here.
const tick = 10 * time.Millisecond

// Start runs a server on the first core if there is more than one: the load is on
// the others.
func Start(log, name string, args ...string) (*Process, error) {
	if pinned() {
		name, args = "taskset", append([]string{"-c", "0", name}, args...)
	}
	return StartAnywhere(log, name, args...)
}

// StartAnywhere runs a server on all cores.
func StartAnywhere(log, name string, args ...string) (*Process, error) {
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Process{cmd: cmd, output: f}, nil
}

// Stop ends the server, and waits for its end.
func (p *Process) Stop() { p.End(syscall.SIGTERM) }

// End sends the server a signal, and waits for its end.
func (p *Process) End(signal syscall.Signal) {
	if p.cmd.ProcessState != nil {
		return // it serves several targets
	}
	_ = p.cmd.Process.Signal(signal)
	_ = p.cmd.Wait()
	_ = p.output.Close()
}

// Ready waits until the server accepts connections.
func (p *Process) Ready(addr string) error {
	for range 6000 {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			return c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	log, _ := os.ReadFile(p.output.Name())
	return fmt.Errorf("%s does not listen on %s:\n%s", p.cmd.Path, addr, log)
}

// CPU is the CPU time of the process and of those below it.
func (p *Process) CPU() (total time.Duration, err error) {
	all, err := usages()
	for pid, u := range all {
		for at := pid; at > 1; at = all[at].parent {
			if at == p.cmd.Process.Pid {
				total += u.cpu
				break
			}
		}
	}
	return total, err
}

// CPUOf is the CPU time of all processes of a name, those that they have outlived included.
func CPUOf(name string) (total time.Duration, err error) {
	all, err := usages()
	for _, u := range all {
		if u.name == name {
			total += u.cpu + u.ended
		}
	}
	return total, err
}

// usage is what a process has used.
type usage struct {
	name   string
	parent int
	cpu    time.Duration
	ended  time.Duration // of children that have ended
}

// usages are all processes.
func usages() (map[int]usage, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	all := make(map[int]usage)
	for _, e := range entries {
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
	return all, nil
}

// Memory is how many bytes the process itself holds, and how many of them are not the page
// cache's of a file.
func (p *Process) Memory() (rss, anonymous int64, err error) {
	if rss, err = p.value("status", "VmRSS", 1024); err != nil {
		return 0, 0, err
	}
	anonymous, err = p.value("status", "RssAnon", 1024)
	return rss, anonymous, err
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

// FreeAddress is an address on loopback on which no server listens.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
