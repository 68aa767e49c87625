// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
)

// knownDatabases is a file in which this node keeps which database it has found at
// which place. By it, a database that has been lost and made anew is told from one that
// is new.
//
// The file is not worth a node that does not start: where it cannot be read or written,
// that is logged, and what is found counts as new.
type knownDatabases struct {
	file string
	log  *zap.Logger
}

// knownFile is in Caddy's data directory.
func knownFile() string { return filepath.Join(caddy.AppDataDir(), "pollard", "databases.json") }

// read returns the databases by their places; none where the file does not help.
func (k knownDatabases) read() map[string]string {
	var known map[string]string
	text, err := os.ReadFile(k.file)
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.log.Warn("the list of databases that were used cannot be read: if one has been lost, its feeds may be polled early",
			zap.String("file", k.file), zap.Error(err))
		known = nil // what was read of it is no use
	}
	if known == nil { // as null makes it, too
		known = make(map[string]string)
	}
	return known
}

// used returns the database that was found at a place, empty if none was.
func (k knownDatabases) used(place string) (database string) { return k.read()[place] }

// use keeps the database that was found at a place.
func (k knownDatabases) use(place, database string) error {
	known := k.read()
	known[place] = database
	if err := k.write(known); err != nil {
		k.log.Warn("the list of databases that were used cannot be written: make Caddy's data directory writable",
			zap.String("file", k.file), zap.Error(err))
	}
	return nil
}

// write replaces the file as a whole.
func (k knownDatabases) write(known map[string]string) error {
	text, err := json.MarshalIndent(known, "", "\t")
	if err != nil {
		return err
	}
	dir := filepath.Dir(k.file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(k.file)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // in vain after the renaming
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), k.file)
}
