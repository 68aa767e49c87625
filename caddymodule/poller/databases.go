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

// knownDatabases is a file in which this node records the ID of the database that it
// found at each place. An ID that has changed means that the database was lost and
// created again.
//
// A node starts even if the file cannot be read or written: it logs the error. A place
// that is not in the file counts as new.
type knownDatabases struct {
	file string
	log  *zap.Logger
}

// knownFile returns the path of the file, in Caddy's data directory.
func knownFile() string { return filepath.Join(caddy.AppDataDir(), "pollard", "databases.json") }

// read returns the databases by place. If the file cannot be read, the map is empty.
func (k knownDatabases) read() map[string]string {
	var known map[string]string
	text, err := os.ReadFile(k.file)
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.log.Warn("the list of databases that were used cannot be read: if one has been lost, its feeds may be polled early",
			zap.String("file", k.file), zap.Error(err))
		known = nil // it may be incomplete
	}
	if known == nil { // also if the file contains null
		known = make(map[string]string)
	}
	return known
}

// used returns the database that is recorded for a place, or "".
func (k knownDatabases) used(place string) (database string) { return k.read()[place] }

// use records the database that was found at a place.
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
	defer os.Remove(f.Name()) // fails after the file has been renamed
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), k.file)
}
