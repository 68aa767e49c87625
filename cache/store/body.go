// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// PartSize is the size of a part of a body, in bytes. The last part may be smaller.
const PartSize = 256 << 10

// castagnoli is the table of the sums by which damage of a part is noticed.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// outdated is how long the parts of a body are kept after another body has replaced them, for readers
// that are being sent them.
const outdated = time.Minute

// sumOfPart returns the sum by which damage of a part is noticed, or the part of another feed in its
// place. Sums of version 1 of the tables have no feed.
func sumOfPart(id, part int64, feed, data []byte) int64 {
	place := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(id)), uint64(part))
	return int64(crc32.Update(crc32.Checksum(append(place, feed...), castagnoli), castagnoli, data))
}

func dropBody(tx Tx, id int64) {
	if id != 0 {
		tx.Exec(`delete from body where id = ?1`, id)
		tx.Exec(`delete from pending where body = ?1`, id)
	}
}

// deletePending deletes the parts of some bodies whose time has come.
func deletePending(tx Tx, limit int) error {
	var ids []int64
	err := tx.Query(`select body from pending where at < ?1 limit ?2 for update skip locked`, one(int64(tx.Now()), limit), func(_ int, row Row) error {
		var id int64
		err := row.Scan(&id)
		ids = append(ids, id)
		return err
	})
	for _, id := range ids {
		dropBody(tx, id)
	}
	return err
}

// setBody makes a body that of the feed; nil is none.
func (f *feedRow) setBody(body *Body) {
	f.version, f.size, f.coding, f.body = 0, 0, "", 0
	if body != nil {
		f.version, f.size, f.coding, f.body = int64(body.Version), int64(len(body.Data)), body.Coding, int64(newToken())
	}
}

// replaceBody writes the body of a feed, which had another one before or none, if that has changed. A reader may be sent
// the old one, so if it has several parts and another follows, they are deleted later.
func (f *feedRow) replaceBody(tx Tx, old *feedRow, body *Body) {
	switch {
	case f.body == old.body:
		return
	case old.body == 0:
	case old.size > PartSize && body != nil:
		tx.Exec(`insert into pending (body, at) values (?1, ?2)`, old.body, int64(tx.Now().Add(outdated)))
		_ = deletePending(tx, 2) // the transaction fails with the same error
	default:
		tx.Exec(`delete from body where id = ?1`, old.body)
	}
	if body == nil {
		return
	}
	for part := int64(0); part == 0 || part*PartSize < f.size; part++ {
		data := body.Data[part*PartSize : min((part+1)*PartSize, f.size)]
		if data == nil {
			data = []byte{}
		}
		tx.Exec(`insert into body (id, part, sum, data) values (?1, ?2, ?3, ?4)`, f.body, part, sumOfPart(f.body, part, f.id[:], data), data)
	}
}

// StoredBody is a body in a store. Its parts are read one by one, and nothing stays open in
// the store in between. A body that another version has replaced can be read for a minute
// after that. It is safe for concurrent use.
type StoredBody struct {
	Version uint64
	Coding  string // its content coding: gzip or identity
	Size    int64  // in bytes

	feed  ID
	first []byte
	more  func(ctx context.Context, part int64) ([]byte, error)
}

// NewStoredBody returns a body that is in memory as a whole.
func NewStoredBody(b Body) *StoredBody {
	return &StoredBody{
		Version: b.Version, Coding: b.Coding, Size: int64(len(b.Data)), first: b.Data[:min(PartSize, len(b.Data))],
		more: func(_ context.Context, part int64) ([]byte, error) {
			return b.Data[part*PartSize : min((part+1)*PartSize, int64(len(b.Data)))], nil
		},
	}
}

// ReadBody reads a body as a whole.
func ReadBody(ctx context.Context, s Store, id ID) (Body, error) {
	b, err := s.Body(ctx, id)
	if err != nil {
		return Body{}, err
	}
	data, err := b.Data(ctx)
	return Body{Version: b.Version, Coding: b.Coding, Data: data}, err
}

// Parts returns the number of parts: 1 at least.
func (b *StoredBody) Parts() int { return max(1, int((b.Size+PartSize-1)/PartSize)) }

// Part reads a part, counted from 0: [PartSize] bytes, or fewer of the last one. It fails with
// [ErrNoBody] if the part is damaged, or is not stored any more.
func (b *StoredBody) Part(ctx context.Context, part int) ([]byte, error) {
	if part == 0 {
		return b.first, nil
	}
	return b.more(ctx, int64(part))
}

// Data reads all parts.
func (b *StoredBody) Data(ctx context.Context) ([]byte, error) {
	data := make([]byte, 0, len(b.first))
	for part := range b.Parts() {
		more, err := b.Part(ctx, part)
		if err != nil {
			return nil, err
		}
		data = append(data, more...)
	}
	return data, nil
}

// A part is not read if it is larger than any that was written, as damage may have it.
const partColumns = `b.sum, case when length(b.data) <= 262144 then b.data end`

var (
	bodyOfFeed = selectFeed + `, ` + partColumns + ` from feed f
		left join body b on b.id = f.body and b.part = 0 where f.id = ?1`
	partOfBody = `select ` + partColumns + ` from body b where b.id = ?1 and b.part = ?2`
)

// Body implements [Store]. The first part is read with the record that names it, so that a
// body of one part cannot be replaced in between.
func (d *Database) Body(ctx context.Context, id ID) (*StoredBody, error) {
	defer d.took("body", time.Now())
	b, err := read(ctx, d, func(tx Tx) (b *StoredBody, err error) {
		err = tx.Query(bodyOfFeed, one(id[:]), func(_ int, row Row) (err error) {
			b, err = d.scanBody(row)
			return err
		})
		return b, err
	})
	switch {
	case d.driver.IsDamage(err) && d.hasRecord(ctx, id):
		return nil, fmt.Errorf("%w: %w", ErrNoBody, err)
	case err == nil && b == nil:
		return nil, ErrNoBody
	}
	return b, err
}

// hasRecord reports whether the record of a feed can be read, though its body cannot. Otherwise the
// error may pass, and the version must not be dropped because of it.
func (d *Database) hasRecord(ctx context.Context, id ID) bool {
	_, _, err := d.records(ctx, feedWithURL, one(id[:]))
	return err == nil
}

func (d *Database) scanBody(row Row) (*StoredBody, error) {
	var sum sql.NullInt64
	b := new(StoredBody)
	f, err := scanFeed(row, &sum, &b.first)
	if err != nil {
		return nil, err
	}
	if f.id != IDOf(f.url) || f.body == 0 {
		return nil, ErrNoBody
	}
	id := f.body
	b.Version, b.Size, b.Coding, b.feed = uint64(f.version), f.size, f.coding, f.id
	b.more = func(ctx context.Context, part int64) ([]byte, error) { return d.part(ctx, b, id, part) }
	return b, b.check(id, 0, sum.Int64, b.first)
}

// part reads a part of the body with an ID.
func (d *Database) part(ctx context.Context, b *StoredBody, id, part int64) ([]byte, error) {
	data, err := read(ctx, d, func(tx Tx) (data []byte, err error) {
		found := false
		err = tx.Query(partOfBody, one(id, part), func(_ int, row Row) error {
			var sum int64
			if err := row.Scan(&sum, &data); err != nil {
				return err
			}
			found = true
			return b.check(id, part, sum, data)
		})
		if err == nil && !found {
			err = fmt.Errorf("%w: part %d is not there", ErrNoBody, part)
		}
		return data, err
	})
	if d.driver.IsDamage(err) {
		err = fmt.Errorf("%w: %w", ErrNoBody, err)
	}
	return data, err
}

// check fails with [ErrNoBody] if data is not the part that was stored.
func (b *StoredBody) check(id, part, sum int64, data []byte) error {
	switch want := min(PartSize, b.Size-part*PartSize); {
	case int64(len(data)) != want:
		return fmt.Errorf("%w: part %d has %d bytes, not %d", ErrNoBody, part, len(data), want)
	case sum != sumOfPart(id, part, b.feed[:], data) && sum != sumOfPart(id, part, nil, data):
		return fmt.Errorf("%w: the sum of part %d is wrong", ErrNoBody, part)
	}
	return nil
}
