// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

// batch is lines of a log that have been read and parsed.
type batch struct {
	text  []byte // of all of them; it never grows beyond its capacity
	lines []parsedLine
	taken int64 // bytes of the log read so far, as stored, compressed or not
	err   error // the error that ended reading; [io.EOF] at the end of the log
}

// parsedLine is a line, or the error of parsing it.
type parsedLine struct {
	Line
	err error
}

// batches is the number of batches in use: one is replayed, one waits, and one is filled.
const batches = 3

// readAhead reads and parses lines in the background and sends them to full, in batches.
// The last batch has an error. The caller returns each batch to free. Closing stop ends
// the reading; full is closed when it has ended.
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
			filled <- b // never blocks: the channel has room for all batches
			if b.err != nil {
				return
			}
		}
	}()
	return filled, empty
}

// fill adds lines to the batch, first the one that did not fit into the previous batch.
// It returns the line that does not fit into this one.
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
