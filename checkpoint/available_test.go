package checkpoint

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAvailableMemory(t *testing.T) {
	const meminfo = "MemTotal:       24000000 kB\nMemFree:          100000 kB\nMemAvailable:    2000000 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
		ok    bool
	}{
		"nothing told":   {nil, 0, false},
		"machine":        {map[string]string{"/proc/meminfo": meminfo}, 2000000 << 10, true},
		"no limit":       {map[string]string{"/proc/meminfo": meminfo, "/sys/fs/cgroup/memory.max": "max\n", "/sys/fs/cgroup/memory.current": "5\n"}, 2000000 << 10, true},
		"smaller limit":  {map[string]string{"/proc/meminfo": meminfo, "/sys/fs/cgroup/memory.max": "1000\n", "/sys/fs/cgroup/memory.current": "700\n", "/sys/fs/cgroup/memory.stat": "anon 600\ninactive_file 50\n"}, 350, true},
		"over the limit": {map[string]string{"/proc/meminfo": meminfo, "/sys/fs/cgroup/memory.max": "1000\n", "/sys/fs/cgroup/memory.current": "1700\n"}, 0, true},
		"larger limit":   {map[string]string{"/proc/meminfo": meminfo, "/sys/fs/cgroup/memory.max": "9000000000000\n", "/sys/fs/cgroup/memory.current": "1700\n"}, 2000000 << 10, true},
	} {
		n, ok := availableFrom(func(file string) string { return c.files[file] })
		require.Equal(t, c.ok, ok, name)
		require.Equal(t, c.want, n, name)
	}
}

// Where half of the memory that is left does not hold the state, it goes through a ring of that size, and is whole all the same.
func TestAsyncWithLittleMemory(t *testing.T) {
	whole, least := deviceNeeds(t)
	for _, c := range []struct {
		available int64
		ok        bool
		limit     int64
	}{
		{2 * whole, true, whole}, {2*least + 2*stageAlign, true, least + stageAlign}, {0, true, least}, {0, false, whole},
	} {
		var saved []Saved
		m, a := openAsync(t, newMemFS(), AsyncOptions{Done: func(s Saved) { saved = append(saved, s) }})
		a.available = func() (int64, bool) { return c.available, c.ok }
		for step := range 2 {
			require.NoError(t, a.Save(t.Context(), newDevice(step).snapshot(step, 1)))
		}
		require.NoError(t, a.Close(t.Context()))
		require.Len(t, saved, 2)
		for _, s := range saved {
			require.Equal(t, c.limit, s.Stats.LimitBytes)
			require.NoError(t, m.Verify(s.Entry))
		}
	}
}
