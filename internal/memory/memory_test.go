package memory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"weft/internal/memory"
)

func TestAvailable(t *testing.T) {
	const meminfo = "MemTotal:       24000000 kB\nMemFree:          100000 kB\nMemAvailable:    2000000 kB\n"
	for name, c := range map[string]struct {
		files     map[string]string
		want      int64
		ok        bool
		container bool
	}{
		"nothing told":   {nil, 0, false, false},
		"machine":        {map[string]string{"/proc/meminfo": meminfo}, 2000000 << 10, true, false},
		"no limit":       {map[string]string{"/proc/meminfo": meminfo, "/sys/fs/cgroup/memory.max": "max\n", "/sys/fs/cgroup/memory.current": "5\n"}, 2000000 << 10, true, false},
		"smaller limit":  {map[string]string{"/proc/meminfo": meminfo, "/sys/fs/cgroup/memory.max": "1000\n", "/sys/fs/cgroup/memory.current": "700\n", "/sys/fs/cgroup/memory.stat": "anon 600\ninactive_file 50\n"}, 350, true, true},
		"over the limit": {map[string]string{"/proc/meminfo": meminfo, "/sys/fs/cgroup/memory.max": "1000\n", "/sys/fs/cgroup/memory.current": "1700\n"}, 0, true, true},
		"larger limit":   {map[string]string{"/proc/meminfo": meminfo, "/sys/fs/cgroup/memory.max": "9000000000000\n", "/sys/fs/cgroup/memory.current": "1700\n"}, 2000000 << 10, true, false},
	} {
		left, ok := memory.From(func(file string) string { return c.files[file] })
		require.Equal(t, c.ok, ok, name)
		require.Equal(t, c.want, left.Bytes, name)
		require.Equal(t, c.container, left.Container, name)
	}
}
