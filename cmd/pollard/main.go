// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Command pollard is Caddy with the Pollard feed gateway in it. All of Caddy's
// commands work; pollard feeds adds some for feeds.
package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/feedpollard/pollard/caddymodule"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

func main() {
	if err := cmp.Or(refuse(os.Args[1:]), relayNotifications()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	caddy.CustomBinaryName = "pollard"
	caddy.CustomLongDescription = description
	caddy.CustomVersion = "Pollard " + poller.Version() + ", Caddy" // Caddy's own version follows
	caddycmd.Main()
}

// refuse returns an error for the commands of Caddy that replace the program by one from caddyserver.com, which has
// no Pollard. They panic in a program whose main package is not Caddy's.
func refuse(args []string) error {
	if len(args) == 0 || !slices.Contains([]string{"upgrade", "add-package", "remove-package"}, args[0]) || slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		return nil
	}
	return fmt.Errorf(`pollard %s: this command of Caddy would replace the program by a Caddy without Pollard, so it is not run.
To upgrade, install the new release as you installed this one:
	from Go                  go install github.com/feedpollard/pollard/cmd/pollard@latest
	the Debian package       sudo apt install ./pollard_<version>_<architecture>.deb
	Docker                   docker compose --file packaging/compose.yaml up --build --detach
To have other modules of Caddy beside Pollard:
	xcaddy build --with github.com/feedpollard/pollard/caddymodule --with <package>`, args[0])
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
