// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package httpfield reads the HTTP header fields that a cache lives by: entity
// tags and the conditions made of them (RFC 9110 sections 8.8.3 and 13), weights
// of content codings (section 12.5.3), Vary (section 12.5.5) and
// the fields of one connection (section 7.6.1).
//
// It is strict in what it tells apart and lenient in what it reads: a member of a
// list that makes no sense never hides the others. Nothing here keeps state, and
// what runs for every request does not allocate. Cache-Control and dates are read
// by package policy; structured fields by github.com/dunglas/httpsfv.
package httpfield
