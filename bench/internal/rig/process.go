// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package rig starts the servers that are measured, loads them, and reads from /proc what
// they cost. It needs Linux. An error ends the command, as with [log.Fatal]: servers end with it, and
// their directories stay, with the logs.
package rig

import (
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
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
	all := stats()
	for pid, stat := range all {
		for at := pid; at > 1; at = all[at].PPID {
			if at == p.cmd.Process.Pid {
				total += seconds(stat.CPUTime())
				break
			}
		}
	}
	return total
}

// CPUOf is the CPU time of all processes of a name, those that they have outlived included.
func CPUOf(name string) (total time.Duration) {
	for _, stat := range stats() {
		if stat.Comm == name {
			ended := procfs.ProcStat{UTime: uint(stat.CUTime), STime: uint(stat.CSTime)}
			total += seconds(stat.CPUTime() + ended.CPUTime())
		}
	}
	return total
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// stats are what all processes have used, by their numbers.
func stats() map[int]procfs.ProcStat {
	all := make(map[int]procfs.ProcStat)
	for _, p := range Must(procfs.AllProcs()) {
		if stat, err := p.Stat(); err == nil { // it has not ended
			all[p.PID] = stat
		}
	}
	return all
}

// Memory is how many bytes the process itself holds, and how many of them are not the page
// cache's of a file.
func (p *Process) Memory() (rss, anonymous int64) {
	status := Must(Must(procfs.NewProc(p.cmd.Process.Pid)).NewStatus())
	return int64(status.VmRSS), int64(status.RssAnon)
}

// Written is how many bytes the process has handed to write calls and to the pages of
// files.
func (p *Process) Written() int64 {
	return int64(Must(Must(procfs.NewProc(p.cmd.Process.Pid)).IO()).WriteBytes)
}

// FreeAddress is an address on loopback on which no server listens.
func FreeAddress() string {
	l := Must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	return l.Addr().String()
}
