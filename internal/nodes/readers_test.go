// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// readers are rude: they ask at once, unconditionally and without mercy. One whose node
// does not answer asks the next one, as a load balancer would.
type readers struct {
	web    *web
	nodes  []*node
	client http.Client

	mu         sync.Mutex // guards what follows
	seen       map[*feed]map[*node]int
	answers    int
	elsewhere  int           // answers of another node than the first one
	slowest    time.Duration // answer of one node
	lost       []string      // versions that went back
	unanswered []string
	// least are the versions that a database knows which has replaced another one: those
	// after them are lost with that. Nil: none are.
	least    map[*feed]int
	wentBack int // versions that were
}

func newReaders(w *web, nodes []*node) *readers {
	r := &readers{web: w, nodes: nodes, seen: make(map[*feed]map[*node]int)}
	for _, f := range w.feeds {
		r.seen[f] = make(map[*node]int)
	}
	r.client = http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	return r
}

// run lets some readers ask for feeds until stop is closed.
func (r *readers) run(n int, feeds []*feed, stop <-chan struct{}) *sync.WaitGroup {
	all := new(sync.WaitGroup)
	for range n {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(5+rand.IntN(30)) * time.Millisecond):
					r.ask(feeds[rand.IntN(len(feeds))])
				}
			}
		})
	}
	return all
}

// ask asks the nodes for a feed until one answers.
func (r *readers) ask(f *feed) {
	began, first := time.Now(), rand.IntN(len(r.nodes))
	var why []string
	for i := range len(r.nodes) {
		n := r.nodes[(first+i)%len(r.nodes)]
		_, err := r.get(n, f)
		if err != nil {
			why = append(why, n.name+": "+err.Error())
			continue
		}
		r.mu.Lock()
		r.answers++
		if i > 0 {
			r.elsewhere++
		}
		r.slowest = max(r.slowest, time.Since(began))
		r.mu.Unlock()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unanswered = append(r.unanswered, fmt.Sprintf("%s %s: %s", began.Format(time.TimeOnly), f.path, strings.Join(why, "; ")))
}

var versionText = regexp.MustCompile(`^<rss version="2.0"><channel><title>(/\d+\.xml)</title><item><title>Version (\d+)</title>.*</channel></rss>$`)

// get asks one node for a feed. A node must not give a version that is older than one it
// has given before, in this life or an earlier one.
func (r *readers) get(n *node, f *feed) (version int, err error) {
	r.mu.Lock()
	before := r.seen[f][n]
	r.mu.Unlock()
	resp, err := r.client.Get("http://" + n.address + f.path)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%d %s", resp.StatusCode, strings.TrimSpace(string(body)))
	}
	if before == 0 && bytes.Contains(body, []byte("the feed&#39;s first poll ")) {
		return 0, errors.New("the first poll is under way, perhaps at another node")
	}
	found := versionText.FindSubmatch(body)
	if found == nil || string(found[1]) != f.path {
		r.mu.Lock()
		r.lost = append(r.lost, fmt.Sprintf("%s of node %s is no version of it: %.200s", f.path, n.name, body))
		r.mu.Unlock()
		return 0, nil
	}
	version, _ = strconv.Atoi(string(found[2]))
	r.mu.Lock()
	defer r.mu.Unlock()
	if least, lossy := r.least[f]; lossy && version < before && version >= least {
		r.wentBack++
	} else if version < before {
		r.lost = append(r.lost, fmt.Sprintf("node %s gave version %d of %s, and now %d", n.name, before, f.path, version))
	}
	r.seen[f][n] = max(r.seen[f][n], version)
	return version, nil
}

// versions are the newest of each feed that any reader has got.
func (r *readers) versions() map[*feed]int {
	all := make(map[*feed]int)
	for _, f := range r.web.feeds {
		all[f] = r.newest(f)
	}
	return all
}

// lossy has a database replaced by one that knows these versions.
func (r *readers) lossy(least map[*feed]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.least = least
}

// newest is the newest version of a feed that any reader has got of any node.
func (r *readers) newest(f *feed) (version int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.seen[f] {
		version = max(version, v)
	}
	return version
}
