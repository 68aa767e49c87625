// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Bounds of one attack, whatever it is.
const (
	maxPeak      = 256 * raced         // MiB of memory of the whole process, while nothing else is going on
	maxOriginCPU = 10 * time.Second    // of the whole process, for what an origin sends, raced or not
	maxReaderCPU = raced * time.Second // for what a reader sends
	batch        = 16                  // attacks after which the process has to be as it was
	leftOfABatch = batch               // goroutines and descriptors that may be more by then: workers begin with their first work
)

// cost is the most that an attack has taken, each by itself.
type cost struct {
	of                      *child
	maxCPU                  time.Duration
	maxPeak                 int
	goroutines, descriptors int // before the first of them
	attacks                 int

	peak   int
	peakBy string
	cpu    time.Duration
	cpuBy  string
}

// costs begins to measure attacks on a process. It should have answered a request before,
// because the first one takes more.
func (c *child) costs(maxCPU time.Duration) *cost {
	return &cost{of: c, maxCPU: maxCPU, maxPeak: maxPeak, goroutines: c.goroutines(), descriptors: c.descriptors()}
}

// measure runs one attack alone and records what it took.
func (w *cost) measure(name string, run func()) {
	w.of.t.Helper()
	w.of.forgetPeak()
	before := w.of.cpu()
	run()
	cpu, peak := w.of.cpu()-before, w.of.peak()
	if cpu > w.cpu {
		w.cpu, w.cpuBy = cpu, name
	}
	if peak > w.peak {
		w.peak, w.peakBy = peak, name
	}
	if cpu > w.maxCPU {
		w.of.t.Errorf("%s took %v of CPU", name, cpu)
	}
	if peak > w.maxPeak {
		w.of.t.Errorf("%s took %d MiB", name, peak)
	}
	if w.attacks++; w.attacks%batch == 0 {
		w.over()
	}
}

// over waits until the goroutines and descriptors of the attacks are gone.
func (w *cost) over() {
	w.of.t.Helper()
	if w.of.t.Failed() {
		return // it may never come
	}
	w.of.settle(w.goroutines+leftOfABatch, w.descriptors+leftOfABatch)
}

// finish ends the measurement, and logs the worst.
func (w *cost) finish(polls int, what string) {
	w.of.t.Helper()
	w.over()
	w.of.t.Logf("%s; %d requests at origins; worst memory %d MiB (%s), worst CPU %v (%s)", what, polls, w.peak, w.peakBy, w.cpu, w.cpuBy)
}

// forgetPeak makes the present memory the peak.
func (c *child) forgetPeak() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.pid()), []byte("5"), 0) // without it, what is measured is larger
}

// cpu is the CPU time of the process.
func (c *child) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.pid()))
	if err != nil {
		return 0 // it is known on Linux only
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
