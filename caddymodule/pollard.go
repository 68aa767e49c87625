// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package caddymodule is Pollard in Caddy. Import it for its effects:
//
//	import _ "github.com/feedpollard/pollard/caddymodule"
//
// It registers the app pollard, which polls feeds, with its admin API and stores (package poller);
// the handlers feed_gateway, which serves feeds of other sites (gateway), and feed_shield, which
// serves a site's own feeds (shield); and the command feeds (command). Package config parses what
// their configurations share.
//
// The packages cache, upstream and policy poll, store and decide. They do not import Caddy.
package caddymodule

import (
	_ "github.com/feedpollard/pollard/caddymodule/command"
	_ "github.com/feedpollard/pollard/caddymodule/gateway"
	_ "github.com/feedpollard/pollard/caddymodule/poller"
	_ "github.com/feedpollard/pollard/caddymodule/shield"
)
