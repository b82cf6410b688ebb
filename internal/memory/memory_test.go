package memory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"weft/internal/memory"
)

func TestAvailable(t *testing.T) {
	const meminfo = "MemTotal:       24000000 kB\nMemFree:          100000 kB\nMemAvailable:    2000000 kB\n"
	const machine = 2000000 << 10
	const v1 = "/sys/fs/cgroup/memory/"
	// with are a machine's files and these, by name and content.
	with := func(more ...string) map[string]string {
		files := map[string]string{"/proc/meminfo": meminfo}
		for i := 0; i < len(more); i += 2 {
			files[more[i]] = more[i+1]
		}
		return files
	}
	for name, c := range map[string]struct {
		files     map[string]string
		want      int64
		ok        bool
		container bool
	}{
		"nothing told":                  {nil, 0, false, false},
		"machine":                       {map[string]string{"/proc/meminfo": meminfo}, 2000000 << 10, true, false},
		"no limit":                      {map[string]string{"/proc/meminfo": meminfo, "/sys/fs/cgroup/memory.max": "max\n", "/sys/fs/cgroup/memory.current": "5\n"}, 2000000 << 10, true, false},
		"smaller limit":                 {map[string]string{"/proc/meminfo": meminfo, "/sys/fs/cgroup/memory.max": "1000\n", "/sys/fs/cgroup/memory.current": "700\n", "/sys/fs/cgroup/memory.stat": "anon 600\ninactive_file 50\n"}, 350, true, true},
		"over the limit":                {map[string]string{"/proc/meminfo": meminfo, "/sys/fs/cgroup/memory.max": "1000\n", "/sys/fs/cgroup/memory.current": "1700\n"}, 0, true, true},
		"larger limit":                  {map[string]string{"/proc/meminfo": meminfo, "/sys/fs/cgroup/memory.max": "9000000000000\n", "/sys/fs/cgroup/memory.current": "1700\n"}, 2000000 << 10, true, false},
		"limit of a group above":        {with("/sys/fs/cgroup/memory.max", "max", "/sys/fs/cgroup/a/memory.max", "1000", "/sys/fs/cgroup/a/memory.current", "400", "/sys/fs/cgroup/a/b/memory.max", "max", "/sys/fs/cgroup/a/b/memory.current", "1", "/proc/self/cgroup", "0::/a/b\n"), 600, true, true},
		"smallest of several":           {with("/sys/fs/cgroup/a/memory.max", "1000", "/sys/fs/cgroup/a/memory.current", "400", "/sys/fs/cgroup/a/b/memory.max", "800", "/sys/fs/cgroup/a/b/memory.current", "300", "/proc/self/cgroup", "0::/a/b\n"), 500, true, true},
		"version 1, no limit":           {with(v1+"memory.limit_in_bytes", "9223372036854771712", v1+"memory.usage_in_bytes", "5"), machine, true, false},
		"version 1, no limit, no other": {map[string]string{v1 + "memory.limit_in_bytes": "9223372036854771712\n", v1 + "memory.usage_in_bytes": "5\n"}, 0, false, false},
		"version 1, smaller limit":      {with(v1+"memory.limit_in_bytes", "1000", v1+"memory.usage_in_bytes", "700", v1+"memory.stat", "cache 90\ninactive_file 10\ntotal_inactive_file 50\n"), 350, true, true},
		"version 1, no totals":          {with(v1+"memory.limit_in_bytes", "1000", v1+"memory.usage_in_bytes", "700", v1+"memory.stat", "inactive_file 10\n"), 310, true, true},
		"version 1, over the limit":     {with(v1+"memory.limit_in_bytes", "1000", v1+"memory.usage_in_bytes", "1700"), 0, true, true},
		"version 1, larger limit":       {with(v1+"memory.limit_in_bytes", "9000000000000", v1+"memory.usage_in_bytes", "1700"), machine, true, false},
		"version 1, use not told":       {with(v1+"memory.limit_in_bytes", "1000"), machine, true, false},
		"version 1, a job's group":      {with(v1+"job/memory.limit_in_bytes", "1000", v1+"job/memory.usage_in_bytes", "300", v1+"memory.limit_in_bytes", "9223372036854771712", "/proc/self/cgroup", "12:cpu,cpuacct:/other\n4:hugetlb,memory:/job/step\n0::/x\n"), 700, true, true},
		"version 1, a path of the host": {with(v1+"memory.limit_in_bytes", "1000", v1+"memory.usage_in_bytes", "700", "/proc/self/cgroup", "4:memory:/docker/0a1b\n"), 300, true, true},
		"both, version 1 has memory":    {with(v1+"memory.limit_in_bytes", "1000", v1+"memory.usage_in_bytes", "100", "/proc/self/cgroup", "4:memory:/\n0::/a\n"), 900, true, true},
	} {
		left, ok := memory.From(func(file string) string { return c.files[file] })
		require.Equal(t, c.ok, ok, name)
		require.Equal(t, c.want, left.Bytes, name)
		require.Equal(t, c.container, left.Container, name)
	}
}
