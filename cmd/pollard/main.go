// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Command pollard is Caddy with the Pollard feed gateway in it. All of Caddy's
// commands work; pollard feeds adds some for feeds.
package main

import (
	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/feedpollard/pollard/caddymodule"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

func main() {
	caddy.CustomBinaryName = "pollard"
	caddy.CustomLongDescription = description
	caddy.CustomVersion = "Pollard " + poller.Version() + ", Caddy" // Caddy's own version follows
	caddycmd.Main()
}
