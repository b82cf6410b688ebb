package plugin

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"
)

func TestInstallThenFind(t *testing.T) {
	s, calls := fakeStore(t)
	_, err := s.findPlugin("cpu", "")
	require.ErrorIs(t, err, ErrNotInstalled)
	require.ErrorContains(t, err, "install it with: weft plugin install cpu")

	var said bytes.Buffer
	info, err := s.ensure(context.Background(), "cpu", &said)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(said.String(), "\n"), "one line: %s", &said)
	require.Contains(t, said.String(), "installing plugin cpu: some-plugin 1.0 (1 MB) with pip, into "+s.dir)
	sum, err := hashFile(info.Path)
	require.NoError(t, err)
	require.Equal(t, Info{Name: "cpu", Platform: "cpu", Version: "1.0", Path: filepath.Join(s.dir, "cpu-1.0.so"), SHA256: sum,
		Size: int64(len(library)), Source: "cache"}, info)
	content, err := os.ReadFile(info.Path)
	require.NoError(t, err)
	require.Equal(t, library, string(content))
	st, err := os.Stat(info.Path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o644), st.Mode())
	asked, err := os.ReadFile(calls)
	require.NoError(t, err)
	require.Contains(t, string(asked), "-m pip download --no-deps ")
	require.Contains(t, string(asked), "--only-binary=:all: some-plugin==1.0")

	said.Reset()
	for _, find := range []func() (Info, error){
		func() (Info, error) { return s.findPlugin("cpu", "") },
		func() (Info, error) { return s.findPlugin("cpu", "cpu") }, // by name
		func() (Info, error) { return s.ensure(context.Background(), "cpu", &said) },
		func() (Info, error) { return s.install(context.Background(), s.specs[0], io.Discard) },
	} {
		again, err := find()
		require.NoError(t, err)
		require.Equal(t, info, again)
	}
	require.Empty(t, said.String())
	require.Equal(t, 1, countCalls(t, calls), "pip ran once")
	infos, err := s.list()
	require.NoError(t, err)
	require.Equal(t, []Info{info}, infos)
	requireFiles(t, s.dir, "cpu-1.0.json", "cpu-1.0.lock", "cpu-1.0.so")
}

// requireFiles checks that nothing was left behind.
func requireFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	require.Equal(t, want, got)
}

func TestDamageIsFoundAndRepaired(t *testing.T) {
	sameTime := func(t *testing.T, path string, change func()) {
		st, err := os.Stat(path)
		require.NoError(t, err)
		change()
		require.NoError(t, os.Chtimes(path, time.Time{}, st.ModTime()))
	}
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, lib, record string)
		onlyBy string // "verify" where a start cannot see it
		want   string
	}{
		{"truncated", func(t *testing.T, lib, _ string) { require.NoError(t, os.Truncate(lib, 3)) }, "", "it has 3 bytes, not 9"},
		{"changed", func(t *testing.T, lib, _ string) {
			require.NoError(t, os.WriteFile(lib, []byte("A library"), 0o644))
			require.NoError(t, os.Chtimes(lib, time.Time{}, time.Unix(1e9, 0)))
		}, "", "its sha256 is "},
		{"changed in place, time kept", func(t *testing.T, lib, _ string) {
			sameTime(t, lib, func() { require.NoError(t, os.WriteFile(lib, []byte("A library"), 0o644)) })
		}, "verify", "its sha256 is "},
		{"library gone", func(t *testing.T, lib, _ string) { require.NoError(t, os.Remove(lib)) }, "", "no such file"},
		{"record cut off", func(t *testing.T, _, record string) { require.NoError(t, os.Truncate(record, 10)) }, "", "is unreadable"},
		{"record of another wheel", func(t *testing.T, _, path string) {
			r, err := readRecord(path)
			require.NoError(t, err)
			r.WheelSHA = "0"
			require.NoError(t, writeRecord(path, r))
		}, "", "names another wheel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, calls := fakeStore(t)
			info := mustInstall(t, s)
			c.damage(t, info.Path, s.base(s.specs[0])+".json")
			_, err := s.installed(s.specs[0], true)
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "repair it with: weft plugin install cpu")
			_, err = s.findPlugin("cpu", "")
			if c.onlyBy == "" {
				require.ErrorIs(t, err, ErrDamaged)
				_, err = s.ensure(context.Background(), "cpu", io.Discard)
				require.ErrorIs(t, err, ErrDamaged, "no silent repair")
			} else {
				require.NoError(t, err)
			}
			var said bytes.Buffer
			repaired, err := s.install(context.Background(), s.specs[0], &said)
			require.NoError(t, err)
			require.Equal(t, info, repaired)
			require.Contains(t, said.String(), "repairing plugin cpu")
			require.Equal(t, 2, countCalls(t, calls))
			_, err = s.installed(s.specs[0], true)
			require.NoError(t, err)
		})
	}
}

// A copy with another modification time is hashed once and then trusted again.
func TestTouchedFileIsHashedOnce(t *testing.T) {
	s, _ := fakeStore(t)
	info := mustInstall(t, s)
	when := time.Unix(1e9, 0)
	require.NoError(t, os.Chtimes(info.Path, time.Time{}, when))
	again, err := s.findPlugin("cpu", "")
	require.NoError(t, err)
	require.Equal(t, info, again)
	r, err := readRecord(s.base(s.specs[0]) + ".json")
	require.NoError(t, err)
	require.Equal(t, when.UnixNano(), r.ModTime)
}

func TestWrongWheelInstallsNothing(t *testing.T) {
	s, _ := fakeStore(t)
	s.specs[0].wheelSHA = strings.Repeat("0", 64)
	_, err := s.install(context.Background(), s.specs[0], io.Discard)
	require.ErrorContains(t, err, "the wheel that pip got has sha256 ")
	require.ErrorContains(t, err, "nothing was installed")
	requireFiles(t, s.dir, "cpu-1.0.lock")
}

func TestWheelWithoutTheLibrary(t *testing.T) {
	s, _ := fakeStore(t)
	s.specs[0].member = "other/plugin.so"
	_, err := s.install(context.Background(), s.specs[0], io.Discard)
	require.ErrorContains(t, err, "has no other/plugin.so")
	requireFiles(t, s.dir, "cpu-1.0.lock")
}

func TestPipProblems(t *testing.T) {
	for _, c := range []struct{ name, output, want string }{
		{"no pip", "/usr/bin/python3: No module named pip", "python3 has no pip"},
		{"no such version", "Looking…\nERROR: No matching distribution found for some-plugin==1.0\nnotice", "failed: No matching distribution found for some-plugin==1.0; check the network"},
		{"a traceback", "ERROR: Exception:\nTraceback (most recent call last):\n  File \"x.py\", line 1\nOSError: [Errno 28] No space left on device", "failed: OSError: [Errno 28] No space left on device; check"},
		{"silent", "", "exit status"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := fakeStore(t)
			t.Setenv("FAKE_FAIL", c.output)
			if c.output == "" {
				t.Setenv("FAKE_FAIL", " ")
			}
			_, err := s.install(context.Background(), s.specs[0], io.Discard)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "--plugin PATH or WEFT_PJRT_PLUGIN")
			require.NotContains(t, err.Error(), "\n")
		})
	}
	t.Run("no python", func(t *testing.T) {
		s, _ := fakeStore(t)
		t.Setenv("PATH", t.TempDir())
		_, err := s.install(context.Background(), s.specs[0], io.Discard)
		require.ErrorContains(t, err, "python3 is needed to download some-plugin and was not found")
		require.ErrorContains(t, err, "--plugin PATH or WEFT_PJRT_PLUGIN")
	})
	t.Run("no wheel", func(t *testing.T) {
		s, _ := fakeStore(t)
		t.Setenv("FAKE_WHEEL", filepath.Join("/", "dev", "null"))
		_, err := s.install(context.Background(), s.specs[0], io.Discard)
		require.ErrorContains(t, err, "left 0 wheels instead of one")
	})
}

func TestInstallCanBeStopped(t *testing.T) {
	s, _ := fakeStore(t)
	t.Setenv("FAKE_SLEEP", "4")
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err := s.install(ctx, s.specs[0], io.Discard)
	require.ErrorIs(t, err, context.Canceled)
	requireFiles(t, s.dir, "cpu-1.0.lock")
}

func TestLeftoversOfAKilledInstallGo(t *testing.T) {
	s, _ := fakeStore(t)
	require.NoError(t, os.MkdirAll(s.base(s.specs[0])+".tmp-123", 0o755))
	require.NoError(t, os.WriteFile(s.base(s.specs[0])+".tmp-123/half.whl", []byte("x"), 0o644))
	require.NoError(t, os.WriteFile(s.base(s.specs[0])+".so", []byte("no record: not installed"), 0o644))
	_, err := s.findPlugin("cpu", "")
	require.ErrorIs(t, err, ErrNotInstalled)
	mustInstall(t, s)
	requireFiles(t, s.dir, "cpu-1.0.json", "cpu-1.0.lock", "cpu-1.0.so")
}

func TestUnwritableFolder(t *testing.T) {
	s, _ := fakeStore(t)
	require.NoError(t, os.WriteFile(s.dir, nil, 0o644)) // a file where the folder should be
	_, err := s.install(context.Background(), s.specs[0], io.Discard)
	require.ErrorContains(t, err, "set WEFT_CACHE to a folder that weft may write to")
}

func TestConcurrentInstallsOfGoroutines(t *testing.T) {
	s, calls := fakeStore(t)
	t.Setenv("FAKE_SLEEP", "0.2")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			info, err := s.ensure(context.Background(), "cpu", io.Discard)
			if err != nil || info.Size != int64(len(library)) {
				t.Errorf("%+v, %v", info, err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, countCalls(t, calls), "one goroutine downloads, the others wait")
}

func TestConcurrentInstallsOfProcesses(t *testing.T) {
	if dir := os.Getenv("WEFT_TEST_INSTALL"); dir != "" {
		s := &store{dir: dir, specs: []spec{fakeSpec(os.Getenv("WEFT_TEST_SHA"))}}
		_, err := s.ensure(context.Background(), "cpu", os.Stdout)
		require.NoError(t, err)
		return
	}
	s, calls := fakeStore(t)
	t.Setenv("FAKE_SLEEP", "0.2")
	t.Setenv("WEFT_TEST_INSTALL", s.dir)
	t.Setenv("WEFT_TEST_SHA", s.specs[0].wheelSHA)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			out, err := exec.Command(os.Args[0], "-test.run=^TestConcurrentInstallsOfProcesses$").CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, countCalls(t, calls), "one process downloads, the others wait")
	_, err := s.installed(s.specs[0], true)
	require.NoError(t, err)
}

func TestWaitingForAnotherInstallIsSaidAndCanBeStopped(t *testing.T) {
	s, calls := fakeStore(t)
	require.NoError(t, os.MkdirAll(s.dir, 0o755))
	other := flock.New(s.base(s.specs[0]) + ".lock")
	require.NoError(t, other.Lock())
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	var said bytes.Buffer
	_, err := s.install(ctx, s.specs[0], &said)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Contains(t, said.String(), "another process is installing plugin cpu; waiting for it")
	require.Zero(t, countCalls(t, calls))
	require.NoError(t, other.Unlock())
	mustInstall(t, s)
}
