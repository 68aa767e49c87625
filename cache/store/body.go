// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"hash/crc32"
)

const (
	// partSize is the size of a part of a body, in bytes.
	partSize = 256 << 10

	// large is the size of bodies, in bytes, whose parts are stored in transactions of
	// their own, before the commit that names them.
	large = 1 << 20
)

// castagnoli is the table of the sums by which damage of a part is noticed.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// storedBody is a body on its way into a database.
type storedBody struct {
	*Body       // nil: none
	id    Token // 0: its parts are not stored yet
}

// left returns how many bytes are not stored yet.
func (b storedBody) left() int {
	if b.Body == nil || b.id != 0 {
		return 0
	}
	return len(b.Data)
}

// newStoredBody stores the parts of a body in the transaction that names it.
func newStoredBody(tx Tx, body *Body) storedBody {
	b := storedBody{body, tx.Tokens(1)}
	for part := 0; part == 0 || part*partSize < len(b.Data); part++ {
		b.storePart(tx, part)
	}
	return b
}

func (b storedBody) storePart(tx Tx, part int) {
	data := b.Data[part*partSize : min((part+1)*partSize, len(b.Data))]
	if data == nil {
		data = []byte{}
	}
	tx.Exec(`insert into body (id, part, sum, data) values (?1, ?2, ?3, ?4)`,
		int64(b.id), int64(part), int64(crc32.Checksum(data, castagnoli)), data)
}

// storeParts stores the parts of a large body, each in a transaction of its own, so that
// no claim waits for all of them.
func (d *Database) storeParts(ctx context.Context, body *Body) (storedBody, error) {
	b := storedBody{Body: body}
	if body == nil || len(body.Data) <= large {
		return b, nil
	}
	for part := 0; part*partSize < len(body.Data); part++ {
		id := b.id
		err := d.driver.Write(ctx, Work{Late: true, Bytes: partSize, Do: func(tx Tx) error {
			if b.id = id; part == 0 {
				b.id = tx.Tokens(1)
				tx.Exec(`insert into pending (body, at) values (?1, ?2)`, int64(b.id), int64(tx.Now()))
			}
			b.storePart(tx, part)
			return nil
		}})
		if err != nil {
			return b, err // what is pending is removed by a sweep
		}
	}
	return b, nil
}

// dropParts removes the parts of a body that no feed names.
func (d *Database) dropParts(ctx context.Context, b storedBody) error {
	if b.id == 0 {
		return nil
	}
	return d.driver.Write(ctx, Work{Late: true, Do: func(tx Tx) error {
		dropBody(tx, int64(b.id))
		return nil
	}})
}

func dropBody(tx Tx, id int64) {
	if id != 0 {
		tx.Exec(DeleteBody, id)
		tx.Exec(`delete from pending where body = ?1`, id)
	}
}

// DeleteBody is the statement that deletes the parts of a body. It may fail if they are
// damaged, and nothing depends on it.
const DeleteBody = `delete from body where id = ?1`

// replaceBody replaces the body of a feed by another, or by none.
func (f *feedRow) replaceBody(tx Tx, body storedBody) {
	if f.body != 0 {
		tx.Exec(DeleteBody, f.body)
	}
	f.version, f.size, f.coding, f.body = 0, 0, "", 0
	if body.Body == nil {
		return
	}
	if body.id == 0 {
		body = newStoredBody(tx, body.Body)
	} else {
		tx.Exec(`delete from pending where body = ?1`, int64(body.id))
	}
	f.version, f.size, f.coding, f.body = int64(body.Version), int64(len(body.Data)), body.Coding, int64(body.id)
}

// Body implements [Store]. Each part is read by a statement of its own, so that nothing
// stays open in the database for long.
func (d *Database) Body(ctx context.Context, id ID, _ uint64) (Body, error) {
	for {
		f, err := d.bodyOf(ctx, id)
		if err != nil {
			return Body{}, err
		}
		if f.body == 0 {
			return Body{}, ErrNoBody
		}
		data, err := d.parts(ctx, f.body, f.size)
		if err == nil {
			return Body{Version: uint64(f.version), Coding: f.coding, Data: data}, nil
		}
		if now, failed := d.bodyOf(ctx, id); failed != nil || now.body == f.body {
			return Body{}, err
		}
	}
}

// bodyOf returns the columns of a feed that name its body.
func (d *Database) bodyOf(ctx context.Context, id ID) (feedRow, error) {
	return read(ctx, d, func(tx Tx) (f feedRow, err error) {
		err = tx.Query(`select version, size, body, coding from feed where id = ?1`, one(id[:]), func(_ int, row Row) error {
			return row.Scan(&f.version, &f.size, &f.body, &f.coding)
		})
		return f, err
	})
}

// storedPart is a row of the table body.
type storedPart struct {
	sum  int64
	data []byte
}

// parts reads the parts of a body.
func (d *Database) parts(ctx context.Context, body, size int64) ([]byte, error) {
	data := make([]byte, 0, size)
	for part := int64(0); part == 0 || part*partSize < size; part++ {
		more, err := read(ctx, d, func(tx Tx) (more storedPart, err error) {
			err = tx.Query(`select sum, data from body where id = ?1 and part = ?2`, one(body, part), func(_ int, row Row) error {
				return row.Scan(&more.sum, &more.data)
			})
			return more, err
		})
		switch {
		case d.driver.IsDamage(err):
			return nil, fmt.Errorf("%w: %w", ErrNoBody, err)
		case err != nil:
			return nil, err
		case more.sum != int64(crc32.Checksum(more.data, castagnoli)):
			return nil, fmt.Errorf("%w: the sum of part %d is wrong", ErrNoBody, part)
		}
		data = append(data, more.data...)
	}
	if int64(len(data)) != size {
		return nil, fmt.Errorf("%w: it has %d bytes, not %d", ErrNoBody, len(data), size)
	}
	return data, nil
}
