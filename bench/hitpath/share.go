// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

// byDate is the kind of request whose profile is taken: it needs the least of net/http and of the kernel.
const byDate = len(kinds) - 1

// own is what a profile counts for Pollard: its handlers and what they call, but not what net/http does as soon as a
// handler writes the header of an answer.
var own = []string{"-focus", `caddymodule/(gateway|shield).*\)\.ServeHTTP$`, "-ignore", `net/http\.\(\*response\)\.WriteHeader$`}

var percentOf = regexp.MustCompile(`nodes accounting for \S+, (\S+%) of`)

// printShares prints, for each Pollard, which share of CPU time is its own.
func (s *servers) printShares(length time.Duration) {
	rows := [][]string{}
	for _, t := range s.targets {
		if t.admin != "" {
			rows = append(rows, []string{t.name, s.share(t, length)})
		}
	}
	rig.Table([]string{"own share of CPU, " + kinds[byDate].name, ""}, rows)
}

// share loads a server while its admin endpoint takes a profile.
func (s *servers) share(t *target, length time.Duration) string {
	profile, done := filepath.Join(s.dir, "profile"), make(chan struct{})
	go func() {
		defer close(done)
		answer := rig.Must(http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", t.admin, int(length.Seconds()))))
		defer answer.Body.Close()
		rig.Check(os.WriteFile(profile, rig.Must(io.ReadAll(answer.Body)), 0o600))
	}()
	for loading := true; loading; {
		rig.CostPerRequest(t.process, t.urls[byDate], t.header(byDate))
		select {
		case <-done:
			loading = false
		default:
		}
	}
	args := append([]string{"tool", "pprof", "-top", "-nodefraction", "0", "-nodecount", "1000000"}, append(own, profile)...)
	out, err := exec.Command("go", args...).CombinedOutput()
	m := percentOf.FindSubmatch(out)
	if err != nil || m == nil {
		log.Fatalf("go tool pprof reports %v:\n%s", err, out)
	}
	return string(m[1])
}
