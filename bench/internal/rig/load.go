// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"cmp"
	"fmt"
	"log"
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

// Connections is how many connections a load has.
const Connections = 16

var requestsIn = regexp.MustCompile(`(\d+) requests in`)

// CostPerRequest loads a server with wrk for a second, over connections that are kept alive, and returns its
// CPU time per request.
func CostPerRequest(p *Process, target string, header http.Header) time.Duration {
	args := []string{"wrk", "-t1", fmt.Sprint("-c", Connections), "-d1s"}
	for field, values := range header {
		args = append(args, "-H", field+": "+values[0])
	}
	args = Pinned(fmt.Sprint("1-", max(1, runtime.NumCPU()-1)), append(args, target)...)
	before := p.CPU()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	used := p.CPU() - before
	m := requestsIn.FindSubmatch(out)
	if err != nil || m == nil || bytes.Contains(out, []byte("Non-2xx")) || bytes.Contains(out, []byte("Socket errors")) {
		log.Fatalf("%s: wrk reports %v:\n%s", target, err, out)
	}
	return used / time.Duration(max(1, Must(strconv.ParseInt(string(m[1]), 10, 64))))
}

// Pinned returns a command that has cores of its own, if there are several: servers the first, their load the
// others.
func Pinned(cores string, command ...string) []string {
	if _, err := exec.LookPath("taskset"); err != nil || runtime.NumCPU() == 1 {
		return command
	}
	return append([]string{"taskset", "-c", cores}, command...)
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
