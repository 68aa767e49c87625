// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// served is since when readers get their version in these tests: the morning before noon.
var served = time.Date(2026, time.March, 3, 9, 12, 0, 0, time.UTC)

var noon = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func ptr(n int64) *int64 { return &n }

// header makes a header of pairs of field names and values.
func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// good is a 200 with an ETag and further fields.
func good(pairs ...string) policy.Answer {
	return policy.Answer{At: noon, Status: 200, Header: header(append([]string{"ETag", `"v1"`}, pairs...)...)}
}

// failed is a failure after a request, with a status and further fields.
func failed(failure policy.Failure, status int, pairs ...string) policy.Answer {
	return policy.Answer{Asked: noon.Add(-time.Second), At: noon, Status: status, Failure: failure, Header: header(pairs...)}
}

func TestExplain(t *testing.T) {
	known := Feed{URL: "https://example.com/feed", VersionSince: served, Spacing: Seconds(2 * time.Second)}
	decided := func(a policy.Answer, hints policy.Hints, rhythm policy.Rhythm) policy.Decision {
		h := policy.History{Hints: hints, Rhythm: rhythm, Interval: 2 * time.Hour, Answered: true, Validated: true}
		if a.Failure == policy.FailureNone {
			h = h.Update(a, &policy.Document{Hints: hints, Rhythm: rhythm}, false)
		} else {
			h.Failures = 3
		}
		return policy.Decide(policy.DefaultRules(), h, a, 0)
	}
	won := func(winner, raw string, wait time.Duration) policy.Decision {
		return policy.Decision{
			At: noon, Next: noon.Add(wait), Interval: wait, Winner: winner,
			Considered: []policy.Term{{Hint: winner, Raw: raw, Seconds: int64(wait / time.Second), Used: true}},
		}
	}
	with := func(change func(*Feed)) Feed {
		f := known
		change(&f)
		return f
	}
	paused := func(isNew bool) Feed {
		return with(func(f *Feed) { f.Pause = &Pause{New: isNew, URL: "https://example.com/refused"} })
	}
	own := policy.DefaultRules()
	own.MinInterval, own.DefaultInterval, own.OwnSite = time.Minute, time.Minute, true
	for _, test := range []struct {
		decision policy.Decision
		facts    Feed
		want     string
	}{
		{decided(good("Cache-Control", "public, max-age=7500"), policy.Hints{}, policy.Rhythm{}), known,
			"The site says that its answer is good for 2 hours (Cache-Control: public, max-age=7500). Next poll: 14:05 UTC. A smaller max-age would bring it forward."},
		{decided(good("Cache-Control", "s-maxage=7500"), policy.Hints{}, policy.Rhythm{}), known,
			"The site says that its answer is good for 2 hours (Cache-Control: s-maxage=7500). Next poll: 14:05 UTC. A smaller s-maxage would bring it forward."},
		{decided(good("Date", "Wed, 04 Mar 2026 12:00:00 GMT", "Expires", "Wed, 04 Mar 2026 15:00:00 GMT"), policy.Hints{}, policy.Rhythm{}), known,
			"The site says that its answer is good for 3 hours (Expires: Wed, 04 Mar 2026 15:00:00 GMT). Next poll: 15:00 UTC. An earlier Expires would bring it forward."},
		{decided(good("Cache-Control", "max-age=3600"), policy.Hints{}, policy.Rhythm{}), known,
			"The site says that its answer is good for 60 minutes (Cache-Control: max-age=3600). Next poll: 13:00 UTC. Sooner is not possible: this gateway polls at most once an hour (min_interval)."},
		{decided(good("Cache-Control", "max-age=7200"), policy.Hints{TTL: ptr(120)}, policy.Rhythm{}), known,
			"The site says that its answer is good for 2 hours (Cache-Control: max-age=7200). Next poll: 14:00 UTC."},
		{decided(good(), policy.Hints{TTL: ptr(90)}, policy.Rhythm{}), known,
			"The feed asks to be left alone for 90 minutes, in its <ttl>90</ttl>. Next poll: 13:30 UTC."},
		{decided(good(), policy.Hints{SyPeriod: "daily", SyFrequency: ptr(2)}, policy.Rhythm{}), known,
			"The feed says that it is updated every 12 hours, in its sy:updatePeriod daily and sy:updateFrequency 2. Next poll: tomorrow 00:00 UTC."},
		{decided(good(), policy.Hints{UpdateFrequency: &policy.UpdateFrequency{RRule: "FREQ=DAILY"}}, policy.Rhythm{}), known,
			"The podcast says that an episode comes once a day, in its podcast:updateFrequency (FREQ=DAILY). Next poll: tomorrow 12:00 UTC."},
		{decided(good(), policy.Hints{UpdateFrequency: &policy.UpdateFrequency{RRule: "FREQ=HOURLY;INTERVAL=2", DTStart: "2026-03-05"}}, policy.Rhythm{}), known,
			"The podcast says that it pauses, in its podcast:updateFrequency (FREQ=HOURLY;INTERVAL=2 from 2026-03-05). Next poll: tomorrow 00:00 UTC."},
		{decided(good(), policy.Hints{}, policy.Rhythm{Median: 7 * day}), known,
			"New entries come about once a week, so the feed is polled every 14 hours. Next poll: tomorrow 02:00 UTC."},
		{decided(good(), policy.Hints{}, policy.Rhythm{}), known,
			"Neither the site nor the feed says how often to poll; once an hour is this gateway's setting (default_interval). Next poll: 13:00 UTC."},
		{decided(good(), policy.Hints{Complete: true}, policy.Rhythm{}), known,
			"The feed says that no more entries are expected (itunes:complete); it is looked at once a week, in case it goes on. Next poll: 11 March 12:00 UTC."},
		{decided(good("Cache-Control", "max-age=300"), policy.Hints{}, policy.Rhythm{}), known,
			"The site allows a poll every 5 minutes (Cache-Control: max-age=300); this gateway polls at most once an hour (min_interval). Next poll: 13:00 UTC."},
		{decided(good(), policy.Hints{}, policy.Rhythm{Median: time.Hour}), known,
			"By the times of its entries the feed would be polled every 5 minutes; this gateway polls at most once an hour (min_interval). Next poll: 13:00 UTC."},
		{decided(good(), policy.Hints{}, policy.Rhythm{Median: day, Newest: noon.Add(-8 * day)}), known,
			"There has been no new entry for 8 days, so the feed is polled every 4 hours. Next poll: 16:00 UTC."},
		{decided(policy.Answer{At: noon, Status: 200}, policy.Hints{}, policy.Rhythm{Median: time.Hour}), known,
			"The site gives no way to ask whether the feed has changed, so each poll is a full download: every 4 hours (from 4 hours to unvalidated_interval, by how often entries come). An ETag or Last-Modified would allow more. Next poll: 16:00 UTC."},
		{won(policy.HintFloor, "", time.Hour), known,
			"This gateway polls at most once an hour (min_interval). Next poll: 13:00 UTC."},
		{decided(policy.Answer{At: noon, Status: 200}, policy.Hints{}, policy.Rhythm{}), known,
			"The site gives no way to ask whether the feed has changed, so each poll is a full download: once a day (unvalidated_interval). An ETag or Last-Modified would allow more. Next poll: tomorrow 12:00 UTC."},
		{policy.Decide(policy.DefaultRules(), policy.History{Validated: true, Unheeded: 3}, good(), 0), known,
			"The site offers to say whether the feed has changed and then sends all of it anyway, so each poll is a full download: once a day (unvalidated_interval). Next poll: tomorrow 12:00 UTC."},
		{decided(good(), policy.Hints{TTL: ptr(43200)}, policy.Rhythm{}), known,
			"The feed asks for a poll once a month (ttl 43200); this gateway polls at least once a day (max_interval). Next poll: tomorrow 12:00 UTC."},
		{won(policy.HintCap, "", day), known, "This gateway polls at least once a day (max_interval). Next poll: tomorrow 12:00 UTC."},
		{decided(good("Cache-Control", "max-age=21600"), policy.Hints{}, policy.Rhythm{Entries: 10, Dated: 10, Median: 30 * time.Minute}), known,
			"The site says that its answer is good for 6 hours (Cache-Control: max-age=21600). Next poll: 18:00 UTC. A smaller max-age would bring it forward. " +
				"Its 10 entries cover about 5 hours, less than the 6 hours between two polls, so some could be missed: only the site can change that."},
		{decided(good(), policy.Hints{}, policy.Rhythm{Entries: 10, Dated: 10, Median: 5 * time.Minute}), known,
			"By the times of its entries the feed would be polled every 25 seconds; this gateway polls at most once an hour (min_interval). Next poll: 13:00 UTC. " +
				"Its 10 entries cover about 50 minutes, less than the 60 minutes between two polls, so some could be missed: a smaller min_interval would change that."},
		{decided(good(), policy.Hints{}, policy.Rhythm{Entries: 4, Dated: 4, Median: 5 * time.Minute}), known,
			"By the times of its entries the feed would be polled every 25 seconds; this gateway polls at most once an hour (min_interval). Next poll: 13:00 UTC."},
		{decided(good("Retry-After", "36000"), policy.Hints{}, policy.Rhythm{Entries: 10, Dated: 10, Median: 5 * time.Minute}), known,
			"The site answered nothing and asked to be left alone for 10 hours (Retry-After: 36000). Next poll: 22:00 UTC."},
		{decided(failed(policy.FailureNotFound, 404), policy.Hints{}, policy.Rhythm{}), with(func(f *Feed) { f.Failures, f.LastStatus = 3, 404 }),
			"The last 3 polls failed (404 Not Found). Next try: tomorrow 04:00 UTC, then less often. Readers keep getting the version of yesterday 09:12 UTC."},
		{decided(failed(policy.FailureChallenge, 403), policy.Hints{}, policy.Rhythm{}), Feed{LastStatus: 403, Failures: 2, LastFailure: policy.FailureChallenge, LastError: "the site sends a check (X): ask it"},
			"The last 2 polls failed: the site sends a check (X): ask it. By a contact in the configuration it can see who polls. Next try: tomorrow 04:00 UTC, then less often."},
		{decided(failed(policy.FailureForbidden, 401), policy.Hints{}, policy.Rhythm{}), Feed{URL: "https://example.com/feed", LastStatus: 401, Failures: 1, LastError: "example.com: status 401 Unauthorized: a password"},
			"The last poll failed: status 401 Unauthorized: a password. Next try: tomorrow 04:00 UTC, then less often."},
		{decided(failed(policy.FailureForbidden, 401), policy.Hints{}, policy.Rhythm{}), Feed{URL: "http://127.0.0.1:8180/feed", LastStatus: 401, Failures: 1, LastError: "127.0.0.1:8180: status 401 Unauthorized: a token"},
			"The last poll failed: status 401 Unauthorized: a token. Next try: tomorrow 04:00 UTC, then less often."},
		{decided(failed(policy.FailureNotFound, 404), policy.Hints{}, policy.Rhythm{}), Feed{URL: "https://example.com/feed", LastStatus: 404, Failures: 1, LastError: "example.com: status 404 Not Found, though with a feed"},
			"The last poll failed: status 404 Not Found, though with a feed. Next try: tomorrow 04:00 UTC, then less often."},
		{decided(failed(policy.FailureTimeout, 0), policy.Hints{}, policy.Rhythm{}), Feed{Failures: 1, LastError: "no complete answer within 30s"},
			"The last poll failed (no complete answer within 30s). Next try: 16:00 UTC, then less often."},
		{policy.Decide(policy.DefaultRules(), policy.History{Failures: 9}, failed(policy.FailureNotFound, 404), 0), Feed{Failures: 9, LastStatus: 404},
			"The last 9 polls failed (404 Not Found). Next try: tomorrow 12:00 UTC."},
		{policy.Decide(own, policy.History{Failures: 2}, failed(policy.FailureNotFound, 404), 0), Feed{Shield: true, Failures: 2, LastStatus: 404},
			"The last 2 polls failed (404 Not Found). Next try: 12:04 UTC, then less often."},
		{policy.Decide(own, policy.History{Failures: 9}, failed(policy.FailureNotFound, 404), 0), Feed{Shield: true, Failures: 9, LastStatus: 404},
			"The last 9 polls failed (404 Not Found). Next try: 12:10 UTC."},
		{decided(failed(policy.FailureUnasked, 304), policy.Hints{}, policy.Rhythm{}), known,
			"The site answered \"304 Not Modified\" to a request for the whole feed. Next poll: tomorrow 12:00 UTC."},
		{decided(good(), policy.Hints{SkipHours: []int{0, 1, 2, 12, 13, 22, 23}}, policy.Rhythm{}), known,
			"The feed asks not to be polled between 12:00 and 14:00 and between 22:00 and 03:00 GMT (skipHours). Next poll: 14:00 UTC."},
		{decided(good(), policy.Hints{SkipHours: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}}, policy.Rhythm{}), known,
			"The feed asks to be polled only between 12:00 and 13:00 GMT (skipHours). Next poll: tomorrow 12:00 UTC."},
		{decided(good(), policy.Hints{SkipDays: []string{"Wednesday", "Thursday"}}, policy.Rhythm{}), known,
			"The feed asks not to be polled on Wednesday and Thursday, GMT (skipDays). Next poll: 6 March 00:00 UTC."},
		{decided(failed(policy.FailureRateLimited, 429, "Retry-After", "86400"), policy.Hints{}, policy.Rhythm{}), with(func(f *Feed) { f.LastStatus = 429 }),
			"The site answered 429 Too Many Requests and asked to be left alone for 24 hours (Retry-After: 86400). Next poll: tomorrow 12:00 UTC."},
		{decided(failed(policy.FailureRateLimited, 429, "Retry-After", "3600"), policy.Hints{}, policy.Rhythm{}), Feed{LastStatus: 429, Failures: 1},
			"The site answered 429 Too Many Requests and asked to be left alone for 60 minutes (Retry-After: 3600). Next try: tomorrow 04:00 UTC, then less often."},
		{decided(failed(policy.FailureRateLimited, 429), policy.Hints{}, policy.Rhythm{}), with(func(f *Feed) { f.Failures, f.LastStatus = 3, 429 }),
			"The site answered 429 Too Many Requests to the last 3 polls. Next try: tomorrow 04:00 UTC, then less often. Readers keep getting the version of yesterday 09:12 UTC."},
		{decided(failed(policy.FailureNotFeed, 200), policy.Hints{}, policy.Rhythm{}), Feed{LastStatus: 200, Failures: 1, Site: true},
			"This is a web page, not a feed. A reader that asks for it gets a list of the feeds that it names. It is looked at again when a reader asks for it, tomorrow 04:00 UTC at the earliest."},
		{decided(failed(policy.FailureNotFeed, 200), policy.Hints{}, policy.Rhythm{}), Feed{LastStatus: 200, Failures: 1, Site: true, Configured: true,
			SiteFeeds: []feedurl.Redacted{"https://example.com/1", "https://ann:s3cret@example.com/2", "https://example.com/3", "https://example.com/4", "https://example.com/5", "https://example.com/6"}},
			"This is a web page, not a feed, which names https://example.com/1, https://***@example.com/2, https://example.com/3, https://example.com/4, https://example.com/5 and 1 more: write the URL of a feed into the configuration. Next try: tomorrow 04:00 UTC, then less often."},
		{decided(good("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "7500"), policy.Hints{}, policy.Rhythm{}), known,
			"The site's rate limit (remaining 0; reset 7500) is used up until 14:05 UTC."},
		{won(policy.HintRateLimit, "", 2*time.Hour), known, "The site's rate limit is used up until 14:00 UTC."},
		{won(policy.HintHostCooldown, "", 2*time.Hour), known, "The site refused a poll of a feed of example.com (429, or 503 with Retry-After). This feed waits until 14:00 UTC."},
		{won(policy.HintHostCooldown, "", 2*time.Hour), paused(false),
			"The site refused a poll of https://example.com/refused (429, or 503 with Retry-After). This feed waits until 14:00 UTC, as do all others there."},
		{won(policy.HintHostCooldown, "", 2*time.Hour), paused(true),
			"The site refused a poll of https://example.com/refused (429, or 503 with Retry-After). This feed waits until 14:00 UTC, as do all others there that never gave a feed."},
		{won("url-cooldown", "", 2*time.Hour), known, "The site has asked for a pause until 14:00 UTC."},
		{won("redirect-cooldown", "", 2*time.Hour), known, "The feed redirects to a site that has asked for a pause until 14:00 UTC."},
		{won(policy.HintHostSlot, "", 2*time.Minute), known,
			"Waiting for its turn: feeds of example.com are polled one at a time, 2 seconds apart (spacing). Next poll: 12:02 UTC."},
		{decided(policy.Answer{At: noon, Failure: policy.FailureDNS}, policy.Hints{}, policy.Rhythm{}), with(func(f *Feed) { f.LastError = "no such host" }),
			"example.com could not be reached (no such host); nothing was sent. Next try: 12:01 UTC."},
		{decided(policy.Answer{At: noon, Failure: policy.FailureDNS}, policy.Hints{}, policy.Rhythm{}), Feed{},
			"The site could not be reached (dns); nothing was sent. Next try: 12:01 UTC."},
		{won(policy.HintBackOff, "", -time.Minute), Feed{Failures: 2, LastStatus: 404},
			"The last 2 polls failed (404 Not Found). It may be tried again now."},
		{won(policy.HintBackOff, "", -time.Minute), Feed{LastStatus: 404, Failures: 1, State: StateUnread, LastFailure: policy.FailureNotFound},
			"This address never gave a feed (404 Not Found). It is looked at again when a reader asks for it."},
		{policy.Decision{At: noon.Add(-2 * time.Hour), Next: noon.Add(-time.Hour), Winner: policy.HintMaxAge, Considered: []policy.Term{{Hint: policy.HintMaxAge, Raw: "max-age=3600", Seconds: 3600, Used: true}}}, known,
			"The site says that its answer is good for 60 minutes (Cache-Control: max-age=3600)."},
		{won(policy.HintUnsent, "", -time.Minute), with(func(f *Feed) { f.LastError = "example.com: looking up the address: no such host" }),
			"example.com could not be reached (looking up the address: no such host); nothing was sent. It may be tried again now."},
		{won(policy.HintPause, "", time.Minute), known, "The feed cannot be polled yet. Next try: 12:01 UTC."},
		{decided(failed(policy.FailureGone, 410), policy.Hints{}, policy.Rhythm{}), known,
			"The site says that the feed is gone for good (410). It is not polled any more, except by hand. Readers keep getting the version of yesterday 09:12 UTC."},
		{won(policy.HintOffline, "", time.Minute), known,
			"No site can be reached from here right now. Polls go on when the network is back. Readers keep getting the version of yesterday 09:12 UTC."},
		{won(policy.HintStore, "", time.Minute), with(func(f *Feed) { f.LastError = "no space left on /var/lib" }),
			"The record of polls cannot be written (no space left on /var/lib), so nothing is polled. Readers keep getting the version of yesterday 09:12 UTC. Next try: 12:01 UTC."},
		{won(policy.HintMoved, "", day), with(func(f *Feed) { f.Alias = "https://example.net/" }), "The feed has moved to https://example.net/ for good and is polled there. It is looked at once a day whether it still redirects. Next poll: tomorrow 12:00 UTC."},
		{won("sunspots", "", time.Minute), known, "Reason: sunspots. Next poll: 12:01 UTC."},
	} {
		t.Run(test.decision.Winner, func(t *testing.T) {
			f := explained(test.decision, test.facts)
			parts := f.Explain(noon, nil)
			if got := parts.String(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			for _, part := range parts {
				if strings.Contains(part.Text, "UTC") == part.At.IsZero() && part.Text != "" {
					t.Errorf("a time that is no part of its own: %q", part.Text)
				}
			}
			f.Shield = true
			if got, want := f.Explain(noon, nil).String(), toPublisher.Replace(test.want); f.LastError == "" && got != want {
				t.Errorf("of a shield: got  %s\nwant %s", got, want)
			}
		})
	}
}

// A shielded feed may have a ttl, which sets no time.
func TestReasonOfAShieldWithoutFreshness(t *testing.T) {
	f := explained(policy.Decide(policy.DefaultRules(), policy.History{Validated: true}, good(), 0), Feed{Shield: true})
	const want = "Your site does not say how long its answers are good (Cache-Control); once an hour is this shield's setting (default_interval). Next poll: 13:00 UTC."
	if got := f.Explain(noon, nil).String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// explained returns a feed with a decision.
func explained(d policy.Decision, f Feed) *Feed {
	decided := Decided(d)
	f.LastPoll, f.NextPoll, f.Winner, f.Considered = decided.LastPoll, decided.NextPoll, decided.Winner, decided.Considered
	return &f
}

// Every token that can win has a sentence of its own, and every name in one has a value.
func TestEveryWinnerHasASentence(t *testing.T) {
	for _, h := range hints {
		for text := h.sentence + h.request; strings.Contains(text, "{"); {
			name, rest, _ := strings.Cut(text[strings.Index(text, "{")+1:], "}")
			if text = rest; values[name] == nil && clauses[name] == nil && name != "next" {
				t.Errorf("%s: {%s} stands for nothing", h.short, name)
			}
		}
	}
	losers := []string{policy.HintCacheControl, policy.HintInterval, policy.HintStuck, policy.HintJitter, policy.HintWindow}
	count := 0
	file, err := parser.ParseFile(token.NewFileSet(), "../../policy/term.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Hint") {
			return true
		}
		hint, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		count++
		if HintMeaning(hint) == "" || hints[hint].short == "" {
			t.Errorf("%s has no meaning", spec.Names[0].Name)
		}
		for _, loser := range losers {
			if hint == loser {
				return true
			}
		}
		if got := (&Feed{Winner: hint, LastPoll: noon, NextPoll: noon}).Explain(noon, nil).String(); strings.Contains(got, "Reason:") {
			t.Errorf("%s: %s", spec.Names[0].Name, got)
		}
		return true
	})
	if count < 25 {
		t.Errorf("only %d tokens were found", count)
	}
}

// A hint that a bound can overrule has a text for that.
func TestEveryExplicitHintHasARequest(t *testing.T) {
	for name, h := range hints {
		if overruled := policy.Explicit(name) || name == policy.HintRhythm; overruled != (h.request != "") {
			t.Errorf("%s: it can be overruled: %v, and its text for that is %q", name, overruled, h.request)
		}
	}
}

func TestClock(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	for _, test := range []struct {
		at   time.Time
		in   *time.Location
		want string
	}{
		{noon, nil, "12:00 UTC"},
		{noon.Add(11*time.Hour + 59*time.Minute), nil, "23:59 UTC"},
		{noon.Add(12 * time.Hour), nil, "tomorrow 00:00 UTC"},
		{noon.Add(11 * time.Hour), berlin, "tomorrow 00:00"},
		{noon.Add(-12 * time.Hour), nil, "00:00 UTC"},
		{noon.Add(-12*time.Hour - time.Second), nil, "yesterday 23:59 UTC"},
		{noon.Add(-36*time.Hour - time.Second), nil, "2 March 23:59 UTC"},
		{noon.Add(36 * time.Hour), berlin, "6 March 01:00"},
		{noon.AddDate(1, 0, 0), nil, "4 March 2027 12:00 UTC"},
	} {
		if got := clock(test.at, noon, test.in); got != test.want {
			t.Errorf("%v: %s, want %s", test.at, got, test.want)
		}
	}
}

func TestLengthsInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 seconds", time.Second: "1 second", 90 * time.Second: "90 seconds", 2 * time.Minute: "2 minutes",
		time.Hour: "60 minutes", 2 * time.Hour: "2 hours", 14*time.Hour + 20*time.Minute: "14 hours", 2 * day: "2 days", 84 * time.Hour: "3 days and 12 hours",
		269 * time.Second: "4 minutes and 29 seconds", 276 * time.Minute: "4 hours and 36 minutes", 102 * time.Second: "102 seconds", 10000 * time.Hour: "417 days",
	} {
		if got := Length(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		time.Minute: "once a minute", time.Hour: "once an hour", 61 * time.Minute: "once an hour", day: "once a day", 7 * day: "once a week",
		31 * day: "once a month", 366 * day: "once a year", 84 * time.Hour: "every 3 days and 12 hours", 14 * time.Hour: "every 14 hours",
	} {
		if got := Frequency(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestBrief(t *testing.T) {
	for _, tt := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0 s"}, {89 * time.Second, "89 s"}, {2 * time.Minute, "2 min"}, {time.Hour, "1 h"}, {time.Hour - time.Second, "1 h"}, {89 * time.Minute, "89 min"}, {3 * time.Hour, "3 h"},
		{35 * time.Hour, "35 h"}, {36 * time.Hour, "2 days"}, {400 * 24 * time.Hour, "400 days"}, {3 * 365 * 24 * time.Hour, "3 years"}, {-3 * time.Hour, "3 h"},
	} {
		if got := Short(tt.d); got != tt.want {
			t.Errorf("%v is written as %q, want %q", tt.d, got, tt.want)
		}
	}
}

func TestAgoAndUntil(t *testing.T) {
	for _, tt := range []struct {
		in         time.Duration
		ago, until string
	}{
		{0, "just now", "now"},
		{59 * time.Second, "59 s ago", "in 59 s"},
		{90 * time.Minute, "2 h ago", "in 2 h"},
		{10 * day, "10 days ago", "in 10 days"},
		{-time.Hour, "just now", "now"},
	} {
		if ago, until := Ago(noon.Add(-tt.in), noon), Until(noon.Add(tt.in), noon); ago != tt.ago || until != tt.until {
			t.Errorf("%v: got %s, %s, want %s, %s", tt.in, ago, until, tt.ago, tt.until)
		}
	}
	if ago, until := Ago(time.Time{}, noon), Until(time.Time{}, noon); ago != "never" || until != "never" {
		t.Errorf("the zero time: %s, %s", ago, until)
	}
}
