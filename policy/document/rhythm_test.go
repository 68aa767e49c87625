// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// items makes an item of each date; an id may stand in front: "7=2024-01-01".
func items(dates ...string) string {
	var b strings.Builder
	for i, date := range dates {
		id := fmt.Sprint("id", i)
		if given, rest, ok := strings.Cut(date, "="); ok {
			id, date = given, rest
		}
		fmt.Fprintf(&b, "<item><guid>%s</guid><pubDate>%s</pubDate></item>", id, date)
	}
	return rssOpen + b.String() + rssClose
}

// dates are so many dates, each some days before the one before, the newest of 1 February 2024.
func dates(n, days int) (list []string) {
	newest := time.Date(2024, time.February, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		list = append(list, fmt.Sprint(days, i, "=", newest.AddDate(0, 0, -i*days).Format(time.DateOnly)))
	}
	return list
}

// The sum of IDs is another one if the entries are others, and only then.
func TestEntriesSeen(t *testing.T) {
	before := read(t, items("a=2024-01-01", "b=2024-01-02")).Rhythm.IDs
	for _, test := range []struct {
		name, body string
		same       bool
	}{
		{"in another order", items("b=2024-01-02", "a=2024-01-01"), true},
		{"with other dates", items("a=2024-01-03", "b=2024-01-04"), true},
		{"one of them twice", items("a=2024-01-01", "b=2024-01-02", "b=2024-01-02"), true},
		{"one more", items("a=2024-01-01", "b=2024-01-02", "c=2023-01-01"), false},
		{"one for another", items("a=2024-01-01", "c=2024-01-02"), false},
	} {
		if after := read(t, test.body).Rhythm.IDs; (after == before) != test.same {
			t.Errorf("%s: %d, before it %d", test.name, after, before)
		}
	}
}

func TestRhythm(t *testing.T) {
	const day = 24 * time.Hour
	two := func(first, second string) string {
		return rssOpen + "<item><pubDate>2024-01-01</pubDate>" + first + "</item><item><pubDate>2024-01-02</pubDate>" + second +
			"</item><item><guid>z</guid><pubDate>2024-01-05</pubDate></item>" + rssClose
	}
	tests := []struct {
		name, body string
		entries    int
		newest     string // empty: none
		median     time.Duration
	}{
		{"no entries", items(), 0, "", 0},
		{"two dates are no rhythm", items("2024-01-01", "2024-01-02"), 2, "2024-01-02", 0},
		{"newest first", items("2024-01-07", "2024-01-04", "2024-01-01"), 3, "2024-01-07", 3 * day},
		{"in no order", items("2024-01-04", "2024-01-07", "2024-01-01", "2024-01-05"), 4, "2024-01-07", 2 * day},
		{"an even number of gaps", items("2024-01-01", "2024-01-02", "2024-01-05"), 3, "2024-01-05", 2 * day},
		{"a batch", items("2024-01-01", "2024-01-01", "2024-01-01"), 3, "2024-01-01", 0},
		{"an entry twice counts once", items("a=2024-01-01", "a=2024-01-01", "b=2024-01-02", "b=2024-01-02", "c=2024-01-03"), 5, "2024-01-03", day},
		{"the future does not count", items("2024-01-01", "2024-01-02", "2024-01-03", "2035-01-01", "2036-01-01"), 5, "2024-01-03", day},
		{"tomorrow may be a time zone", items("2024-02-06"), 1, "2024-02-06", 0},
		{"nor what is older than feeds", items("1970-01-01", "1600-01-01", "0001-01-01", "2024-01-02"), 4, "2024-01-02", 0},
		{"no dates", items("soon", "", "<b>2024-01-01</b>"), 3, "", 0},
		{"by publication rather than change", `<feed xmlns="http://www.w3.org/2005/Atom">` +
			`<entry><published>2024-01-01</published><updated>2024-01-20</updated></entry>` +
			`<entry><published>2024-01-02</published><updated>2024-01-20</updated></entry>` +
			`<entry><published>2024-01-03</published><updated>2024-01-20</updated></entry></feed>`, 3, "2024-01-03", day},
		{"by change where that is all", `<feed xmlns="http://www.w3.org/2005/Atom"><entry><updated>2024-01-01</updated></entry>` +
			`<entry><updated>2024-01-02</updated></entry><entry><updated>2024-01-03</updated></entry></feed>`, 3, "2024-01-03", day},
		{"weekly for long, daily now", items(append(dates(20, 1), dates(40, 7)...)...), 60, "2024-02-01", day},
		{"no more than the newest 20", items(append(dates(19, 1), dates(40, 7)...)...), 59, "2024-02-01", day},
		{"Dublin Core", strings.ReplaceAll(items("2024-01-01", "2024-01-02", "2024-01-03"), "pubDate>", "dc:date>"), 3, "2024-01-03", day},
		{"the first valid date", strings.ReplaceAll(items("2024-01-01"), "<pubDate>", "<pubDate>x</pubDate><pubDate>"), 1, "2024-01-01", 0},
		// An entry is known by its id, else its link, else what RDF says it is about.
		{"one guid, two links", two("<guid>a</guid><link>1</link>", "<link>2</link><guid> a </guid>"), 3, "2024-01-05", 0},
		{"two guids, one link", two("<link>1</link><guid>a</guid>", "<link>1</link><guid>b</guid>"), 3, "2024-01-05", 2 * day},
		{"empty guids, one link", two("<guid/><link>1</link>", "<guid> </guid><link>1</link>"), 3, "2024-01-05", 0},
		{"neither", two("", ""), 3, "2024-01-05", 2 * day},
		{"json", `{"version":"https://jsonfeed.org/version/1","items":[{"date_published":"2024-01-01T00:00:00Z"},` +
			`{"date_published":"2024-01-02"},{"date_modified":"2024-01-03"}]}`, 3, "2024-01-03", day},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := read(t, test.body).Rhythm
			newest := ""
			if !r.Newest.IsZero() {
				newest = r.Newest.Format(time.DateOnly)
			}
			if r.Entries != test.entries || newest != test.newest || r.Median != test.median {
				t.Errorf("got %d, %s, %v; want %d, %s, %v", r.Entries, newest, r.Median, test.entries, test.newest, test.median)
			}
		})
	}
	if changed := read(t, atomSample).Rhythm.Changed; !changed.Equal(time.Date(2024, time.January, 29, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the last change is of %v", changed)
	}
}
