// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

// figures are the CPU times of all rounds.
type figures struct {
	targets []*target
	cpu     map[*target]map[string][]time.Duration // by kind; one for each round
}

func newFigures(targets []*target) *figures {
	f := &figures{targets: targets, cpu: make(map[*target]map[string][]time.Duration)}
	for _, t := range targets {
		f.cpu[t] = make(map[string][]time.Duration)
	}
	return f
}

func (f *figures) add(t *target, k kind, _ int, cpu time.Duration) {
	f.cpu[t][k.name] = append(f.cpu[t][k.name], cpu)
}

func median[T ~float64 | ~int64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// print writes the figures as Markdown.
func (f *figures) print(w io.Writer, d *document, l rig.Load) {
	fmt.Fprintf(w, "%s, %d CPUs, %s; load by %s over %d connections; %d bytes, %d as gzip; medians of %d rounds of %s each.\n\n",
		processor(), runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly), l.Generator(), l.Connections,
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

func (f *figures) table(w io.Writer, title string, cell func(*target, kind) string) {
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

// profile writes CPU profiles of what has an endpoint for them.
func profile(targets []*target, l rig.Load, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, t := range targets {
		for _, k := range kinds {
			if t.admin == "" {
				continue
			}
			done := make(chan error, 1)
			go func() {
				name := strings.NewReplacer(" ", "-", ",", "").Replace(t.name + " " + k.name)
				done <- download(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=5", t.admin), filepath.Join(dir, name+".pprof"))
			}()
			l.Length = 6 * time.Second
			if _, err := l.Run(t.url(k), t.header(k)); err != nil {
				return err
			}
			if err := <-done; err != nil {
				return err
			}
		}
	}
	return nil
}

func download(url, path string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, resp.Body); err != nil {
		return err
	}
	return f.Close()
}
