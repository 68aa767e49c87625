// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/policy"
)

const (
	// offlineHosts is how many hosts must fail to connect, without one that answers in between,
	// for it to be the network here.
	offlineHosts = 3
	// If fewer hosts have answered in the last day (knownFor), and none of them connects, it
	// takes failures over a time of offlineAfter.
	offlineAfter = 2 * time.Minute
	knownFor     = 24 * time.Hour
)

// offline is the state in which no host can be reached. No feed fails because of it.
type offline struct {
	mu       sync.Mutex               // guards all
	on       bool                     // it is the state
	answered map[string]time.Duration // when hosts answered last, some of them, as [Cache.elapsed] counts
	failed   map[string]bool          // hosts that did not connect since the last answer
	started  time.Duration            // when the state began
	since    time.Duration            // the first failure since the last answer that was not of a host which is down for certain; 0: none
}

// answer records that a host has answered. It reports whether that ends the state.
func (o *offline) answer(host string, now time.Duration) (ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropOld(now)
	if _, known := o.answered[host]; known || len(o.answered) < offlineHosts {
		o.answered[host] = now
	}
	clear(o.failed)
	ended = o.on
	o.on, o.since = false, 0
	return ended
}

// dropOld drops hosts that have not answered for long.
func (o *offline) dropOld(now time.Duration) {
	maps.DeleteFunc(o.answered, func(_ string, at time.Duration) bool { return now-at > knownFor })
}

// fail records that nothing could be sent to a host. It reports whether that begins the state.
func (o *offline) fail(host string, a policy.Answer, now time.Duration) (started bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.failed) < offlineHosts {
		o.failed[host] = true
	}
	if o.since == 0 && !hostDown(a) {
		o.since = now
	}
	started = !o.on && (len(o.failed) >= offlineHosts || o.allFailed(now))
	if started {
		o.on, o.started = true, now
	}
	return started
}

// hostDown reports whether it is certain that the host and not the network is away: its name
// does not exist, or it has refused the connection.
func hostDown(a policy.Answer) bool {
	if a.Failure == policy.FailureProxy {
		return false
	}
	if e, ok := errors.AsType[*net.DNSError](a.Err); ok {
		return e.IsNotFound
	}
	return errors.Is(a.Err, syscall.ECONNREFUSED) || a.Failure == policy.FailureNotStarted
}

// allFailed reports whether all hosts, though they are few, have failed for long enough.
func (o *offline) allFailed(now time.Duration) bool {
	if o.since == 0 || now-o.since < offlineAfter {
		return false
	}
	o.dropOld(now)
	for host := range o.answered {
		if !o.failed[host] {
			return false
		}
	}
	return true
}

// moment is now, as far as it concerns what becomes of a feed.
func (c *Cache) moment() feedstate.Moment {
	return feedstate.Moment{Wall: c.now(), Elapsed: c.elapsed(), Random: c.random()}
}

// is reports whether it is the state, and since when.
func (o *offline) is() (since time.Duration, on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.started, o.on
}

// noticeNetwork records what a poll says of the network.
func (c *Cache) noticeNetwork(f *Feed, s *feedstate.State, a policy.Answer) {
	if f.key.Shielded() {
		return
	}
	host := c.origin.Host(f.key.URL()).Site
	switch {
	case !a.Unsent():
		if a.Status != 0 && c.offline.answer(host, c.elapsed()) {
			c.log().Info("the network is back")
			c.wake(c.changed)
		}
	// Names that a reader invents prove nothing about the network.
	case a.Failure != policy.FailureAddress && (s.Version != 0 || f.configured()):
		if c.offline.fail(host, a, c.elapsed()) {
			c.log().Warn("no host can be reached: polls are tried each ten minutes, readers get what is stored")
		}
	}
}

const (
	// storeRetry is how long claims stop after an error of the store. Then those whose turn it is find
	// out whether the store is back. A poll that was refused waits up to three times as long:
	// when the store is back, what readers ask for is polled within half a minute, and not all
	// at once.
	storeRetry = 10 * time.Second
	// storeTimeout is how long a claim may take before that counts as a refusal: a disk
	// that hangs returns no error.
	storeTimeout = 10 * time.Second
)

var errClaimTimeout = errors.New("the store has not answered a claim for 10 seconds")

// storeAway is the state in which the store refuses writes.
type storeAway struct {
	reason atomic.Pointer[string] // nil: it is not away
	since  atomic.Int64           // when that began, as [Cache.elapsed] counts
	next   atomic.Int64           // when a claim may be tried, as [Cache.elapsed] counts
}

// text returns why the store refuses writes; empty: it does not.
func (s *storeAway) text() string {
	if t := s.reason.Load(); t != nil {
		return *t
	}
	return ""
}

func (c *Cache) storeFailed(err error) {
	text := err.Error()
	if c.storeAway.reason.Swap(&text) == nil {
		c.storeAway.since.Store(int64(c.elapsed()))
		c.log().Error("store refuses writes: polls stop until it takes them again, readers get what is stored", zap.Error(err))
	}
}

func (c *Cache) storeAnswered() {
	if c.storeAway.reason.Swap(nil) != nil {
		c.log().Info("store takes writes again, polls go on")
	}
}

// claimFailed records that a claim was refused. The next one is tried at a moment that
// several nodes do not have in common.
func (c *Cache) claimFailed(err error) {
	c.storeFailed(err)
	c.storeAway.next.Store(int64(c.elapsed() + storeRetry + time.Duration(c.random()*float64(storeRetry/4))))
}

// timeClaim counts a claim that takes too long as refused. It is to be called before the
// claim, and what it returns afterwards.
func (c *Cache) timeClaim() (answered func() bool) {
	return time.AfterFunc(storeTimeout, func() { c.claimFailed(errClaimTimeout) }).Stop
}

// untilClaim returns how long no claim is to be made, as the store is away; 0 if one may be.
func (c *Cache) untilClaim() time.Duration {
	if c.storeAway.text() == "" {
		return 0
	}
	return max(0, time.Duration(c.storeAway.next.Load())-c.elapsed())
}

// unreadableInterval is the least time between two lines of the log about failed reads.
const unreadableInterval = 10 * time.Second

// logUnreadable logs that a read from the store has failed. While the store is away, each
// reader finds that out, so not every failure is logged.
func (c *Cache) logUnreadable(message, key string, err error) {
	c.unreadable.Do(func() { c.log().Error(message, c.urlField(key), errField(err)) })
}
