// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// Poll describes a poll that has ended.
type Poll struct {
	URL       string
	Result    status.Result
	Failure   policy.Failure
	Before    policy.Failure // of the poll before
	Status    int
	Err       error
	Took      time.Duration // from the first request to the end; 0: nothing was sent
	Wire      int64         // bytes of body received, before decoding
	Next      time.Time
	Winner    string // of the decision
	PointsTo  string // URL to which the feed points since this poll; empty if that has not changed, or it points nowhere
	MovedTo   string // the same of a feed that has pointed there for some days now
	Updated   bool   // it has brought a new version
	First     bool   // and that is the feed's first
	Entries   int    // of the version; 0 without one
	Failures  int    // in a row, this one included
	Recovered int    // how many failures in a row this good answer has ended
	// IsFeed says that the feed is configured or has had a version before. Of others
	// it is not known that they are feeds at all: readers may ask for anything.
	IsFeed bool
}

// report logs a poll, and passes it to the observer.
func (f *Feed) report(before, after *feedstate.State, v feedstate.Classified) {
	a, m := v.Answer, &after.Feed
	p := Poll{
		URL: f.key.String(), Result: v.Result, Failure: after.Last.Failure, Before: before.Last.Failure,
		Status: a.Status, Err: a.Err, Wire: a.Wire,
		Next: after.Next(f.cache.moment()), Winner: after.Last.Winner, Failures: m.History.Failures,
		Updated: v.Result == status.ResultNew,
		IsFeed:  before.Feed.Version.Number > 0 || f.configured(),
	}
	p.First = p.Updated && before.Feed.Version.Number == 0
	if after.Version != 0 {
		p.Entries = m.Version.Entries
	}
	if v.Good() {
		p.Recovered = before.Feed.History.Failures
	}
	if !a.Asked.IsZero() {
		p.Took = a.At.Sub(a.Asked)
	}
	if after.Points != before.Points {
		p.PointsTo = after.Points
	}
	if i := m.Incident; i.Kind == status.IncidentMoved && i.Began != before.Feed.Incident.Began {
		p.MovedTo = after.Points
	}
	f.log(p, a.Detail, v.Feeds())
	f.cache.settings.Load().Observe(p)
}

// NextText is when the feed is polled next, as RFC 3339 has it, or "never".
func (p *Poll) NextText() string {
	if !p.Next.Before(policy.Never) {
		return "never"
	}
	return p.Next.UTC().Format(time.RFC3339)
}

// log writes a line if a poll has brought something new, has begun to fail, or has recovered. All
// other polls are for debugging.
func (f *Feed) log(p Poll, detail string, named []feedurl.Redacted) {
	level := zap.InfoLevel
	switch failed := p.Result == status.ResultFailed || p.Result == status.ResultGone; {
	case p.PointsTo != "":
	case p.Recovered == 0 && (p.Result == status.ResultUnchanged || p.Result == status.ResultMoved), p.Result == status.ResultUnsent, p.Result == status.ResultHeld:
		level = zap.DebugLevel
	case failed && (p.Failures > 1 || f.key.Shielded() && p.Failure != policy.FailureStore):
		// A shield polls URLs to learn which are feeds, and most are not.
		level = zap.DebugLevel
	case failed:
		level = zap.WarnLevel
	}
	entry := f.cache.log().Check(level, "polled")
	if entry == nil {
		return
	}
	fields := []zap.Field{
		f.cache.urlField(p.URL), zap.String("outcome", string(p.Result)), zap.Int("status", p.Status),
		zap.String("next_poll", p.NextText()), zap.String("hint", status.HintShort(p.Winner)),
		zap.Duration("took", p.Took), zap.Int64("bytes", p.Wire),
	}
	if p.PointsTo != "" {
		fields = append(fields, zap.String("moved_to", feedurl.Redact(p.PointsTo)))
	}
	if p.Failure != policy.FailureNone {
		fields = append(fields, zap.String("failure", string(p.Failure)), zap.Int("failures", p.Failures), errField(p.Err))
	}
	if len(named) > 0 {
		fields = append(fields, zap.Stringers("feeds", named))
	}
	if detail != "" {
		fields = append(fields, zap.String("detail", detail))
	}
	if p.Recovered > 0 {
		fields = append(fields, zap.Int("recovered_after", p.Recovered))
	}
	entry.Write(fields...)
}

func (c *Cache) urlField(key string) zap.Field {
	return zap.String("feed", feedurl.Redact(c.settings.Load().LogName(key)))
}

func errField(err error) zap.Field {
	if err == nil {
		return zap.Skip()
	}
	return zap.String("error", feedurl.Message(err.Error()))
}
