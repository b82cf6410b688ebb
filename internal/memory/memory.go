// Package memory tells how much memory a process can still take.
package memory

import (
	"os"
	"strconv"
	"strings"
)

// Left is what there is.
type Left struct {
	Bytes int64
	// Container tells that it is bounded by the container's limit, not by the machine.
	Container bool
}

// Available is how much memory this process can still take without pushing others out, as the kernel says it: of the
// machine, or of the container where that has less; ok is false where no system tells.
func Available() (left Left, ok bool) {
	return From(func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			return ""
		}
		return string(b)
	})
}

// From is Available with the files that it reads; "" stands for one that is not there.
func From(read func(name string) string) (left Left, ok bool) {
	if kib, found := field(read("/proc/meminfo"), "MemAvailable:"); found {
		left.Bytes, ok = kib<<10, true
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(read("/sys/fs/cgroup/memory.max")), 10, 64)
	if err != nil {
		return left, ok // "max", or no such file
	}
	used, err := strconv.ParseInt(strings.TrimSpace(read("/sys/fs/cgroup/memory.current")), 10, 64)
	if err != nil {
		return left, ok
	}
	// The page cache is counted as used, and is given back.
	cache, _ := field(read("/sys/fs/cgroup/memory.stat"), "inactive_file")
	if n := max(0, limit-used+cache); !ok || n < left.Bytes {
		return Left{Bytes: n, Container: true}, true
	}
	return left, ok
}

// field finds the number behind a name that begins a line.
func field(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) >= 2 && words[0] == name {
			n, err := strconv.ParseInt(words[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
