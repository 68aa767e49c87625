// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulation runs a whole Caddy in a [testing/synctest] bubble: eleven days of
// bad readers, bad publishers, reloads, restarts and clocks that jump takes half a minute,
// is repeatable by its seed, and no test waits for real time.
//
// It has tests only. If you write a Caddy module of your own, these are the parts to copy:
//
//   - No sockets. A goroutine that waits for a socket keeps the bubble's clock from going
//     on. Caddy listens on a network in memory, which is registered with
//     [caddy.RegisterNetwork] and chosen by `bind mem/<host>`; readers and polls dial it
//     ([stage.Network], [net.Pipe]). Servers of origins are [net/http.Server]s on it.
//   - No sleeps for "long enough". [testing/synctest.Wait] returns when all goroutines
//     wait: after [caddy.Load] the servers of the old configuration are gone then.
//   - Caddy is one per process, so bubbles run one after another. At the end of a bubble
//     stop Caddy, close the origins, and let a minute pass, in which
//     its background work ends.
//   - Turn off what leaves the bubble: `admin off`, `persist_config off`, `auto_https off`,
//     and `output discard` for the log. Use a store on a real disk; it does not wait.
//   - The module takes what a test has to replace from one place ([poller.Adopt]): the
//     dialer, and the clock if the machine's clock is to differ from the bubble's.
//
// The files, in the order to read them:
//
//   - simulation_test.go: the bubble; starts, stops, reloads; the explanations of the gateway
//   - clock_test.go: a machine that sleeps and whose clock is set
//   - habits_test.go: what origins can do; feeds_test.go and moves_test.go: origins that do it
//   - origin_test.go: checks each poll when it arrives: time, validators, header
//   - readers_test.go: readers and their habits
//   - answers_test.go: checks each answer to a reader
//   - onepoller_test.go, adversary_test.go: the tests
package simulation
