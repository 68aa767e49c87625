// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache"
)

func TestMillis(t *testing.T) {
	for _, c := range []struct {
		name string
		in   time.Time
		want time.Time
	}{
		{"zero", time.Time{}, time.Time{}},
		{"1970", time.Unix(0, 0), time.Unix(0, 0)},
		{"rounded up", time.Unix(5, 1), time.UnixMilli(5001)},
		{"rounded up before 1970", time.Unix(-5, 1), time.UnixMilli(-4999)},
		{"beyond all", time.Unix(math.MaxInt64-62135596800, 999_999_999), time.UnixMilli(math.MaxInt64)},
		{"just within", time.UnixMilli(math.MaxInt64).Add(-time.Nanosecond), time.UnixMilli(math.MaxInt64)},
		{"before all", time.Unix(-1<<62, 0), time.UnixMilli(math.MinInt64)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := moment(millis(c.in))
			if !got.Equal(c.want) || got.IsZero() != c.want.IsZero() {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(encodePoll(poll{next: -1, token: 2, version: 3, slot: slotB}), encodeMeta("https://example.com/", []byte("memo")))
	f.Add(encodePoll(poll{}), encodeMeta("", nil))
	f.Add([]byte{}, binary.AppendUvarint([]byte{metaLayout}, math.MaxUint64))
	f.Fuzz(func(t *testing.T, v, meta []byte) {
		p, err := decodePoll(v)
		if err == nil && !bytes.Equal(encodePoll(p), v) {
			t.Errorf("%+v is not what %x says", p, v)
		}
		r, err := join(cache.ID{}, p, meta)
		if err != nil {
			return
		}
		url, memo, err := decodeMeta(encodeMeta(r.URL, r.Memo))
		if err != nil || string(url) != r.URL || !bytes.Equal(memo, r.Memo) {
			t.Errorf("%+v became %q and %q, %v", r, url, memo, err)
		}
	})
}

// encoded is a body file.
func encoded(t testing.TB, id cache.ID, body cache.Body) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := encodeBody(&file, id, body); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestDecodeBodyDamaged changes each byte of a file, cuts it everywhere and adds to it.
func TestDecodeBodyDamaged(t *testing.T) {
	id := cache.ID{1, 2, 3}
	file := encoded(t, id, cache.Body{Version: 7, Coded: map[string][]byte{"": []byte("plain"), "gzip": []byte("zipped")}})
	fails := func(what string, at int, file []byte, id cache.ID) {
		t.Helper()
		if b, err := decodeBody(bytes.NewReader(file), int64(len(file)), id); !errors.Is(err, errDamaged) {
			t.Errorf("%s %d: body %v, error %v, want %v", what, at, b, err, errDamaged)
		}
	}
	for i := range file {
		changed := bytes.Clone(file)
		changed[i] ^= 0x10
		fails("changed byte", i, changed, id)
		fails("cut at byte", i, file[:i], id)
	}
	fails("longer by", 1, append(bytes.Clone(file), 0), id)
	fails("another feed's", 0, file, cache.ID{3, 2, 1})
	if _, err := decodeBody(bytes.NewReader(file[:len(file)-3]), int64(len(file)), id); !errors.Is(err, errDamaged) {
		t.Errorf("file that shrank while it was read: error %v", err)
	}
}

func FuzzDecodeBody(f *testing.F) {
	id := cache.ID{1, 2, 3}
	f.Add(encoded(f, id, cache.Body{Version: 7, Coded: map[string][]byte{"": []byte("plain"), "gzip": {}}}))
	f.Add(encoded(f, id, cache.Body{Version: 1}))
	f.Add([]byte(bodyMagic))
	f.Fuzz(func(t *testing.T, file []byte) {
		body, err := decodeBody(bytes.NewReader(file), int64(len(file)), id)
		if err != nil {
			if !errors.Is(err, errDamaged) {
				t.Errorf("error %v does not say that the file is damaged", err)
			}
			return
		}
		again, err := decodeBody(bytes.NewReader(encoded(t, id, body)), int64(len(encoded(t, id, body))), id)
		if err != nil || again.Version != body.Version || !maps.EqualFunc(again.Coded, body.Coded, bytes.Equal) {
			t.Errorf("%+v became %+v, %v", body, again, err)
		}
	})
}
