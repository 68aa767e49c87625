// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"strconv"
	"time"
)

// CacheStatus says how a response came about. The zero value is a hit.
type CacheStatus struct {
	Forward   string // why the origin was asked: stale or miss (RFC 9211 section 2.2); empty: a hit
	Status    int    // of the origin's answer; 0: none
	Stored    bool   // the answer has become the version
	Collapsed bool   // the poll was made for another reader as well
}

// Text returns the value of Cache-Status (RFC 9211). ttl is the time to the next poll;
// negative: it is overdue. polled is false if there will be none. The detail is the hint that
// decided it.
func (s CacheStatus) Text(ttl time.Duration, polled bool, detail string) string {
	b := make([]byte, 0, 96)
	b = append(b, "Pollard"...)
	if s.Forward == "" {
		b = append(b, "; hit"...)
	} else {
		b = append(append(b, "; fwd="...), s.Forward...)
		if s.Status != 0 {
			b = strconv.AppendInt(append(b, "; fwd-status="...), int64(s.Status), 10)
		}
		if s.Stored {
			b = append(b, "; stored"...)
		}
		if s.Collapsed {
			b = append(b, "; collapsed"...)
		}
	}
	if polled {
		b = strconv.AppendInt(append(b, "; ttl="...), int64(ttl/time.Second), 10)
	}
	if detail != "" {
		b = append(append(b, "; detail="...), detail...)
	}
	return string(b)
}
