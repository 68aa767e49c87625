// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// listen wakes a reader of the log for each notification, until ctx ends. It is on a
// connection of its own. That may be lost at any time, and notifications with it: they
// only save the reader some waiting.
func (s *Store) listen(ctx context.Context, wake chan<- struct{}) {
	const pause = 5 * time.Second
	for ctx.Err() == nil {
		s.listenOnce(ctx, wake)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// listenOnce listens as long as a connection lasts.
func (s *Store) listenOnce(ctx context.Context, wake chan<- struct{}) {
	cfg := s.pool.Config().ConnConfig
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, `listen pollard`); err != nil {
		return
	}
	for {
		select {
		case wake <- struct{}{}: // also for the notifications before
		default:
		}
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return
		}
	}
}
