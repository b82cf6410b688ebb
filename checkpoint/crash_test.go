package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint/internal/region"
	"weft/checkpoint/safetensors"
)

// payload is the content of a tensor in the snapshot of a step.
func payload(name string, step int, n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*31 + step*7 + len(name)*13 + int(name[0]))
	}
	return b
}

// gridTensor cuts a tensor with the payload into shards of grid cells.
func gridTensor(name string, step int, dtype DType, shape []int, cells ...[2][]int) Tensor {
	n, err := region.Bytes(shape, dtype.Size())
	if err != nil {
		panic(err)
	}
	return cutTensor(name, dtype, shape, payload(name, step, n), cells)
}

func cutTensor(name string, dtype DType, shape []int, data []byte, cells [][2][]int) Tensor {
	t := Tensor{Name: name, DType: dtype, Shape: shape}
	zero := make([]int, len(shape))
	for _, c := range cells {
		t.Shards = append(t.Shards, Shard{Start: c[0], Size: c[1], Fetch: func(dst []byte) error {
			region.Copy(dst, data, zero, shape, c[0], c[1], c[0], c[1], dtype.Size())
			return nil
		}})
	}
	return t
}

// snapshotOf makes a small snapshot with two state files, two weights files and
// an index.
func snapshotOf(step int, loss float64) *Snapshot {
	return &Snapshot{
		Step: step, Epoch: step / 10, Metrics: map[string]float64{"loss": loss},
		Data: []byte(`{"position":1}`), Config: []byte(`{"lr":2e-5}`), Versions: map[string]string{"weft": "test"},
		State: []Tensor{
			gridTensor("w", step, safetensors.F32, []int{4, 6}, [2][]int{{0, 0}, {4, 3}}, [2][]int{{0, 3}, {4, 3}}),
			gridTensor("m", step, safetensors.BF16, []int{5}, [2][]int{{0}, {3}}, [2][]int{{3}, {2}}),
			gridTensor("step", step, safetensors.I64, nil, [2][]int{{}, {}}),
		},
		Model: &ModelFolder{
			Tensors: []Tensor{
				gridTensor("model.a", step, safetensors.BF16, []int{3, 4}, [2][]int{{0, 0}, {3, 2}}, [2][]int{{0, 2}, {3, 2}}),
				gridTensor("model.b", step, safetensors.BF16, []int{2, 2}, [2][]int{{0, 0}, {2, 2}}),
			},
			Files:        map[string][]byte{"config.json": []byte(`{}`)},
			MaxShardSize: 24,
		},
	}
}

// checkState compares the whole state of an entry with the payload.
func checkState(t *testing.T, m *Manager, e Entry) {
	t.Helper()
	r, err := m.OpenState(e)
	require.NoError(t, err)
	defer r.Close()
	require.Len(t, r.Tensors(), 3)
	for _, info := range r.Tensors() {
		n, err := region.Bytes(info.Shape, info.DType.Size())
		require.NoError(t, err)
		got := make([]byte, n)
		require.NoError(t, r.ReadRegion(info.Name, make([]int, len(info.Shape)), info.Shape, got))
		require.Equal(t, payload(info.Name, e.Step, n), got)
	}
}

const oldStep, newStep = 20, 30

// crashBase is a storage path with the checkpoint of oldStep and files of other
// people beside and inside of it; foreign are those.
func crashBase(t *testing.T) (base *memFS, foreign map[string]string) {
	base = newMemFS()
	m, err := Open(base, "/run", Options{Keep: 1, KeepBy: "loss"})
	require.NoError(t, err)
	old, err := m.Save(context.Background(), snapshotOf(oldStep, 2))
	require.NoError(t, err)
	require.NoError(t, m.Close())
	foreign = map[string]string{
		"/run/notes.txt":                                    "mine",
		"/run/checkpoints/mine/x":                           "mine too",
		"/run/checkpoints/epoch-0009-step-00000090/a":       "looks like a checkpoint",
		"/run/checkpoints/.weft-tmp-save-mine/a":            "looks like a temporary folder",
		"/run/checkpoints/.weft-tmp-save-x-1-1/b":           "is in a folder named as one",
		old.Dir + "/eval.txt":                               "beside the manifest",
		old.Dir + "/state/other.safetensors":                "beside the state",
		"/run/checkpoints/epoch-0001-step-00000010.tar.zst": "a copy",
	}
	for name, content := range foreign {
		base.put(name, content)
	}
	return base, foreign
}

// checkAfter is what must hold after any fault, once the run has started again.
func checkAfter(t *testing.T, m *memFS, foreign map[string]string, saved error, label string) {
	t.Helper()
	mgr, err := Open(m, "/run", Options{Keep: 1, KeepBy: "loss"})
	require.NoError(t, err, label)
	latest, ok, err := mgr.Latest()
	require.NoError(t, err, label)
	require.True(t, ok, label)
	switch {
	case saved == nil || errors.Is(saved, ErrPrune):
		require.Equal(t, newStep, latest.Step, label)
	default:
		require.Contains(t, []int{oldStep, newStep}, latest.Step, label)
	}
	list, err := mgr.List()
	require.NoError(t, err, label)
	for _, e := range list {
		require.NoError(t, mgr.Verify(e), label)
		checkState(t, mgr, e)
	}
	tree := m.tree()
	for name, content := range foreign {
		require.Equal(t, content, tree[name], "%s: foreign %s", label, name)
		delete(tree, name)
	}
	for name := range tree {
		require.NotContains(t, name, ".weft-tmp", label)
		require.NotContains(t, name, ".weft-intent", label)
		require.NotContains(t, name, ".weft-manifest", label)
		inEntry := slices.ContainsFunc(list, func(e Entry) bool { return strings.HasPrefix(name, e.Dir+"/") })
		require.True(t, inEntry || name == "/run/"+LockFile || name == "/run/checkpoints/"+togetherFile, "%s: rubbish left: %s", label, name)
	}
	// And the run goes on.
	_, err = mgr.Save(context.Background(), snapshotOf(newStep+10, 1))
	require.NoError(t, err, label)
	latest, ok, err = mgr.Latest()
	require.NoError(t, err, label)
	require.True(t, ok && latest.Step == newStep+10, label)
	require.NoError(t, mgr.Close())
}

// saveNew opens the storage path, saves newStep and prunes oldStep.
func saveNew(m *memFS) error {
	mgr, err := Open(m, "/run", Options{Keep: 1, KeepBy: "loss"})
	if err != nil {
		return err
	}
	_, err = mgr.Save(context.Background(), snapshotOf(newStep, 1))
	return errors.Join(err, mgr.Close())
}

// Every operation of start, save and prune is once the place of a crash, with
// several draws of what of the unsynced survives; the recovery after it
// crashes too, at a place drawn for it.
func TestCrashAtEveryOperation(t *testing.T) {
	base, foreign := crashBase(t)
	runs, both := 0, map[int]int{}
	for n := 1; ; n++ {
		for seed := range int64(10) {
			m := base.clone()
			m.arm(n, crash, nil, seed)
			err := saveNew(m)
			if !m.fired() {
				require.NoError(t, err)
				t.Logf("%d operations, %d crashes, newest after them: %v", n-1, runs, both)
				require.NotZero(t, both[oldStep])
				require.NotZero(t, both[newStep])
				return
			}
			label := fmt.Sprintf("crash at operation %d (%s), draw %d", n, m.trace[len(m.trace)-1], seed)
			m = m.reboot(seed)
			for again := range seed {
				m.arm(1+m.rng.Intn(5+int(seed)*int(again)*6), crash, nil, seed)
				if mgr, err := Open(m, "/run", Options{}); err == nil {
					require.NoError(t, mgr.Close())
				}
				m = m.reboot(seed + again)
			}
			runs++
			r, err2 := Open(m.clone(), "/run", Options{})
			require.NoError(t, err2, label)
			e, _, err2 := r.Latest()
			require.NoError(t, err2, label)
			both[e.Step]++
			checkAfter(t, m, foreign, err, label)
		}
	}
}

// Every operation once returns an error while the process goes on.
func TestErrorAtEveryOperation(t *testing.T) {
	base, foreign := crashBase(t)
	for _, f := range []fault{failBefore, failAfter} {
		for _, inject := range []error{syscall.EIO, syscall.ENOSPC} {
			for n := 1; ; n++ {
				m := base.clone()
				m.arm(n, f, inject, int64(n))
				err := saveNew(m)
				if !m.fired() {
					require.NoError(t, err)
					t.Logf("%d operations", n-1)
					break
				}
				label := fmt.Sprintf("%v (%d) at operation %d: %v", inject, f, n, err)
				if err != nil {
					require.ErrorIs(t, err, inject, label)
					require.NotContains(t, err.Error(), "\n", label)
				}
				if err != nil && inject == syscall.ENOSPC {
					require.ErrorIs(t, err, ErrNoSpace, label)
					require.ErrorContains(t, err, "earlier checkpoints are untouched", label)
				}
				// The process is dead or goes on: both find the same.
				checkAfter(t, m.clone(), foreign, err, label)
				checkAfter(t, m.reboot(int64(n)), foreign, err, label+", then a crash")
			}
		}
	}
}

// A failed save must not need a new start: the next one in the same process
// cleans up after it.
func TestSaveAfterFailedSave(t *testing.T) {
	base, foreign := crashBase(t)
	for n := 1; ; n++ {
		m := base.clone()
		mgr, err := Open(m, "/run", Options{Keep: 1, KeepBy: "loss"})
		require.NoError(t, err)
		m.arm(n, failBefore, syscall.EIO, 1)
		_, err = mgr.Save(context.Background(), snapshotOf(newStep, 1))
		if !m.fired() {
			return
		}
		_, err2 := mgr.Save(context.Background(), snapshotOf(newStep, 1))
		require.NoError(t, err2, "after %v", err)
		require.NoError(t, mgr.Close())
		checkAfter(t, m, foreign, nil, fmt.Sprintf("save again after %v", err))
	}
}
