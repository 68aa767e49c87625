// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

type feedContent struct {
	status.Feed
	Entries Entries
	Polled  string // the result of a poll by hand; empty: there was none
}

// Headline says what happens next.
func (c feedContent) Headline() string { return c.Feed.Headline(time.Now()) }

// Unsaid is the last error, unless the reason says it, or has the status of the response.
func (c feedContent) Unsaid() string {
	said := c.Reason.String()
	_, cause, _ := strings.Cut(c.LastError, ": ") // of a host
	switch {
	case c.Winner == policy.HintBackOff, c.Winner == policy.HintGone, c.Winner == policy.HintRetryAfter,
		strings.Contains(said, c.LastError), cause != "" && strings.Contains(said, cause):
		return ""
	}
	return c.LastError
}

// Remedy says what a person can do about a feed that fails, or nothing.
func (c feedContent) Remedy() string { return c.Feed.Remedy() }

// Meaning describes a hint to the people who see the page.
func (c feedContent) Meaning(hint string) string { return c.Feed.Meaning(hint) }

// Terms are the terms of the decision, those that were used first.
func (c feedContent) Terms() []policy.Term {
	terms := make([]policy.Term, 0, len(c.Considered))
	for _, used := range []bool{true, false} {
		for _, t := range c.Considered {
			if t.Used == used {
				terms = append(terms, t)
			}
		}
	}
	return terms
}

// Recent are the last few polls, the newest first, and Earlier those before them.
func (c feedContent) Recent() []status.Poll  { return c.newest()[:min(len(c.Polls), recentPolls)] }
func (c feedContent) Earlier() []status.Poll { return c.newest()[min(len(c.Polls), recentPolls):] }

const recentPolls = 8

func (c feedContent) newest() []status.Poll {
	polls := slices.Clone(c.Polls)
	slices.Reverse(polls)
	return polls
}

// Early reports whether not even a poll by hand is allowed yet.
func (c feedContent) Early() bool { return time.Until(c.Refreshable) > 0 }

func (p *Pages) feed(v *visit, which Which) error {
	f, body, err := p.Source.Feed(v.r.Context(), &v.at.Viewer, which)
	if err != nil {
		return unknownFeed(err)
	}
	if v.wantsJSON() {
		return v.json(http.StatusOK, f)
	}
	c := feedContent{Feed: f, Polled: outcomes[status.Result(v.r.URL.Query().Get("polled"))]}
	if len(body) > 0 {
		c.Entries = newest(v.r.Context(), body, f.ContentType)
	}
	return p.render(v, http.StatusOK, "feed", cmp.Or(c.Entries.Title, f.Title, f.URL.String()), c)
}

func unknownFeed(err error) error {
	if errors.Is(err, ErrUnknown) {
		return &problem{status: http.StatusNotFound, Text: "There is no record of this feed.", More: "A record begins when a reader first requests the feed here."}
	}
	return err
}

// resultEarly stands for a poll by hand that was not allowed.
const resultEarly status.Result = "early"

// outcomes describe the result of a poll by hand. The result is in the URL of the next
// page, which anyone can write, so only these are shown.
var outcomes = map[status.Result]string{
	status.ResultNew:       "Polled just now: there was something new.",
	status.ResultUnchanged: "Polled just now: nothing has changed.",
	status.ResultMoved:     "Polled just now: the feed has moved.",
	status.ResultGone:      "Polled just now: the site says that the feed is gone.",
	status.ResultFailed:    "Polled just now: the poll failed.",
	status.ResultUnsent:    "The site could not be asked just now.",
	resultEarly:            "Not polled yet: it is too early. The feed is polled as soon as it may be.",
}

// refresh polls a feed by hand and redirects to its page.
func (p *Pages) refresh(v *visit) error {
	const maxForm = 16 << 10
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return &problem{status: http.StatusBadRequest, Text: "This form cannot be read.", More: "Go to the page of the feed and try again."}
	}
	which := Which{URL: v.r.PostForm.Get("url"), ID: v.r.PostForm.Get("id")}
	result, err := p.Source.Refresh(v.r.Context(), &v.at.Viewer, which)
	if _, early := errors.AsType[*cache.TooEarly](err); early {
		result, err = resultEarly, nil
	}
	if err != nil {
		return unknownFeed(err)
	}
	if _, told := outcomes[result]; !told {
		result = status.ResultFailed
	}
	http.Redirect(v.w, v.r.Request, v.at.feedAddress(feedurl.Redacted(which.URL), which.ID)+"&polled="+string(result), http.StatusSeeOther)
	return nil
}
