package plugin

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Explicit path, then the environment, then the cache.
func TestFindOrder(t *testing.T) {
	s, _ := fakeStore(t)
	installed := mustInstall(t, s)
	dir := t.TempDir()
	byFlag, byEnv := filepath.Join(dir, "flag.so"), filepath.Join(dir, "env.so")
	require.NoError(t, os.WriteFile(byFlag, []byte("flag"), 0o644))
	require.NoError(t, os.WriteFile(byEnv, []byte("env"), 0o644))

	info, err := s.findPlugin("cpu", "")
	require.NoError(t, err)
	require.Equal(t, installed, info)
	t.Setenv(EnvPlugin, byEnv)
	info, err = s.findPlugin("cpu", "")
	require.NoError(t, err)
	require.Equal(t, byEnv, info.Path)
	require.Equal(t, EnvPlugin, info.Source)
	info, err = s.findPlugin("cpu", byFlag)
	require.NoError(t, err)
	require.Equal(t, byFlag, info.Path)
	require.Equal(t, "--plugin", info.Source)
	sum, err := hashFile(byFlag)
	require.NoError(t, err)
	require.Equal(t, sum, info.SHA256)
	t.Setenv(EnvPlugin, "cpu") // by name
	info, err = s.findPlugin("cpu", "")
	require.NoError(t, err)
	require.Equal(t, installed, info)
}

func TestFindErrors(t *testing.T) {
	s, _ := fakeStore(t)
	_, err := s.findPlugin("gpu", "")
	require.ErrorContains(t, err, `platform "gpu" is not known; choose cpu or tpu`)
	_, err = s.findPlugin("cpu", filepath.Join(t.TempDir(), "absent.so"))
	require.ErrorContains(t, err, "--plugin: there is no file ")
	_, err = s.findPlugin("cpu", t.TempDir())
	require.ErrorContains(t, err, "is not a file")
	t.Setenv(EnvPlugin, "absent")
	_, err = s.findPlugin("cpu", "")
	require.ErrorContains(t, err, "WEFT_PJRT_PLUGIN: there is no file absent")
	_, err = s.find("cuda")
	require.ErrorContains(t, err, `plugin "cuda" is not known; choose one of cpu, or give a path with --plugin`)
	require.Equal(t, []string{"cpu", "cpu-alt", "tpu"}, Names())
}

// The sha256 of a file that weft did not install is remembered, and not trusted when size or time change.
func TestExternalHashIsRemembered(t *testing.T) {
	s, _ := fakeStore(t)
	path := filepath.Join(t.TempDir(), "own.so")
	require.NoError(t, os.WriteFile(path, []byte("one"), 0o644))
	first, err := s.findPlugin("cpu", path)
	require.NoError(t, err)
	memos, err := filepath.Glob(filepath.Join(s.dir, "hashes", "*.json"))
	require.NoError(t, err)
	require.Len(t, memos, 1)
	again, err := s.findPlugin("cpu", path)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.NoError(t, os.WriteFile(path, []byte("two"), 0o644))
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1e9, 0)))
	changed, err := s.findPlugin("cpu", path)
	require.NoError(t, err)
	require.NotEqual(t, first.SHA256, changed.SHA256)
	require.NoError(t, os.WriteFile(memos[0], []byte("{"), 0o644)) // a damaged memo only costs the hash again
	again, err = s.findPlugin("cpu", path)
	require.NoError(t, err)
	require.Equal(t, changed, again)
	infos, err := s.list()
	require.NoError(t, err)
	require.Empty(t, infos, "memos are not installs")
}

func TestFindLibtpuOfTheMachine(t *testing.T) {
	s, calls := fakeStore(t)
	wheel, sum := makeWheel(t, "a tpu library")
	tpu := fakeSpec(sum)
	tpu.name, tpu.platform = "tpu", "tpu"
	s.specs = append(s.specs, tpu)

	_, err := s.findPlugin("tpu", "")
	require.ErrorIs(t, err, ErrNotInstalled, "site-packages have none")
	require.ErrorContains(t, err, "weft plugin install tpu")

	site := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(site, "libtpu.so"), []byte("vm"), 0o644))
	t.Setenv("FAKE_SITE", site+"\n0.0.41\n")
	info, err := s.findPlugin("tpu", "")
	require.NoError(t, err)
	require.Equal(t, []string{"site-packages", "0.0.41", filepath.Join(site, "libtpu.so")}, []string{info.Source, info.Version, info.Path})

	lib := filepath.Join(t.TempDir(), "libtpu.so")
	t.Setenv("TPU_LIBRARY_PATH", lib)
	_, err = s.findPlugin("tpu", "")
	require.ErrorContains(t, err, "TPU_LIBRARY_PATH: there is no file "+lib)
	require.NoError(t, os.WriteFile(lib, []byte("given"), 0o644))
	info, err = s.findPlugin("tpu", "")
	require.NoError(t, err)
	require.Equal(t, "TPU_LIBRARY_PATH", info.Source)

	before := countCalls(t, calls)
	t.Setenv("FAKE_WHEEL", wheel)
	_, err = s.ensure(context.Background(), "tpu", os.Stderr)
	require.NoError(t, err)
	info, err = s.findPlugin("tpu", "")
	require.NoError(t, err)
	require.Equal(t, "cache", info.Source, "an installed one goes first")
	require.Equal(t, before+1, countCalls(t, calls))
}

func TestCacheDir(t *testing.T) {
	home := t.TempDir()
	for _, c := range []struct{ weft, xdg, want string }{
		{"", "", filepath.Join(home, ".cache", "weft")},
		{"", filepath.Join(home, "xdg"), filepath.Join(home, "xdg", "weft")},
		{"", "relative", filepath.Join(home, ".cache", "weft")}, // the XDG specification ignores relative paths
		{filepath.Join(home, "own"), filepath.Join(home, "xdg"), filepath.Join(home, "own")},
	} {
		t.Setenv("HOME", home)
		t.Setenv(EnvCache, c.weft)
		t.Setenv("XDG_CACHE_HOME", c.xdg)
		got, err := CacheDir()
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	t.Setenv("HOME", "")
	t.Setenv(EnvCache, "")
	t.Setenv("XDG_CACHE_HOME", "")
	_, err := CacheDir()
	require.ErrorContains(t, err, "set WEFT_CACHE to a folder")
	_, err = Find("cpu", "")
	require.ErrorContains(t, err, "set WEFT_CACHE to a folder")
	own := filepath.Join(t.TempDir(), "own.so")
	require.NoError(t, os.WriteFile(own, []byte("x"), 0o644))
	info, err := Find("cpu", own) // an explicit path needs no folder
	require.NoError(t, err)
	require.Equal(t, own, info.Path)
}

func TestTPUChips(t *testing.T) {
	bus := t.TempDir()
	for name, ids := range map[string][2]string{
		"0000:00:04.0": {"0x1ae0", "0x006f"}, // a v6e chip
		"0000:00:05.0": {"0x1ae0", "0x006f"},
		"0000:00:06.0": {"0x1ae0", "0x0042"}, // Google's network card
		"0000:00:07.0": {"0x10de", "0x006f"}, // another vendor
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(bus, name), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(bus, name, "vendor"), []byte(ids[0]+"\n"), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(bus, name, "device"), []byte(ids[1]+"\n"), 0o644))
	}
	require.Equal(t, 2, tpuChips(bus))
	require.Zero(t, tpuChips(filepath.Join(bus, "absent")))
	absent, dev := filepath.Join(bus, "absent"), t.TempDir()
	require.True(t, mayHaveTPU(bus, absent))
	require.NoError(t, os.MkdirAll(filepath.Join(dev, "vfio"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dev, "vfio", "vfio"), nil, 0o644)) // the driver's own, without any device
	require.False(t, mayHaveTPU(absent, dev))
	for _, name := range []string{"vfio/0", "accel0"} {
		require.NoError(t, os.WriteFile(filepath.Join(dev, name), nil, 0o644))
		require.True(t, mayHaveTPU(absent, dev), name)
		require.NoError(t, os.Remove(filepath.Join(dev, name)))
	}
	require.Equal(t, "v6e-16", OffTPUEnv("v6e-16")["TPU_ACCELERATOR_TYPE"])
}
