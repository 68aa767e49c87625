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

// MarshalText implements [encoding.TextMarshaler].
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
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
		Served: f.VersionSince, Spacing: time.Duration(f.Spacing), Target: f.Alias.String(), Site: f.Site, Shield: f.Shield,
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
	w.host = cmp.Or(f.Host, map[bool]string{false: "the site", true: "your site"}[f.Shield])
	w.say()
	w.sayWindow()
	return w.parts
}

// reason builds a [Reason].
type reason struct {
	decision policy.Decision
	facts    Facts
	won      policy.Term
	host     string
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

func (w *reason) text(format string, args ...any) {
	if w.facts.Shield {
		format = toPublisher.Replace(format)
	}
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

// nextPoll adds the time of the next poll, unless it has passed.
func (w *reason) nextPoll() {
	if !w.due() {
		w.next(" Next poll: ")
	}
}

// due reports whether the time of the next poll has passed.
func (w *reason) due() bool { return !w.facts.Now.IsZero() && !w.decision.Next.After(w.facts.Now) }

// good adds until when the site says that its answer is good.
func (w *reason) good() {
	is := "is"
	if w.due() {
		is = "was"
	}
	w.next("The site says that its answer %s good until ", is)
}

func (w *reason) say() {
	t, every := w.won, Frequency(seconded(w.won))
	switch w.decision.Winner {
	case policy.HintMaxAge, policy.HintSMaxAge:
		w.good()
		w.text(" A smaller %s would bring the next poll forward (Cache-Control: %s).", t.Hint, t.Raw)
	case policy.HintExpires:
		w.good()
		w.text(" An earlier Expires would bring the next poll forward (Expires: %s).", t.Raw)
	case policy.HintTTL:
		w.text("The feed asks to be left alone for %s, in its <ttl>%s</ttl>.", Length(seconded(t)), t.Raw)
		w.nextPoll()
	case policy.HintSy:
		period, times, _ := strings.Cut(t.Raw, "/")
		w.text("The feed says that it is updated %s, in its sy:updatePeriod %s and sy:updateFrequency %s.", every, period, times)
		w.nextPoll()
	case policy.HintUpdateFrequency:
		if strings.HasPrefix(t.Note, "begins") {
			w.text("The podcast says that it pauses, in its podcast:updateFrequency (%s).", t.Raw)
		} else {
			w.text("The podcast says that an episode comes %s, in its podcast:updateFrequency (%s).", every, t.Raw)
		}
		w.nextPoll()
	case policy.HintRhythm:
		gap, _ := time.ParseDuration(t.Raw)
		w.text("New entries come about %s, so the feed is polled %s.", Frequency(gap), every)
		w.nextPoll()
	case policy.HintDefault:
		w.text("Neither the site nor the feed says how often to poll; %s is this gateway's setting (default_interval).", every)
		w.nextPoll()
	case policy.HintComplete:
		w.text("The feed says that no more entries are expected (%s); it is looked at %s, in case it goes on.", t.Raw, every)
		w.nextPoll()
	case policy.HintFloor:
		w.sayBound("most", every, "min_interval")
	case policy.HintUnvalidated:
		if strings.HasPrefix(t.Note, "validators") {
			w.text("The site offers to say whether the feed has changed and then sends all of it anyway, so each poll is a full download: %s (unvalidated_interval).", every)
		} else {
			w.text("The site gives no way to ask whether the feed has changed, so each poll is a full download: %s (unvalidated_interval). An ETag or Last-Modified would allow more.", every)
		}
		w.nextPoll()
	case policy.HintPush:
		w.text("The feed's hub announces changes, and each push causes a poll; without pushes the feed is polled %s.", every)
		w.nextPoll()
	case policy.HintCap:
		w.sayBound("least", every, "max_interval")
	case policy.HintBackOff:
		w.sayBackOff()
	case policy.HintUnasked:
		w.text("The site answered \"304 Not Modified\" to a request for the whole feed.")
		w.nextPoll()
	case policy.HintSkipHours:
		w.text("The feed asks %s GMT (skipHours).", hourRanges(t.Raw))
		w.nextPoll()
	case policy.HintSkipDays:
		w.text("The feed asks not to be polled on %s, GMT (skipDays).", list(strings.Split(t.Raw, ",")))
		w.nextPoll()
	case policy.HintRetryAfter:
		w.text("The site answered %s and asked to be left alone for %s (Retry-After: %s).", statusText(w.facts.Status), Length(seconded(t)), t.Raw)
		w.nextPoll()
	case policy.HintRateLimit:
		w.next("The site's rate limit (%s) is used up until ", t.Raw)
	case policy.HintHostCooldown, policy.HintDomainCooldown:
		w.next("The site has asked for a pause of all feeds at %s until ", w.host)
		w.text(" This one waits too.")
	case policy.HintURLCooldown:
		w.next("The site has asked for a pause until ")
	case policy.HintRedirectCooldown:
		w.next("The feed redirects to a site that has asked for a pause until ")
	case policy.HintHostSlot:
		w.text("Waiting for its turn: feeds of %s are polled one at a time", w.host)
		if w.facts.Spacing > 0 {
			w.text(", %s apart", Length(w.facts.Spacing))
		}
		w.text(" (spacing).")
		w.nextPoll()
	case policy.HintUnsent:
		w.text("%s could not be reached%s; nothing was sent.", cmp.Or(w.facts.Host, Capitalize(w.host)), bracketed(cmp.Or(w.cause(), t.Raw)))
		if w.due() {
			w.sayRetry()
		} else {
			w.next(" Next try: ")
		}
	default:
		w.sayOutside()
	}
}

// sayOutside handles the hints that do not come from [policy.Decide].
func (w *reason) sayOutside() {
	switch w.decision.Winner {
	case policy.HintPause:
		w.text("The feed cannot be polled yet%s.", bracketed(w.facts.Error))
		w.next(" Next try: ")
	case policy.HintGone:
		w.text("The site says that the feed is gone for good (410). It is not polled any more, except by hand.")
		w.sayServed()
	case policy.HintOffline:
		w.text("No site can be reached from here right now%s. Polls go on when the network is back.", bracketed(w.cause()))
		w.sayServed()
	case policy.HintStore:
		w.text("The record of polls cannot be written%s, so nothing is polled.", bracketed(w.facts.Error))
		w.sayServed()
		w.next(" Next try: ")
	case policy.HintPolls:
		w.text("As many polls as this gateway makes at once are under way (polls).")
		w.nextPoll()
	case policy.HintMoved:
		w.text("The feed has moved%s for good and is polled there.", to(w.facts.Target))
	case policy.HintRedirect:
		w.text("The feed redirects%s, which must not be polled yet.", cmp.Or(to(w.facts.Target), " to another address"))
		w.nextPoll()
	default:
		if w.decision.Winner != "" {
			w.text("Reason: %s.", w.decision.Winner)
		}
		w.nextPoll()
	}
}

// sayBound names a setting, and the hint that it overrules.
func (w *reason) sayBound(at, every, setting string) {
	gateway, args := "This gateway", []any(nil)
	if best := w.longest(); best.Seconds > 0 {
		wish := hints[best.Hint].request
		gateway, args = wish+"; this gateway", []any{Frequency(seconded(best)), best.Raw}[:strings.Count(wish, "%s")]
	}
	w.text(gateway+" polls at %s %s (%s).", append(args, at, every, setting)...)
	w.nextPoll()
}

// settings are the settings that set an interval, by hint.
var settings = map[string]string{
	policy.HintDefault: "default_interval", policy.HintFloor: "min_interval", policy.HintUnvalidated: "unvalidated_interval", policy.HintCap: "max_interval",
}

// sayWindow adds that entries may be missed, and what would change that.
func (w *reason) sayWindow() {
	i := slices.IndexFunc(w.decision.Considered, func(t policy.Term) bool { return t.Hint == policy.HintWindow })
	if i < 0 {
		return
	}
	t, remedy := w.decision.Considered[i], ""
	switch setting, wish := settings[w.decision.Winner], hints[w.decision.Winner].request; {
	case setting != "":
		remedy = "a smaller " + setting + " would"
	case wish != "", w.decision.Winner == policy.HintSkipHours, w.decision.Winner == policy.HintSkipDays:
		remedy = "only the site can"
	default:
		return // it is not an interval, but a pause
	}
	w.text(" Its %s cover about %s, less than the %s between two polls, so some could be missed: "+remedy+" change that.",
		t.Raw, Length(seconded(t)), Length(w.decision.Interval))
}

// longest returns the longest of the overruled hints, or none.
func (w *reason) longest() (best policy.Term) {
	for _, t := range w.decision.Considered {
		if hints[t.Hint].request != "" && t.Seconds > best.Seconds {
			best = t
		}
	}
	return best
}

func (w *reason) sayBackOff() {
	if w.facts.Status == http.StatusTooManyRequests {
		w.sayLimited()
		return
	}
	cause := cmp.Or(w.cause(), w.won.Raw)
	because := bracketed(cause)
	switch {
	case w.facts.Failure == policy.FailureChallenge:
		because = ": " + cause + ". By a contact in the configuration it can see who polls"
	case w.facts.Status == http.StatusUnauthorized && cause != w.won.Raw:
		because = ": " + cause
	case w.facts.Status >= 300:
		cause = statusText(w.facts.Status)
		because = bracketed(cause)
	}
	if w.facts.Site {
		w.text("This is a web page, not a feed. A reader that asks for it gets a list of the feeds that it names.")
		w.sayWhenAsked()
		return
	}
	if w.facts.NoFeed {
		w.text("This address never gave a feed%s.", bracketed(cause))
		w.sayWhenAsked()
		return
	}
	if w.facts.Failures > 1 {
		w.text("The last %d polls failed%s.", w.facts.Failures, because)
	} else {
		w.text("The last poll failed%s.", because)
	}
	w.sayRetry()
	w.sayServed()
}

// sayWhenAsked adds when an address that never gave a feed is polled again.
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

// cause is the error of the last poll without the host, which the sentence names.
func (w *reason) cause() string { return strings.TrimPrefix(w.facts.Error, w.facts.Host+": ") }

// sayRetry adds the time of the next try after a failure.
func (w *reason) sayRetry() {
	if w.due() {
		w.text(" It may be tried again now.")
		return
	}
	w.text(" Next try: ")
	w.at(w.decision.Next)
	w.text(", then less often.")
}

// sayLimited explains a 429 whose Retry-After is shorter than the back-off.
func (w *reason) sayLimited() {
	w.text("The site answered %s", statusText(w.facts.Status))
	if w.facts.Failures > 1 {
		w.text(" to the last %d polls", w.facts.Failures)
	}
	for _, t := range w.decision.Considered {
		if t.Hint == policy.HintRetryAfter && t.Seconds > 0 {
			w.text(" and asked to be left alone for %s (Retry-After: %s)", Length(seconded(t)), t.Raw)
		}
	}
	w.text(".")
	w.sayRetry()
	w.sayServed()
}

// sayServed adds which version readers get meanwhile.
func (w *reason) sayServed() {
	if w.facts.Served.IsZero() {
		return
	}
	w.text(" Readers keep getting the version of ")
	w.at(w.facts.Served)
	w.text(".")
}

func seconded(t policy.Term) time.Duration { return time.Duration(t.Seconds) * time.Second }
