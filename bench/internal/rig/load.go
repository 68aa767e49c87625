// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Load makes requests with wrk, over connections that are kept alive.
type Load struct {
	Connections int
	Length      time.Duration // in whole seconds
}

// CostPerRequest loads a server for a moment, and returns its CPU time per request.
func (l Load) CostPerRequest(p *Process, target string, header http.Header) (time.Duration, error) {
	before, err := p.CPU()
	if err != nil {
		return 0, err
	}
	requests, err := l.run(target, header)
	if err != nil {
		return 0, err
	}
	after, err := p.CPU()
	return (after - before) / time.Duration(max(requests, 1)), err
}

// Median is the median of some figures.
func Median[T cmp.Ordered](figures []T) T {
	return slices.Sorted(slices.Values(figures))[len(figures)/2]
}

// Words is a text of about a size that gzip compresses to a third, as it does most feeds.
func Words(seed uint64, size int) string {
	const words = "the of and a to in is was that it for on with as he his be at by i this had not are but from or have an they which one you were all her she " +
		"there would their we him been has when who will no more if out so up said what its about than into them can only other time new some could"
	list, r := strings.Fields(words), rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	for b.Len() < size {
		// The first words are more frequent than the others.
		fmt.Fprintf(&b, "%s%d ", list[int(float64(len(list))*r.Float64()*r.Float64())], r.IntN(4))
	}
	return b.String()
}

// pinned reports whether server and load can have cores of their own.
func pinned() bool {
	_, err := exec.LookPath("taskset")
	return err == nil && runtime.NumCPU() > 1
}

var requestsIn = regexp.MustCompile(`(\d+) requests in`)

// run makes requests as fast as they are answered, and returns how many were.
func (l Load) run(target string, header http.Header) (int64, error) {
	name, args := "wrk", []string{"-t1", "-c" + strconv.Itoa(l.Connections), fmt.Sprintf("-d%.0fs", l.Length.Seconds())}
	for field, values := range header {
		args = append(args, "-H", field+": "+values[0])
	}
	args = append(args, target)
	if pinned() {
		name, args = "taskset", append([]string{"-c", "1-" + strconv.Itoa(runtime.NumCPU()-1), name}, args...)
	}
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("wrk: %w: %s", err, out)
	}
	m := requestsIn.FindSubmatch(out)
	if m == nil || bytes.Contains(out, []byte("Non-2xx")) || bytes.Contains(out, []byte("Socket errors")) {
		return 0, fmt.Errorf("wrk reports errors:\n%s", out)
	}
	return strconv.ParseInt(string(m[1]), 10, 64)
}
