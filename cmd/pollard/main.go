// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Command pollard is Caddy with the Pollard feed gateway in it. All of Caddy's
// commands work; pollard feeds adds some for feeds.
package main

import (
	"fmt"
	"os"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/feedpollard/pollard/caddymodule"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

func main() {
	if err := relayNotifications(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	caddy.CustomBinaryName = "pollard"
	caddy.CustomLongDescription = description
	caddy.CustomVersion = "Pollard " + poller.Version() + ", Caddy" // Caddy's own version follows
	caddycmd.Main()
}

// description is what `pollard --help` begins with.
const description = `Pollard stands between feed readers and the sites that publish feeds. Readers get
every feed from a cache, and each site sees one polite poller.

To run it, write a Caddyfile (see https://github.com/feedpollard/pollard) and use:

	$ pollard run --config Caddyfile

To see what it does:

	$ pollard feeds list                             all feeds, and when they are polled
	$ pollard feeds show https://example.com/feed    why a feed waits
	$ pollard feeds readers                          who asks, how often, how well
	$ pollard feeds --help                           the other commands for feeds

Pollard is the Caddy web server with feeds in it: the other commands are Caddy's,
and where they say Caddy, they mean this program.`
