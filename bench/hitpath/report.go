// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

// table are the CPU times of all rounds.
type table struct {
	targets []*target
	cpu     map[*target]map[string][]time.Duration // by kind; one for each round
}

func newTable(targets []*target) *table {
	f := &table{targets: targets, cpu: make(map[*target]map[string][]time.Duration)}
	for _, t := range targets {
		f.cpu[t] = make(map[string][]time.Duration)
	}
	return f
}

func (f *table) add(t *target, k kind, _ int, cpu time.Duration) {
	f.cpu[t][k.name] = append(f.cpu[t][k.name], cpu)
}

func median[T ~float64 | ~int64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// print writes the figures as Markdown.
func (f *table) print(w io.Writer, d *document, l rig.Load) {
	fmt.Fprintf(w, "%s, %d CPUs, %s; load by wrk over %d connections; %d bytes, %d as gzip; medians of %d rounds of %s each.\n\n",
		processor(), runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly), l.Connections,
		len(d.identity), len(d.gzip), len(f.cpu[f.targets[0]][kinds[0].name]), l.Length)
	f.table(w, "CPU us per request (fields of the answer)", func(t *target, k kind) string {
		return fmt.Sprintf("%.1f (%d)", float64(median(f.cpu[t][k.name]))/1e3, len(t.fields[k.name]))
	})
	var base *target
	for _, t := range f.targets {
		if t.name == baseline {
			base = t
		}
	}
	fmt.Fprintln(w)
	f.table(w, "ratio to "+baseline+" in the same round", func(t *target, k kind) string {
		var ratios []float64
		for i, cpu := range f.cpu[t][k.name] {
			if below := f.cpu[base][k.name][i]; below > 0 {
				ratios = append(ratios, float64(cpu)/float64(below))
			}
		}
		if len(ratios) == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f", median(ratios))
	})
}

func (f *table) table(w io.Writer, title string, cell func(*target, kind) string) {
	fmt.Fprintf(w, "| %s |", title)
	for _, k := range kinds {
		fmt.Fprintf(w, " %s |", k.name)
	}
	fmt.Fprintf(w, "\n| --- |%s\n", strings.Repeat(" --- |", len(kinds)))
	for _, t := range f.targets {
		fmt.Fprintf(w, "| %s |", t.name)
		for _, k := range kinds {
			fmt.Fprintf(w, " %s |", cell(t, k))
		}
		fmt.Fprintln(w)
	}
}

func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimLeft(strings.TrimSpace(name), ": \t")
		}
	}
	return runtime.GOARCH
}
