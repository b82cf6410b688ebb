// Package memory tells how much memory a process can still take.
package memory

import (
	"os"
	"path"
	"slices"
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
	for _, h := range hierarchies {
		for dir := h.group(read("/proc/self/cgroup")); ; dir = path.Dir(dir) {
			if n, bounded := h.left(read, path.Join(h.root, dir)); bounded && (!ok || n < left.Bytes) {
				left, ok = Left{Bytes: n, Container: true}, true
			}
			if dir == "/" {
				break
			}
		}
	}
	return left, ok
}

// hierarchy is where one version of control groups is mounted, and what its files are called.
type hierarchy struct {
	root, limit, used string
	// cache are names, the first that is there counts, of the page cache in memory.stat that is given back when it is needed.
	cache []string
	// controller is the second field of the group's line in /proc/self/cgroup.
	controller string
}

// hierarchies are versions 2 and 1: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst of the kernel. In version 1
// the use of a group has that of those below it, of which only the totals tell the cache.
var hierarchies = []hierarchy{
	{"/sys/fs/cgroup", "memory.max", "memory.current", []string{"inactive_file"}, ""},
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", []string{"total_inactive_file", "inactive_file"}, "memory"},
}

// group is this process's group, "/" where none is told. Within a container it may be a path of the host, which is not there: then
// its parents count, up to the root, which is the container's own.
func (h hierarchy) group(list string) string {
	for line := range strings.Lines(list) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && slices.Contains(strings.Split(fields[1], ","), h.controller) {
			return path.Clean("/" + fields[2])
		}
	}
	return "/"
}

// unlimited is more than any machine has: version 1 writes 2⁶³ in whole pages where there is no limit.
const unlimited = 1 << 60

// left is what a group may still take; false where nothing bounds it.
func (h hierarchy) left(read func(name string) string, dir string) (int64, bool) {
	limit, err := strconv.ParseInt(strings.TrimSpace(read(path.Join(dir, h.limit))), 10, 64)
	if err != nil || limit >= unlimited {
		return 0, false // "max", or no such file
	}
	used, err := strconv.ParseInt(strings.TrimSpace(read(path.Join(dir, h.used))), 10, 64)
	if err != nil {
		return 0, false
	}
	// The page cache is counted as used.
	stat := read(path.Join(dir, "memory.stat"))
	for _, name := range h.cache {
		if cache, found := field(stat, name); found {
			used -= cache
			break
		}
	}
	return max(0, limit-used), true
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
