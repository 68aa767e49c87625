// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Uploads of subscription lists, also by a page of another site, take no memory and little time.
func TestHostileUploads(t *testing.T) {
	t.Parallel()
	c := start(t, setup{anyHost: true, site: "feed_gateway\n"})
	c.get("/-/about")
	took := c.costs(raced * 15 * time.Second) // of all of them, two at a time
	took.maxPeak = raced * (memorySetting + memoryBeside)
	const uploads = 12
	took.measure("uploads", func() {
		outlines := `<opml version="2.0"><body>` + strings.Repeat(`<outline xmlUrl="http://a.test/"/>`, 110_000) + `</body></opml>`
		form := "--b\r\nContent-Disposition: form-data; name=\"opml\"; filename=\"a\"\r\n\r\n" + outlines + "\r\n--b--\r\n"
		var all sync.WaitGroup
		for i := range uploads {
			all.Go(func() {
				r, err := http.NewRequest("POST", "http://"+c.address+"/-/opml", strings.NewReader(form))
				if err != nil {
					t.Error(err)
					return
				}
				r.Host = strings.Repeat("a.", 120) + "home.arpa" // which is in each address that comes out
				r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
				if i%2 == 1 {
					r.Header.Set("Origin", "http://evil.example")
				}
				if a, err := do(r); err == nil && (a.Status == http.StatusOK && len(a.Body) > 16<<20 || i%2 == 1 && a.Status != http.StatusForbidden) {
					t.Errorf("upload %d: %d, %d bytes", i, a.Status, len(a.Body))
				}
			})
		}
		all.Wait()
	})
	took.finish(0, fmt.Sprintf("%d uploads", uploads))
}
