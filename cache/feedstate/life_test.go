// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"net/http"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/policy"
)

const feedURL = "https://origin.test/feed.xml"

// epoch is when the life of a feed begins.
var epoch = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

// life is that of a feed without an engine: each poll changes its state, which is stored and read again.
type life struct {
	t      *testing.T
	own    Key
	record store.Record
	state  *State
	body   []byte // of the version, as it is served
	now    time.Duration
}

func newLife(t *testing.T) *life {
	return &life{t: t, own: ParseKey(feedURL), state: &State{Granted: NeverGranted}}
}

// sent returns the validators of the next poll.
func (l *life) sent() policy.Validators { return l.state.Validators() }

// next returns the state of the next poll, before its answer.
func (l *life) next() *State {
	next := *l.state
	if next.Gap = 0; next.Granted != NeverGranted {
		next.Gap = l.now - next.Granted
	}
	return &next
}

// poll takes over an answer, and waits until the next poll.
func (l *life) poll(a policy.Answer) Classified {
	l.t.Helper()
	a.Asked, a.At = epoch.Add(l.now), epoch.Add(l.now)
	if a.Header == nil {
		a.Header = http.Header{}
	}
	if a.URL == "" {
		a.URL = feedURL
	}
	next, own := l.next(), l.own
	next.Granted, next.Unconditional = l.now, next.WhyUnconditional(false, false)
	v, ok := next.ClassifyUnread(a)
	if !ok {
		v = next.ClassifyDocument(own, false, a, a.At, func() []byte { return l.body })
	}
	next.Update(own, v)
	next.UpdatePush(Subscription{}, v)
	next.Plan(Moment{Wall: a.At, Elapsed: l.now}, v, policy.DefaultRules())
	if v.Body != nil {
		next.Version = next.Feed.Version.Number
		var err error
		if l.body, err = version.Unpack(v.version.StoredCoding(), v.Body.Data, v.version.Length); err != nil {
			l.t.Fatal(err)
		}
	}
	l.store(next)
	return v
}

// store writes a state, and reads it when the next poll is due.
func (l *life) store(s *State) {
	l.t.Helper()
	r := &l.record
	feedState, err := s.EncodeFeedState()
	if err == nil {
		r.PollState, err = s.EncodePollState()
	}
	if err != nil {
		l.t.Fatal(err)
	}
	if feedState != nil { // otherwise it is as it was stored
		r.FeedState = feedState
	}
	polled := l.now
	l.now = max(l.now+time.Second, s.Due)
	r.URL, r.Version, r.In, r.Polled, r.NotBefore = l.own.text, s.Version, s.Due-l.now, l.now-polled, s.NotBefore-l.now
	if s.Ended {
		r.In = store.Ended
	}
	l.state = FromRecord(*r, l.now)
}

// given is a 200 with a document.
func given(body string, fields ...string) policy.Answer {
	a := policy.Answer{Status: http.StatusOK, Body: []byte(body), Header: http.Header{"Content-Type": {"text/xml"}}}
	for i := 0; i < len(fields); i += 2 {
		a.Header.Set(fields[i], fields[i+1])
	}
	return a
}

func failed(status int, failure policy.Failure) policy.Answer {
	return policy.Answer{Status: status, Failure: failure}
}
