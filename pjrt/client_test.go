package pjrt_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/pjrt"
	"weft/pjrt/pjrttest"
)

func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name  string
		minor int
	}{{"cpu", 115}, {"cpu-alt", 106}} {
		t.Run(c.name, func(t *testing.T) {
			path := pjrttest.Path(t, c.name)
			p, err := pjrt.Load(path)
			require.NoError(t, err)
			again, err := pjrt.Load(path)
			require.NoError(t, err)
			require.Same(t, p, again)
			require.Equal(t, path, p.Path())
			major, minor := p.APIVersion()
			require.Equal(t, [2]int{0, c.minor}, [2]int{major, minor})
			require.Equal(t, int64(2), p.Attributes()["xla_version"])
			require.Len(t, p.Attributes()["stablehlo_current_version"], 3)
		})
	}
}

func TestLoadOfWhatIsNoPlugin(t *testing.T) {
	dir := t.TempDir()
	whole, err := os.Open(pjrttest.Path(t, "cpu"))
	require.NoError(t, err)
	defer whole.Close()
	start := make([]byte, 1<<20)
	_, err = whole.Read(start)
	require.NoError(t, err)
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	libc := regexp.MustCompile(`/\S*libc\.so\.6`).FindString(string(maps))
	require.NotEmpty(t, libc, "the test process has no C library")
	for _, c := range []struct {
		name, path string
		content    []byte
		want       string
	}{
		{"absent", filepath.Join(dir, "absent.so"), nil, "cannot be opened"},
		{"text", filepath.Join(dir, "text.so"), []byte("hello"), "does not load"},
		{"truncated", filepath.Join(dir, "truncated.so"), start, "does not load"},
		{"another library", libc, nil, "has no function GetPjrtApi"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.content != nil {
				require.NoError(t, os.WriteFile(c.path, c.content, 0o644))
			}
			_, err := pjrt.Load(c.path)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestClientOptionsAndDevices(t *testing.T) {
	for _, n := range []int{1, 4, 16} {
		eachCPU(t, n, func(t *testing.T, c *pjrt.Client) {
			require.Equal(t, "cpu", c.PlatformName())
			require.NotEmpty(t, c.PlatformVersion())
			require.Zero(t, c.ProcessIndex())
			require.Len(t, c.Devices(), n)
			require.Equal(t, c.Devices(), c.AddressableDevices())
			for i, d := range c.Devices() {
				require.Equal(t, i, d.ID())
				require.Equal(t, i, d.LocalHardwareID())
				require.Zero(t, d.ProcessIndex())
				require.True(t, d.IsAddressable())
				require.Equal(t, "cpu", d.Kind())
				require.NotEmpty(t, d.String())
				require.NotEmpty(t, d.DebugString())
				_, err := d.MemoryStats() // the CPU has no allocator to ask
				requireCode(t, pjrt.Unimplemented, err)
			}
			ids, err := c.DefaultDeviceAssignment(1, n)
			require.NoError(t, err)
			require.Len(t, ids, n)
			_, err = c.DefaultDeviceAssignment(0, 1)
			require.ErrorContains(t, err, "at least 1")
		})
	}
}

func TestClientOptionErrors(t *testing.T) {
	for _, name := range pjrttest.CPUPlugins {
		p := pjrttest.Plugin(t, name)
		before := pjrt.LiveHandles()
		_, err := p.NewClient(map[string]any{"cpu_device_count": 2.5})
		require.ErrorContains(t, err, "float64")
		for _, n := range []any{"many", true, 0, -1, 1 << 40} { // the plugin would end the process
			_, err = p.NewClient(map[string]any{"cpu_device_count": n})
			require.ErrorContains(t, err, "a whole number from 1 to 65536 is possible")
		}
		require.Equal(t, before, pjrt.LiveHandles())
	}
}

func TestTwoClientsOfOnePlugin(t *testing.T) {
	a, b := pjrttest.Client(t, "cpu", 1), pjrttest.Client(t, "cpu", 2)
	buf := put(t, a, floats(1), pjrt.Float32, []int{1}, 0)
	_, err := buf.CopyToDevice(b.Devices()[0])
	require.ErrorContains(t, err, "not of the buffer's client")
	_, err = b.BufferFromHost(floats(1), pjrt.Float32, []int{1}, a.Devices()[0])
	require.ErrorContains(t, err, "not an addressable device of this client")
	require.NoError(t, buf.Destroy())
}

func TestCloseIsRefusedWhileBuffersLive(t *testing.T) {
	c, err := pjrttest.Plugin(t, "cpu").NewClient(nil)
	require.NoError(t, err)
	b := put(t, c, floats(1), pjrt.Float32, nil, 0)
	l, err := c.Compile([]byte(double), pjrt.CompileOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, c.Close(), "2 of its buffers and executables are alive; destroy them first")
	require.NoError(t, b.Destroy())
	require.NoError(t, l.Destroy())
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	_, err = c.BufferFromHost(floats(1), pjrt.Float32, nil, c.Devices()[0])
	require.ErrorContains(t, err, "the client is closed")
	_, err = c.Compile([]byte(double), pjrt.CompileOptions{})
	require.ErrorContains(t, err, "the client is closed")
	_, err = c.Devices()[0].MemoryStats()
	require.ErrorContains(t, err, "the client is closed")
}

func TestTopologyOfAClient(t *testing.T) {
	eachCPU(t, 4, func(t *testing.T, c *pjrt.Client) {
		top, err := c.TopologyDescription()
		require.NoError(t, err)
		platform, err := top.PlatformName()
		require.NoError(t, err)
		require.Equal(t, "cpu", platform)
		devices, err := top.Devices()
		require.NoError(t, err)
		require.Len(t, devices, 4)
		require.Equal(t, 3, devices[3].ID())
		serialized, err := top.Serialize()
		require.NoError(t, err)
		require.NotEmpty(t, serialized)
		require.NoError(t, top.Destroy()) // the client's: nothing happens
		_, err = top.Devices()
		require.NoError(t, err)
	})
}
