// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// writeText writes the explanation for people who have never read about hints.
func (e explanation) writeText(out io.Writer, d policy.Decision) error {
	var b strings.Builder
	e.writeFeed(&b)
	e.writeConsidered(&b)
	e.writeDecision(&b, d)
	_, err := io.WriteString(out, b.String())
	return err
}

// writeFeed says what the document is, and what stands in it.
func (e explanation) writeFeed(b *strings.Builder) {
	for _, m := range e.Moves {
		fmt.Fprintf(b, "Redirected (%d) to %s\n", m.Status, plain(feedurl.Redact(m.To)))
	}
	switch {
	case e.Format == "":
		fmt.Fprintf(b, "Problem: %s\n", plain(e.Problem))
		return
	case e.Newest.IsZero():
		fmt.Fprintf(b, "%s, %s, without usable dates.\n", e.formatName(), entries(*e.Entries))
	default:
		fmt.Fprintf(b, "%s, %s, the newest of %s.\n", e.formatName(), entries(*e.Entries), e.Newest.Format(time.RFC3339))
	}
	e.writeHints(b)
}

func (e explanation) writeHints(b *strings.Builder) {
	facts := e.hintFacts()
	if len(facts) == 0 {
		fmt.Fprint(b, "\nThe document says nothing about polling.\n")
		return
	}
	fmt.Fprint(b, "\nThe document says:\n")
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, f := range facts {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", f.name, f.value, f.meaning)
	}
	table.Flush() // a Builder cannot fail
}

func (e explanation) formatName() string {
	name := map[string]string{"rss": "RSS", "atom": "Atom", "json": "JSON Feed"}[e.Format]
	if name == "" {
		name = e.Format
	}
	return strings.TrimSpace(name + " " + e.Version)
}

func entries(n int) string {
	return humanize.Comma(int64(n)) + " " + status.Plural(int64(n), "entry", "entries")
}

type fact struct{ name, value, meaning string }

func (e explanation) hintFacts() (facts []fact) {
	h := e.Hints
	add := func(name, value, meaning string) {
		facts = append(facts, fact{name, plain(value), meaning})
	}
	if h.TTL != nil {
		add("ttl", fmt.Sprint(*h.TTL), "minutes for which a copy is good")
	}
	if len(h.SkipHours) > 0 {
		add("skipHours", strings.Trim(fmt.Sprint(h.SkipHours), "[]"), "hours (GMT) in which it is not to be polled")
	}
	if len(h.SkipDays) > 0 {
		add("skipDays", strings.Join(h.SkipDays, " "), "days (GMT) on which it is not to be polled")
	}
	if h.SyPeriod != "" || h.SyFrequency != nil {
		value := h.SyPeriod
		if h.SyFrequency != nil {
			value = strings.TrimSpace(fmt.Sprintf("%s, %d times", value, *h.SyFrequency))
		}
		add("sy:updatePeriod", strings.TrimPrefix(value, ", "), "how often it is updated")
	}
	if u := h.UpdateFrequency; u != nil {
		add("updateFrequency", strings.TrimSpace(u.Text+" "+u.RRule), "when episodes appear")
	}
	if h.Complete || h.UpdateFrequency != nil && h.UpdateFrequency.Complete {
		add("complete", "yes", "no more episodes are expected")
	}
	if h.Expired {
		add("expired", "true", "no more entries are expected")
	}
	if h.NewFeedURL != "" {
		add("new-feed-url", h.NewFeedURL, "the feed is moving there")
	}
	for _, hub := range h.Hubs {
		add("hub", hub, "announces new entries by itself (WebSub)")
	}
	return facts
}

func (e explanation) writeConsidered(b *strings.Builder) {
	if len(e.Decision.Considered) == 0 {
		return
	}
	fmt.Fprint(b, "\nConsidered (* shaped the result):\n")
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, t := range e.Decision.Considered {
		mark, length := " ", "-"
		if t.Used {
			mark = "*"
		}
		if t.Seconds > 0 {
			length = config.FormatDuration(time.Duration(t.Seconds) * time.Second)
		}
		remarks := status.HintMeaning(t.Hint)
		if raw := status.Given(t); raw != "" {
			remarks = join("; ", remarks, fmt.Sprintf("given: %s", plain(raw)))
		}
		fmt.Fprintf(table, "%s %s\t%s\t%s\n", mark, status.HintShort(t.Hint), length, join("; ", remarks, t.Note))
	}
	table.Flush() // a Builder cannot fail
}

func join(sep, a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + sep + b
}

func (e explanation) writeDecision(b *strings.Builder, d policy.Decision) {
	fmt.Fprintf(b, "\n%s\n", e.sentence)
	if e.Decision.IntervalSeconds != nil {
		fmt.Fprintf(b, "Next poll: %s, %s after this answer.\n",
			e.Decision.NextPoll.Format(time.RFC3339), config.FormatDuration(d.Interval.Round(time.Second)))
	}
}
