// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"fmt"
	"time"

	"github.com/feedpollard/pollard/cache/queue"
)

// Two feeds of one site are due, and a reader waits for a third, which counts for another owner. The operator has the
// first slot, and the reader's feed the second one.
func Example() {
	const operator, reader queue.Owner = 1, 2
	q := queue.New(operator)
	q.Due(
		queue.Feed{ID: queue.ID{'a'}, Site: "example.com", Owner: operator, Due: -time.Hour},
		queue.Feed{ID: queue.ID{'b'}, Site: "example.com", Owner: operator, Due: -time.Minute},
	)
	q.Wait(queue.Feed{ID: queue.ID{'c'}, Site: "example.com", Owner: reader})

	for now := q.When(0); now < time.Minute; now = q.When(now) {
		for _, f := range q.Next(now, 10) {
			fmt.Printf("%v: %c\n", now, f.ID[0])
			q.Asked(f.Site, f.Owner, now, now+2*time.Second) // the poll was granted; the site's next one may start after its spacing
		}
	}
	// Output:
	// 0s: a
	// 2s: c
	// 4s: b
}
