// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/feedpollard/pollard/cache/store"
)

// bodies is the directory of body files. Each body has a file with a name of its
// own, which is never written again: bodies/7f/<feed>.<number>. A record names its
// file by the number. What no record names is an orphan.
type bodies struct {
	dir string

	mu      sync.Mutex
	writing map[uint64]bool // files that are not named yet, and are no orphans
	durable map[string]bool // directories of files of which the names are
}

// A body file: magic, which ends in the layout; SHA-256 of everything behind it; ID
// of the feed; version; length of the coding's name, and the name; data.
const (
	bodyMagic = "PLRDBDY\x02"
	bodyStart = len(bodyMagic) + sha256.Size
	bodyFixed = len(store.ID{}) + 8 + 1
)

// name is how files and messages name a feed.
func name(id store.ID) string { return hex.EncodeToString(id[:]) }

// path is that of a file. 256 directories keep each of them small.
func (b *bodies) path(id store.ID, file uint64) string {
	n := name(id)
	return filepath.Join(b.dir, n[:2], fmt.Sprintf("%s.%016x", n, file))
}

// write makes a body durable in a new file. The file is an orphan-to-be until
// [bodies.named] is called.
func (b *bodies) write(id store.ID, body store.Body) (file uint64, err error) {
	if body.Version == 0 || len(body.Coding) > 255 {
		return 0, errors.New("a body needs a version, and a coding with a short name")
	}
	for file == 0 {
		file = rand.Uint64()
	}
	b.mu.Lock()
	if b.writing == nil {
		b.writing = make(map[uint64]bool)
	}
	b.writing[file] = true
	b.mu.Unlock()

	path := b.path(id, file)
	err = writeFile(path, encodeBody(id, body))
	if err == nil {
		err = b.secure(filepath.Dir(path))
	}
	if err != nil {
		err = unwritable(path, errors.Join(err, b.remove(id, file)))
		b.named(file)
	}
	return file, err
}

// secure makes the name of a directory durable. Who has made it may not have come so
// far: another body's writer, or a process that was killed.
func (b *bodies) secure(dir string) error {
	b.mu.Lock()
	durable := b.durable[dir]
	b.mu.Unlock()
	if durable {
		return nil
	}
	if err := syncDirectory(b.dir); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.durable == nil {
		b.durable = make(map[string]bool)
	}
	b.durable[dir] = true
	return nil
}

// named notes that a record names the file by now, or that it is gone.
func (b *bodies) named(file uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.writing, file)
}

// writeFile writes a file and makes it durable, with its name.
func writeFile(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeDirectory(filepath.Dir(path)); err != nil {
			return err
		}
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	// Without it a power cut may take a name away that was acknowledged.
	return syncDirectory(filepath.Dir(path))
}

func encodeBody(id store.ID, body store.Body) []byte {
	v := make([]byte, bodyStart, bodyStart+bodyFixed+len(body.Coding)+len(body.Data))
	v = append(v, id[:]...)
	v = binary.BigEndian.AppendUint64(v, body.Version)
	v = append(v, byte(len(body.Coding)))
	v = append(append(v, body.Coding...), body.Data...)
	sum := sha256.Sum256(v[bodyStart:])
	copy(v, bodyMagic)
	copy(v[len(bodyMagic):], sum[:])
	return v
}

// errBody reports that a file is not the body that it should be.
var errBody = errors.New("damaged body")

// read reads the body of a version. The error wraps [cache.ErrNoBody] only if the
// file is missing or is not what was written: others may pass.
func (b *bodies) read(id store.ID, file, version uint64) (store.Body, error) {
	path := b.path(id, file)
	v, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", store.ErrNoBody, err)
		}
		return store.Body{}, err
	}
	body, err := decodeBody(v, id)
	if err != nil || body.Version != version {
		return store.Body{}, fmt.Errorf("%w: %s: %w", store.ErrNoBody, path, errBody)
	}
	return body, nil
}

func decodeBody(v []byte, id store.ID) (store.Body, error) {
	if len(v) < bodyStart+bodyFixed || string(v[:len(bodyMagic)]) != bodyMagic {
		return store.Body{}, errBody
	}
	sum := sha256.Sum256(v[bodyStart:])
	if !bytes.Equal(sum[:], v[len(bodyMagic):bodyStart]) {
		return store.Body{}, errBody
	}
	v = v[bodyStart:]
	owner, v := v[:len(id)], v[len(id):]
	coding := int(v[8])
	if !bytes.Equal(owner, id[:]) || len(v) < 9+coding {
		return store.Body{}, errBody
	}
	return store.Body{
		Version: binary.BigEndian.Uint64(v), Coding: string(v[9 : 9+coding]), Data: v[9+coding:],
	}, nil
}

// remove removes a file. That there is none is as well.
func (b *bodies) remove(id store.ID, file uint64) error {
	if file == 0 {
		return nil
	}
	err := os.Remove(b.path(id, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// clean removes orphans: what a crash has left, or a removal that failed. isNamed tells
// whether a record names a file; an error ends the walk.
func (b *bodies) clean(isNamed func(id store.ID, file uint64) (bool, error)) (removed int, err error) {
	directories, err := os.ReadDir(b.dir)
	if err != nil {
		return 0, err
	}
	for _, d := range directories {
		if !d.IsDir() {
			continue
		}
		dir := filepath.Join(b.dir, d.Name())
		files, err := os.ReadDir(dir)
		if err != nil {
			return removed, err
		}
		for _, f := range files {
			if id, file, ok := parseName(f.Name()); ok {
				// In this order: a file that is being written is named by a record first.
				named := b.isWriting(file)
				if !named {
					if named, err = isNamed(id, file); err != nil {
						return removed, err
					}
				}
				if named {
					continue
				}
			}
			if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
				return removed, err
			}
			removed++
		}
	}
	return removed, nil
}

func (b *bodies) isWriting(file uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.writing[file]
}

// parseName is the inverse of path.
func parseName(n string) (id store.ID, file uint64, ok bool) {
	feed, number, _ := strings.Cut(n, ".")
	raw, err := hex.DecodeString(feed)
	if err != nil || len(raw) != len(id) || len(number) != 16 {
		return id, 0, false
	}
	file, err = strconv.ParseUint(number, 16, 64)
	return store.ID(raw), file, err == nil
}

// makeDirectory makes dir, readable to its owner alone: the records hold the URLs of
// private feeds.
func makeDirectory(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(dir))
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
