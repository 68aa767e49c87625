// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package httpfield reads the HTTP header fields that a cache needs: entity tags and
// conditions (RFC 9110 sections 8.8.3 and 13), weights of content codings (section
// 12.5.3), Vary (section 12.5.5) and the fields of one connection (section 7.6.1).
//
// It is lenient: a malformed member of a list never hides the others. Functions that run
// for every request do not allocate. Package policy reads Cache-Control and dates, and
// github.com/dunglas/httpsfv structured fields.
package httpfield
