// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/feedpollard/pollard/cache/store"
)

// damages are what is done to a file, page by page.
var damages = []struct {
	name string
	do   func(file, page []byte, random *rand.Rand) []byte // page is part of file
}{
	{"zeroed", func(file, page []byte, _ *rand.Rand) []byte { clear(page); return file }},
	{"noise", func(file, page []byte, random *rand.Rand) []byte {
		for i := range page {
			page[i] = byte(random.Uint32())
		}
		return file
	}},
	{"half of it zeroed", func(file, page []byte, _ *rand.Rand) []byte { clear(page[len(page)/2:]); return file }},
	{"one sector lost", func(file, page []byte, random *rand.Rand) []byte {
		at := random.IntN(len(page)/512) * 512
		clear(page[at : at+512])
		return file
	}},
	{"another page in its place", func(file, page []byte, random *rand.Rand) []byte {
		from := random.IntN(len(file)/len(page)) * len(page)
		copy(page, file[from:from+len(page)])
		return file
	}},
	{"cut off", func(file, page []byte, _ *rand.Rand) []byte { return file[:len(file)-cap(page)] }},
	{"says that very many belong to it", func(file, page []byte, _ *rand.Rand) []byte {
		binary.NativeEndian.PutUint32(page[12:], 1<<31)
		return file
	}},
	{"a branch leads to itself", func(file, page []byte, _ *rand.Rand) []byte {
		if page[8]|page[9] == kindBranch {
			copy(page[headerSize+8:headerSize+16], page[:8])
		}
		return file
	}},
	{"a number is very large", func(file, page []byte, _ *rand.Rand) []byte {
		binary.NativeEndian.PutUint64(page[headerSize:], 1<<40)
		return file
	}},
	{"another number is very large", func(file, page []byte, _ *rand.Rand) []byte {
		binary.NativeEndian.PutUint64(page[headerSize+8:], 1<<40)
		return file
	}},
	{"an element is of another kind", func(file, page []byte, _ *rand.Rand) []byte {
		binary.NativeEndian.PutUint32(page[headerSize:], binary.NativeEndian.Uint32(page[headerSize:])^isBucket)
		return file
	}},
	{"a bit of its header", func(file, page []byte, random *rand.Rand) []byte { flip(page[:16], random); return file }},
	{"a bit of its elements", func(file, page []byte, random *rand.Rand) []byte { flip(page[16:128], random); return file }},
	{"a bit", func(file, page []byte, random *rand.Rand) []byte { flip(page, random); return file }},
	{"another bit", func(file, page []byte, random *rand.Rand) []byte { flip(page, random); return file }},
	{"a third bit", func(file, page []byte, random *rand.Rand) []byte { flip(page, random); return file }},
}

func flip(in []byte, random *rand.Rand) { in[random.IntN(len(in))] ^= 1 << random.IntN(8) }

// TestDamagedPages damages each page of a store in each way. The store opens, perhaps
// empty; what it says of a feed is what was stored, or that there is no version; it goes
// on working, and opens again.
func TestDamagedPages(t *testing.T) {
	const feeds = 60
	dir := directory(t)
	file := filepath.Join(dir, fileName)
	storeOf(t, dir, feeds)
	good, err := os.ReadFile(file)
	mustDo(t, err)
	s := mustOpen(t, dir)
	stored := make(map[store.ID]store.Record)
	records, err := s.Records(t.Context(), store.ID{}, feeds)
	mustDo(t, err, s.Close())
	for _, r := range records {
		stored[r.ID] = r
	}

	random := rand.New(rand.NewPCG(2026, 11))
	outcomes := make(map[string]int)
	page := os.Getpagesize()
	for at := 0; at < len(good); at += page {
		for _, d := range damages {
			name := fmt.Sprintf("page %d: %s", at/page, d.name)
			bad := bytes.Clone(good)
			mustDo(t, removeAside(dir))
			write(t, file, d.do(bad, bad[at:at+page:len(bad)], random))
			outcome := survive(t, dir, stored)
			outcomes[outcome]++
			if t.Failed() {
				t.Fatal(name)
			}
		}
	}
	t.Logf("%d pages, each damaged in %d ways: %v", len(good)/page, len(damages), outcomes)
	if outcomes["refused"] > 2 { // a bit makes the layout a later one's
		t.Errorf("%d damaged stores were refused", outcomes["refused"])
	}
}

func removeAside(dir string) error {
	aside, err := filepath.Glob(filepath.Join(dir, "*.aside-*"))
	for _, path := range append(aside, filepath.Join(dir, condemned)) {
		if e := os.Remove(path); !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// survive opens a damaged store, works with it and opens it again, and tells how that was.
func survive(t *testing.T, dir string, stored map[store.ID]store.Record) (outcome string) {
	t.Helper()
	log, lines := observer.New(zap.ErrorLevel)
	s, err := Open(dir, Options{Log: zap.New(log)})
	if err != nil {
		if !strings.Contains(err.Error(), "its layout is \"pollard feeds ") {
			t.Errorf("refused: %v", err)
		}
		return "refused"
	}
	whole := 0
	for id, want := range stored {
		records, err := s.Lookup(t.Context(), []store.ID{id})
		if err != nil || len(records) == 0 || records[0].Version == 0 && want.Version != 0 {
			continue // it is lost, and found anew
		}
		got := records[0]
		if got.In > time.Hour || got.In < 50*time.Minute {
			t.Errorf("feed %s is due in %v", name(id), got.In)
		}
		if got.URL != want.URL && got.URL != "" || got.Version != want.Version && got.Version != 0 {
			t.Errorf("feed %s has become %+v", name(id), got)
		}
		got.In, got.Polled, got.Asked = want.In, want.Polled, want.Asked
		if reflect.DeepEqual(got, want) {
			whole++
		}
		if body, err := s.Body(t.Context(), id, got.Version); err == nil && string(body.Data) != "content" {
			t.Errorf("feed %s has the body %q", name(id), body.Data)
		}
	}
	switch {
	case lines.FilterMessageSnippet("set aside").Len() > 0:
		outcome = "set aside"
	case whole == len(stored):
		outcome = "unharmed"
	default:
		outcome = "lost feeds"
	}
	// It goes on, or fails and is set aside with the next start.
	for n := range 3 {
		id := numbered(5000 + n)
		leases, err := s.Claim(t.Context(), []store.Claim{{ID: id, URL: "https://example.com/new", Hold: time.Hour}})
		if err == nil && leases[0].Denied == "" {
			err = s.Commit(t.Context(), store.Outcome{ID: id, Token: leases[0].Token, In: time.Hour, Body: &store.Body{Version: 1, Coding: "identity", Data: []byte("new")}})
		}
		if err != nil {
			outcome += ", found when it was written"
			break
		}
	}
	s.Close()     // what is damaged may be told here
	for range 3 { // each may find something
		if s, err = Open(dir, Options{}); err != nil {
			t.Errorf("opening it again: %v", err)
			return outcome
		}
		_, err = s.Claim(t.Context(), []store.Claim{{ID: numbered(6000), URL: "https://example.com/newest", Hold: time.Hour}})
		s.Close()
		if err == nil {
			return outcome
		}
	}
	t.Errorf("it never works again: %v", err)
	return outcome
}
