// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// Reason says why the next poll is when it is: the cause with its raw value, the
// setting or field that would change it, and the time. Its JSON form is one text.
type Reason []Part

// Part is a piece of a [Reason]: text, or a time, which a browser may show in another
// time zone.
type Part struct {
	Text string    // of a time as well
	At   time.Time // zero: Text is not a time
}

// String returns the whole text.
func (r Reason) String() string {
	var b strings.Builder
	for _, part := range r {
		b.WriteString(part.Text)
	}
	return b.String()
}

func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r *Reason) UnmarshalText(text []byte) error {
	*r = Reason{{Text: string(text)}}
	return nil
}

// Decided returns the status of a feed of which only a decision is known.
func Decided(d policy.Decision) Feed {
	f := Feed{LastPoll: d.At, NextPoll: d.Next, Winner: d.Winner, Considered: d.Considered}
	if d.Next.Equal(policy.Never) {
		f.NextPoll = time.Time{}
	}
	return f
}

// Decision is the last decision.
func (f *Feed) Decision() policy.Decision {
	d := policy.Decision{At: f.LastPoll, Next: f.NextPoll, Winner: f.Winner, Considered: f.Considered}
	if d.Next.IsZero() {
		d.Next = policy.Never
	}
	if !d.At.IsZero() {
		d.Interval = d.Next.Sub(d.At)
	}
	return d
}

// Explain returns why the next poll is when it is. Every hint that can win has a sentence, which
// leaves out what is not known of the feed. Times are in a location; nil: UTC. Before the first
// decision it returns nil.
func (f *Feed) Explain(now time.Time, in *time.Location) Reason {
	if f.Winner == "" {
		return nil
	}
	w := &reason{Feed: f, now: now, in: in, won: policy.Term{Hint: f.Winner}}
	if u, err := feedurl.Parse(string(f.URL)); err == nil {
		w.host, w.server = u.Name(), u.HostPort()
	}
	if i := slices.IndexFunc(f.Considered, func(t policy.Term) bool { return t.Hint == f.Winner && t.Used }); i >= 0 {
		w.won = f.Considered[i]
	}
	w.say(cmp.Or(hints[f.Winner].sentence, "Reason: {winner}.{poll}") + "{window}")
	return w.parts
}

// reason writes the sentences about a feed.
type reason struct {
	*Feed
	now    time.Time
	in     *time.Location
	host   string      // empty: not known
	server string      // host and port, as errors name it
	won    policy.Term // the term that set the time
	parts  Reason
}

// toPublisher changes a text for the publisher of a shielded feed. There the feed's own hints do not count.
var toPublisher = strings.NewReplacer(
	"Neither the site nor the feed says how often to poll", "Your site does not say how long its answers are good (Cache-Control)",
	"The site", "Your site", "the site", "your site", "This gateway", "This shield", "this gateway", "this shield")

// address returns a text about the feed's site, for the person who reads it.
func (f *Feed) address(text string) string {
	if f.Shield {
		return toPublisher.Replace(text)
	}
	return text
}

// say adds a text with the values of the names in braces.
func (w *reason) say(text string) {
	text = w.address(text)
	for text != "" {
		before, rest, _ := strings.Cut(text, "{")
		name, after, _ := strings.Cut(rest, "}")
		w.add(before)
		switch {
		case name == "next":
			w.at(w.NextPoll)
		case name == "since":
			w.at(w.VersionSince)
		case values[name] != nil:
			w.add(values[name](w))
		case clauses[name] != nil:
			w.say(clauses[name](w))
		}
		text = after
	}
}

func (w *reason) add(text string) {
	if text != "" {
		w.parts = append(w.parts, Part{Text: text})
	}
}

func (w *reason) at(t time.Time) {
	w.parts = append(w.parts, Part{Text: clock(t, w.now, w.in), At: t})
}

// values are the values that sentences name.
var values = map[string]func(*reason) string{
	"winner":  func(w *reason) string { return w.Winner },
	"raw":     func(w *reason) string { return w.won.Raw },
	"given":   func(w *reason) string { return bracketed(Given(w.won)) },
	"every":   func(w *reason) string { return Frequency(seconded(w.won)) },
	"length":  func(w *reason) string { return Length(seconded(w.won)) },
	"wish":    func(w *reason) string { return w.longest().Raw },
	"wished":  func(w *reason) string { return Frequency(seconded(w.longest())) },
	"asked":   func(w *reason) string { return w.term(policy.HintRetryAfter).Raw },
	"status":  func(w *reason) string { return statusText(w.LastStatus) },
	"refused": (*reason).refused,
	"host":    func(w *reason) string { return cmp.Or(w.host, w.address("the site")) },
	"Host":    func(w *reason) string { return cmp.Or(w.host, w.address("The site")) },
	"error":   func(w *reason) string { return bracketed(w.LastError) },
	"cause":   func(w *reason) string { return bracketed(w.cause()) },
	"because": func(w *reason) string { return bracketed(cmp.Or(w.cause(), w.won.Raw)) },
	"why":     (*reason).why,
	"target":  func(w *reason) string { return to(w.Alias.String()) },
	"hours":   func(w *reason) string { return hourRanges(w.won.Raw) },
	"days":    func(w *reason) string { return list(strings.Split(w.won.Raw, ",")) },
	"period":  func(w *reason) string { period, _, _ := strings.Cut(w.won.Raw, "/"); return period },
	"times":   func(w *reason) string { _, times, _ := strings.Cut(w.won.Raw, "/"); return times },
	"window":  (*reason).window,
}

// clauses are the parts of sentences that depend on a decision or its facts.
var clauses = map[string]func(*reason) string{
	"poll":  func(w *reason) string { return either(w.due(), "", " Next poll: {next}.") },
	"again": func(w *reason) string { return either(w.due(), " It may be tried again now.", " Next try: {next}.") },
	"retry": func(w *reason) string {
		return either(w.due() || w.longestBackOff(), "{again}", " Next try: {next}, then less often.")
	},
	"when asked": func(w *reason) string {
		return " It is looked at again when a reader asks for it" + either(w.due(), "", ", {next} at the earliest") + ".{served}"
	},
	"served": func(w *reason) string {
		return either(w.VersionSince.IsZero(), "", " Readers keep getting the version of {since}.")
	},
	"sooner": (*reason).sooner,
	"episodes": func(w *reason) string {
		return either(strings.HasPrefix(w.won.Note, "begins"), "it pauses", "an episode comes {every}")
	},
	"is":    func(w *reason) string { return either(w.due(), "was", "is") },
	"waits": func(w *reason) string { return either(w.due(), "", " This feed waits until {next}{with others}.") },
	"ended": func(w *reason) string {
		return either(w.NextPoll.IsZero(), " It is not polled any more, except by hand.", "{poll}")
	},
	"there": func(w *reason) string {
		return either(w.State == StateGone, ", and is gone there too", " and is polled there")
	},
	"unreached": func(w *reason) string {
		return either(w.LastFailure == policy.FailureNotStarted, "The last poll did not begin", "{Host} could not be reached")
	},
	"with others": func(w *reason) string {
		if w.Pause == nil {
			return ""
		}
		return ", as do all others there" + either(w.Pause.New, " that never gave a feed", "")
	},
	"spacing": func(w *reason) string {
		return either(w.Spacing > 0, ", "+Length(time.Duration(w.Spacing))+" apart", "")
	},
	"bound": func(w *reason) string {
		return either(w.longest().Seconds > 0, hints[w.longest().Hint].request+"; this gateway", "This gateway")
	},
	"entries come": func(w *reason) string {
		gap, _ := time.ParseDuration(w.won.Raw)
		return either(strings.HasSuffix(w.won.Note, "without a new entry"), "There has been no new entry for "+Length(gap), "New entries come about "+Frequency(gap))
	},
	"unvalidated": func(w *reason) string {
		by := either(strings.HasSuffix(w.won.Note, "come more often"), " (from 4 hours to unvalidated_interval, by how often entries come)", " (unvalidated_interval)")
		return either(strings.HasPrefix(w.won.Note, "validators"),
			"The site offers to say whether the feed has changed and then sends all of it anyway, so each poll is a full download: {every}"+by+".",
			"The site gives no way to ask whether the feed has changed, so each poll is a full download: {every}"+by+". An ETag or Last-Modified would allow more.")
	},
	"failed": (*reason).failed,
}

func either(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

// due reports whether the time of the next poll has passed.
func (w *reason) due() bool { return !w.NextPoll.IsZero() && !w.NextPoll.After(w.now) }

// longestBackOff reports whether further failures make the wait no longer.
func (w *reason) longestBackOff() bool {
	limit := w.term(policy.HintCap)
	return limit.Hint != "" && w.won.Seconds >= limit.Seconds || w.Shield && seconded(w.won) == policy.MaxOwnBackOff
}

// cause is the error of the last poll without the server, which the sentence names.
func (w *reason) cause() string { return strings.TrimPrefix(w.LastError, w.server+": ") }

// term returns the term of a hint, or the zero Term.
func (w *reason) term(hint string) policy.Term {
	i := slices.IndexFunc(w.Considered, func(t policy.Term) bool { return t.Hint == hint })
	if i < 0 {
		return policy.Term{}
	}
	return w.Considered[i]
}

// longest returns the longest of the overruled hints, or the zero Term.
func (w *reason) longest() (best policy.Term) {
	for _, t := range w.Considered {
		if hints[t.Hint].request != "" && t.Seconds > best.Seconds {
			best = t
		}
	}
	return best
}

// sooner says whether a site could bring the next poll forward, whose answer is good for a shorter time.
func (w *reason) sooner() string {
	floor, other := w.term(policy.HintFloor), time.Duration(0)
	for _, t := range w.Considered {
		if hints[t.Hint].request != "" && t.Hint != w.Winner && t.Hint != policy.HintRhythm {
			other = max(other, seconded(t)) // of a ttl, say
		}
	}
	switch {
	case w.due():
		return ""
	case seconded(floor) >= seconded(w.won):
		return " Sooner is not possible: this gateway polls at most " + Frequency(seconded(floor)) + " (min_interval)."
	case other >= seconded(w.won):
		return ""
	case w.Winner == policy.HintExpires:
		return " An earlier Expires would bring it forward."
	}
	return " A smaller " + HintShort(w.Winner) + " would bring it forward."
}

// window says that entries may be missed, and what would change that.
func (w *reason) window() string {
	covered, winner := w.term(policy.HintWindow), hints[w.Winner]
	cure := "only the site can change that."
	switch {
	case covered.Hint == "":
		return ""
	case strings.HasSuffix(winner.short, "_interval"):
		cure = "a smaller " + winner.short + " would change that."
	case winner.request == "" && w.Winner != policy.HintSkipHours && w.Winner != policy.HintSkipDays:
		return "" // it is not an interval, but a pause
	}
	return fmt.Sprintf(" Its %s cover about %s, less than the %s between two polls, so some could be missed: %s",
		covered.Raw, Length(seconded(covered)), Length(w.NextPoll.Sub(w.LastPoll)), w.address(cure))
}

// failed explains a pause after failures.
func (w *reason) failed() string {
	asked := seconded(w.term(policy.HintRetryAfter)) // shorter than the back-off; 0: nothing was asked
	polls := fmt.Sprintf("last %d polls", w.Failures)
	switch {
	case w.LastStatus == http.StatusTooManyRequests:
		return "The site answered {status}" + either(w.Failures > 1, " to the "+polls, "") +
			either(asked > 0, " and asked to be left alone for "+Length(asked)+" (Retry-After: {asked})", "") + ".{retry}{served}"
	case w.Site:
		if w.Configured {
			names := either(len(w.SiteFeeds) > 0, ", which names "+SomeFeeds(w.SiteFeeds), "")
			return "This is a web page, not a feed" + names + ": write the URL of a feed into the configuration.{retry}"
		}
		return "This is a web page, not a feed. A reader that asks for it gets a list of the feeds that it names.{when asked}"
	case w.State == StateUnread && (w.LastFailure == policy.FailureNotFound || w.LastFailure == policy.FailureNotFeed):
		return "This address never gave a feed{why}.{when asked}"
	}
	return "The " + either(w.Failures > 1, polls, "last poll") + " failed{why}.{retry}{served}"
}

func (w *reason) why() string {
	cause := cmp.Or(w.cause(), w.won.Raw)
	switch {
	case w.LastFailure == policy.FailureChallenge:
		return ": " + cause + ". By a contact in the configuration it can see who polls"
	case w.LastStatus >= 300 && len(cause) > len("status "+statusText(w.LastStatus)) && strings.HasPrefix(cause, "status "+statusText(w.LastStatus)):
		return ": " + cause // which has a remedy
	case w.LastStatus >= 300:
		return bracketed(statusText(w.LastStatus))
	}
	return bracketed(cause)
}

func seconded(t policy.Term) time.Duration { return time.Duration(t.Seconds) * time.Second }

// refused names the feed whose poll began the pause of its site, if it may be named.
func (w *reason) refused() string {
	switch {
	case w.Pause == nil || w.Pause.URL == "":
		return "a feed of " + cmp.Or(w.host, "its own")
	case w.Pause.URL == w.URL:
		return "it"
	}
	return w.Pause.URL.String()
}
