// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/http"
	"strings"
	"time"
)

// overdueGaps is the number of usual gaps without an entry that are suspicious.
const overdueGaps = 4

// Stuck returns the evidence that the origin may answer 304 although the feed has changed:
// validators that cannot differ between versions, or a posting rhythm that has stopped
// since the stored version was first received. It is nil without evidence. A feed without
// new entries is not evidence: most old feeds have none.
func Stuck(v Validators, r Rhythm, seen, now time.Time) *Term {
	t := &Term{Hint: HintStuck, Raw: clip(v.LastModified)}
	modified, err := http.ParseTime(v.LastModified)
	switch late := overdueGaps * r.Median; {
	case err == nil && modified.UTC().Year() <= 1970:
		t.Note = "Last-Modified is where clocks begin"
	case err == nil && modified.Sub(now) >= 24*time.Hour: // the last second of 32 bits, in 2038, for example
		t.Note = "Last-Modified is in the future"
	case isDate(v.ETag):
		t.Raw, t.Note = clip(v.ETag), "the ETag is a date"
	case r.Median > 0 && seen.Sub(r.Newest) < late && now.Sub(r.Newest) >= late:
		t.Raw, t.Note = r.Newest.UTC().Format(time.RFC3339), "no entry since then, and several are overdue"
	default:
		return nil
	}
	t.Note += "; polled without validators, in case the 304s are wrong"
	return t
}

// isDate reports whether an ETag is just a date.
func isDate(tag string) bool {
	text := strings.Trim(strings.TrimPrefix(tag, "W/"), `"`)
	_, err := http.ParseTime(text)
	for _, layout := range []string{time.DateOnly, "20060102", time.DateTime, time.RFC3339} {
		if err == nil {
			break
		}
		_, err = time.Parse(layout, text)
	}
	return err == nil
}
