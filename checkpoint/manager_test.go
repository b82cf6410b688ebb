package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint/safetensors"
)

func TestSurplus(t *testing.T) {
	type c struct {
		step, rev int
		loss      float64
		bad       bool
	}
	nan := math.NaN()
	for _, tc := range []struct {
		name string
		list []c // in the order of commits
		keep int
		by   string
		want []int // steps to delete
	}{
		{"keep all", []c{{1, 1, 3, false}, {2, 1, 2, false}}, 0, "loss", nil},
		{"newest is best", []c{{1, 1, 3, false}, {2, 1, 2, false}}, 1, "loss", []int{1}},
		{"best and newest", []c{{1, 1, 3, false}, {2, 1, 1, false}, {3, 1, 2, false}}, 1, "loss", []int{1}},
		{"best two and newest", []c{{1, 1, 1, false}, {2, 1, 9, false}, {3, 1, 2, false}, {4, 1, 8, false}}, 2, "loss", []int{2}},
		{"equal: the newer", []c{{1, 1, 1, false}, {2, 1, 1, false}, {3, 1, 1, false}}, 1, "loss", []int{1, 2}},
		{"NaN is worst", []c{{1, 1, 5, false}, {2, 1, nan, false}, {3, 1, nan, false}}, 1, "loss", []int{2}},
		{"no metric of that name: the newest", []c{{1, 1, 5, false}, {2, 1, 6, false}}, 1, "accuracy", []int{1}},
		{"by step", []c{{1, 1, 1, false}, {2, 1, 2, false}, {3, 1, 3, false}}, 2, KeepByStep, []int{1}},
		{"damaged ones stay and do not count", []c{{1, 1, 1, true}, {2, 1, 2, false}, {3, 1, 1, true}}, 1, "loss", nil},
		{"only damaged", []c{{1, 1, 1, true}}, 1, "loss", nil},
		{"saved again", []c{{1, 1, 1, false}, {1, 2, 3, false}, {2, 1, 4, false}}, 1, "loss", []int{1}},
		{"after going back", []c{{5, 1, 9, false}, {3, 1, 8, false}}, 1, "loss", []int{5}},
	} {
		var list []Entry
		for i, c := range tc.list {
			e := Entry{Name: nameOf(c.step, c.step, c.rev), Step: c.step, Epoch: c.step, Revision: c.rev, Sequence: i + 1, Metrics: Metrics{"loss": c.loss}}
			if c.bad {
				e.Err, e.Sequence, e.Metrics = ErrDamaged, 0, nil
			}
			list = append(list, e)
		}
		var got []int
		for _, e := range surplus(Options{Keep: tc.keep, KeepBy: tc.by}.Decide(list)) {
			got = append(got, e.Step)
		}
		require.Equal(t, tc.want, got, tc.name)
	}
}

// stepsOf lists the steps of the checkpoints in order.
func stepsOf(t *testing.T, m *Manager) (steps []int) {
	list, err := m.List()
	require.NoError(t, err)
	for _, e := range list {
		steps = append(steps, e.Step)
	}
	return steps
}

func TestRetentionOverEpochs(t *testing.T) {
	ctx := context.Background()
	mgr, err := Open(newMemFS(), "/run", Options{Keep: DefaultKeep, KeepBy: DefaultKeepBy})
	require.NoError(t, err)
	for _, c := range []struct {
		step int
		loss float64
		want []int
	}{
		{10, 3, []int{10}}, {20, 2, []int{20}}, {30, 2.5, []int{20, 30}}, {40, 2.1, []int{20, 40}}, {50, 1, []int{50}},
	} {
		_, err := mgr.Save(ctx, snapshotOf(c.step, c.loss))
		require.NoError(t, err)
		require.Equal(t, c.want, stepsOf(t, mgr))
	}
}

func TestSaveAgain(t *testing.T) {
	ctx := context.Background()
	m := newMemFS()
	mgr, err := Open(m, "/run", Options{Keep: 2, KeepBy: KeepByStep})
	require.NoError(t, err)
	m.put("/run/checkpoints/epoch-0003-step-00000030/mine", "x")
	e, err := mgr.Save(ctx, snapshotOf(30, 1))
	require.NoError(t, err)
	require.Equal(t, "epoch-0003-step-00000030-r2", e.Name, "the name is somebody's")
	e, err = mgr.Save(ctx, snapshotOf(30, 1))
	require.NoError(t, err)
	require.Equal(t, "epoch-0003-step-00000030-r3", e.Name)
	list, err := mgr.List()
	require.NoError(t, err)
	require.Len(t, list, 1, "the older revision is gone")
	require.Equal(t, 3, list[0].Revision)
	require.Equal(t, 2, list[0].Sequence)
	require.Equal(t, "x", m.tree()["/run/checkpoints/epoch-0003-step-00000030/mine"])
}

// After a fall-back to an older checkpoint the run's new ones are the newest,
// though their steps are smaller.
func TestNewestAfterFallBack(t *testing.T) {
	ctx := context.Background()
	m := newMemFS()
	mgr, err := Open(m, "/run", Options{Keep: 1, KeepBy: KeepByStep})
	require.NoError(t, err)
	mgr.opts.Keep = 0
	for _, step := range []int{10, 20, 30} {
		_, err := mgr.Save(ctx, snapshotOf(step, 1))
		require.NoError(t, err)
	}
	flip(t, m, nameOf(3, 30, 1)+"/state/process-0000-shard-00001.safetensors")
	flip(t, m, nameOf(2, 20, 1)+"/model/config.json")
	e, ok, err := mgr.Latest()
	require.NoError(t, err, "Latest reads no content")
	require.True(t, ok)
	require.Equal(t, 30, e.Step)
	e, ok, skipped, err := mgr.LatestGood()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 10, e.Step)
	require.Len(t, skipped, 2)
	require.Equal(t, 30, skipped[0].Entry.Step)
	require.ErrorContains(t, skipped[0].Err, "state/process-0000-shard-00001.safetensors")
	require.ErrorContains(t, skipped[1].Err, "model/config.json")

	// Prune by hand never takes the only good one.
	mgr.opts.Keep = 1
	removed, err := mgr.Prune()
	require.NoError(t, err)
	require.Len(t, removed, 1)
	require.Equal(t, 20, removed[0].Step)
	require.Equal(t, []int{10, 30}, stepsOf(t, mgr))

	_, err = mgr.Save(ctx, snapshotOf(15, 1))
	require.NoError(t, err)
	e, _, err = mgr.Latest()
	require.NoError(t, err)
	require.Equal(t, 15, e.Step)
	require.Equal(t, []int{15}, stepsOf(t, mgr))
}

// flip changes a byte of a file below /run/checkpoints.
func flip(t *testing.T, m *memFS, name string) {
	n, err := m.find("/run/checkpoints/" + name)
	require.NoError(t, err)
	n.data[len(n.data)-1] ^= 1
}

// A manifest that cannot be used is met by Latest, not passed over, and its
// folder is never deleted.
func TestDamagedManifestIsReported(t *testing.T) {
	ctx := context.Background()
	m := newMemFS()
	mgr, err := Open(m, "/run", Options{Keep: 1, KeepBy: KeepByStep})
	require.NoError(t, err)
	for _, step := range []int{10, 20} {
		mgr.opts.Keep = 0
		_, err = mgr.Save(ctx, snapshotOf(step, 1))
		require.NoError(t, err)
	}
	flip(t, m, nameOf(2, 20, 1)+"/"+ManifestFile)
	e, ok, err := mgr.Latest()
	require.True(t, ok)
	require.Equal(t, 20, e.Step)
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, e.Dir)
	good, ok, skipped, err := mgr.LatestGood()
	require.NoError(t, err)
	require.True(t, ok && good.Step == 10 && len(skipped) == 1)
	mgr.opts.Keep = 1
	_, err = mgr.Save(ctx, snapshotOf(20, 1))
	require.NoError(t, err)
	e, _, err = mgr.Latest()
	require.NoError(t, err)
	require.Equal(t, nameOf(2, 20, 2), e.Name)
	require.Equal(t, []int{20, 20}, stepsOf(t, mgr), "the damaged one stays, step 10 is gone")
}

// A folder that somebody renamed by hand is not taken for another step.
func TestRenamedByHand(t *testing.T) {
	m, mgr, e := savedOnce(t)
	require.NoError(t, m.Rename(e.Dir, "/run/checkpoints/"+nameOf(7, 70, 1)))
	_, ok, err := mgr.Latest()
	require.True(t, ok)
	require.ErrorContains(t, err, "was the folder renamed?")
}

func TestSnapshotFaults(t *testing.T) {
	ok := func(dst []byte) error { return nil }
	whole := []Shard{{Start: []int{0}, Size: []int{4}, Fetch: ok}}
	boom := errors.New("device lost")
	for _, c := range []struct {
		name   string
		change func(*Snapshot)
		kind   error
		say    string
	}{
		{"negative step", func(s *Snapshot) { s.Step = -1 }, ErrSnapshot, "step -1"},
		{"config", func(s *Snapshot) { s.Config = []byte("{") }, ErrSnapshot, "config is not JSON"},
		{"data", func(s *Snapshot) { s.Data = []byte("x") }, ErrSnapshot, "data is not JSON"},
		{"hole", func(s *Snapshot) {
			s.State = []Tensor{{Name: "t", DType: safetensors.U8, Shape: []int{5}, Shards: whole}}
		}, ErrSnapshot, `state tensor "t": its shards do not cover it exactly once: the slices hold 4 of 5`},
		{"replicas", func(s *Snapshot) {
			s.State = []Tensor{{Name: "t", DType: safetensors.U8, Shape: []int{4}, Shards: []Shard{whole[0], whole[0]}}}
		}, ErrSnapshot, "overlaps"},
		{"outside", func(s *Snapshot) {
			s.State = []Tensor{{Name: "t", DType: safetensors.U8, Shape: []int{3}, Shards: whole}}
		}, ErrSnapshot, "outside"},
		{"twice", func(s *Snapshot) { s.State = append(s.State, s.State[0]) }, ErrSnapshot, "twice"},
		{"dtype", func(s *Snapshot) { s.State[0].DType = "F31" }, ErrSnapshot, "F31"},
		{"reserved name", func(s *Snapshot) { s.State[0].Name = "__metadata__" }, safetensors.ErrDuplicate, "__metadata__"},
		{"no fetch", func(s *Snapshot) { s.State[0].Shards[0].Fetch = nil }, ErrSnapshot, "Fetch"},
		{"model tensor", func(s *Snapshot) { s.Model.Tensors[0].Shards = nil }, ErrSnapshot, `model tensor "model.a"`},
		{"model file outside", func(s *Snapshot) { s.Model.Files["../x"] = nil }, ErrSnapshot, `"../x"`},
		{"model file of weights", func(s *Snapshot) { s.Model.Files["model.safetensors"] = nil }, ErrSnapshot, "model.safetensors"},
		{"fetch fails", func(s *Snapshot) {
			s.State[0].Shards[1].Fetch = func([]byte) error { return boom }
		}, boom, `fetching slice start [0 3] size [4 3] of tensor "w": device lost`},
		{"model fetch fails", func(s *Snapshot) {
			s.Model.Tensors[0].Shards[1].Fetch = func([]byte) error { return boom }
		}, boom, `tensor "model.a"`},
	} {
		m, mgr, _ := savedOnce(t)
		before := m.tree()
		s := snapshotOf(newStep, 1)
		c.change(s)
		_, err := mgr.Save(context.Background(), s)
		require.ErrorIs(t, err, c.kind, c.name)
		require.ErrorContains(t, err, c.say, c.name)
		require.ErrorContains(t, err, "saving step", c.name)
		require.Equal(t, before, m.tree(), c.name)
	}
}

func TestCancel(t *testing.T) {
	m, mgr, _ := savedOnce(t)
	before := m.tree()
	ctx, cancel := context.WithCancel(context.Background())
	s := snapshotOf(newStep, 1)
	fetch := s.State[0].Shards[1].Fetch
	s.State[0].Shards[1].Fetch = func(dst []byte) error { cancel(); return fetch(dst) }
	_, err := mgr.Save(ctx, s)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, before, m.tree())
}

func TestNoSpaceBeforeWriting(t *testing.T) {
	m, mgr, _ := savedOnce(t)
	m.free = spaceMargin
	before := m.tree()
	m.trace = nil
	_, err := mgr.Save(context.Background(), snapshotOf(newStep, 1))
	require.ErrorIs(t, err, ErrNoSpace)
	require.ErrorContains(t, err, "4.2 MB are free; earlier checkpoints are untouched: free space there or give --storage-path")
	require.Equal(t, before, m.tree())
	require.False(t, strings.Contains(fmt.Sprint(m.trace), "create"), "nothing was written")
}

func TestReadOnly(t *testing.T) {
	m, _, e := savedOnce(t)
	mgr, err := Open(m, "/run", Options{ReadOnly: true})
	require.NoError(t, err, "though a run holds the lock")
	require.NoError(t, mgr.Verify(e))
	checkState(t, mgr, e)
	_, err = mgr.Save(context.Background(), snapshotOf(newStep, 1))
	require.ErrorIs(t, err, ErrReadOnly)
	_, err = mgr.Prune()
	require.ErrorIs(t, err, ErrReadOnly)
	require.NoError(t, mgr.Close())
	none, err := Open(m, "/nothing", Options{ReadOnly: true})
	require.NoError(t, err)
	_, ok, err := none.Latest()
	require.NoError(t, err)
	require.False(t, ok)
}

func TestOpenOptions(t *testing.T) {
	_, err := Open(newMemFS(), "/run", Options{Keep: -1})
	require.ErrorContains(t, err, "negative")
	_, err = Open(newMemFS(), "/run", Options{Keep: 1})
	require.ErrorContains(t, err, "metric")
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1 kB", 4194304: "4.2 MB", 999_999: "1 MB", 10_400_000_000: "10.4 GB"} {
		require.Equal(t, want, formatBytes(n))
	}
}

// One slice is in host memory at a time: every Fetch gets the same buffer.
func TestOneBuffer(t *testing.T) {
	mgr, err := Open(newMemFS(), "/run", Options{})
	require.NoError(t, err)
	seen := map[*byte]bool{}
	tensor := func(name string, rows int) Tensor {
		tt := Tensor{Name: name, DType: safetensors.F32, Shape: []int{2 * rows, 3}}
		for i := range 2 {
			tt.Shards = append(tt.Shards, Shard{Start: []int{i * rows, 0}, Size: []int{rows, 3}, Fetch: func(dst []byte) error {
				seen[&dst[0]] = true
				require.Len(t, dst, rows*12)
				return nil
			}})
		}
		return tt
	}
	s := &Snapshot{State: []Tensor{tensor("a", 5), tensor("b", 4)}, Model: &ModelFolder{Tensors: []Tensor{tensor("a", 5), tensor("b", 4)}}}
	_, err = mgr.Save(context.Background(), s)
	require.NoError(t, err)
	require.Len(t, seen, 1)
}
