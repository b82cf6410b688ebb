package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint/internal/region"
	"weft/checkpoint/safetensors"
	"weft/internal/pyenv"
)

func TestOSContract(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	o := OS{}
	require.NoError(t, o.MkdirAll(in("a/b")))
	require.NoError(t, o.MkdirAll(in("a/b")))
	f, err := o.Create(in("a/f"))
	require.NoError(t, err)
	_, err = f.Write([]byte("hello"))
	require.NoError(t, errors.Join(err, f.Sync(), f.Close()))
	_, err = o.Create(in("a/f"))
	require.ErrorIs(t, err, fs.ErrExist)
	require.NoError(t, os.WriteFile(in("a/g"), nil, 0o600))
	for _, rename := range []func(from, to string) error{o.Rename, renameChecked} {
		require.ErrorIs(t, rename(in("a/f"), in("a/g")), fs.ErrExist, "a file is never replaced")
		require.ErrorIs(t, rename(in("a/f"), in("a/b")), fs.ErrExist, "nor an empty folder")
		require.ErrorIs(t, rename(in("a/none"), in("a/new")), fs.ErrNotExist)
		require.NoError(t, rename(in("a/f"), in("a/f2")))
		require.NoError(t, rename(in("a/f2"), in("a/f")))
	}
	require.NoError(t, os.Symlink("b", in("a/link")))
	require.NoError(t, os.Symlink("nowhere", in("a/dangling")))
	list, err := o.List(in("a"))
	require.NoError(t, err)
	require.Equal(t, []DirEntry{
		{Name: "b", Dir: true, Size: list[0].Size}, {Name: "dangling", Link: true}, {Name: "f", Size: 5}, {Name: "g"}, {Name: "link", Dir: true, Link: true, Size: list[4].Size},
	}, list)
	_, err = o.List(in("none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	r, err := o.Open(in("a/f"))
	require.NoError(t, err)
	require.Equal(t, int64(5), r.Size())
	require.NoError(t, r.Close())
	_, err = o.Open(in("a/b"))
	require.ErrorContains(t, err, "not a regular file")
	require.NoError(t, os.WriteFile(in("a/"+replacePrefix+"r"), []byte("left by a crash, longer than what comes"), 0o600))
	for _, content := range []string{"new", "newer", ""} {
		require.NoError(t, o.Replace(in("a/r"), []byte(content)))
		b, err := os.ReadFile(in("a/r"))
		require.NoError(t, err)
		require.Equal(t, content, string(b))
	}
	require.Error(t, o.Replace(in("a/b"), []byte("x")), "a folder is not replaced")
	require.NoError(t, os.Symlink("f", in("a/"+replacePrefix+"s")))
	require.ErrorIs(t, o.Replace(in("a/s"), nil), syscall.ELOOP, "a link is not written through")
	require.NoError(t, os.Remove(in("a/"+replacePrefix+"s")))
	list, err = o.List(in("a"))
	require.NoError(t, err)
	for _, d := range list {
		require.NotContains(t, d.Name, replacePrefix)
	}
	require.Error(t, o.Remove(in("a")), "not empty")
	require.NoError(t, o.SyncDir(in("a")))
	free, err := o.FreeSpace(dir)
	require.NoError(t, err)
	require.Positive(t, free)
}

func TestSaveOnDisk(t *testing.T) {
	ctx := context.Background()
	root := filepath.Join(t.TempDir(), "deep", "run")
	mgr, err := Open(OS{}, root, Options{Keep: 1, KeepBy: "loss"})
	require.NoError(t, err)
	for i, loss := range []float64{3, 1, 2} {
		_, err := mgr.Save(ctx, snapshotOf(10*(i+1), loss))
		require.NoError(t, err)
	}
	require.Equal(t, []int{20, 30}, stepsOf(t, mgr))
	e, ok, err := mgr.Latest()
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, mgr.Verify(e))
	checkState(t, mgr, e)
	set, err := safetensors.OpenDir(e.ModelPath())
	require.NoError(t, err)
	defer set.Close()
	require.Len(t, set.Files(), 2)
	for _, i := range set.Tensors() {
		require.Equal(t, payload(i.Name, 30, i.Size()), set.Bytes(i.Name))
	}
	// One that the user moved away and linked is listed and read, never deleted.
	moved := filepath.Join(t.TempDir(), "moved")
	require.NoError(t, os.Rename(e.Dir, moved))
	require.NoError(t, os.Symlink(moved, e.Dir))
	_, err = mgr.Save(ctx, snapshotOf(40, 0.5))
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(moved, ManifestFile))
	require.NoError(t, mgr.Close())
	require.NoError(t, mgr.Close())
}

func TestUnusableStoragePath(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Open(OS{}, file, Options{})
	require.ErrorIs(t, err, syscall.ENOTDIR)
	require.ErrorContains(t, err, file)
	require.ErrorContains(t, err, "or give another --storage-path")

	mgr, err := Open(OS{}, filepath.Join(t.TempDir(), "run"), Options{})
	require.NoError(t, err)
	require.NoError(t, os.Remove(mgr.dir))
	_, err = mgr.Save(t.Context(), snapshotOf(10, 1))
	require.ErrorIs(t, err, syscall.ENOENT)
	require.ErrorContains(t, err, "or give another --storage-path")
	require.NoError(t, mgr.Close())
	m := newMemFS()
	m.arm(1, failBefore, syscall.EACCES, 0)
	_, err = Open(m, "/run", Options{})
	require.ErrorContains(t, err, "change its permissions or give another --storage-path")
}

// helperEnv makes the test binary play another process.
const helperEnv = "WEFT_CHECKPOINT_TEST_HELPER"

func TestMain(m *testing.M) {
	if h := os.Getenv(helperEnv); h != "" {
		helper(h)
		return
	}
	os.Exit(m.Run())
}

// helper opens the storage path in its first argument; as "lock" it says so
// and waits for the end of its input, as a number it saves the next step and
// kills itself at that operation.
func helper(what string) {
	at, _ := strconv.Atoi(what)
	mgr, err := Open(&killFS{OS: OS{}, at: at}, os.Args[len(os.Args)-1], Options{Keep: 1, KeepBy: KeepByStep})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if what == "lock" {
		fmt.Println("locked")
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0) // without Close
	}
	if _, err := mgr.Save(context.Background(), snapshotOf(newStep, 1)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("saved")
}

// killFS ends the process by SIGKILL before its at-th changing operation.
type killFS struct {
	OS
	at, n int
}

func (k *killFS) step() {
	if k.n++; k.n == k.at {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

type killFile struct {
	File
	k *killFS
}

func (k *killFS) Create(name string) (File, error) {
	k.step()
	f, err := k.OS.Create(name)
	return killFile{f, k}, err
}

func (f killFile) Write(p []byte) (int, error)        { f.k.step(); return f.File.Write(p) }
func (f killFile) Sync() error                        { f.k.step(); return f.File.Sync() }
func (k *killFS) Rename(a, b string) error            { k.step(); return k.OS.Rename(a, b) }
func (k *killFS) Replace(name string, b []byte) error { k.step(); return k.OS.Replace(name, b) }
func (k *killFS) Remove(name string) error            { k.step(); return k.OS.Remove(name) }
func (k *killFS) MkdirAll(dir string) error           { k.step(); return k.OS.MkdirAll(dir) }
func (k *killFS) SyncDir(dir string) error            { k.step(); return k.OS.SyncDir(dir) }
func (k *killFS) List(dir string) ([]DirEntry, error) { k.step(); return k.OS.List(dir) }

func startHelper(what, root string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], root)
	cmd.Env = append(os.Environ(), helperEnv+"="+what)
	return cmd
}

// A real process is killed at every third operation of start, save and prune.
func TestKill(t *testing.T) {
	kills := 0
	for at := 1; ; at += 3 {
		root := t.TempDir()
		mgr, err := Open(OS{}, root, Options{})
		require.NoError(t, err)
		_, err = mgr.Save(context.Background(), snapshotOf(oldStep, 1))
		require.NoError(t, err)
		require.NoError(t, mgr.Close())
		out, err := startHelper(strconv.Itoa(at), root).CombinedOutput()
		if err == nil {
			require.Contains(t, string(out), "saved")
			t.Logf("%d kills", kills)
			require.Greater(t, kills, 20)
			return
		}
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal(), string(out))
		kills++
		mgr, err = Open(OS{}, root, Options{})
		require.NoError(t, err)
		e, ok, err := mgr.Latest()
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, mgr.Verify(e))
		checkState(t, mgr, e)
		names, err := os.ReadDir(filepath.Join(root, Folder))
		require.NoError(t, err)
		for _, n := range names {
			require.False(t, strings.HasPrefix(n.Name(), ".weft"), "killed at %d: %s is left", at, n.Name())
		}
		require.NoError(t, mgr.Close())
	}
}

func TestSecondRunIsRefused(t *testing.T) {
	root := t.TempDir()
	cmd := startHelper("lock", root)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said := make([]byte, 7)
	_, err = out.Read(said)
	require.NoError(t, err)
	require.Equal(t, "locked\n", string(said))

	_, err = Open(OS{}, root, Options{})
	require.ErrorIs(t, err, ErrLocked)
	var le *LockedError
	require.ErrorAs(t, err, &le)
	owner, ok := le.Holder()
	require.True(t, ok)
	require.Equal(t, cmd.Process.Pid, owner.PID)
	host, _ := os.Hostname()
	require.ErrorContains(t, err, fmt.Sprintf("locked by process %d on host %s", cmd.Process.Pid, host))

	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	mgr, err := Open(OS{}, root, Options{})
	require.NoError(t, err, "the lock ends with its process")
	_, err = Open(OS{}, root, Options{})
	require.ErrorContains(t, err, fmt.Sprintf("process %d", os.Getpid()), "within one process too")
	require.NoError(t, mgr.Close())
}

// A run whose folder was moved or whose lock file was deleted does not write into the folder of the run that has the
// name now, nor delete from it.
func TestLostLock(t *testing.T) {
	for name, lose := range map[string]func(root string) error{
		"folder moved": func(root string) error { return os.Rename(root, root+"-moved") },
		"file deleted": func(root string) error { return os.Remove(filepath.Join(root, LockFile)) },
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "run")
			first, err := Open(OS{}, root, Options{Keep: 1, KeepBy: "step"})
			require.NoError(t, err)
			_, err = first.Save(t.Context(), snapshotOf(10, 1))
			require.NoError(t, err)
			require.NoError(t, first.Owned())
			require.NoError(t, lose(root))
			require.ErrorIs(t, first.Owned(), ErrLocked, "gone")

			second, err := Open(OS{}, root, Options{})
			require.NoError(t, err)
			for _, step := range []int{20, 30} {
				_, err = second.Save(t.Context(), snapshotOf(step, 1))
				require.NoError(t, err)
			}
			want := stepsOf(t, second)
			_, err = first.Save(t.Context(), snapshotOf(40, 1))
			require.ErrorIs(t, err, ErrLocked)
			require.ErrorContains(t, err, "was lost")
			_, err = first.Prune()
			require.ErrorIs(t, err, ErrLocked)
			require.Equal(t, want, stepsOf(t, second))
			require.NoError(t, first.Close())
			_, err = second.Save(t.Context(), snapshotOf(50, 1))
			require.NoError(t, err, "the first run's end leaves the second its lock")
			require.NoError(t, second.Close())
		})
	}
}

func TestWriteModelFolder(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "a", "export")
	model := snapshotOf(20, 1).Model
	require.NoError(t, WriteModelFolder(ctx, OS{}, dir, model))
	names := func() (list []string) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			list = append(list, e.Name())
		}
		return list
	}
	want := []string{"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"}
	require.Equal(t, want, names())
	set, err := safetensors.OpenDir(dir)
	require.NoError(t, err)
	require.Equal(t, payload("model.a", 20, 24), set.Bytes("model.a"))
	require.NoError(t, set.Close())
	err = WriteModelFolder(ctx, OS{}, dir, model)
	require.ErrorIs(t, err, ErrNotEmpty)
	require.ErrorContains(t, err, "config.json")

	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Mkdir(dir, 0o755))
	model.MaxShardSize = 0
	require.NoError(t, WriteModelFolder(ctx, OS{}, dir, model), "an empty folder is used")
	require.Equal(t, []string{"config.json", "model.safetensors"}, names())
	parent, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, parent, 1)
}

// An export appears whole or not at all, and the next one clears away what is
// left of it.
func TestExportCrashAtEveryOperation(t *testing.T) {
	ctx := context.Background()
	for n := 1; ; n++ {
		for seed := range int64(3) {
			m := newMemFS()
			m.put("/out/mine", "x")
			model := snapshotOf(20, 1).Model
			m.arm(n, crash, nil, seed)
			err := WriteModelFolder(ctx, m, "/out/model", model)
			if !m.fired() {
				require.NoError(t, err)
				return
			}
			m = m.reboot(seed)
			if _, whole := m.tree()["/out/model/config.json"]; whole {
				data := map[string][]byte{"model.a": payload("model.a", 20, 24), "model.b": payload("model.b", 20, 8)}
				checkModel(t, m.tree(), "/out/model", data)
				require.ErrorIs(t, WriteModelFolder(ctx, m, "/out/model", model), ErrNotEmpty)
				continue
			}
			require.NoError(t, WriteModelFolder(ctx, m, "/out/model", model))
			tree := m.tree()
			require.Equal(t, "x", tree["/out/mine"])
			for name := range tree {
				require.NotContains(t, name, ".weft", "operation %d", n)
			}
		}
	}
}

// The index is what transformers reads: sizes and file names as there.
func TestModelSplit(t *testing.T) {
	whole := func(name string, n int) Tensor {
		return cutTensor(name, safetensors.U8, []int{n}, make([]byte, n), [][2][]int{{{0}, {n}}})
	}
	for _, c := range []struct {
		sizes []int
		limit int64
		want  [][]int
	}{
		{[]int{3, 4}, 0, [][]int{{3, 4}}},
		{[]int{3, 4}, 7, [][]int{{3, 4}}},
		{[]int{3, 4}, 6, [][]int{{3}, {4}}},
		{[]int{30, 4, 2, 5}, 6, [][]int{{30}, {4, 2}, {5}}},
		{nil, 6, [][]int{nil}},
	} {
		m := &ModelFolder{MaxShardSize: c.limit}
		for i, s := range c.sizes {
			m.Tensors = append(m.Tensors, whole(fmt.Sprint(i), s))
		}
		groups, _ := splitModel(m)
		var got [][]int
		for _, g := range groups {
			var sizes []int
			for _, t := range g {
				sizes = append(sizes, t.Shape[0])
			}
			got = append(got, sizes)
		}
		require.Equal(t, c.want, got)
	}
}

// The package that transformers' loader stands on reads a folder of ours.
func TestReferenceReadsModelFolder(t *testing.T) {
	python := pyenv.Ensure(t, "safetensors", []string{"safetensors==0.8.0", "numpy==2.4.6"})
	dir := filepath.Join(t.TempDir(), "export")
	n, err := region.Bytes([]int{5, 7}, 4)
	require.NoError(t, err)
	data := payload("model.x", 1, n)
	x := cutTensor("model.x", safetensors.F32, []int{5, 7}, data, [][2][]int{{{0, 0}, {5, 3}}, {{0, 3}, {5, 4}}})
	y := gridTensor("model.y", 1, safetensors.F32, []int{6}, [2][]int{{0}, {6}})
	require.NoError(t, WriteModelFolder(context.Background(), OS{}, dir, &ModelFolder{Tensors: []Tensor{x, y}, MaxShardSize: 150}))
	script := `
import json, os, sys
from safetensors import safe_open
index = json.load(open(os.path.join(sys.argv[1], "model.safetensors.index.json")))
out = {"size": index["metadata"]["total_size"]}
for name, file in index["weight_map"].items():
    with safe_open(os.path.join(sys.argv[1], file), "np") as f:
        assert f.metadata()["format"] == "pt"
        out[name] = f.get_tensor(name).tobytes().hex()
print(json.dumps(out))
`
	b, err := exec.Command(python, "-c", script, dir).CombinedOutput()
	require.NoError(t, err, string(b))
	var got map[string]any
	require.NoError(t, json.Unmarshal(b, &got), string(b))
	require.Equal(t, fmt.Sprintf("%x", data), got["model.x"])
	require.Equal(t, fmt.Sprintf("%x", payload("model.y", 1, 24)), got["model.y"])
	require.Equal(t, 164.0, got["size"])
}
