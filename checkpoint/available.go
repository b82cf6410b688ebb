package checkpoint

import (
	"os"
	"strconv"
	"strings"
)

// availableMemory is how much memory this process can still take without pushing others out, as the kernel says it: of the
// machine, or of the container where that has less; ok is false where no system tells.
func availableMemory() (n int64, ok bool) {
	return availableFrom(func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			return ""
		}
		return string(b)
	})
}

// availableFrom is availableMemory with the files that it reads.
func availableFrom(read func(name string) string) (n int64, ok bool) {
	if kib, found := field(read("/proc/meminfo"), "MemAvailable:"); found {
		n, ok = kib<<10, true
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(read("/sys/fs/cgroup/memory.max")), 10, 64)
	if err != nil {
		return n, ok // "max", or no such file
	}
	used, err := strconv.ParseInt(strings.TrimSpace(read("/sys/fs/cgroup/memory.current")), 10, 64)
	if err != nil {
		return n, ok
	}
	// The page cache is counted as used, and is given back.
	cache, _ := field(read("/sys/fs/cgroup/memory.stat"), "inactive_file")
	if left := max(0, limit-used+cache); !ok || left < n {
		return left, true
	}
	return n, ok
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
