// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"cmp"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/feedpollard/pollard/cache/version"
)

const (
	// maxClients is how many readers of feeds a limiter remembers, at about 200 bytes each.
	maxClients = 32768
	// shards is how many parts of a limiter have a lock of their own.
	shards = 16
	// maxProxies is how many addresses that forward requests a limiter remembers.
	maxProxies = 1024
	// proxyClients is how many clients an address must forward to be taken for a proxy.
	proxyClients = 4
)

// Limiter applies a [Limits] to readers.
//
// A reader of a feed is identified by its User-Agent, its address (the /64 in IPv6) and, behind a proxy that is not trusted, the address that the proxy says. Only
// keyed hashes of them are kept.
//
// Its memory is bounded: the least recently seen reader is forgotten first, and then
// treated as new. It uses the times of requests, and is safe for concurrent use.
type Limiter struct {
	seed   seed
	shards [shards]shard // by feed and address

	mu      sync.Mutex   // guards all below
	proxies lru[proxy]   // by address and site
	fleets  lru[[]place] // by fleet
}

// shard is what a limiter remembers of some readers.
type shard struct {
	mu      sync.Mutex // guards all below
	readers lru[state] // by feed, address and User-Agent; the persons at an address: without a User-Agent
}

// proxy is an address that sends X-Forwarded-For and is not trusted.
type proxy struct {
	address netip.Addr
	feed    string   // that it has asked for first
	clients []uint64 // hashes of the first proxyClients that it forwarded
}

// NewLimiter returns a limiter.
func NewLimiter() *Limiter { return newLimiter(maxClients) }

func newLimiter(limit int) *Limiter {
	l := &Limiter{seed: newSeed(), proxies: newLRU[proxy](maxProxies), fleets: newLRU[[]place](maxFleets)}
	for i := range l.shards {
		l.shards[i].readers = newLRU[state](limit / shards)
	}
	return l
}

// Check decides on a request before it is answered. If the verdict is to serve it, the
// caller calls [Limiter.Answered] with the answer.
//
// A request that is answered by a 304, which costs no more than a refusal, is never
// refused and does not wait for a lock. Persons are not refused until those at one
// address have got twelve whole feeds in an interval. The first request of a reader that is
// of no fleet never has to wait, and asking again does not extend its wait. Another machine
// of a fleet may take the place that a machine waits for.
func (l *Limiter) Check(d Limits, r Request) Verdict {
	if d == (Limits{}) || r.Validators == version.Current {
		return Verdict{}
	}
	l.countForwarded(&r)
	reader, address := l.keys(&r)
	part := &l.shards[address%shards]
	part.mu.Lock()
	defer part.mu.Unlock()
	if r.Person {
		if persons, _ := part.readers.find(address); !persons.whole.next(r.Time, wholeFeedsOfPersons, d.interval()).After(r.Time) {
			return Verdict{}
		}
	}
	s, _ := part.readers.find(reader)
	var v Verdict
	if d.Fleet != "" && r.whole() {
		v = l.checkFleet(d, s, &r)
	} else {
		v = d.check(s, &r)
	}
	switch {
	case v.Status == http.StatusTooManyRequests:
		s.wait = v.Until
	case v.Status == http.StatusNotAcceptable && r.whole():
		s.whole.add(r.Time, wholeFeeds)
	}
	return v
}

// Answered records the answer to a request that Check has not refused.
func (l *Limiter) Answered(d Limits, r Request) {
	if r.Status == http.StatusNotModified {
		return // does not count
	}
	reader, address := l.keys(&r)
	part := &l.shards[address%shards]
	part.mu.Lock()
	defer part.mu.Unlock()
	s, _ := part.readers.find(reader)
	d.answered(s, &r)
	if r.Person && r.Status == http.StatusOK && r.Method == http.MethodGet {
		persons, _ := part.readers.find(address)
		persons.whole.add(r.Time, wholeFeedsOfPersons)
	}
}

// keys returns the keys of a reader of a feed, and of its address.
func (l *Limiter) keys(r *Request) (reader, address uint64) {
	client := r.Client.Unmap().WithZone("")
	if client.Is6() {
		client = netip.PrefixFrom(client, 64).Masked().Addr()
	}
	address = join(join(l.seed.text(r.Feed), l.seed.address(client)), l.seed.text(shortened(r.Forwarded)))
	return join(address, l.seed.text(shortened(r.UserAgent))), address
}

// countForwarded counts the clients that an address forwards.
func (l *Limiter) countForwarded(r *Request) {
	if r.Forwarded == "" || !r.Client.IsValid() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, path, _ := strings.Cut(r.Feed, "://")
	site, _, _ := strings.Cut(path, "/")
	p, _ := l.proxies.find(l.seed.text(r.Client.String() + " " + site))
	p.address, p.feed = r.Client, cmp.Or(p.feed, r.Feed)
	if client := l.seed.text(shortened(r.Forwarded)); len(p.clients) < proxyClients && !slices.Contains(p.clients, client) {
		p.clients = append(p.clients, client)
	}
}

// Proxies returns the addresses that have forwarded the requests of several clients
// of a site without being trusted, the latest last. serves reports whether the site of a feed counts.
func (l *Limiter) Proxies(serves func(feed string) bool) (addresses []netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.proxies.Values() {
		if len(p.clients) >= proxyClients && serves(p.feed) && !slices.Contains(addresses, p.address) {
			addresses = append(addresses, p.address)
		}
	}
	return addresses
}
