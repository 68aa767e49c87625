// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package statustest holds sentences about feeds against the facts of the same feeds.
//
// A sentence is chosen by one fact, such as the hint that set the time of the next poll, and is read beside
// all others. [Feeds] makes feeds in every state that an answer of a site can lead to, and [Contradiction]
// says what in a text about one of them is not so.
package statustest

import (
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// Case is a poll: what was known before, and what came of it.
type Case struct {
	Name     string
	Rules    policy.Rules
	History  policy.History // before the answer
	Answer   policy.Answer
	Document *policy.Document // nil: none was read
}

// statuses are those that a failure may come with. 0: nothing was received.
var statuses = map[policy.Failure][]int{
	policy.FailureNotStarted: {0}, policy.FailureDNS: {0}, policy.FailureConnect: {0}, policy.FailureProxy: {0}, policy.FailureTLS: {0},
	policy.FailureTimeout: {0, 200}, policy.FailureAddress: {0}, policy.FailureRedirect: {302}, policy.FailureTruncated: {200},
	policy.FailureOversize: {200}, policy.FailureNotFeed: {200}, policy.FailureUnasked: {304}, policy.FailureProtocol: {0, 200},
	policy.FailureStatus: {400, 500, 503}, policy.FailureRateLimited: {429}, policy.FailureChallenge: {403, 200}, policy.FailureForbidden: {401, 403},
	policy.FailureNotFound: {404}, policy.FailureGone: {410}, policy.FailureNotShared: {200}, policy.FailureStore: {200},
	policy.FailureInternal: {0, 200}, policy.FailureHeld: {302}, policy.FailureMoved: {301}, policy.FailureNone: {200, 304},
}

// errors are texts of the failures that have texts of their own.
var errors = map[policy.Failure]string{
	policy.FailureNotStarted: "the gateway is closing", policy.FailureDNS: "looking up the address: no such host",
	policy.FailureProxy: "the proxy failed: connection refused", policy.FailureAddress: "its address is private",
	policy.FailureConnect: "connecting: connection refused", policy.FailureInternal: "the gateway failed at the answer; its log says more",
}

// Failures returns all failures for which there are cases.
func Failures() (list []policy.Failure) {
	for failure := range statuses {
		list = append(list, failure)
	}
	return list
}

// Cases returns polls at a time, with every failure and with every hint that can set the time of the next one.
func Cases(at time.Time) iter.Seq[Case] {
	return func(yield func(Case) bool) {
		minutes := func(n int64) *int64 { return &n }
		daily, weekly := policy.Rhythm{Entries: 20, Dated: 20, Median: 24 * time.Hour, Newest: at.Add(-time.Hour)}, policy.Rhythm{Entries: 20, Dated: 20, Median: 7 * 24 * time.Hour}
		documents := map[string]policy.Document{
			"nothing": {}, "daily": {Rhythm: daily}, "weekly": {Rhythm: weekly}, "ttl": {Hints: policy.Hints{TTL: minutes(120)}, Rhythm: daily},
			"ttl too short": {Hints: policy.Hints{TTL: minutes(5)}}, "ttl too long": {Hints: policy.Hints{TTL: minutes(60 * 24 * 9)}},
			"sy":       {Hints: policy.Hints{SyPeriod: "daily", SyFrequency: minutes(2)}, Rhythm: daily},
			"complete": {Hints: policy.Hints{Complete: true}}, "expired": {Hints: policy.Hints{Expired: true}},
			"hours": {Hints: policy.Hints{SkipHours: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22}}},
			"days":  {Hints: policy.Hints{SkipDays: []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}}},
		}
		headers := map[string]http.Header{
			"no hint": {}, "max-age": field("Cache-Control", "max-age=7500"), "short": field("Cache-Control", "max-age=60"), "long": field("Cache-Control", "max-age=9999999"),
			"s-maxage": field("Cache-Control", "s-maxage=7500"), "expires": field("Expires", at.Add(3*time.Hour).UTC().Format(http.TimeFormat)),
			"retry-after": field("Retry-After", "36000"), "rate limit": {"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"7500"}},
		}
		often, own := policy.DefaultRules(), policy.DefaultRules()
		often.MaxInterval = 6 * time.Hour
		own.MinInterval, own.DefaultInterval, own.OwnSite = time.Minute, time.Minute, true
		for rules, r := range map[string]policy.Rules{"default rules": policy.DefaultRules(), "max_interval 6h": often, "own site": own} {
			for failure, codes := range statuses {
				for _, code := range codes {
					for name, header := range headers {
						for document, d := range documents {
							if failure != policy.FailureNone && document != "daily" && document != "complete" {
								continue
							}
							for _, before := range []int{0, 1, 9} {
								c := Case{
									Name: fmt.Sprintf("%s, %s, %d %s, %s, after %d failures", rules, document, code, failure, name, before), Rules: r,
									History: policy.History{Hints: d.Hints, Rhythm: d.Rhythm, Interval: 2 * time.Hour, Answered: true, Validated: code != 200, Failures: before},
									Answer:  policy.Answer{URL: "https://example.com/feed", At: at, Asked: at.Add(-time.Second), Status: code, Header: header, Failure: failure},
								}
								if failure == policy.FailureNone {
									c.Document = &d
								} else if c.Answer.Err = fmt.Errorf("example.com: %s", orString(errors[failure], string(failure))); code == 0 {
									c.Answer.Header = nil
								}
								if c.Answer.Failure == policy.FailureHeld {
									c.Answer.HeldFor = 20 * time.Minute
								}
								if !yield(c) {
									return
								}
								if unsent := c; code == 0 {
									unsent.Name, unsent.Answer.Asked = c.Name+", unsent", time.Time{}
									if unsent.Answer.Unsent() && !yield(unsent) {
										return
									}
								}
								if failure == policy.FailureMoved {
									c.Name, c.Answer.Pointing = c.Name+", pointing", true
									if !yield(c) {
										return
									}
								}
							}
						}
					}
				}
			}
		}
	}
}

func field(name, value string) http.Header { return http.Header{name: {value}} }

func orString(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// others are the hints that are set without a decision, as a poll cannot be made.
var others = []string{
	policy.HintHostCooldown, policy.HintURLCooldown, policy.HintRedirectCooldown, policy.HintHostSlot, policy.HintPoke,
	policy.HintPause, policy.HintStore, policy.HintOffline,
}

// Feeds returns feeds as they are at a time, in every state, with the name of each.
func Feeds(now time.Time) iter.Seq2[string, status.Feed] {
	return func(yield func(string, status.Feed) bool) {
		for c := range Cases(now.Add(-time.Hour)) {
			history := c.History.Update(c.Answer, c.Document, false)
			d := policy.Decide(c.Rules, history, c.Answer, 0)
			decided := status.Decided(d)
			decided.URL, decided.LastStatus, decided.LastFailure, decided.Failures = "https://example.com/feed", c.Answer.Status, c.Answer.Failure, history.Failures
			decided.Spacing, decided.Shield = status.Seconds(2*time.Second), c.Rules.OwnSite
			decided.LastResult = resultOf(c.Answer)
			if c.Answer.Err != nil {
				decided.LastError = c.Answer.Err.Error()
			}
			if c.Answer.Failure == policy.FailureMoved {
				decided.Alias = "https://example.net/feed"
			}
			feeds := map[string]status.Feed{"": decided}
			late := decided // it was due a minute ago, and no reader has asked
			if !late.NextPoll.IsZero() {
				late.LastPoll, late.NextPoll = late.LastPoll.Add(now.Sub(late.NextPoll)-time.Minute), now.Add(-time.Minute)
				feeds["due"] = late
				for _, hint := range others {
					if len(c.Answer.Header) > 0 { // it is of no account here
						break
					}
					held := decided
					held.Winner, held.NextPoll = hint, now.Add(20*time.Minute)
					held.Considered = append([]policy.Term{{Hint: hint, Seconds: 1200, Used: true}}, unused(decided.Considered)...)
					if !held.Shield || hint == policy.HintStore || hint == policy.HintOffline {
						feeds[hint] = held
					}
				}
			}
			for more, f := range feeds {
				for _, state := range status.States {
					for _, served := range []bool{false, true} {
						for _, configured := range []bool{false, true} {
							f := f
							if f.State, f.Configured = state, configured; served {
								f.VersionSince, f.Version = now.Add(-30*time.Hour), 3
							}
							if !possible(&f, now) {
								continue
							}
							f.Reason = f.Explain(now, nil)
							if !yield(fmt.Sprintf("%s, %s, %s, served: %v, configured: %v", c.Name, more, state, served, configured), f) {
								return
							}
						}
					}
				}
			}
		}
	}
}

// Few returns one of the feeds for each set of facts that sentences are chosen by.
func Few(now time.Time) iter.Seq2[string, status.Feed] {
	type facts struct {
		winner              string
		state               status.State
		failure             policy.Failure
		code                int
		failures            bool
		served, due, shield bool
	}
	return func(yield func(string, status.Feed) bool) {
		seen := make(map[facts]bool)
		for name, f := range Feeds(now) {
			of := facts{f.Winner, f.State, f.LastFailure, f.LastStatus, f.Failures > 1, f.Version > 0, f.NextPoll.After(now), f.Shield}
			if !seen[of] && !yield(name, f) {
				return
			}
			seen[of] = true
		}
	}
}

func unused(terms []policy.Term) (list []policy.Term) {
	for _, t := range terms {
		t.Used = false
		list = append(list, t)
	}
	return list
}

func resultOf(a policy.Answer) status.Result {
	switch {
	case a.Unsent():
		return status.ResultUnsent
	case a.Failure == policy.FailureMoved:
		return status.ResultMoved
	case a.Failure == policy.FailureHeld:
		return status.ResultHeld
	case a.Failure == policy.FailureGone:
		return status.ResultGone
	case a.Failure != policy.FailureNone:
		return status.ResultFailed
	case a.Status == http.StatusNotModified:
		return status.ResultUnchanged
	}
	return status.ResultNew
}

// possible reports whether a feed can be in its state. A feed that points to another has the state of that one.
func possible(f *status.Feed, now time.Time) bool {
	due, ended := !f.NextPoll.After(now) && !f.NextPoll.IsZero(), f.NextPoll.IsZero()
	if f.State == status.StateUnread {
		return f.Version == 0 && !f.Configured && (f.LastFailure != policy.FailureNone || f.Winner == policy.HintHostSlot) && !ended
	}
	if f.Alias != "" {
		return f.Failures == 0
	}
	switch f.State {
	case status.StateGone:
		return ended
	case status.StateFailing:
		return f.Failures > 0 && !ended
	case status.StateWaiting:
		return !due && !ended && (strings.HasSuffix(f.Winner, "cooldown") || f.Winner == policy.HintRetryAfter || f.Winner == policy.HintRateLimit || f.LastStatus == http.StatusTooManyRequests)
	case status.StateDue:
		return due && f.Failures == 0
	}
	return !due && !ended && f.Failures == 0 && f.Version > 0 && f.Winner != policy.HintRetryAfter
}

// numbered finds how many polls are said to have failed, and often what is said of how often a feed is polled.
var (
	numbered = regexp.MustCompile(`last (\d+) polls`)
	often    = regexp.MustCompile(`looked at |the feed is polled |polls at (?:most|least) |full download: `)
)

// Contradiction returns what in a text about a feed is not so, or "".
func Contradiction(f *status.Feed, text string, now time.Time) string {
	planned, due := !f.NextPoll.IsZero(), !f.NextPoll.IsZero() && !f.NextPoll.After(now)
	away := f.LastFailure == policy.FailureConnect || f.LastFailure == policy.FailureTimeout || f.LastFailure == policy.FailureStatus && f.LastStatus >= 500
	for _, rule := range []struct {
		applies bool
		fact    string
		wrong   string // separated by "|"
	}{
		{planned, "a poll is planned", "not polled any more|No poll is planned|poll never|polling has ended"},
		{!planned, "no poll is planned", "Next poll|Next try|The next poll is|poll in |looked at again|is looked at "},
		{due, "the poll is due", "Next poll:|Next try:|waits until|is used up until|at the earliest|The next poll is in"},
		{planned && !due, "the poll is not due", "It is due|tried again now|poll now"},
		{f.Version > 0, "readers get a version", "never gave a feed"},
		{f.Version == 0, "there is no version", "Readers keep getting"},
		{!away, "the site has answered, or it is not the site that fails", "comes back"},
		{f.LastStatus == 0 && f.Winner != policy.HintHostCooldown, "the site has not answered", "site answered|answered nothing"},
		{f.LastStatus != 0 && f.LastFailure != policy.FailureChallenge, "the site has answered", "nothing was sent"},
		{f.Failures == 0, "no poll has failed", "polls failed|last poll failed"},
		{f.LastFailure == policy.FailureNotStarted, "the site was not asked", "could not be reached"},
		{f.Configured, "it is configured", "when a reader asks"},
		{f.State == status.StateGone && f.Alias != "", "the feed that answers for it is gone", "is polled there"},
		{f.LastFailure != policy.FailureGone && f.Alias == "", "it is not gone", "gone for good|(410)"},
		{f.Shield, "it is the site's own page", "the site|The site|this gateway|This gateway"},
		{!f.Shield, "a gateway serves it", "your site|Your site|this shield|This shield"},
	} {
		for wrong := range strings.SplitSeq(rule.wrong, "|") {
			if rule.applies && strings.Contains(text, wrong) {
				return fmt.Sprintf("%s, but the text has %q", rule.fact, wrong)
			}
		}
	}
	if n := numbered.FindStringSubmatch(text); n != nil && n[1] != strconv.Itoa(f.Failures) {
		return fmt.Sprintf("%d polls have failed, but the text has %q", f.Failures, n[0])
	}
	switch f.Winner {
	case policy.HintRhythm, policy.HintDefault, policy.HintComplete, policy.HintFloor, policy.HintCap, policy.HintUnvalidated, policy.HintMoved:
		every := status.Frequency(f.NextPoll.Sub(f.LastPoll))
		for _, at := range often.FindAllStringIndex(text, -1) {
			if !strings.HasPrefix(text[at[1]:], every) {
				return fmt.Sprintf("it is polled %s, but the text has %q", every, text[at[0]:])
			}
		}
	}
	return ""
}
