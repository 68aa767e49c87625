// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"net"
	"os"

	"github.com/feedpollard/pollard/internal/early"
)

// relayNotifications passes on what Caddy says to the service manager (sd_notify(3)). Caddy says that
// it is ready after a start that has failed too: that is left out, so that the service manager
// sees the process end instead of reporting a start.
func relayNotifications() error {
	if early.ServiceManager == "" {
		return nil
	}
	in, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: early.Own, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("listening for Caddy's notifications: %w", err)
	}
	out, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: early.ServiceManager, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	go func() {
		message, started, failed := make([]byte, 64<<10), false, false
		for {
			n, err := in.Read(message)
			if err != nil {
				return
			}
			ready := bytes.HasPrefix(message[:n], []byte("READY="))
			goesOn := bytes.Contains(message[:n], []byte("\nEXTEND_TIMEOUT_USEC=")) // opening the store takes long
			failed = failed || bytes.HasPrefix(message[:n], []byte("STATUS=")) && !goesOn
			if ready && failed && !started {
				continue
			}
			started = started || ready
			if _, err := out.Write(message[:n]); err != nil {
				fmt.Fprintln(os.Stderr, "NOTIFY_SOCKET:", err)
			}
		}
	}()
	return nil
}
