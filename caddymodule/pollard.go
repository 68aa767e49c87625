// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package caddymodule is Pollard in Caddy. Import it for its effects:
//
//	import _ "github.com/feedpollard/pollard/caddymodule"
//
// It registers the app pollard, which polls feeds and has the admin API and the stores (package poller); the handlers
// feed_gateway, which serves feeds of others (gateway), and feed_shield, which
// stands before feeds of one's own (shield); and the command
// feeds (command). What their configuration has in common is in package config.
//
// Polling, caching and deciding are the business of the packages beside this one,
// which know nothing of Caddy.
package caddymodule

import (
	_ "github.com/feedpollard/pollard/caddymodule/command"
	_ "github.com/feedpollard/pollard/caddymodule/gateway"
	_ "github.com/feedpollard/pollard/caddymodule/poller"
	_ "github.com/feedpollard/pollard/caddymodule/shield"
)
