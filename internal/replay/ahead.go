// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

// batch is lines of a log that have been read and parsed.
type batch struct {
	text  []byte // of all of them; it never grows beyond its capacity
	lines []parsedLine
	taken int64 // bytes of the log up to here, compressed or not
	err   error // why there are no more; [io.EOF]: that is all
}

// parsedLine is a line, or why it is none.
type parsedLine struct {
	Line
	err error
}

// batches is how many there are: one is replayed, one waits, and one is read.
const batches = 3

// readAhead reads and parses lines while those before them are replayed. The last
// batch, of those that come from full, has an error. Each is given back to free. When
// stop is closed no more are read; full is closed when reading has ended.
func readAhead(log *accessLog, stop <-chan struct{}) (full <-chan *batch, free chan<- *batch) {
	filled, empty := make(chan *batch, batches), make(chan *batch, batches)
	for range batches {
		empty <- &batch{text: make([]byte, 0, longestLine)}
	}
	go func() {
		defer close(filled)
		var rest []byte // a line that did not fit
		for {
			var b *batch
			select {
			case b = <-empty:
			case <-stop:
				return
			}
			b.text, b.lines = b.text[:0], b.lines[:0]
			rest = b.fill(log, rest)
			filled <- b // there is room for all of them
			if b.err != nil {
				return
			}
		}
	}()
	return filled, empty
}

// fill reads lines, first the one that did not fit into the batch before, and returns
// the one that does not fit into this.
func (b *batch) fill(log *accessLog, line []byte) (rest []byte) {
	first := line != nil
	for ; ; first = false {
		if !first {
			if line, b.err = log.next(); b.err != nil {
				break
			}
		}
		if len(b.text)+len(line) > cap(b.text) {
			rest = line
			break
		}
		from := len(b.text)
		b.text = append(b.text, line...)
		b.lines = append(b.lines, parsedLine{})
		l := &b.lines[len(b.lines)-1]
		l.err = parse(b.text[from:], &l.Line)
	}
	b.taken = log.taken.n
	return rest
}
