// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/feedpollard/pollard/cache"
)

// The two slots of a feed's body, which are the extensions of its files.
const (
	slotA = 'a'
	slotB = 'b'
)

// otherSlot is where the next body goes when the record names slot.
func otherSlot(slot byte) byte {
	if slot == slotA {
		return slotB
	}
	return slotA
}

// slots is the directory of body files. With two fixed names per feed there are
// no old versions to collect.
type slots struct{ dir string }

// prepare makes the directory and removes bodies that a crash has left half-written.
func (s slots) prepare() error {
	if err := os.MkdirAll(s.temporary(), 0o700); err != nil {
		return err
	}
	left, err := os.ReadDir(s.temporary())
	if err != nil {
		return err
	}
	for _, f := range left {
		if err := os.Remove(filepath.Join(s.temporary(), f.Name())); err != nil {
			return err
		}
	}
	return syncDirectory(s.dir)
}

// temporary is one directory for all bodies that are being written, so that
// opening a store of a million feeds need not look through theirs.
func (s slots) temporary() string { return filepath.Join(s.dir, "tmp") }

// path is the file of a slot. 256 directories keep each of them small.
func (s slots) path(id cache.ID, slot byte) string {
	n := name(id)
	return filepath.Join(s.dir, n[:2], n+"."+string(rune(slot)))
}

// write makes the body durable in slot. The slot's old content is there until the
// new one is complete.
func (s slots) write(id cache.ID, slot byte, body cache.Body) error {
	path := s.path(id, slot)
	temporary, err := s.writeTemporary(id, body)
	if err != nil {
		return unwritable(path, err)
	}
	if err := s.place(temporary, path); err != nil {
		return unwritable(path, errors.Join(err, os.Remove(temporary)))
	}
	return nil
}

// writeTemporary writes and flushes the body to a file of its own.
func (s slots) writeTemporary(id cache.ID, body cache.Body) (path string, err error) {
	f, err := os.CreateTemp(s.temporary(), name(id)+".*")
	if err != nil {
		return "", err
	}
	err = encodeBody(f, id, body)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// place renames the temporary file to its slot. Without a flush of the directory
// a power cut may undo a rename that was acknowledged.
func (s slots) place(temporary, path string) error {
	err := os.Rename(temporary, path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := syncDirectory(s.dir); err != nil {
			return err
		}
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

// read reads the body of that version from slot. The error wraps
// [cache.ErrNoBody], unless the process was short of memory or files.
func (s slots) read(id cache.ID, slot byte, version uint64) (cache.Body, error) {
	path := s.path(id, slot)
	body, err := readBody(path, id)
	if err == nil && body.Version != version {
		err = fmt.Errorf("version %d instead of %d", body.Version, version)
	}
	switch {
	case err == nil:
		return body, nil
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM):
		return cache.Body{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return cache.Body{}, fmt.Errorf("reading %s: %w: %w", path, cache.ErrNoBody, err)
}

func readBody(path string, id cache.ID) (cache.Body, error) {
	f, err := os.Open(path)
	if err != nil {
		return cache.Body{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return cache.Body{}, err
	}
	return decodeBody(f, info.Size(), id)
}

// remove empties both slots of a feed.
func (s slots) remove(id cache.ID) error {
	var failed []error
	for _, slot := range []byte{slotA, slotB} {
		if err := os.Remove(s.path(id, slot)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// syncDirectory makes the names in a directory durable. Windows has no such call
// and keeps them in its journal.
func syncDirectory(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
