// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

// origin answers the polls, for all hosts.
type origin struct {
	requests atomic.Int64
	fresh    atomic.Int64 // of them, with a new version
}

// port is in the stored URLs.
const port = "20666"

// newSize is the size of a new version, in bytes.
const newSize = 50_000

func startOrigin(o options) *origin {
	l := rig.Must(net.Listen("tcp", "0.0.0.0:"+port))
	documents := make([][]byte, 200)
	for i := range documents {
		documents[i] = feed(3, newSize, i)
	}
	server := new(origin)
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:errcheck // ends with the process
		n := server.requests.Add(1)
		h := w.Header()
		h.Set("Cache-Control", "max-age=3600")
		if tag := r.Header.Get("If-None-Match"); tag != "" && rand.Float64() >= o.fresh {
			h.Set("Etag", tag)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		server.fresh.Add(1)
		h.Set("Content-Type", "application/rss+xml")
		h.Set("Etag", fmt.Sprintf(`"new-%d"`, n))
		_, _ = w.Write(documents[n%int64(len(documents))])
	}))
	return server
}
