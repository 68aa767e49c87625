// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/internal/status"
)

// metrics are the metrics of an engine in Caddy's Prometheus registry.
//
//	pollard_requests_total{handler,result,rule}  counter    requests of readers; CORS preflights are left out
//	pollard_served_bytes_total                   counter    bytes of body sent to readers, errors left out
//	pollard_polls_total{outcome}                 counter    polls of origins
//	pollard_poll_duration_seconds                histogram  from a poll's first request to its end
//	pollard_origin_bytes_total                   counter    bytes of body that polls received, before decoding
//	pollard_feeds{state}                         gauge      known feeds
//	pollard_memory_bytes                         gauge      feeds held in memory
//	pollard_offline                              gauge      1 while no site can be reached
//	pollard_store_away                           gauge      1 while the store cannot be written
//	pollard_disk_short                           gauge      1 while the disk of the store is nearly full
//	pollard_store_duration_seconds{op}           histogram  operations of the store
//
// All labels have few values, which do not depend on the URLs that readers request:
// handler is gateway or shield; requests.go lists the values of result, [store.Database.Observe]
// those of op, and package status those of outcome and state. The rule is empty unless a line of
// defend has refused the request, which it names, or the gateway forbids it ([door.RuleAccess]).
//
// Counters live as long as the engine, so a reload does not reset them, although Caddy
// makes a new registry for it. Gauges are computed at each scrape.
type metrics struct {
	gateway, shield *Requests

	requests    *prometheus.CounterVec
	servedBytes prometheus.Counter
	polls       *prometheus.CounterVec
	pollSeconds prometheus.Histogram
	originBytes prometheus.Counter
	store       *prometheus.HistogramVec

	// totals returns a summary of the cache, or false if the cache is not open.
	totals func() (status.Summary, bool)
}

var (
	feedsDesc = prometheus.NewDesc("pollard_feeds",
		"Feeds that are known, by state.", []string{"state"}, nil)
	memoryDesc = prometheus.NewDesc("pollard_memory_bytes",
		"Bytes of memory that feeds take, within the budget.", nil, nil)
	offlineDesc = prometheus.NewDesc("pollard_offline",
		"Whether no site can be reached: 1 if so.", nil, nil)
	storeAwayDesc = prometheus.NewDesc("pollard_store_away",
		"Whether the store cannot be written: 1 if so.", nil, nil)
	diskShortDesc = prometheus.NewDesc("pollard_disk_short",
		"Whether the disk of the store is nearly full: 1 if so.", nil, nil)
)

func newMetrics(totals func() (status.Summary, bool)) *metrics {
	m := &metrics{
		totals: totals,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pollard_requests_total",
			Help: "Requests of readers, by what became of them.",
		}, []string{"handler", "result", "rule"}),
		servedBytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pollard_served_bytes_total",
			Help: "Bytes of body sent to readers, errors left out.",
		}),
		polls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pollard_polls_total",
			Help: "Polls of origins, by outcome.",
		}, []string{"outcome"}),
		pollSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "pollard_poll_duration_seconds",
			Help:    "Seconds from a poll's first request to its end.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}),
		originBytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pollard_origin_bytes_total",
			Help: "Bytes of body that polls have received, before decoding.",
		}),
		store: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pollard_store_duration_seconds",
			Help:    "Seconds that an operation of the store has taken.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5},
		}, []string{"op"}),
	}
	m.gateway, m.shield = m.requestsOf("gateway", door.RuleAccess), m.requestsOf("shield", readers.Rules...)
	for _, outcome := range status.Results {
		m.polls.WithLabelValues(string(outcome)) // begins at 0
	}
	for _, op := range []string{"claim", "commit", "lookup", "body", "touch", "sweep"} {
		m.store.WithLabelValues(op)
	}
	return m
}

// register puts the metrics into the registry of a configuration.
func (m *metrics) register(r *prometheus.Registry) error {
	var known prometheus.AlreadyRegisteredError
	if err := r.Register(m); err != nil && !errors.As(err, &known) {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

func (m *metrics) polled(p cache.Poll) {
	m.polls.WithLabelValues(string(p.Result)).Inc()
	m.originBytes.Add(float64(p.Wire))
	if p.Took > 0 {
		m.pollSeconds.Observe(p.Took.Seconds())
	}
}

func (m *metrics) Describe(into chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{feedsDesc, memoryDesc, offlineDesc, storeAwayDesc, diskShortDesc} {
		into <- desc
	}
	for _, c := range m.collectors() {
		c.Describe(into)
	}
}

func (m *metrics) Collect(into chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(into)
	}
	totals, open := m.totals()
	if !open {
		return
	}
	for _, state := range status.States {
		into <- prometheus.MustNewConstMetric(feedsDesc, prometheus.GaugeValue, float64(totals.Feeds[state]), string(state))
	}
	into <- prometheus.MustNewConstMetric(memoryDesc, prometheus.GaugeValue, float64(totals.Memory))
	for desc, on := range map[*prometheus.Desc]bool{offlineDesc: totals.Offline, storeAwayDesc: totals.StoreAway, diskShortDesc: totals.DiskShort} {
		value := 0.0
		if on {
			value = 1
		}
		into <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
}

// collectors are the metrics that collect themselves.
func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.servedBytes, m.polls, m.pollSeconds, m.originBytes, m.store}
}

// observe measures the duration of operations of a store.
func (m *metrics) observe(s Database) {
	if s, ok := s.(interface{ Observe(func(string, time.Time)) }); ok {
		s.Observe(func(op string, began time.Time) { m.store.WithLabelValues(op).Observe(time.Since(began).Seconds()) })
	}
}

// Interface guards.
var _ prometheus.Collector = (*metrics)(nil)
