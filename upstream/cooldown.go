// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"net/http"
	"time"

	"github.com/feedpollard/pollard/feedurl"
	"github.com/feedpollard/pollard/policy"
)

const (
	// maxPause caps every cool-down, as policy caps what it reads from headers. It
	// also bounds what a clock that was set back can make of one.
	maxPause = 7 * 24 * time.Hour
	// barePause is the cool-down after a 429 that names no time. It doubles with
	// each further one in a row, up to maxBarePause.
	barePause    = time.Hour
	maxBarePause = 24 * time.Hour
	// memory is how long a pause that is over goes on being remembered: a 429 soon
	// after it is one in a row.
	memory = 24 * time.Hour
)

// pause is the cool-down of a host, of a registrable domain or of a URL.
type pause struct {
	until    time.Time // wall time; zero: there was none
	limited  bool      // a 429 asked for it
	bare     int       // 429s in a row that named no time
	cautious bool      // no good answer has come since
}

// end is until when the pause holds, seen from now. A clock that was set back must
// not make it longer than any pause may be.
func (p *pause) end(now time.Time) time.Time {
	if p == nil {
		return time.Time{}
	}
	if latest := wall(now.Add(maxPause)); p.until.After(latest) {
		p.until = latest
	}
	return p.until
}

func (p *pause) forgettable(now time.Time) bool {
	return p.until.IsZero() || now.After(p.until.Add(memory))
}

// extend makes the pause last until a given time at least.
func (p *pause) extend(until time.Time, limited bool, now time.Time) {
	if !p.until.After(now) {
		p.limited = false
	}
	if until = wall(until); until.After(p.until) {
		p.until = until
	}
	p.limited = p.limited || limited
	p.cautious = true
}

// wall drops the monotonic reading: a pause goes on while the machine sleeps.
func wall(t time.Time) time.Time { return t.Round(0) }

// verdict is what an answer asks of those who come next.
type verdict struct {
	status  int       // 0: there was no answer
	until   time.Time // before which nothing is to be asked; zero: nothing said
	private bool      // the answer came from a private address
}

// verdictOf reads an answer that came at a given time.
func verdictOf(status int, header http.Header, at time.Time) verdict {
	v := verdict{status: status}
	// RFC 9110 section 10.2.3 has Retry-After on 503 and redirects; origins also send
	// it with other failures and mean it. On a good answer it speaks of that resource:
	// the feed's own schedule heeds it.
	if status >= 300 && status != http.StatusNotModified {
		v.until = policy.RetryAfter(header, at).Until
	}
	// draft-ietf-httpapi-ratelimit-headers: Retry-After has precedence. Of an
	// exhausted limit any answer can tell.
	if v.until.IsZero() {
		v.until = policy.RateLimit(header, at).Until
	}
	return v
}

// settle lets an answer count: it may begin, lengthen or end a cool-down. The
// caller holds the pacer's lock.
func (h *host) settle(s *slot, v verdict, now time.Time) {
	if v.status == 0 {
		return // nothing was heard of the host
	}
	single := s.single || v.private
	p := h.pauseOf(s.url, single)
	limited := v.status == http.StatusTooManyRequests
	switch {
	case limited && v.until.IsZero():
		if p.until.After(now) {
			p.extend(p.until, true, now) // a request that was under way when the pause began
			break
		}
		length := min(barePause<<min(p.bare, 10), maxBarePause)
		p.bare++
		p.extend(now.Add(length), true, now)
	case !v.until.IsZero():
		if !limited {
			p.bare = 0
		}
		p.extend(v.until, limited, now)
	case !s.started.Before(p.until):
		p.bare, p.cautious = 0, false
		if !s.started.Before(h.domain.pause.until) {
			h.domain.pause.cautious = false
		}
	}
	if single {
		h.sweepURLs(now)
	} else if limited {
		h.domain.siblings(now)
	}
}

// pauseOf is the pause that an answer to a URL bears on.
func (h *host) pauseOf(url string, single bool) *pause {
	if !single {
		return &h.pause
	}
	if h.urls[url] == nil {
		if h.urls == nil {
			h.urls = make(map[string]*pause)
		}
		h.urls[url] = new(pause)
	}
	return h.urls[url]
}

// siblings pauses the whole domain while two of its hosts are in a cool-down after
// a 429: one limiter stands before all of them. It lasts as long as the longer.
func (d *domain) siblings(now time.Time) {
	count, until := 0, time.Time{}
	for _, h := range d.hosts {
		if end := h.pause.end(now); h.pause.limited && end.After(now) {
			count++
			if end.After(until) {
				until = end
			}
		}
	}
	if count >= 2 {
		d.pause.extend(until, true, now)
	}
}

// hold restores a pause.
func (p *pacer) hold(t feedurl.URL, until time.Time, why string) {
	now := time.Now()
	if !until.After(now) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.host(t)
	switch why {
	case HeldBySlot:
		return // no pause, only a gap: the next poll keeps its own
	case HeldByDomain:
		h.domain.pause.extend(until, true, now)
	case HeldByURL, HeldByRedirect:
		h.pauseOf(t.String(), true).extend(until, false, now)
	default:
		h.pauseOf(t.String(), scopeOf(t).single).extend(until, false, now)
	}
}
