// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"
	"time"
)

// FuzzValues reads an argument as each kind of value. An accepted value is in its range,
// and is read again from its own form.
func FuzzValues(f *testing.F) {
	for _, s := range []string{"10%", "0", "1e2%", "NaN%", "-0%", "64MiB", "1.5 GB", "18EB", "1d12h", "1e9h", "10.0.0.0/8", "::ffff:10.0.0.1", "fe80::1%eth0", "private_ranges", "{env.X}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := ParseSize(text); err == nil && n <= 0 {
			t.Errorf("%q has %d bytes", text, n)
		}
		if p, err := ParsePercentage(text); err == nil && !(p >= 0 && p <= 1) {
			t.Errorf("%q is %v", text, p)
		}
		if d, err := ParseDuration(text); err == nil {
			if d <= 0 {
				t.Errorf("%q is %v", text, d)
			}
			if again, err := ParseDuration(FormatDuration(d)); err != nil || again != d {
				t.Errorf("%q is %s, which is %s, %v", text, FormatDuration(d), time.Duration(again), err)
			}
		}
		if p, err := ParseCIDR(text); err == nil {
			if again, err := ParseCIDR(p.String()); err != nil || again != p || p.Addr().Zone() != "" {
				t.Errorf("%q is %v, which is %v, %v", text, p, again, err)
			}
		}
		Nearest(text[:min(len(text), 64)], []string{"store", "memory", "contact"})
	})
}
