// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package opml_test

import (
	"fmt"

	"github.com/feedpollard/pollard/internal/opml"
)

const list = `<opml version="2.0"><body>
  <outline text="A" xmlUrl="https://a.example/feed"/>
</body></opml>`

// A gateway gives readers their own list with its addresses in it.
func ExampleRewrite() {
	out, changed, err := opml.Rewrite([]byte(list), func(url string) (string, error) {
		return "https://feeds.home.arpa/" + url, nil
	})
	fmt.Println(changed, err)
	fmt.Printf("%s\n", out)
	// Output:
	// 1 <nil>
	// <opml version="2.0"><body>
	//   <outline text="A" xmlUrl="https://feeds.home.arpa/https://a.example/feed"/>
	// </body></opml>
}
