// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/figures"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/internal/status"
)

// Traffic is what readers asked for, and what of it reached origins.
type Traffic struct {
	Requests int64 // that were answered with a feed or a 304
	Polls    int64
	Served   int64 // bytes, to readers
	Fetched  int64 // bytes, from origins
}

func (t *Traffic) add(o Traffic) {
	t.Requests, t.Polls = t.Requests+o.Requests, t.Polls+o.Polls
	t.Served, t.Fetched = t.Served+o.Served, t.Fetched+o.Fetched
}

const (
	// trafficDays is how many days are kept one by one, of the gateways and of each
	// shield; trafficOrigins is how many origins are, in all. The rest is summed up.
	trafficDays    = 400
	trafficOrigins = 20_000
)

// account is what traffic is counted for.
type account struct {
	shield string // empty: the gateways
	of     string // a date, GMT, or an origin; rest: those that are not kept one by one
}

const rest = "rest"

// key is the one of the account's figure.
func (a account) key() string { return scope(a.shield) + a.of }

// scope is how the keys of the accounts of a shield begin.
func scope(shield string) string { return url.QueryEscape(shield) + " " }

// traffic counts until it is taken. Requests of gateways are not counted once more:
// what has come of them since the last look belongs to the day of this one.
type traffic struct {
	gateway *Requests

	mu      sync.Mutex
	seen    Traffic
	days    map[account]Traffic
	origins map[account]Traffic
}

func newTraffic(gateway *Requests) *traffic {
	return &traffic{gateway: gateway, days: make(map[account]Traffic), origins: make(map[account]Traffic)}
}

func count(sums map[account]Traffic, a account, more Traffic) {
	if _, known := sums[a]; !known && len(sums) >= trafficOrigins {
		a.of = rest
	}
	sum := sums[a]
	sum.add(more)
	sums[a] = sum
}

// countPoll counts a poll.
func (t *traffic) countPoll(p *cache.Poll) {
	if p.Result == status.ResultUnsent {
		return
	}
	origin, shield := originOfKey(p.URL)
	one := Traffic{Polls: 1, Fetched: p.Wire}
	t.mu.Lock()
	defer t.mu.Unlock()
	count(t.days, account{shield, today(time.Now())}, one)
	count(t.origins, account{shield, origin}, one)
}

func today(now time.Time) string { return now.UTC().Format(time.DateOnly) }

// take returns what has been counted since the last time. What feeds were asked for is
// known by the ledger, unless it is off.
func (t *traffic) take(answered []readers.Answered, now time.Time) (taken []figures.Figure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.gateway.sum()
	whole := Traffic{
		Requests: int64(s.results[ResultHit] + s.results[ResultNotModified] + s.results[ResultStale] + s.results[ResultMiss]),
		Served:   int64(s.bytes),
	}
	if more := (Traffic{Requests: whole.Requests - t.seen.Requests, Served: whole.Served - t.seen.Served}); more != (Traffic{}) {
		count(t.days, account{"", today(now)}, more)
	}
	t.seen = whole
	for _, a := range answered {
		origin, shield := originOfKey(a.Feed)
		asked := Traffic{Requests: a.Requests, Served: a.Bytes}
		count(t.origins, account{shield, origin}, asked)
		if shield != "" {
			count(t.days, account{shield, today(now)}, asked)
		}
	}
	for kind, sums := range map[figures.Kind]map[account]Traffic{figures.Day: t.days, figures.Origin: t.origins} {
		for a, sum := range sums {
			taken = append(taken, figures.Figure{
				Ref:    figures.Ref{Kind: kind, Key: a.key()},
				Counts: []int64{sum.Requests, sum.Polls, sum.Served, sum.Fetched}, Peaks: []int64{now.Unix()},
			})
		}
		clear(sums)
	}
	return taken
}

// outdatedTraffic sums up days of long ago, and origins beyond the bound.
func outdatedTraffic(days, origins []figures.Figure, now time.Time) (moves []figures.Move) {
	into := func(f *figures.Figure) {
		scope, _, _ := strings.Cut(f.Key, " ")
		moves = append(moves, figures.Move{From: f.Ref, Into: scope + " " + rest})
	}
	oldest := today(now.AddDate(0, 0, -trafficDays))
	for i := range days {
		if _, day, _ := strings.Cut(days[i].Key, " "); day < oldest && day != rest {
			into(&days[i])
		}
	}
	slices.SortFunc(origins, func(a, b figures.Figure) int { return cmp.Compare(a.Recent(), b.Recent()) })
	for i := range max(len(origins)-trafficOrigins, 0) {
		into(&origins[i])
	}
	return moves
}

// originOfKey is the origin that the feed of a key has for its readers, and the shield
// that stands before it.
func originOfKey(key string) (origin, shield string) {
	if k, ok := ParseShieldKey(key); ok {
		return k.Scheme + "://" + k.Host, k.Shield
	}
	u, err := feedurl.Parse(key)
	if err != nil {
		return "", ""
	}
	return u.Origin(), ""
}

// Accounts are the traffic of the gateways or of a shield, on all nodes.
type Accounts struct {
	Total   Traffic
	Days    map[string]Traffic // by date, GMT; those long ago count in the total alone
	Origins map[string]Traffic // those that nobody has asked for the longest may be missing
}

// Traffic returns the traffic of a shield, or of all gateways where that is empty.
func (e *Engine) Traffic(ctx context.Context, shield string) Accounts {
	b := e.books
	b.flush(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	a := Accounts{Days: make(map[string]Traffic), Origins: make(map[string]Traffic)}
	for kind, sums := range map[figures.Kind]map[string]Traffic{figures.Day: a.Days, figures.Origin: a.Origins} {
		for _, f := range b.read(ctx, kind) {
			of, ok := strings.CutPrefix(f.Key, scope(shield))
			if !ok || len(f.Counts) < 4 {
				continue
			}
			sum := sums[of]
			sum.add(Traffic{f.Counts[0], f.Counts[1], f.Counts[2], f.Counts[3]})
			sums[of] = sum
		}
	}
	for _, sum := range a.Days {
		a.Total.add(sum)
	}
	delete(a.Days, rest)
	delete(a.Origins, rest)
	return a
}
