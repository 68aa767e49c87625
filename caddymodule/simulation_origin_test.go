// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

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

// web is all the origins of a simulation. It judges each request when it arrives,
// and remembers what its answer asks for.
type web struct {
	sim       *simulation
	servers   []*http.Server
	mu        sync.Mutex // guards what follows, resources and machines included
	resources map[string]*resource
	machines  map[string]*machine
	visits    []visit
}

// machine is one host.
type machine struct {
	inFlight  int
	life      int64     // of the gateway that asked last
	last      time.Time // when it asked
	pause     time.Time // nothing may come before
	limited   time.Time // until when a 429 holds
	limitedIn int64     // the gateway that it was said to
	limitedAt time.Time
}

// visit is a line of the origins' log.
type visit struct {
	at     time.Time
	url    string
	header http.Header
	status int
}

// pair is what a conditional request carries.
type pair struct{ etag, date string }

// serve opens a host, at port 80 and 443.
func (o *web) serve(host string, certificate tls.Certificate) {
	if o.machines[host] != nil {
		return
	}
	o.machines[host] = new(machine)
	quiet := log.New(io.Discard, "", 0)
	plain := &http.Server{Handler: o, ErrorLog: quiet}
	go plain.Serve(o.sim.net.listen(net.JoinHostPort(host, "80")))
	secure := &http.Server{Handler: o, ErrorLog: quiet, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}}
	go secure.ServeTLS(o.sim.net.listen(net.JoinHostPort(host, "443")), "", "")
	o.servers = append(o.servers, plain, secure)
}

// call is a request as an origin's habit sees it.
type call struct {
	*resource
	n    int // of the request to this URL, from 0
	now  time.Time
	age  time.Duration // since the simulation began
	inm  string
	ims  string
	life int64 // of the gateway
}

// ServeHTTP answers and keeps the books.
func (o *web) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
			w.Header().Del("Date") // it has a clock of its own
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

// arrive judges a request and makes its answer.
func (o *web) arrive(target string, r *http.Request) (*call, reply) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, life := o.sim.clock.truth(), o.sim.life.Load()
	o.judgeHeader(target, r)
	res, m := o.resources[target], o.machines[r.Host]
	if res == nil && strings.HasPrefix(target, endless) {
		res = o.resources[endless]
		res.firmNext = time.Time{}
	}
	if res == nil || m == nil {
		o.sim.violation("I5: %s was asked for, which nobody has subscribed to", target)
		return nil, reply{}
	}
	o.judgeTime(res, m, now, life)
	o.judgeValidators(res, r)
	m.inFlight++
	m.last, m.life = now, life
	res.inFlight++
	c := &call{resource: res, n: res.asked, now: now, age: now.Sub(o.sim.epoch), inm: r.Header.Get("If-None-Match"), ims: r.Header.Get("If-Modified-Since"), life: life}
	res.asked++
	a := c.answer()
	if a.good && a.status == http.StatusOK {
		res.bodies[xxhash.Sum64(a.plain)] = a.version
	}
	res.next, res.firmNext = now.Add(floor), now.Add(floor)
	o.visits = append(o.visits, visit{at: now, url: target, header: r.Header, status: a.status})
	return c, a
}

// depart remembers what an answer asks for.
func (o *web) depart(c *call, a reply, aborted bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, res, m := o.sim.clock.truth(), c.resource, o.machines[mustHost(c.url)]
	m.inFlight--
	res.inFlight--
	res.lastEnd = now
	if o.sim.ending.Load() || o.sim.life.Load() != c.life {
		// The gateway may have been stopped before it could note the answer. Its
		// reservation holds all the same.
		res.next = c.now.Add(floor)
		if a.good {
			res.failures = 0 // for all that it knows
		}
		if a.good && a.status == http.StatusOK {
			res.sets, res.given = append(res.sets, a.validators), append(res.given, a.validators)
		}
		return
	}
	switch {
	case a.good && !aborted:
		res.failures = 0
		if a.status == http.StatusOK {
			res.sets, res.delivered, res.known = []pair{a.validators}, a.version, true
			res.given = append(res.given, a.validators)
		}
	case a.status >= 300 && a.status < 400 && a.status != 304:
	case res.quiet: // a person's wish for the feed that leads here is not told here
	default:
		res.failures++
		a.wait = max(a.wait, min(time.Hour<<min(res.failures, 10), 24*time.Hour))
	}
	// Dates have whole seconds, and what the answer's age comes to is taken off its lifetime.
	res.next = now.Add(max(floor, a.wait-time.Second, a.firm))
	res.firmNext = now.Add(max(floor, a.firm))
	if a.gone {
		res.next = policy.Never
	}
	m.pause = later(m.pause, now.Add(a.pause))
	if a.status == http.StatusTooManyRequests {
		m.limited, m.limitedIn, m.limitedAt = later(m.limited, now.Add(a.pause)), c.life, now
		o.pauseSiblings(mustHost(c.url), now)
	}
}

// pauseSiblings pauses a whole domain where two of its hosts have asked for it.
func (o *web) pauseSiblings(host string, now time.Time) {
	var until time.Time
	count, domain := 0, domainOf(host)
	for name, m := range o.machines {
		// That a pause came of a 429 is forgotten with a restart, the pause is not.
		if domainOf(name) == domain && m.limited.After(now) && now.Sub(m.limitedAt) < time.Hour && m.limitedIn == o.sim.life.Load() {
			count++
			until = later(until, earlier(m.limited, now.Add(time.Hour))) // strangers may share a domain
		}
	}
	for name, m := range o.machines {
		if domainOf(name) == domain && count >= 2 {
			m.pause = later(m.pause, until)
		}
	}
}

var (
	agentForm = regexp.MustCompile(`^Pollard/\S+ \(\+https://gateway\.test/about(; [1-9][0-9]* subscribers)?\)$`)
	ours      = []string{"User-Agent", "Accept", "Accept-Encoding", "If-None-Match", "If-Modified-Since"}
)

// judgeHeader holds the request against I5: all that may be said to an origin.
func (o *web) judgeHeader(target string, r *http.Request) {
	if r.Method != http.MethodGet || r.ProtoMajor == 1 && r.ProtoMinor == 0 || r.ContentLength != 0 {
		o.sim.violation("I5: %s: %s %s with %d bytes", target, r.Method, r.Proto, r.ContentLength)
	}
	for name, values := range r.Header {
		if !slices.Contains(ours, name) || len(values) != 1 {
			o.sim.violation("I5: %s: the origin saw %s: %q", target, name, values)
		}
	}
	if agent := r.UserAgent(); !agentForm.MatchString(agent) {
		o.sim.violation("P21: %s: User-Agent %q", target, agent)
	}
	if coding := r.Header.Get("Accept-Encoding"); coding != "gzip, br, zstd" {
		o.sim.violation("P25: %s: Accept-Encoding %q", target, coding)
	}
	if accept := r.Header.Get("Accept"); !strings.HasPrefix(accept, "application/atom+xml, application/rss+xml") || !strings.Contains(accept, "*/*;q=0.") {
		o.sim.violation("P24: %s: Accept %q", target, accept)
	}
}

// judgeTime holds the request against I1.
func (o *web) judgeTime(res *resource, m *machine, now time.Time, life int64) {
	allowed := res.next
	if res.insisted || res.trap {
		allowed = res.firmNext // a person's wish goes before hints, and before nothing else
	}
	if now.Before(allowed) {
		o.sim.violation("I1: %s was polled %v too early, at %v", res.url, allowed.Sub(now), now)
	}
	// Which hour it is, the machine's clock decides.
	if res.known && !res.insisted && res.skips(now.Add(o.sim.clock.off())) && !o.sim.justStepped(now) {
		o.sim.violation("I1: %s was polled in a time that it skips, at %v", res.url, now)
	}
	if promised, ok := o.sim.promised(res.url); ok && !res.moves && !res.target && now.Before(promised.Add(-o.sim.slack())) && !res.insisted {
		o.sim.violation("I9: %s was polled %v before the time that was shown", res.url, promised.Sub(now))
	}
	res.insisted = false
	host := mustHost(res.url)
	if now.Before(m.pause) {
		o.sim.violation("P50: %s was asked (%s) %v before the end of its pause", host, res.url, m.pause.Sub(now))
	}
	if m.inFlight > 0 {
		o.sim.violation("P37: %s was asked while another request was under way", host)
	}
	// What a gateway that was stopped knew of gaps is gone with it.
	if gap := now.Sub(m.last); gap < 2*time.Second && m.life == life {
		o.sim.violation("P38: %s was asked %v after the last request", host, gap)
	}
	busy := 0
	for name, other := range o.machines {
		if domainOf(name) == domainOf(host) {
			busy += other.inFlight
		}
	}
	if busy >= 2 {
		o.sim.violation("P39: %s has %d requests under way and got another", domainOf(host), busy)
	}
}

// judgeValidators holds the request against I3.
func (o *web) judgeValidators(res *resource, r *http.Request) {
	sent := pair{r.Header.Get("If-None-Match"), r.Header.Get("If-Modified-Since")}
	if slices.Contains(res.sets, sent) || res.trap {
		return
	}
	if (res.moves || res.target) && (sent == (pair{}) || slices.Contains(res.given, sent)) {
		return // it is for a feed whose last good answer came from another URL, or from here before
	}
	if res.deaf && slices.Contains(res.sets, pair{res.sets[0].etag, sent.date}) && sent.etag == "" {
		return // it never matches its own ETag: the date goes alone
	}
	o.sim.violation("I3: %s: got %q, want one of %q", res.url, sent, res.sets)
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
