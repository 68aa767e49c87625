// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/http"
	"reflect"
	"testing"
	"time"
)

// Every hint that sets an interval is an explicit one, whichever field of a header or of a document it is in:
// the judgement of `feeds check` and the sentences about overruled hints rely on it.
func TestExplicitHints(t *testing.T) {
	at := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	found := make(map[string]bool)
	for _, header := range []http.Header{{"Cache-Control": {"s-maxage=60"}}, {"Cache-Control": {"max-age=60"}}, {"Expires": {at.Add(time.Hour).Format(http.TimeFormat)}}} {
		h := History{Freshness: FreshnessOf(header, at)}
		fill(reflect.ValueOf(&h.Hints).Elem())
		for _, w := range h.explicitCandidates(at) {
			if found[w.hint] = true; !Explicit(w.hint) {
				t.Errorf("%s sets an interval, and is not an explicit hint: see term.go", w.hint)
			}
		}
	}
	for _, hint := range explicit {
		if !found[hint] {
			t.Errorf("%s sets no interval", hint)
		}
	}
}

// fill sets all fields of a struct.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("daily")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic("a field of kind " + v.Kind().String())
	}
}
