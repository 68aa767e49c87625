// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Load is what requests come from.
type Load struct {
	Connections int
	Length      time.Duration
	wrk         string // empty: it is not installed
}

// NewLoad returns a load by wrk or, where that is not installed, by a generator of its own.
func NewLoad(connections int, length time.Duration) Load {
	l := Load{Connections: connections, Length: length}
	l.wrk, _ = exec.LookPath("wrk")
	return l
}

// pinned reports whether server and load can have cores of their own.
func pinned() bool {
	_, err := exec.LookPath("taskset")
	return err == nil && runtime.NumCPU() > 1
}

// Run makes requests as fast as they are answered, and returns how many were.
func (l Load) Run(target string, header http.Header) (int64, error) {
	if l.wrk == "" {
		return l.own(target, header)
	}
	args := []string{"-t1", "-c" + strconv.Itoa(l.Connections), fmt.Sprintf("-d%dms", l.Length.Milliseconds())}
	if l.Length%time.Second == 0 {
		args[2] = fmt.Sprintf("-d%ds", int(l.Length.Seconds()))
	}
	for name, values := range header {
		args = append(args, "-H", name+": "+values[0])
	}
	args = append(args, target)
	name := l.wrk
	if pinned() {
		name, args = "taskset", append([]string{"-c", "1-" + strconv.Itoa(runtime.NumCPU()-1), name}, args...)
	}
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("wrk: %w: %s", err, out)
	}
	if bytes.Contains(out, []byte("Non-2xx")) || bytes.Contains(out, []byte("Socket errors")) {
		return 0, fmt.Errorf("wrk saw errors:\n%s", out)
	}
	m := requestsIn.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("wrk printed no result:\n%s", out)
	}
	return strconv.ParseInt(string(m[1]), 10, 64)
}

var requestsIn = regexp.MustCompile(`(\d+) requests in`)

// Generator names what makes the requests.
func (l Load) Generator() string {
	if l.wrk == "" {
		return "a generator of its own"
	}
	return "wrk"
}

// own is a load of this program's, for machines without wrk.
func (l Load) own(target string, header http.Header) (int64, error) {
	u, err := url.Parse(target)
	if err != nil {
		return 0, err
	}
	var request bytes.Buffer
	fmt.Fprintf(&request, "GET %s HTTP/1.1\r\nHost: %s\r\n", u.RequestURI(), u.Host)
	_ = header.Write(&request) // into memory
	request.WriteString("\r\n")

	var answered atomic.Int64
	failed := make(chan error, l.Connections)
	end := time.Now().Add(l.Length)
	var all sync.WaitGroup
	for range l.Connections {
		all.Go(func() {
			c, err := net.Dial("tcp", u.Host)
			if err != nil {
				failed <- err
				return
			}
			defer c.Close()
			for r := bufio.NewReaderSize(c, 64<<10); time.Now().Before(end); answered.Add(1) {
				if _, err := c.Write(request.Bytes()); err != nil {
					failed <- err
					return
				}
				resp, err := http.ReadResponse(r, nil)
				if err == nil && resp.StatusCode >= 400 {
					err = fmt.Errorf("got %s", resp.Status)
				}
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
				}
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
		return answered.Load(), nil
	}
}
