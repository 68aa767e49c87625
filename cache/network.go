// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/policy"
)

const (
	// offlineHosts is how many hosts must be out of reach, without one that answers in
	// between, until it is not they who are taken to be down but the network here.
	offlineHosts = 3
	// offlineFailures and offlineAfter are how often, and over what time, nothing can be
	// reached until the same is said of fewer hosts, if those are all that have answered
	// within knownFor.
	offlineFailures = 3
	offlineAfter    = 2 * time.Minute
	knownFor        = 24 * time.Hour
	// offlineRetry is how long polls rest while no host can be reached. Where they are
	// few, it may be they who are down: then that grows to maxOfflineRetry.
	offlineRetry    = time.Minute
	maxOfflineRetry = 5 * time.Minute
)

// network knows whether anything can be reached at all. While nothing can, polls
// are tried one at a time, and no feed has failed.
type network struct {
	mu          sync.Mutex               // guards all
	answered    map[string]time.Duration // when hosts answered last, some of them, as [Cache.elapsed] counts
	unreachable map[string]bool          // hosts that could not be reached since the last answer
	failures    int                      // since then that may be the network's
	since       time.Duration            // the first of them
	offline     bool
}

// reached notes an answer of a host; it reports whether that ends an outage.
func (n *network) reached(host string, now time.Duration, log *zap.Logger) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.answered == nil {
		n.answered = make(map[string]time.Duration)
	}
	n.forget(now)
	if _, known := n.answered[host]; known || len(n.answered) < offlineHosts {
		n.answered[host] = now
	}
	clear(n.unreachable)
	was := n.offline
	n.offline, n.failures = false, 0
	if was {
		log.Info("the network is back, polls go on")
	}
	return was
}

// forget drops hosts that have not answered of late.
func (n *network) forget(now time.Duration) {
	for host, at := range n.answered {
		if now-at > knownFor {
			delete(n.answered, host)
		}
	}
}

// failed notes that nothing could be sent to a host.
func (n *network) failed(host string, a policy.Answer, now time.Duration, log *zap.Logger) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.unreachable == nil {
		n.unreachable = make(map[string]bool)
	}
	if len(n.unreachable) < offlineHosts {
		n.unreachable[host] = true
	}
	if !saysNo(a) {
		if n.failures++; n.failures == 1 {
			n.since = now
		}
	}
	if !n.offline && (len(n.unreachable) >= offlineHosts || n.noneLeft(now)) {
		n.offline = true
		log.Warn("no host can be reached: polls rest until one can, readers get what is stored")
	}
}

// saysNo reports whether somebody has answered that a host is not to be had: that its
// name does not exist, or that it takes no connection.
func saysNo(a policy.Answer) bool {
	if e, ok := errors.AsType[*net.DNSError](a.Err); ok {
		return e.IsNotFound
	}
	return errors.Is(a.Err, syscall.ECONNREFUSED) || a.Failure == policy.FailureNotStarted
}

// noneLeft reports whether all hosts, though they are few, have been out of reach for
// long enough.
func (n *network) noneLeft(now time.Duration) bool {
	if n.failures < offlineFailures || now-n.since < offlineAfter {
		return false
	}
	n.forget(now)
	for host := range n.answered {
		if !n.unreachable[host] {
			return false
		}
	}
	return true
}

// rest is how long polls rest from now on, as nothing can be reached; 0: they need not.
func (n *network) rest(now time.Duration, chance float64) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.offline {
		return 0
	}
	wait := offlineRetry
	if len(n.unreachable) < offlineHosts {
		wait = min(max(wait, (now-n.since)/10), maxOfflineRetry)
	}
	return wait + time.Duration(float64(wait)*chance/2)
}

func (n *network) down() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.offline
}
