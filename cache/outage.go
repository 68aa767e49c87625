// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync/atomic"

	"go.uber.org/zap"
)

// outage is a time in which the store refuses writes: polls stop, and serving
// goes on. It is logged once when it begins and once when it ends.
type outage struct {
	on atomic.Pointer[string]
}

func (o *outage) begin(log *zap.Logger, err error) {
	text := err.Error()
	if o.on.Swap(&text) == nil {
		log.Error("store refuses writes: polls stop until it takes them again, readers get what is stored", zap.Error(err))
	}
}

func (o *outage) end(log *zap.Logger) {
	if o.on.Load() != nil && o.on.Swap(nil) != nil {
		log.Info("store takes writes again, polls go on")
	}
}

// text is why the store refuses writes; empty: it does not.
func (o *outage) text() string {
	if t := o.on.Load(); t != nil {
		return *t
	}
	return ""
}
