// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Bounds of one attack, whatever it is.
const (
	maxPeak = 256 * raced      // MiB of memory of the whole process, while nothing else is going on
	maxCPU  = 10 * time.Second // of the whole process, also with the race detector on
)

// cost is what attacks have taken at worst.
type cost struct {
	peak       int
	peakBy     string
	cpu        time.Duration
	cpuBy      string
	polls      int
	goroutines int
}

// measure runs one attack alone and notes what it took.
func (w *cost) measure(c *child, name string, run func()) {
	c.t.Helper()
	c.forgetPeak()
	before := c.cpu()
	run()
	cpu, peak := c.cpu()-before, c.peak()
	if cpu > w.cpu {
		w.cpu, w.cpuBy = cpu, name
	}
	if peak > w.peak {
		w.peak, w.peakBy = peak, name
	}
	if cpu > maxCPU {
		c.t.Errorf("%s took %v of CPU", name, cpu)
	}
	if peak > maxPeak {
		c.t.Errorf("%s took %d MiB", name, peak)
	}
}

func (w *cost) log(t *testing.T, what string) {
	t.Logf("%s; %d requests at origins; worst memory %d MiB (%s), worst CPU %v (%s)", what, w.polls, w.peak, w.peakBy, w.cpu, w.cpuBy)
}

// forgetPeak makes the present memory the peak.
func (c *child) forgetPeak() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.process.ID()), []byte("5"), 0) // what is then measured is larger
}

// cpu is the time that the process has had of processors.
func (c *child) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.process.ID()))
	if err != nil {
		return 0 // it can be told on Linux only
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	const user, system = 11, 12 // after the name
	ticks := 0
	for _, field := range []string{fields[user], fields[system]} {
		n, err := strconv.Atoi(field)
		if err != nil {
			c.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}
