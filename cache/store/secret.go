// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
)

// secretSize is the size of the store's key, in bytes.
const secretSize = 32

// Secret implements [Store].
func (d *Database) Secret(ctx context.Context) ([]byte, error) {
	find := func(tx Tx) (text string, err error) {
		err = tx.Query(`select value from meta where key = 'secret'`, one(), func(_ int, row Row) error { return row.Scan(&text) })
		return text, err
	}
	text, err := read(ctx, d, find)
	if err == nil && text == "" {
		text, err = write(ctx, d, Work{}, func(tx Tx) (string, error) {
			made := make([]byte, secretSize)
			rand.Read(made) //nolint:errcheck // it never fails
			tx.Exec(`insert into meta (key, value) values ('secret', ?1) on conflict (key) do nothing`, hex.EncodeToString(made))
			return find(tx)
		})
	}
	if err != nil {
		return nil, err
	}
	return hex.DecodeString(text)
}
