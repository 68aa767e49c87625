// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package check examines a feed for its publisher: at most four polls, and a
// [Report] of what costs bytes or confuses readers, each finding with its evidence
// and a remedy.
//
// It requests the feed, requests it conditionally, and requests it without compression.
// The answers show whether validators are honoured (RFC 9110 section 13), whether
// compression breaks them, which hints are malformed, and the cost of hourly polls. Package
// gofeed, which many readers use, parses the document.
//
// It does not send requests itself, and it does not validate documents against
// their formats.
package check

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document"
	"github.com/feedpollard/pollard/policy/document/site"
)

// MaxPolls is how many polls a check makes at most.
const MaxPolls = 4

// longestPause is the longest pause that a check waits for, if the site asks for
// one. It ends early otherwise.
const longestPause = time.Minute

// Options configure a check.
type Options struct {
	URL feedurl.URL // of the feed
	// Rules decide when the feed would be polled next.
	Rules policy.Rules
	// Spacing is the pause between two polls.
	Spacing time.Duration
	// Poll makes one poll, offering compression or not.
	Poll func(ctx context.Context, ask policy.Ask, compression bool) policy.Answer
	// Progress is called before each step; it may be nil.
	Progress func(step string)
}

// Report is the result of a check.
type Report struct {
	URL      string        `json:"url"`
	Final    string        `json:"final_url,omitempty"` // where redirects lead
	Format   string        `json:"format,omitempty"`    // rss, atom or json
	Version  string        `json:"version,omitempty"`
	Entries  int           `json:"entries"`
	Newest   time.Time     `json:"newest,omitzero"`
	Size     int           `json:"bytes"`      // of the document
	Wire     int64         `json:"wire_bytes"` // of it as it was sent, compressed or not
	Polls    []Poll        `json:"polls"`
	Findings []Finding     `json:"findings"` // problems first
	Good     []string      `json:"good"`
	Cost     *Cost         `json:"cost,omitempty"`
	Readers  *Parsed       `json:"readers,omitempty"`
	Next     time.Duration `json:"-"` // until a gateway with default rules polls again
	Seconds  int64         `json:"next_poll_seconds,omitempty"`
	Reason   string        `json:"reason,omitempty"`  // of Next, as a sentence
	Problem  string        `json:"problem,omitempty"` // why the feed cannot be examined
}

// Poll is one poll of a check.
type Poll struct {
	Purpose      string `json:"purpose"`
	Status       int    `json:"status,omitempty"` // 0: no answer came
	Wire         int64  `json:"wire_bytes"`
	Milliseconds int64  `json:"milliseconds"`
	Error        string `json:"error,omitempty"`
}

type checker struct {
	Options
	report   *Report
	first    policy.Answer
	document *policy.Document
	decision policy.Decision // of a gateway, after the first answer
	last     policy.Answer
	stopped  bool // the site has asked for a pause, or the context has ended
}

// Run examines a feed. It fails only if the context ends. Everything else is in the
// report.
func Run(ctx context.Context, o Options) (*Report, error) {
	x := &checker{Options: o, report: &Report{URL: o.URL.String(), Findings: []Finding{}, Good: []string{}}}
	x.first = x.poll(ctx, "asking for the feed", policy.Validators{}, true)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if !x.readFirst() {
		return x.report, nil
	}
	x.checkAnswer()
	x.checkHints()
	x.checkDocument()
	x.examineValidators(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if x.stopped {
		x.find("incomplete", fmt.Sprintf("The answer to poll %d was %s.", len(x.report.Polls), outcome(x.last)))
	}
	slices.SortStableFunc(x.report.Findings, func(a, b Finding) int { return cmp.Compare(b.Grade, a.Grade) }) // "problem" before "advice"
	return x.report, nil
}

// poll makes one poll, after the pause that the last one asked for.
func (x *checker) poll(ctx context.Context, purpose string, v policy.Validators, compression bool) policy.Answer {
	if n := len(x.report.Polls); n > 0 {
		pause := max(x.Spacing, time.Until(x.last.NotBefore))
		if x.stopped = x.stopped || pause > longestPause; x.stopped || n == MaxPolls {
			return policy.Answer{Failure: policy.FailureNotStarted}
		}
		select {
		case <-ctx.Done():
			x.stopped = true
			return policy.Answer{Failure: policy.FailureNotStarted}
		case <-time.After(pause):
		}
	}
	if x.Progress != nil {
		x.Progress(purpose)
	}
	a := x.Poll(ctx, policy.Ask{URL: x.URL, Validators: v, Timeout: x.Rules.Timeout, MaxBody: x.Rules.MaxBody}, compression)
	p := Poll{Purpose: purpose, Status: a.Status, Wire: a.Wire}
	if !a.Asked.IsZero() {
		p.Milliseconds = a.At.Sub(a.Asked).Milliseconds()
	}
	if a.Err != nil {
		p.Error = a.Err.Error()
	}
	x.report.Polls = append(x.report.Polls, p)
	x.last = a
	if a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable {
		x.stopped = true // the site is overloaded: the report can wait
	}
	return a
}

// readFirst reads the first answer. It reports false if that has no feed.
func (x *checker) readFirst() bool {
	a, r := x.first, x.report
	r.Wire, r.Size = a.Wire, len(a.Body)
	if a.URL != x.URL.String() {
		r.Final = a.URL
	}
	if a.Failure != policy.FailureNone {
		r.Problem = string(a.Failure)
		if _, err := document.Refused(a); err != nil {
			r.Problem = err.Error()
		}
		return false
	}
	d, err := document.Read(a.Body, a.Header.Get("Content-Type"), a.At)
	if err != nil {
		_, err = document.Failure(err, a, a.Body)
		r.Problem = err.Error()
		if page := site.Read(a.Body, a.Header.Get("Content-Type"), a.URL); len(page.Feeds) > 0 {
			r.Problem += "; the page names " + status.SomeFeeds(page.Redacted())
		}
		return false
	}
	x.document = d
	r.Format, r.Version, r.Entries, r.Newest = d.Format, d.Version, d.Rhythm.Entries, d.Rhythm.Changed.UTC()
	x.decision = policy.Decide(x.Rules, policy.History{}.Update(a, d, false), a, 0)
	r.Next, r.Seconds = x.decision.Interval, int64(x.decision.Interval/time.Second)
	f := status.Decided(x.decision)
	f.LastStatus = a.Status
	r.Reason = f.Explain(a.At, nil).String()
	return true
}

func (x *checker) good(format string, args ...any) {
	x.report.Good = append(x.report.Good, fmt.Sprintf(format, args...))
}
