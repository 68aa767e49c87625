// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Codes of the server, see its manual, appendix A.
const (
	classData          = "22" // data exceptions, such as a text that does not fit its type
	codeDeadlock       = "40P01"
	codeSerialization  = "40001"
	codeLocked         = "55P03" // lock_not_available
	codeInternal       = "XX000" // also: a part of a large value is missing
	codeDataCorrupted  = "XX001"
	codeIndexCorrupted = "XX002"
)

const (
	standby = "this is a standby; name the primary, or all hosts, in the store's URL"
	changed = "the store's tables are gone or have been changed by another version; restart this node"
)

// remedies say what to do about an error of the server, by its code.
var remedies = map[string]string{
	"28P01": "correct the user or the password in the store's URL",
	"28000": "permit this node in the server's pg_hba.conf", // invalid_authorization_specification
	"3D000": "create it with createdb, owned by the user in the store's URL",
	"42501": `let the user of the store's URL own the database, or "grant create on database ... to" it`,
	"53300": "raise max_connections of the server, or add pool_max_conns to the store's URL",
	"53100": "make room on the server's disk",
	"25006": standby,                   // read_only_sql_transaction
	"55000": standby,                   // object_not_in_prerequisite_state
	"42704": "correct the store's URL", // undefined_object: a setting
	"42P01": changed,                   // undefined_table
	"3F000": changed,                   // undefined_schema
	"42883": changed,                   // undefined_function
	"42703": changed,                   // undefined_column
}

// explain turns an error into one line that says what to do. The caller's own
// end of ctx is passed on as it is.
func (d *database) explain(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("store postgres %s: %w", d.place, cause)
	}
	var why string
	if refused, ok := errors.AsType[refusal](err); ok {
		why = string(refused)
	} else if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		why = explainServer(server)
	} else {
		// The connections that are idle are likely to be dead as well. New ones are
		// made instead, so that no further call fails because of them.
		d.pool.Reset()
		why = explainConnection(err)
	}
	return &explained{text: "store postgres " + d.place + ": " + why, err: err}
}

// isDamage reports whether what the server keeps of a row is damaged.
func isDamage(err error) bool {
	switch sqlState(err) {
	case codeInternal, codeDataCorrupted, codeIndexCorrupted:
		return true
	}
	return false
}

// explained is an error with another text.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }

// A refusal says why a database that can be reached is not used.
type refusal string

func (r refusal) Error() string { return string(r) }

func explainServer(e *pgconn.PgError) string {
	message := oneLine(errors.New(e.Message))
	switch remedy, known := remedies[e.Code]; {
	case e.Code == "57014": // query_canceled
		return fmt.Sprintf("the database did not finish within %s: it is overloaded, or another session holds locks", callTimeout)
	case strings.Contains(e.Message, "no encryption"):
		return message + ": the server may insist on TLS: add sslmode=verify-full to the store's URL"
	case known:
		return message + ": " + remedy
	}
	return message + " (SQLSTATE " + e.Code + ")"
}

func explainConnection(err error) string {
	message := oneLine(err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, hostname := errors.AsType[x509.HostnameError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err):
		return fmt.Sprintf("the database does not answer within %s: see whether it runs and can be reached from here, and whether it is overloaded or another session holds locks", callTimeout)
	case authority:
		return message + ": add sslrootcert=<file of the authority's certificate> to the store's URL"
	case hostname:
		return message + ": name the server in the store's URL as its certificate does"
	case strings.Contains(message, "server refused TLS connection"):
		return message + ": turn on ssl in the server, or use sslmode=disable if the network between them is yours alone"
	case strings.Contains(message, "read only connection"):
		return message + ": " + standby
	}
	return message + ": see whether the database runs and can be reached from here"
}

// oneLine returns the innermost text of an error, without what pgx puts around it for
// each of several attempts.
func oneLine(err error) string {
	if attempt, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		err = attempt.Unwrap()
	}
	text := err.Error()
	// With sslmode=prefer there are two attempts; the last one counts.
	if i := strings.LastIndexByte(strings.TrimSpace(text), '\n'); i >= 0 {
		text = text[i+1:]
	}
	return strings.TrimSpace(text)
}

// sqlState returns the server's code of an error.
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}
