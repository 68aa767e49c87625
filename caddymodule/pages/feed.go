// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// feedContent is what the page of one feed shows.
type feedContent struct {
	Account
	Entries Entries
	Polled  string // what a poll by hand has come to; empty: there was none
}

// Terms are the hints that were considered, those that were used first.
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
func (c feedContent) Recent() []Poll  { return c.newest()[:min(len(c.Polls), recentPolls)] }
func (c feedContent) Earlier() []Poll { return c.newest()[min(len(c.Polls), recentPolls):] }

const recentPolls = 8

func (c feedContent) newest() []Poll {
	polls := slices.Clone(c.Polls)
	slices.Reverse(polls)
	return polls
}

// EntriesInVersion is how many entries the version has that is served.
func (c feedContent) EntriesInVersion() int {
	if len(c.Versions) == 0 {
		return 0
	}
	return c.Versions[0].Entries
}

// Early reports whether not even a poll by hand is allowed yet.
func (c feedContent) Early() bool { return time.Until(c.Refreshable) > 0 }

// feed is the page of one feed.
func (p *Pages) feed(v *visit, which Which) error {
	account, err := p.Source.Feed(v.r.Context(), which)
	if err != nil {
		return unknownFeed(err)
	}
	if account.Considered == nil {
		account.Considered = []policy.Term{}
	}
	if v.wantsJSON() {
		return v.json(http.StatusOK, account)
	}
	c := feedContent{Account: account, Polled: outcomes[Result(v.r.URL.Query().Get("polled"))]}
	if len(account.Body) > 0 {
		c.Entries = newest(v.r.Context(), account.Body, account.ContentType)
	}
	return p.render(v, http.StatusOK, "feed", cmp.Or(c.Entries.Title, account.Title, account.URL.String()), c)
}

func unknownFeed(err error) error {
	if errors.Is(err, ErrUnknown) {
		return &problem{http.StatusNotFound, "There is no record of this feed.", "A record begins when a reader first requests the feed here."}
	}
	return err
}

// resultEarly stands for a poll by hand that was not allowed.
const resultEarly Result = "early"

// outcomes tell what a poll by hand has come to. Its result is in the address of
// the page that follows, where anybody can write anything: only these are shown.
var outcomes = map[Result]string{
	ResultNew:       "Polled just now: there was something new.",
	ResultUnchanged: "Polled just now: nothing has changed.",
	ResultMoved:     "Polled just now: the feed has moved.",
	ResultGone:      "Polled just now: the site says that the feed is gone.",
	ResultFailed:    "Polled just now: the poll failed.",
	ResultUnsent:    "The site could not be asked just now.",
	resultEarly:     "Not polled: it is too early for another poll.",
}

// refresh polls a feed by hand and goes on to its page.
func (p *Pages) refresh(v *visit) error {
	const maxForm = 16 << 10
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return &problem{http.StatusBadRequest, "This form cannot be read.", "Go to the page of the feed and try again."}
	}
	which := Which{URL: v.r.PostForm.Get("url"), ID: v.r.PostForm.Get("id")}
	result, err := p.Source.Refresh(v.r.Context(), which)
	if _, early := errors.AsType[*TooEarly](err); early {
		result, err = resultEarly, nil
	}
	if err != nil {
		return unknownFeed(err)
	}
	if _, told := outcomes[result]; !told {
		result = ResultFailed
	}
	http.Redirect(v.w, v.r, v.at.feedAddress(Address(which.URL), which.ID)+"&polled="+string(result), http.StatusSeeOther)
	return nil
}
