// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/policy"
)

// Poll is what is told of a poll that has ended.
type Poll struct {
	URL       string
	Result    Result
	Failure   policy.Failure
	Before    policy.Failure // of the poll before
	Status    int
	Err       error
	Took      time.Duration // from the first request to the end; 0: nothing was sent
	Wire      int64         // bytes of body received, before decoding
	Next      time.Time
	Winner    string // of the decision
	MovedTo   string // where an adopted permanent redirect leads
	Updated   bool   // it has brought a new version, also where Result is ResultMoved
	First     bool   // and that is the feed's first
	Entries   int    // of the version; 0 where there is none
	Failures  int    // in a row, this one included
	Recovered int    // how many failures in a row this good answer has ended
	// Known says that the feed is configured or has had a version before. Of others
	// nobody knows that they are feeds at all: readers may ask for anything.
	Known bool
	// Lent says that the poll of another feed has answered, and nothing was sent.
	Lent bool
}

// report tells the log and the observer of a poll: one line each.
func (f *Feed) report(before, after *state, v verdict) {
	a, m := v.answer, &after.memo
	p := Poll{
		URL: f.url, Result: v.result, Failure: a.Failure, Before: before.memo.Last.Failure,
		Status: a.Status, Err: a.Err, Wire: a.Wire,
		Next: after.Next, Winner: m.Decision.Winner, Failures: m.History.Failures,
		Updated: v.result == ResultNew, Lent: v.lent,
		Known: before.memo.Version.Number > 0 || f.pinned(),
	}
	p.First = p.Updated && before.memo.Version.Number == 0
	if after.Version != 0 {
		p.Entries = m.Version.Entries
	}
	if v.good() {
		p.Recovered = before.memo.History.Failures
	}
	if !a.Asked.IsZero() && !v.lent {
		p.Took = a.At.Sub(a.Asked)
	}
	if m.Effective != "" && m.Effective != before.memo.Effective {
		p.Result, p.MovedTo = ResultMoved, m.Effective
	}
	f.log(p)
	f.cache.settings.Load().Observe(p)
}

func (f *Feed) log(p Poll) {
	fields := []zap.Field{
		urlField(p.URL), zap.String("outcome", string(p.Result)), zap.Int("status", p.Status),
		zap.Time("next_poll", p.Next), zap.String("hint", p.Winner),
		zap.Duration("took", p.Took), zap.Int64("bytes", p.Wire),
	}
	if p.MovedTo != "" {
		fields = append(fields, zap.String("moved_to", policy.Redact(p.MovedTo)))
	}
	failed := p.Result == ResultFailed || p.Result == ResultGone
	if failed && f.shielded() && p.Failure != policy.FailureStore {
		// A shield asks to learn what is a feed: its site has many things that are none.
		f.cache.log().Debug("polled", append(fields, zap.String("failure", string(p.Failure)), errField(p.Err))...)
		return
	}
	if failed {
		fields = append(fields, zap.String("failure", string(p.Failure)), zap.Int("failures", p.Failures), errField(p.Err))
		f.cache.log().Warn("polled", fields...)
		return
	}
	f.cache.log().Info("polled", fields...)
}

func (c *Cache) log() *zap.Logger { return c.settings.Load().Log }

func urlField(u string) zap.Field { return zap.String("feed", policy.Redact(u)) }

func errField(err error) zap.Field {
	if err == nil {
		return zap.Skip()
	}
	return zap.String("error", line(err))
}
