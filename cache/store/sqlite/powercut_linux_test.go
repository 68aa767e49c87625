// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

var reorderings = flag.Int("powercuts", 1, "how many orders of unsynced writes to try at each power cut")

// TestPowerCut records all that a process has the kernel do to a store, and cuts the
// power behind each system call. All that had been synced is there then. Of the rest, any
// part may be: none of it, all of it, or some writes and names and others not, a write
// in whole or some of its sectors. Each time the store must open as it is, with all that
// had been acknowledged. A short test cuts the power behind every 32nd call only.
func TestPowerCut(t *testing.T) {
	const polls = 4 // of each feed
	if dir := os.Getenv(childDirectory); dir != "" {
		work(t, dir, polls)
		return
	}
	tape := recordChild(t)
	random := rand.New(rand.NewPCG(2026, 11))
	acks := make([]acknowledged, crashFeeds)
	seen := make(map[uint64]bool)
	for cut := range tape {
		tape.acknowledge(cut, acks)
		if testing.Short() && cut%32 != 0 && cut < len(tape)-1 {
			continue
		}
		for order := range 1 + *reorderings {
			survives := func() bool { return random.IntN(2) == 0 }
			if order == 0 {
				survives = func() bool { return cut%2 == 0 } // all of it, or nothing
			}
			after := tape.after(cut, survives, random)
			if sum := after.sum(acks); seen[sum] {
				continue
			} else {
				seen[sum] = true
			}
			dir := directory(t)
			after.write(t, dir)
			verify(t, dir, acks)
			if aside, _ := filepath.Glob(filepath.Join(dir, "*.aside-*")); len(aside) > 0 && highest(acks).granted > 0 {
				t.Error("the records were set aside")
			}
			if t.Failed() {
				t.Fatalf("power cut %d of %d, order %d, behind %v", cut, len(tape), order, tape[cut])
			}
			mustDo(t, os.RemoveAll(dir))
		}
	}
	if a := highest(acks); a.granted < crashFeeds*polls || a.version == 0 || a.paused == 0 {
		t.Errorf("all that was acknowledged is %+v", a)
	}
	t.Logf("%d system calls, %d stores after power cuts", len(tape), len(seen))
}

// tape is what a process did to the store, in the order in which it began.
type tape []*operation

// operation is a system call.
type operation struct {
	call         string
	path         string         // in the store; "." is its directory
	data         []byte         // written
	at           int64          // of a write, or the size of a truncation
	began, ended int            // lines of the trace
	durable      map[string]int // the first line at which a later sync of a path had ended
}

func (o *operation) String() string {
	return fmt.Sprintf("%s %s (%d bytes at %d)", o.call, o.path, len(o.data), o.at)
}

// recordChild runs this test as a process of its own, and returns its tape.
func recordChild(t *testing.T) tape {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed: nothing records system calls")
	}
	if out, err := exec.Command(strace, "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		if said := string(out); !strings.Contains(said, "not permitted") && !strings.Contains(said, "not implemented") {
			t.Fatalf("strace: %v: %s", err, said)
		}
		t.Skipf("no process may be traced here: %s", out)
	}
	dir, trace := directory(t), filepath.Join(t.TempDir(), "trace")
	c := child(t, dir)
	c.Args = slices.Concat([]string{strace, "-f", "-y", "-xx", "-s", "1000000", "--seccomp-bpf", "-o", trace, "-e", "trace=" + traced}, []string{c.Path}, c.Args[1:])
	c.Path = strace
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(trace)
	mustDo(t, err)
	return read(t, dir, string(text))
}

// traced are the calls that change files, and those that make a change durable. Some
// exist on old machines only.
const traced = "?open,openat,?creat,write,pwrite64,writev,pwritev,pwritev2,sendfile,copy_file_range,fsync,fdatasync,sync_file_range,msync,ftruncate,truncate,fallocate," +
	"?unlink,unlinkat,?rename,?renameat,renameat2,?mkdir,mkdirat,?link,linkat,?symlink,symlinkat"

var (
	begun   = regexp.MustCompile(`^(\d+) +(\w+)\((.*?)(?:\) += (-?\d+).*| <unfinished \.\.\.>)$`)
	resumed = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>.* = (-?\d+)`)
	quoted  = regexp.MustCompile(`"((?:\\x[0-9a-f]{2})*)"|<((?:\\x[0-9a-f]{2})+)>`)
)

// read reads a trace.
func read(t *testing.T, dir, trace string) (all tape) {
	t.Helper()
	open := make(map[string]*operation) // by process
	lengths := make(map[string]int64)   // of files that are written from their beginning on
	for number, line := range strings.Split(trace, "\n") {
		if m := resumed.FindStringSubmatch(line); m != nil {
			if o := open[m[1]]; o != nil {
				o.ended = number
				if strings.HasPrefix(m[3], "-") {
					o.call = "nothing"
				}
			}
			delete(open, m[1])
			continue
		}
		m := begun.FindStringSubmatch(line)
		if m == nil || strings.HasPrefix(m[4], "-") {
			continue
		}
		var texts []string
		for _, q := range quoted.FindAllStringSubmatch(m[3], -1) {
			raw, err := hex.DecodeString(strings.ReplaceAll(q[1]+q[2], `\x`, ""))
			mustDo(t, err)
			texts = append(texts, string(raw))
		}
		o := operationOf(t, dir, m[2], m[3], texts)
		if o == nil {
			continue
		}
		if o.call == "write" && o.at < 0 {
			o.at = lengths[o.path]
			lengths[o.path] += int64(len(o.data))
		}
		if o.began, o.ended = number, number; m[4] == "" {
			o.ended = math.MaxInt // unless it is resumed
			open[m[1]] = o
		}
		all = append(all, o)
	}
	return all
}

// operationOf returns what a call does to the store, or nil.
func operationOf(t *testing.T, dir, call, args string, texts []string) *operation {
	t.Helper()
	if call == "write" && strings.HasPrefix(args, "1<") && strings.HasPrefix(texts[1], "ack ") {
		return &operation{call: "acknowledge", data: []byte(texts[1])}
	}
	var path string
	for _, text := range texts { // the last that is one: a call names directories before
		if rest, ok := strings.CutPrefix(text, dir); ok {
			path = filepath.Clean("." + rest)
		}
	}
	if path == "" {
		return nil
	}
	fields := strings.Split(args, ", ")
	number := func(i int) int64 {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		mustDo(t, err)
		return n
	}
	switch call {
	case "open", "openat":
		if !strings.Contains(args, "O_CREAT") {
			return nil
		}
		return &operation{call: "create", path: path}
	case "mkdir", "mkdirat":
		return &operation{call: "create", path: path + "/"}
	case "unlink", "unlinkat":
		return &operation{call: "remove", path: path}
	case "write":
		return &operation{call: "write", path: path, data: []byte(texts[1]), at: -1}
	case "pwrite64":
		return &operation{call: "write", path: path, data: []byte(texts[1]), at: number(3)}
	case "ftruncate":
		return &operation{call: "truncate", path: path, at: number(1)}
	case "fsync", "fdatasync":
		return &operation{call: "sync", path: path}
	}
	t.Fatalf("the store is changed by %s(%s), of which this test knows nothing", call, args)
	return nil
}

// acknowledge notes what the process has said at a cut.
func (tp tape) acknowledge(cut int, acks []acknowledged) {
	if o := tp[cut]; o.call == "acknowledge" {
		for line := range strings.Lines(string(o.data)) {
			note(acks, line)
		}
	}
}

// highest is the last of all feeds together.
func highest(acks []acknowledged) (all acknowledged) {
	for _, a := range acks {
		all.granted, all.version, all.paused = max(all.granted, a.granted), max(all.version, a.version), max(all.paused, a.paused)
	}
	return all
}

// synced reports whether an operation on a file or name was made durable by a sync of
// some path before a cut.
func (tp tape) synced(o *operation, path string, cut int) bool {
	at, known := o.durable[path]
	if !known {
		at = math.MaxInt
		for _, s := range tp {
			if s.call == "sync" && s.path == path && s.began > o.ended {
				at = min(at, s.ended)
			}
		}
		if o.durable == nil {
			o.durable = make(map[string]int)
		}
		o.durable[path] = at
	}
	return at <= tp[cut].began
}

// image is what a disk has, by path; directories end in a slash.
type image map[string][]byte

// after is what the disk has after a cut behind the beginning of an operation.
func (tp tape) after(cut int, survives func() bool, random *rand.Rand) image {
	disk := make(image)
	for _, o := range tp[:cut+1] {
		parent := filepath.Dir(strings.TrimSuffix(o.path, "/"))
		kept := func(of string) bool { return tp.synced(o, of, cut) || survives() }
		content, known := disk[o.path]
		switch o.call {
		case "create":
			if _, ok := disk[parent+"/"]; !known && (ok || parent == ".") && kept(parent) {
				disk[o.path] = []byte{}
			}
		case "remove":
			if known && kept(parent) {
				delete(disk, o.path)
			}
		case "truncate":
			if known && kept(o.path) {
				disk[o.path] = append(content, make([]byte, max(0, o.at-int64(len(content))))...)[:o.at]
			}
		case "write":
			const sector = 512
			whole := tp.synced(o, o.path, cut) || survives() && random.IntN(3) > 0
			for from := 0; known && from < len(o.data); from += sector {
				if whole || survives() {
					to := min(from+sector, len(o.data))
					end := o.at + int64(to)
					content = append(content, make([]byte, max(0, end-int64(len(content))))...)
					copy(content[o.at+int64(from):], o.data[from:to])
				}
			}
			if known {
				disk[o.path] = content
			}
		}
	}
	return disk
}

// sum is a sum of the files and of what was acknowledged.
func (i image) sum(acks []acknowledged) uint64 {
	d := xxhash.New()
	fmt.Fprint(d, acks)
	for _, path := range slices.Sorted(maps.Keys(i)) {
		fmt.Fprint(d, path, len(i[path]))
		d.Write(i[path])
	}
	return d.Sum64()
}

// write makes the files.
func (i image) write(t *testing.T, dir string) {
	t.Helper()
	for path := range i {
		if strings.HasSuffix(path, "/") {
			mustDo(t, os.MkdirAll(filepath.Join(dir, path), 0o700))
		}
	}
	for path, content := range i {
		if !strings.HasSuffix(path, "/") {
			mustDo(t, os.WriteFile(filepath.Join(dir, path), content, 0o600))
		}
	}
}
