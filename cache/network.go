// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync"

	"go.uber.org/zap"
)

// offlineHosts is how many hosts must be out of reach, without one that answers in
// between, until it is not they who are taken to be down but the network here.
const offlineHosts = 3

// network knows whether anything can be reached at all. While nothing can, polls
// are tried one at a time, and no feed has failed.
type network struct {
	mu          sync.Mutex      // guards all
	unreachable map[string]bool // hosts that could not be reached since the last answer
	offline     bool
}

// reached notes an answer; it reports whether that ends an outage.
func (n *network) reached(log *zap.Logger) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.unreachable)
	was := n.offline
	n.offline = false
	if was {
		log.Info("the network is back, polls go on")
	}
	return was
}

// failed notes that nothing could be sent to a host.
func (n *network) failed(host string, log *zap.Logger) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.unreachable == nil {
		n.unreachable = make(map[string]bool)
	}
	if len(n.unreachable) < offlineHosts {
		n.unreachable[host] = true
	}
	if len(n.unreachable) >= offlineHosts && !n.offline {
		n.offline = true
		log.Warn("no host can be reached: polls rest until one can, readers get what is stored")
	}
}

func (n *network) down() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.offline
}
