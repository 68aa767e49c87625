// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/feedpollard/pollard/figures"
)

// The figures of a ledger are those of one period each, so that what readers did long
// ago is forgotten, and a reader that has mended its ways is not judged by it.
const (
	period = 28 * 24 * time.Hour
	// storedReaders, storedFamilies and storedFeeds bound what a store keeps of a
	// period. Feeds beyond count in the totals alone, the others not at all.
	storedReaders  = defaultReaders
	storedFamilies = defaultReaders / 4
	storedFeeds    = defaultReaders / 2
)

// Keys have the period, the hash of the feed, and that of the family or reader.

func periodKey(now time.Time) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(now.Unix()/int64(period/time.Second))))
}

func (c *record) ref(kind figures.Kind, when string) figures.Ref {
	key := binary.BigEndian.AppendUint64([]byte(when), c.feedKey)
	if kind != figures.Feed {
		key = binary.BigEndian.AppendUint64(key, c.key)
	}
	return figures.Ref{Kind: kind, Key: string(key)}
}

// restKey is that of the feeds of a period that are not kept one by one.
func restKey(when string) string { return when + "rest" }

// label is what a record is of, besides its numbers.
type label struct {
	Feed        string       `json:"feed,omitempty"` // of the record of a feed; the others have its hash
	UserAgent   string       `json:"ua,omitempty"`
	Network     netip.Prefix `json:"net,omitzero"`
	Token       string       `json:"token,omitempty"`
	Subscribers int64        `json:"subscribers,omitempty"`
}

// The greatest numbers of a record come in this order, before what estimates how many
// readers and networks there are. Of what has to be small, the distance from far away
// is stored.
const (
	peakLast = iota
	peakBegan
	peakHigh
	peakLow
	peakDistinct
)

const far = 1 << 62

// sums are the numbers of a record that add up. Their order is stored.
func (c *record) sums() []*int64 {
	return []*int64{
		&c.requests, &c.bytes, &c.gets, &c.heads, &c.full, &c.notModified, &c.limited, &c.refused, &c.failed,
		&c.byETag, &c.byDate, &c.conditional, &c.whole, &c.current, &c.earlier, &c.unknown, &c.identity,
		&c.early, &c.skipped, &c.referers, &c.polls,
		&c.packed.count, &c.packed.bytes, &c.plain.count, &c.plain.bytes,
	}
}

// figure is the record as a store keeps it.
func (c *record) figure(ref figures.Ref) figures.Figure {
	f := figures.Figure{Ref: ref}
	for _, n := range c.sums() {
		f.Counts = append(f.Counts, *n)
	}
	for _, counts := range [...][]uint32{c.hours[:], c.gaps.counts[:]} {
		for _, n := range counts {
			f.Counts = append(f.Counts, int64(n))
		}
	}
	f.Peaks = make([]int64, peakDistinct, peakDistinct+len(c.readers)+len(c.networks))
	f.Peaks[peakLast], f.Peaks[peakBegan] = c.last, far-c.began
	if c.gaps.total > 0 {
		f.Peaks[peakHigh], f.Peaks[peakLow] = c.gaps.high, far-c.gaps.low
	}
	for _, d := range [...]*distinct{&c.readers, &c.networks} {
		for _, rank := range d {
			f.Peaks = append(f.Peaks, int64(rank))
		}
	}
	l := label{UserAgent: c.userAgent(), Token: c.token, Subscribers: c.subscribers}
	switch ref.Kind {
	case figures.Feed:
		l.Feed = c.feed
	case figures.Reader:
		l.Network = c.network
	}
	f.Label, _ = json.Marshal(l) // of such a struct it does not fail
	return f
}

func (c *record) userAgent() string {
	if c.agent.Agent == nil {
		return "" // of many feeds
	}
	return c.agent.UserAgent
}

// recall reads a record that a store has kept.
func (l *Ledger) recall(f *figures.Figure) (c record, ok bool) {
	if len(f.Key) < 12 || len(f.Peaks) < peakDistinct {
		return c, false
	}
	c.feedKey = binary.BigEndian.Uint64([]byte(f.Key[4:]))
	if c.key = c.feedKey; len(f.Key) == 20 {
		c.key = binary.BigEndian.Uint64([]byte(f.Key[12:]))
	}
	return c, l.read(f, &c) == nil
}

func (l *Ledger) read(f *figures.Figure, c *record) error {
	var of label
	if len(f.Label) > 0 {
		if err := json.Unmarshal(f.Label, &of); err != nil {
			return err
		}
	}
	c.feed, c.network, c.token, c.subscribers = of.Feed, of.Network, of.Token, of.Subscribers
	c.agent = l.agents.find(of.UserAgent)

	counts := f.Counts
	next := func() (n int64) {
		if len(counts) > 0 {
			n, counts = counts[0], counts[1:]
		}
		return n
	}
	for _, n := range c.sums() {
		*n = next()
	}
	for _, list := range [...][]uint32{c.hours[:], c.gaps.counts[:]} {
		for i := range list {
			list[i] = uint32(next())
		}
	}
	c.last, c.began, c.gaps.high = f.Peaks[peakLast], far-f.Peaks[peakBegan], f.Peaks[peakHigh]
	if low := f.Peaks[peakLow]; low != 0 {
		c.gaps.low = far - low
	}
	for _, n := range c.gaps.counts {
		c.gaps.total += int64(n)
	}
	c.poll = c.last
	ranks := f.Peaks[peakDistinct:]
	for _, d := range [...]*distinct{&c.readers, &c.networks} {
		for i := range d {
			if len(ranks) > 0 {
				d[i], ranks = uint8(ranks[0]), ranks[1:]
			}
		}
	}
	return nil
}

// Use sets the key of hashes, which all nodes of a store have in common. It comes
// before the first request.
func (l *Ledger) Use(n uint64) {
	l.seed = newSeed(n)
	l.agents = newAgents(l.seed)
}

// Answered is what readers got of a feed.
type Answered struct {
	Feed     string
	Requests int64 // that were answered with the feed or a 304
	Bytes    int64
}

// Take returns what has been noted since the last time, and of it what each feed was
// asked for. It stays in the ledger's memory who the readers are.
func (l *Ledger) Take(now time.Time) (taken []figures.Figure, answered []Answered) {
	l.enterNotes(true)
	when := periodKey(now)
	feed := func(c *record) {
		taken = append(taken, c.figure(c.ref(figures.Feed, when)))
		answered = append(answered, Answered{c.feed, c.full + c.notModified, c.bytes})
	}
	l.mu.Lock()
	past, left := l.past, l.left
	l.past, l.left, l.taken = record{}, nil, true
	l.mu.Unlock()
	if past.requests > 0 {
		taken = append(taken, past.figure(figures.Ref{Kind: figures.Feed, Key: restKey(when)}))
	}
	for i := range left {
		feed(&left[i])
	}
	l.feeds.each(func(c *record) {
		if c.requests > 0 {
			feed(c)
			c.settle()
		}
	})
	for kind, t := range map[figures.Kind]*table[record]{figures.Reader: l.readers, figures.Family: l.families} {
		t.each(func(c *record) {
			if c.requests > 0 {
				taken = append(taken, c.figure(c.ref(kind, when)))
				c.settle()
			}
		})
	}
	return taken, answered
}

// settle keeps of a record what the next request is seen against.
func (c *record) settle() {
	*c = record{
		key: c.key, feed: c.feed, feedKey: c.feedKey, agent: c.agent, network: c.network, token: c.token,
		last: c.last, poll: c.poll, subscribers: c.subscribers,
	}
}

// Stored is what a store knows besides the ledger.
type Stored struct{ records }

// Recall reads the figures of a store, of this period and the one before.
func (l *Ledger) Recall(feeds, families, readers []figures.Figure, now time.Time) *Stored {
	var s Stored
	oldest := periodKey(now.Add(-period))
	names := make(map[uint64]string)
	for _, list := range [...]struct {
		from []figures.Figure
		to   *[]record
	}{{feeds, &s.feeds}, {families, &s.families}, {readers, &s.readers}} {
		for i := range list.from {
			f := &list.from[i]
			if f.Key < oldest {
				continue
			}
			if strings.HasSuffix(f.Key, restKey("")) && len(f.Key) == len(restKey(oldest)) {
				var c record
				if len(f.Peaks) >= peakDistinct && l.read(f, &c) == nil {
					s.past.merge(&c)
				}
				continue
			}
			c, ok := l.recall(f)
			if !ok {
				continue
			}
			if f.Kind == figures.Feed {
				names[c.feedKey] = c.feed
			}
			c.feed = names[c.feedKey]
			*list.to = append(*list.to, c)
		}
	}
	return &s
}

// Resume lets the ledger know readers from before a restart, so that the time between
// their last poll and the next one counts.
func (l *Ledger) Resume(s *Stored) {
	for _, part := range [...]struct {
		table *table[record]
		list  []record
	}{{l.feeds, s.feeds}, {l.families, s.families}, {l.readers, s.readers}} {
		list := slices.Clone(part.list)
		slices.SortFunc(list, func(a, b record) int { return cmp.Compare(a.last, b.last) })
		for i := range list {
			known := &list[i]
			part.table.update(known.key, func(c *record, fresh bool) {
				if fresh {
					known.settle()
					*c = *known
				}
			})
		}
	}
}

// Outdated returns moves that drop what a store has of old periods, and what there is
// beyond the bounds.
func Outdated(feeds, families, readers []figures.Figure, now time.Time) []figures.Move {
	oldest := periodKey(now.Add(-period))
	return slices.Concat(
		outdated(feeds, oldest, storedFeeds, restKey(periodKey(now))),
		outdated(families, oldest, storedFamilies, ""),
		outdated(readers, oldest, storedReaders, ""),
	)
}

// outdated drops figures whose keys are before the oldest, and moves the least recent
// ones, beyond so many of a period, into another.
func outdated(stored []figures.Figure, oldest string, keep int, into string) (moves []figures.Move) {
	kept := make(map[string][]*figures.Figure)
	for i := range stored {
		f := &stored[i]
		switch {
		case f.Key < oldest:
			moves = append(moves, figures.Move{From: f.Ref})
		case len(f.Key) > len(restKey(oldest)):
			kept[f.Key[:len(oldest)]] = append(kept[f.Key[:len(oldest)]], f)
		}
	}
	for when, list := range kept {
		if len(list) <= keep {
			continue
		}
		slices.SortFunc(list, func(a, b *figures.Figure) int { return cmp.Compare(a.Recent(), b.Recent()) })
		for _, f := range list[:len(list)-keep] {
			m := figures.Move{From: f.Ref}
			if into != "" {
				m.Into = restKey(when)
			}
			moves = append(moves, m)
		}
	}
	return moves
}

// OfFeed are the prefixes of the keys that the figures of a feed have at present.
func (l *Ledger) OfFeed(feed string, now time.Time) []string {
	var prefixes []string
	for _, when := range [...]string{periodKey(now), periodKey(now.Add(-period))} {
		prefixes = append(prefixes, string(binary.BigEndian.AppendUint64([]byte(when), l.seed.text(feed))))
	}
	return prefixes
}
