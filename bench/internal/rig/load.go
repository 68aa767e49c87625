// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"time"
)

// Load makes requests with wrk, over connections that are kept alive.
type Load struct {
	Connections int
	Length      time.Duration // in whole seconds
}

// pinned reports whether server and load can have cores of their own.
func pinned() bool {
	_, err := exec.LookPath("taskset")
	return err == nil && runtime.NumCPU() > 1
}

var requestsIn = regexp.MustCompile(`(\d+) requests in`)

// Run makes requests as fast as they are answered, and returns how many were.
func (l Load) Run(target string, header http.Header) (int64, error) {
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
