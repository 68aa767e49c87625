// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Facts are what [Reason] needs besides a decision. All of them may be left out: the
// sentence says less then.
type Facts struct {
	Now      time.Time
	Location *time.Location // in which times are written; nil: UTC
	Host     string         // that the feed is polled at
	Status   int            // of the last answer; 0: none came
	Error    string         // of the last poll or, where the store is at fault, of the store
	Failures int            // failed polls in a row
	Served   time.Time      // since when readers get the version that they get; zero: there is none
	Spacing  time.Duration  // between two polls of the host
	Target   string         // where a redirect leads
	Site     bool           // the last answer was a web page that names feeds
	NoFeed   bool           // the address never gave a feed, so it is polled only when a reader asks
}

// Part is a piece of a sentence: text, or a time, for those who can show one in a
// reader's own zone.
type Part struct {
	Text string    // of a time as well
	At   time.Time // zero: Text is all
}

// Sentence says in words for people why the next poll is when it is: see [Reason].
func Sentence(d Decision, f Facts) string {
	var b strings.Builder
	for _, part := range Reason(d, f) {
		b.WriteString(part.Text)
	}
	return b.String()
}

// Reason says why the next poll is when it is: the cause with its raw value, the
// setting or the field that would change it, and the time. There is a sentence for
// every token of a decision that can win, and for those that others may put in its
// place.
func Reason(d Decision, f Facts) []Part {
	w := &reason{decision: d, facts: f, won: Term{Hint: d.Winner}}
	if i := slices.IndexFunc(d.Considered, func(t Term) bool { return t.Hint == d.Winner && t.Used }); i >= 0 {
		w.won = d.Considered[i]
	}
	w.host = cmp.Or(f.Host, "the site")
	w.say()
	return w.parts
}

// reason is a sentence in the making.
type reason struct {
	decision Decision
	facts    Facts
	won      Term
	host     string
	parts    []Part
}

func (w *reason) text(format string, args ...any) {
	w.parts = append(w.parts, Part{Text: fmt.Sprintf(format, args...)})
}

func (w *reason) at(t time.Time) {
	w.parts = append(w.parts, Part{Text: clock(t, w.facts.Now, w.facts.Location), At: t})
}

// next adds text and the time of the next poll, and ends the sentence.
func (w *reason) next(format string, args ...any) {
	w.text(format, args...)
	w.at(w.decision.Next)
	w.text(".")
}

// nextPoll ends with the time of the next poll, unless that has come.
func (w *reason) nextPoll() {
	if !w.due() {
		w.next(" Next poll: ")
	}
}

// due reports whether the time of the next poll has come.
func (w *reason) due() bool { return !w.facts.Now.IsZero() && !w.decision.Next.After(w.facts.Now) }

// good says until when the site says that its answer is good.
func (w *reason) good() {
	is := "is"
	if w.due() {
		is = "was"
	}
	w.next("The site says that its answer %s good until ", is)
}

func (w *reason) say() {
	t, every := w.won, frequency(seconded(w.won))
	switch w.decision.Winner {
	case HintMaxAge, HintSMaxAge:
		w.good()
		w.text(" A smaller %s would bring the next poll forward (Cache-Control: %s).", t.Hint, t.Raw)
	case HintExpires:
		w.good()
		w.text(" An earlier Expires would bring the next poll forward (Expires: %s).", t.Raw)
	case HintTTL:
		w.text("The feed asks to be left alone for %s, in its <ttl>%s</ttl>.", length(seconded(t)), t.Raw)
		w.nextPoll()
	case HintSy:
		period, times, _ := strings.Cut(t.Raw, "/")
		w.text("The feed says that it is updated %s, in its sy:updatePeriod %s and sy:updateFrequency %s.", every, period, times)
		w.nextPoll()
	case HintUpdateFrequency:
		if strings.HasPrefix(t.Note, "begins") {
			w.text("The podcast says that it pauses, in its podcast:updateFrequency (%s).", t.Raw)
		} else {
			w.text("The podcast says that an episode comes %s, in its podcast:updateFrequency (%s).", every, t.Raw)
		}
		w.nextPoll()
	case HintRhythm:
		gap, _ := time.ParseDuration(t.Raw)
		w.text("New entries come about %s, so the feed is polled %s.", frequency(gap), every)
		w.nextPoll()
	case HintDefault:
		w.text("Neither the site nor the feed says how often to poll; %s is this gateway's setting (default_interval).", every)
		w.nextPoll()
	case HintComplete:
		w.text("The feed says that no more entries are expected (%s); it is looked at %s, in case it goes on.", t.Raw, every)
		w.nextPoll()
	case HintFloor:
		w.sayBound("most", every, "min_interval")
	case HintUnvalidated:
		if strings.HasPrefix(t.Note, "validators") {
			w.text("The site offers to say whether the feed has changed and then sends all of it anyway, so each poll is a full download: %s (unvalidated_interval).", every)
		} else {
			w.text("The site gives no way to ask whether the feed has changed, so each poll is a full download: %s (unvalidated_interval). An ETag or Last-Modified would allow more.", every)
		}
		w.nextPoll()
	case HintCap:
		w.sayBound("least", every, "max_interval")
	case HintBackOff:
		w.sayBackOff()
	case HintUnasked:
		w.text("The site answered \"304 Not Modified\" to a request for the whole feed.")
		w.nextPoll()
	case HintSkipHours:
		w.text("The feed asks not to be polled %s GMT (skipHours).", hourRanges(t.Raw))
		w.nextPoll()
	case HintSkipDays:
		w.text("The feed asks not to be polled on %s, GMT (skipDays).", list(strings.Split(t.Raw, ",")))
		w.nextPoll()
	case HintRetryAfter:
		w.text("The site answered %s and asked to be left alone for %s (Retry-After: %s).", status(w.facts.Status), length(seconded(t)), t.Raw)
		w.nextPoll()
	case HintRateLimit:
		w.next("The site's rate limit (%s) is used up until ", t.Raw)
	case HintHostCooldown, HintDomainCooldown:
		w.next("The site has asked for a pause of all feeds at %s until ", w.host)
		w.text(" This one waits too.")
	case HintURLCooldown:
		w.next("The site has asked for a pause until ")
	case HintRedirectCooldown:
		w.next("The feed redirects to a site that has asked for a pause until ")
	case HintHostSlot:
		w.text("Waiting for its turn: feeds of %s are polled one at a time", w.host)
		if w.facts.Spacing > 0 {
			w.text(", %s apart", length(w.facts.Spacing))
		}
		w.text(" (spacing).")
		w.nextPoll()
	case HintUnsent:
		w.text("%s could not be reached%s; nothing was sent.", capital(w.host), bracketed(cmp.Or(w.cause(), t.Raw)))
		if w.due() {
			w.sayRetry()
		} else {
			w.next(" Next try: ")
		}
	default:
		w.sayOutside()
	}
}

// sayOutside is for what was not decided here but by those who poll.
func (w *reason) sayOutside() {
	switch w.decision.Winner {
	case HintPause:
		w.text("The feed cannot be polled yet%s.", bracketed(w.facts.Error))
		w.next(" Next try: ")
	case HintGone:
		w.text("The site says that the feed is gone for good (410). It is not polled any more; `pollard feeds refresh` tries again.")
		w.sayServed()
	case HintOffline:
		w.text("No site can be reached from here right now. Polls go on when the network is back.")
		w.sayServed()
	case HintStore:
		w.text("The record of polls cannot be written%s, so nothing is polled.", bracketed(w.facts.Error))
		w.sayServed()
		w.next(" Next try: ")
	case HintPolls:
		w.text("As many polls as this gateway makes at once are under way (polls).")
		w.nextPoll()
	case HintMoved:
		w.text("The feed has moved%s for good and is polled there.", to(w.facts.Target))
	case HintRedirect:
		w.text("The feed redirects%s, which must not be polled yet.", cmp.Or(to(w.facts.Target), " to another address"))
		w.nextPoll()
	default:
		if w.decision.Winner != "" {
			w.text("Reason: %s.", w.decision.Winner)
		}
		w.nextPoll()
	}
}

// sayBound says what asked for more, or for less, than a setting allows.
func (w *reason) sayBound(at, every, setting string) {
	gateway := "This gateway"
	if wish := w.longest(); wish != "" {
		gateway = wish + "; this gateway"
	}
	w.text("%s polls at %s %s (%s).", gateway, at, every, setting)
	w.nextPoll()
}

// wishes says what a hint asks for that a floor or a cap has overruled.
var wishes = map[string]string{
	HintMaxAge: "The site allows a poll %s (Cache-Control: %s)", HintSMaxAge: "The site allows a poll %s (Cache-Control: %s)",
	HintExpires: "The site allows a poll %s (Expires: %s)", HintTTL: "The feed asks for a poll %s (ttl %s)",
	HintSy: "The feed says that it is updated %s (sy %s)", HintUpdateFrequency: "The podcast says that an episode comes %s (%s)",
	HintRhythm: "By the times of its entries the feed would be polled %s",
}

// longest is what the longest of the overruled hints asks for; empty: there is none. Of a
// decision's terms the wishes come first.
func (w *reason) longest() string {
	var best Term
	for _, t := range w.decision.Considered {
		if wishes[t.Hint] != "" && t.Seconds > best.Seconds {
			best = t
		}
	}
	if best.Seconds == 0 {
		return ""
	}
	args := []any{frequency(seconded(best)), best.Raw}
	return fmt.Sprintf(wishes[best.Hint], args[:strings.Count(wishes[best.Hint], "%s")]...)
}

func (w *reason) sayBackOff() {
	if w.facts.Status == http.StatusTooManyRequests {
		w.sayLimited()
		return
	}
	cause := cmp.Or(w.cause(), w.won.Raw)
	if w.facts.Status >= 300 {
		cause = status(w.facts.Status)
	}
	if w.facts.Site {
		w.text("This is a web page, not a feed: readers who ask for it are told of the feeds that it names.")
		w.sayWhenAsked()
		return
	}
	if w.facts.NoFeed {
		w.text("This address never gave a feed%s.", bracketed(cause))
		w.sayWhenAsked()
		return
	}
	if w.facts.Failures > 1 {
		w.text("The last %d polls failed%s.", w.facts.Failures, bracketed(cause))
	} else {
		w.text("The last poll failed%s.", bracketed(cause))
	}
	w.sayRetry()
	w.sayServed()
}

// sayWhenAsked tells when what never was a feed is looked at again.
func (w *reason) sayWhenAsked() {
	w.text(" It is looked at again when a reader asks for it")
	if !w.due() {
		w.text(", ")
		w.at(w.decision.Next)
		w.text(" at the earliest")
	}
	w.text(".")
	w.sayServed()
}

// cause is the error of the last poll without the host, of which the sentence speaks.
func (w *reason) cause() string { return strings.TrimPrefix(w.facts.Error, w.facts.Host+": ") }

// sayRetry tells when it is tried again after a failure.
func (w *reason) sayRetry() {
	if w.due() {
		w.text(" It may be tried again now.")
		return
	}
	w.text(" Next try: ")
	w.at(w.decision.Next)
	w.text(", then less often.")
}

// sayLimited tells of a 429 that asks for no longer wait than the back-off is.
func (w *reason) sayLimited() {
	w.text("The site answered %s", status(w.facts.Status))
	if w.facts.Failures > 1 {
		w.text(" to the last %d polls", w.facts.Failures)
	}
	for _, t := range w.decision.Considered {
		if t.Hint == HintRetryAfter && t.Seconds > 0 {
			w.text(" and asked to be left alone for %s (Retry-After: %s)", length(seconded(t)), t.Raw)
		}
	}
	w.text(".")
	w.sayRetry()
	w.sayServed()
}

// sayServed says what readers get in the meantime.
func (w *reason) sayServed() {
	if w.facts.Served.IsZero() {
		return
	}
	w.text(" Readers keep getting the version of ")
	w.at(w.facts.Served)
	w.text(".")
}

func seconded(t Term) time.Duration { return time.Duration(t.Seconds) * time.Second }
