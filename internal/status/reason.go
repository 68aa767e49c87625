// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// Facts are what the wording of a [Reason] needs besides the decision. The sentence
// leaves out what is zero.
type Facts struct {
	Now      time.Time
	Location *time.Location // of times in the text; nil: UTC
	Host     string         // the feed's
	Status   int            // of the last response; 0: there was none
	Failure  policy.Failure // of the last poll
	Error    string         // of the last poll, or of the store
	Failures int            // failed polls in a row
	Served   time.Time      // since when readers get their version; zero: there is none
	Spacing  time.Duration  // between two polls of the host
	Pause    *Pause         // of the host or its domain; nil: not known
	Target   string         // where a redirect leads
	Site     bool           // the last response was a web page that names feeds
	NoFeed   bool           // the address never gave a feed, so only a request causes a poll
	Shield   bool           // the text is for the publisher of the feed
}

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

// Explain returns why the next poll of the feed is when it is. It is nil before the first
// decision.
func (f *Feed) Explain(now time.Time, in *time.Location) Reason {
	if f.Winner == "" {
		return nil
	}
	facts := Facts{
		Now: now, Location: in, Status: f.LastStatus, Failure: f.LastFailure, Error: f.LastError, Failures: f.Failures,
		Served: f.VersionSince, Spacing: time.Duration(f.Spacing), Pause: f.Pause, Target: f.Alias.String(), Site: f.Site, Shield: f.Shield,
		NoFeed: f.State == StateUnread && (f.Site || f.LastFailure == policy.FailureNotFound || f.LastFailure == policy.FailureNotFeed),
	}
	if u, err := feedurl.Parse(string(f.URL)); err == nil {
		facts.Host = u.Name()
	}
	return Explain(f.Decision(), facts)
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

// Explain returns why the next poll is when a decision says. Every hint that can win has
// a sentence.
func Explain(d policy.Decision, f Facts) Reason {
	w := &reason{decision: d, facts: f, won: policy.Term{Hint: d.Winner}}
	if i := slices.IndexFunc(d.Considered, func(t policy.Term) bool { return t.Hint == d.Winner && t.Used }); i >= 0 {
		w.won = d.Considered[i]
	}
	w.say(cmp.Or(hints[d.Winner].sentence, "Reason: {winner}.{poll}") + "{window}")
	return w.parts
}

type reason struct {
	decision policy.Decision
	facts    Facts
	won      policy.Term
	parts    Reason
}

// toPublisher changes a text for the publisher of a shielded feed.
var toPublisher = strings.NewReplacer("The site", "Your site", "the site", "your site", "This gateway", "This shield", "this gateway", "this shield")

// address returns a text about the feed's site, for the person who reads it.
func (f *Feed) address(text string) string {
	if f.Shield {
		return toPublisher.Replace(text)
	}
	return text
}

// say adds a text with the values of the names in braces.
func (w *reason) say(text string) {
	if w.facts.Shield {
		text = toPublisher.Replace(text)
	}
	for text != "" {
		before, rest, _ := strings.Cut(text, "{")
		name, after, _ := strings.Cut(rest, "}")
		w.add(before)
		switch {
		case name == "next":
			w.at(w.decision.Next)
		case name == "since":
			w.at(w.facts.Served)
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
	w.parts = append(w.parts, Part{Text: clock(t, w.facts.Now, w.facts.Location), At: t})
}

// values are the values that sentences name.
var values = map[string]func(*reason) string{
	"winner":    func(w *reason) string { return w.decision.Winner },
	"raw":       func(w *reason) string { return w.won.Raw },
	"every":     func(w *reason) string { return Frequency(seconded(w.won)) },
	"length":    func(w *reason) string { return Length(seconded(w.won)) },
	"wish":      func(w *reason) string { return w.longest().Raw },
	"wished":    func(w *reason) string { return Frequency(seconded(w.longest())) },
	"interval":  func(w *reason) string { return Length(w.decision.Interval) },
	"entries":   func(w *reason) string { return w.term(policy.HintWindow).Raw },
	"cover":     func(w *reason) string { return Length(seconded(w.term(policy.HintWindow))) },
	"setting":   func(w *reason) string { return hints[w.decision.Winner].short },
	"pause":     func(w *reason) string { return Length(seconded(w.term(policy.HintRetryAfter))) },
	"asked":     func(w *reason) string { return w.term(policy.HintRetryAfter).Raw },
	"failures":  func(w *reason) string { return strconv.Itoa(w.facts.Failures) },
	"status":    func(w *reason) string { return statusText(w.facts.Status) },
	"given":     func(w *reason) string { return bracketed(w.won.Raw) },
	"host":      (*reason).host,
	"Host":      func(w *reason) string { return cmp.Or(w.facts.Host, Capitalize(w.host())) },
	"error":     func(w *reason) string { return bracketed(w.facts.Error) },
	"cause":     func(w *reason) string { return bracketed(w.cause()) },
	"because":   func(w *reason) string { return bracketed(cmp.Or(w.cause(), w.won.Raw)) },
	"why":       (*reason).why,
	"target":    func(w *reason) string { return to(w.facts.Target) },
	"elsewhere": func(w *reason) string { return cmp.Or(to(w.facts.Target), " to another address") },
	"hours":     func(w *reason) string { return hourRanges(w.won.Raw) },
	"days":      func(w *reason) string { return list(strings.Split(w.won.Raw, ",")) },
	"period":    func(w *reason) string { period, _, _ := strings.Cut(w.won.Raw, "/"); return period },
	"times":     func(w *reason) string { _, times, _ := strings.Cut(w.won.Raw, "/"); return times },
	"gap":       func(w *reason) string { gap, _ := time.ParseDuration(w.won.Raw); return Frequency(gap) },
	"quiet":     func(w *reason) string { quiet, _ := time.ParseDuration(w.won.Raw); return Length(quiet) },
	"apart":     func(w *reason) string { return Length(w.facts.Spacing) },
}

// clauses are the parts of sentences that depend on a decision or its facts.
var clauses = map[string]func(*reason) string{
	"poll":  func(w *reason) string { return either(w.due(), "", " Next poll: {next}.") },
	"again": func(w *reason) string { return either(w.due(), " It may be tried again now.", " Next try: {next}.") },
	"retry": func(w *reason) string { return either(w.due(), "{again}", " Next try: {next}, then less often.") },
	"when asked": func(w *reason) string {
		return " It is looked at again when a reader asks for it" + either(w.due(), "", ", {next} at the earliest") + ".{served}"
	},
	"served": func(w *reason) string {
		return either(w.facts.Served.IsZero(), "", " Readers keep getting the version of {since}.")
	},
	"good": func(w *reason) string {
		return "The site says that its answer " + either(w.due(), "was", "is") + " good until {next}"
	},
	"episodes": func(w *reason) string {
		return either(strings.HasPrefix(w.won.Note, "begins"), "it pauses", "an episode comes {every}")
	},
	"with others": func(w *reason) string {
		if w.facts.Pause == nil {
			return ""
		}
		return ", as do all others there" + waiting[w.facts.Pause.Rank]
	},
	"spacing": func(w *reason) string { return either(w.facts.Spacing > 0, ", {apart} apart", "") },
	"bound": func(w *reason) string {
		return either(w.longest().Seconds > 0, hints[w.longest().Hint].request+"; this gateway", "This gateway")
	},
	"entries come": func(w *reason) string {
		return either(strings.HasSuffix(w.won.Note, "without a new entry"), "There has been no new entry for {quiet}", "New entries come about {gap}")
	},
	"unvalidated": func(w *reason) string {
		by := either(strings.HasSuffix(w.won.Note, "come more often"), " (from 4 hours to unvalidated_interval, by how often entries come)", " (unvalidated_interval)")
		return either(strings.HasPrefix(w.won.Note, "validators"),
			"The site offers to say whether the feed has changed and then sends all of it anyway, so each poll is a full download: {every}"+by+".",
			"The site gives no way to ask whether the feed has changed, so each poll is a full download: {every}"+by+". An ETag or Last-Modified would allow more.")
	},
	"failed": (*reason).failed,
	"window": (*reason).window,
}

// waiting says for which feeds a pause holds, by its rank.
var waiting = map[int]string{
	2: " that are not configured",
	3: " that are neither configured nor read regularly by readers known here",
	4: " that only public networks ask for",
	5: " that only public networks ask for, and not regularly",
}

func either(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

// due reports whether the time of the next poll has passed.
func (w *reason) due() bool { return !w.facts.Now.IsZero() && !w.decision.Next.After(w.facts.Now) }

func (w *reason) host() string {
	return cmp.Or(w.facts.Host, either(w.facts.Shield, "your site", "the site"))
}

// cause is the error of the last poll without the host, which the sentence names.
func (w *reason) cause() string { return strings.TrimPrefix(w.facts.Error, w.facts.Host+": ") }

// term returns the term of a hint, or the zero Term.
func (w *reason) term(hint string) policy.Term {
	i := slices.IndexFunc(w.decision.Considered, func(t policy.Term) bool { return t.Hint == hint })
	if i < 0 {
		return policy.Term{}
	}
	return w.decision.Considered[i]
}

// longest returns the longest of the overruled hints, or the zero Term.
func (w *reason) longest() (best policy.Term) {
	for _, t := range w.decision.Considered {
		if hints[t.Hint].request != "" && t.Seconds > best.Seconds {
			best = t
		}
	}
	return best
}

// window says that entries may be missed, and what would change that.
func (w *reason) window() string {
	const missed = " Its {entries} cover about {cover}, less than the {interval} between two polls, so some could be missed: "
	switch winner := hints[w.decision.Winner]; {
	case w.term(policy.HintWindow).Hint == "":
		return ""
	case strings.HasSuffix(winner.short, "_interval"):
		return missed + "a smaller {setting} would change that."
	case winner.request != "", w.decision.Winner == policy.HintSkipHours, w.decision.Winner == policy.HintSkipDays:
		return missed + "only the site can change that."
	}
	return "" // it is not an interval, but a pause
}

// failed explains a pause after failures.
func (w *reason) failed() string {
	switch f := &w.facts; {
	case f.Status == http.StatusTooManyRequests: // its Retry-After, if there is one, is shorter than the back-off
		return "The site answered {status}" + either(f.Failures > 1, " to the last {failures} polls", "") +
			either(w.term(policy.HintRetryAfter).Seconds > 0, " and asked to be left alone for {pause} (Retry-After: {asked})", "") + ".{retry}{served}"
	case f.Site:
		return "This is a web page, not a feed. A reader that asks for it gets a list of the feeds that it names.{when asked}"
	case f.NoFeed:
		return "This address never gave a feed{why}.{when asked}"
	case f.Failures > 1:
		return "The last {failures} polls failed{why}.{retry}{served}"
	}
	return "The last poll failed{why}.{retry}{served}"
}

func (w *reason) why() string {
	cause := cmp.Or(w.cause(), w.won.Raw)
	switch f := &w.facts; {
	case f.Failure == policy.FailureChallenge:
		return ": " + cause + ". By a contact in the configuration it can see who polls"
	case f.Status == http.StatusUnauthorized && cause != w.won.Raw:
		return ": " + cause
	case f.Status >= 300:
		return bracketed(statusText(f.Status))
	}
	return bracketed(cause)
}

func seconded(t policy.Term) time.Duration { return time.Duration(t.Seconds) * time.Second }
