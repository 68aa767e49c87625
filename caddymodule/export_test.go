// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/upstream"
)

// HoldEngine puts an engine that polls through a client of the test's in the
// place where the app looks for the engine of a store's directory.
func HoldEngine(directory string, client *upstream.Client) error {
	_, _, err := engines.LoadOrNew("bolt:"+directory, func() (caddy.Destructor, error) {
		return newEngine(directory, client), nil
	})
	return err
}

// DropEngine gives it up. With the last configuration that uses it, it ends.
func DropEngine(directory string) error {
	_, err := engines.Delete("bolt:" + directory)
	return err
}

// RunningCache is the cache of the configuration in force.
func RunningCache() *cache.Cache {
	_, c := running()
	return c
}
