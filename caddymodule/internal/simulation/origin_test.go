// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/feedpollard/pollard/policy"
)

// origins are all origins of a simulation. They check each poll when it arrives, and
// remember what its answer asks for.
type origins struct {
	sim       *simulation
	servers   []*http.Server
	mu        sync.Mutex // guards what follows, resources and hosts included
	resources map[string]*resource
	hosts     map[string]*originHost
	polls     []poll
}

// originHost is what the origins remember about one of their hosts.
type originHost struct {
	inFlight  int
	life      int64     // start of the gateway that asked last
	last      time.Time // when it asked
	pause     time.Time // no request may come before, after a refusal
	spent     time.Time // the same, as its rate limit is used up
	limited   time.Time // until when a 429 holds
	limitedIn int64     // start of the gateway that got it
	limitedAt time.Time
	good      time.Time // when it answered well
}

// poll is a line of the origins' log.
type poll struct {
	at  time.Time
	url string
}

// validators are those of a conditional request.
type validators struct{ etag, date string }

// serve opens a host, at port 80 and 443.
func (o *origins) serve(host string, certificate tls.Certificate) {
	if o.hosts[host] != nil {
		return
	}
	o.hosts[host] = new(originHost)
	quiet := log.New(io.Discard, "", 0)
	plain := &http.Server{Handler: o, ErrorLog: quiet}
	go plain.Serve(o.sim.net.Listen(net.JoinHostPort(host, "80")))
	secure := &http.Server{Handler: o, ErrorLog: quiet, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}}
	go secure.ServeTLS(o.sim.net.Listen(net.JoinHostPort(host, "443")), "", "")
	o.servers = append(o.servers, plain, secure)
}

// call is a request to a resource.
type call struct {
	*resource
	n    int // of the requests to this URL, from 0
	now  time.Time
	age  time.Duration // since the simulation began
	inm  string
	ims  string
	life int64 // start of the gateway
}

// ServeHTTP checks, logs and answers a request.
func (o *origins) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	c, a := o.arrive(scheme+"://"+r.Host+r.RequestURI, r)
	if c == nil {
		http.NotFound(w, r)
		return
	}
	aborted := false
	if a.delay > 0 {
		select {
		case <-time.After(a.delay):
		case <-r.Context().Done():
			aborted = true
		}
	}
	w.Header().Set("Date", c.now.UTC().Format(http.TimeFormat))
	for _, field := range a.header {
		if field[0] == "Date" {
			w.Header().Del("Date") // the answer brings its own
		}
		w.Header()[field[0]] = append(w.Header()[field[0]], field[1])
	}
	o.depart(c, a, aborted)
	switch {
	case aborted, a.drop:
		panic(http.ErrAbortHandler)
	case a.cut:
		w.WriteHeader(a.status)
		w.Write(a.body[:len(a.body)/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(a.status)
	w.Write(a.body)
}

// arrive checks a request and makes its answer.
func (o *origins) arrive(target string, r *http.Request) (*call, reply) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, life := o.sim.clock.truth(), o.sim.life.Load()
	o.checkHeader(target, r)
	res, m := o.resources[target], o.hosts[r.Host]
	if res == nil && strings.HasPrefix(target, endlessURL) {
		res = o.resources[endlessURL]
		res.earliest = time.Time{}
	}
	if res == nil || m == nil {
		o.sim.violation("%s was asked for, which no reader has subscribed to", target)
		return nil, reply{}
	}
	o.checkValidators(res, r)
	o.checkTime(res, m, now, life)
	m.inFlight++
	m.last, m.life = now, life
	res.inFlight++
	c := &call{resource: res, n: res.asked, now: now, age: now.Sub(o.sim.epoch), inm: r.Header.Get("If-None-Match"), ims: r.Header.Get("If-Modified-Since"), life: life}
	res.asked++
	a := c.answer()
	a.good = a.good || a.empty && (res.emptied || !res.known)
	if a.good && a.status == http.StatusOK {
		res.bodies[xxhash.Sum64(a.plain)] = a.version
	}
	res.next, res.earliest = now.Add(floor), now.Add(floor)
	o.polls = append(o.polls, poll{now, target})
	return c, a
}

// depart remembers what an answer asks for.
func (o *origins) depart(c *call, a reply, aborted bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, res, m := o.sim.clock.truth(), c.resource, o.hosts[mustHost(c.url)]
	m.inFlight--
	res.inFlight--
	res.lastEnd = now
	if a.status < 400 {
		m.good = now
	}
	if o.sim.ending.Load() || o.sim.life.Load() != c.life {
		// The gateway may have been stopped before it could store the answer. Its claim holds
		// nevertheless.
		res.next = c.now.Add(floor)
		if a.good {
			res.failures = 0 // as far as it knows
		} else {
			res.errors++
		}
		res.emptied = res.emptied || a.empty
		if a.good && a.status == http.StatusOK {
			res.sets, res.given = append(res.sets, a.validators), append(res.given, a.validators)
		}
		return
	}
	switch {
	case a.empty && !a.good && !aborted:
		res.failures, res.errors, res.emptied = 0, 0, true
	case a.good && !aborted:
		res.failures, res.errors, res.emptied = 0, 0, a.empty
		if a.status == http.StatusOK {
			res.sets, res.delivered, res.known = []validators{a.validators}, a.version, true
			res.given = append(res.given, a.validators)
		}
	case a.status >= 300 && a.status < 400 && a.status != 304:
	case res.quiet: // a request by hand may be for the feed that leads here
	default:
		res.errors++
		doublings := min(res.failures, 10)
		if res.failures++; a.status < 500 && !a.cut && !a.drop && !aborted {
			doublings++ // it may not pass
		}
		a.wait = max(a.wait, min(time.Hour<<doublings, 24*time.Hour))
	}
	// Dates have whole seconds, and the answer's age is taken off its lifetime.
	res.next = now.Add(max(floor, a.wait-time.Second, a.retryAfter))
	res.earliest = now.Add(max(floor, a.retryAfter))
	if a.gone {
		res.next = policy.Never
	}
	switch {
	case res.trap: // it is asked for by redirects alone
	case a.status == http.StatusTooManyRequests, a.status == http.StatusServiceUnavailable && a.retryAfter > 0:
		m.pause = later(m.pause, now.Add(min(a.pause, time.Hour)))
	case a.good:
		m.spent = later(m.spent, now.Add(min(a.pause, 10*time.Minute)))
		m.pause = time.Time{}
	case a.status < 400:
		m.pause = time.Time{}
	}
	if a.status == http.StatusTooManyRequests {
		m.limited, m.limitedIn, m.limitedAt = later(m.limited, now.Add(a.pause)), c.life, now
		o.pauseSiblings(mustHost(c.url), now)
	}
}

// pauseSiblings pauses a whole domain if two of its hosts have asked for it, apart from hosts
// that have answered well in the last two days.
func (o *origins) pauseSiblings(host string, now time.Time) {
	var until time.Time
	count, domain := 0, domainOf(host)
	for name, m := range o.hosts {
		// A restart keeps the pause, but not that a 429 caused it.
		if domainOf(name) == domain && m.limited.After(now) && now.Sub(m.limitedAt) < time.Hour && m.limitedIn == o.sim.life.Load() {
			count++
			until = later(until, earlier(m.limited, now.Add(time.Hour))) // one owner of a domain must not stop another for long
		}
	}
	for name, m := range o.hosts {
		if domainOf(name) == domain && count >= 2 && now.Sub(m.good) > 2*day {
			m.pause = later(m.pause, until)
		}
	}
}

var (
	agentForm = regexp.MustCompile(`^Pollard/\S+ \(\+https://gateway\.test/about(; [1-9][0-9]* subscribers)?\)$`)
	ours      = []string{"User-Agent", "Accept", "Accept-Encoding", "If-None-Match", "If-Modified-Since"}
)

// checkHeader checks that nothing of a reader is in a request.
func (o *origins) checkHeader(target string, r *http.Request) {
	if r.Method != http.MethodGet || r.ProtoMajor == 1 && r.ProtoMinor == 0 || r.ContentLength != 0 {
		o.sim.violation("%s: %s %s with %d bytes", target, r.Method, r.Proto, r.ContentLength)
	}
	for name, values := range r.Header {
		if !slices.Contains(ours, name) || len(values) != 1 {
			o.sim.violation("%s: the origin saw %s: %q", target, name, values)
		}
	}
	if agent := r.UserAgent(); !agentForm.MatchString(agent) {
		o.sim.violation("%s: User-Agent %q", target, agent)
	}
	if coding := r.Header.Get("Accept-Encoding"); coding != "gzip, br, zstd" {
		o.sim.violation("%s: Accept-Encoding %q", target, coding)
	}
	if accept := r.Header.Get("Accept"); !strings.HasPrefix(accept, "application/atom+xml, application/rss+xml") || !strings.Contains(accept, "*/*;q=0.") {
		o.sim.violation("%s: Accept %q", target, accept)
	}
}

// checkTime checks that a request does not come too early.
func (o *origins) checkTime(res *resource, m *originHost, now time.Time, life int64) {
	allowed := res.next
	if res.byHand || res.trap {
		allowed = res.earliest // a poll by hand overrides hints, and nothing else
	}
	if now.Before(allowed) {
		o.sim.violation("%s was polled %v too early, at %v", res.url, allowed.Sub(now), now)
	}
	// The gateway reads the hour from the machine's clock.
	if res.known && !res.byHand && res.skips(now.Add(o.sim.clock.off())) && !o.sim.justStepped(now) {
		o.sim.violation("%s was polled in a time that it skips, at %v", res.url, now)
	}
	if shownNext, ok := o.sim.shownNext(res.url); ok && !res.moves && !res.target && now.Before(shownNext.Add(-o.sim.slack())) && !res.byHand {
		o.sim.violation("%s was polled %v before the time that was shown", res.url, shownNext.Sub(now))
	}
	host := mustHost(res.url)
	sameRank := now.Sub(o.sim.epoch) < 2*day // later some were read on three days, and do not wait for others
	if pause := later(m.pause, m.spent); now.Before(pause) && !res.byHand && !res.trap && sameRank {
		o.sim.violation("%s was asked (%s) %v before the end of its pause", host, res.url, pause.Sub(now))
	}
	res.byHand = false
	if m.inFlight > 0 {
		o.sim.violation("%s was asked while another request was under way", host)
	}
	// A gateway forgets when it is stopped which host it asked last.
	if gap := now.Sub(m.last); gap < 2*time.Second && m.life == life {
		o.sim.violation("%s was asked %v after the last request", host, gap)
	}
	busy := 0
	for name, other := range o.hosts {
		if domainOf(name) == domainOf(host) {
			busy += other.inFlight
		}
	}
	if busy >= 2 {
		o.sim.violation("%s has %d requests under way and got another", domainOf(host), busy)
	}
}

// checkValidators checks that the validators of a request are those of one answer of this URL.
func (o *origins) checkValidators(res *resource, r *http.Request) {
	sent := validators{r.Header.Get("If-None-Match"), r.Header.Get("If-Modified-Since")}
	if slices.Contains(res.sets, sent) || res.trap {
		return
	}
	if res.doubted && sent == (validators{}) && o.sim.clock.truth().Sub(o.sim.epoch) >= 8*day {
		return // once
	}
	if (res.moves || res.target) && (sent == (validators{}) || slices.Contains(res.given, sent)) {
		return // the last good answer of the feed that leads here came from another URL, or earlier
	}
	if sent == (validators{}) && (res.emptied || res.errors >= 3 || res.errors > 0 && res.byHand) {
		return // it may be what the site fails at
	}
	o.sim.violation("%s: got %q, want one of %q", res.url, sent, res.sets)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func mustHost(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		panic(err)
	}
	return u.Host
}

func domainOf(host string) string {
	labels := strings.Split(host, ".")
	return strings.Join(labels[max(0, len(labels)-2):], ".")
}
