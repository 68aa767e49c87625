// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"fmt"
	"testing"
	"time"
)

func TestVariantsAdmit(t *testing.T) {
	var v Variants
	now := time.Unix(0, 0)
	for i := range MaxVariants {
		if !v.Admit("a", fmt.Sprint(i), now) {
			t.Fatalf("variant %d was refused", i)
		}
	}
	if v.Admit("a", "more", now.Add(variantRest-1)) {
		t.Error("a variant too many was admitted")
	}
	if !v.Admit("a", "0", now.Add(variantRest-1)) {
		t.Error("a known variant was refused")
	}
	if !v.Admit("a", "more", now.Add(variantRest)) || !v.Admit("a", "0", now.Add(variantRest)) {
		t.Error("those that rest make no room")
	}
	for i := range maxVariedFeeds - 1 {
		if !v.Admit(fmt.Sprint("feed", i), "x", now) {
			t.Fatalf("feed %d was refused", i)
		}
	}
	if v.Admit("one more", "x", now) {
		t.Error("a feed too many was admitted")
	}
	if !v.Admit("one more", "x", now.Add(variantRest)) || len(v.known) > 2 {
		t.Errorf("feeds that rest make no room: there are %d", len(v.known))
	}
}
