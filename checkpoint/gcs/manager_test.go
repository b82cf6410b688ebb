package gcs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
	"weft/checkpoint/gcs/gcstest"
)

const root = "b/jobs/run"

// content is the state's tensor of a step: larger than a part.
func content(step int) []byte { return random(5_000 + step) }

func snapshot(step int) *checkpoint.Snapshot {
	data := content(step)
	n := len(data)
	cut := n / 3
	shard := func(from, to int) checkpoint.Shard {
		return checkpoint.Shard{Start: []int{from}, Size: []int{to - from}, Fetch: func(dst []byte) error { copy(dst, data[from:to]); return nil }}
	}
	return &checkpoint.Snapshot{
		Step: step, Epoch: step / 10, Metrics: map[string]float64{"loss": 1},
		State: []checkpoint.Tensor{{Name: "w", DType: "U8", Shape: []int{n}, Shards: []checkpoint.Shard{shard(0, cut), shard(cut, n)}}},
		Model: &checkpoint.ModelFolder{
			Tensors: []checkpoint.Tensor{{Name: "model.w", DType: "U8", Shape: []int{n}, Shards: []checkpoint.Shard{shard(0, n)}}},
			Files:   map[string][]byte{"config.json": []byte("{}")},
		},
	}
}

// load reads a checkpoint's state and compares it.
func load(m *checkpoint.Manager, e checkpoint.Entry) error {
	r, err := m.OpenState(e)
	if err != nil {
		return err
	}
	defer r.Close()
	want := content(e.Step)
	got := make([]byte, len(want))
	if err := r.ReadRegion("w", []int{0}, []int{len(want)}, got); err != nil {
		return err
	}
	if string(got) != string(want) {
		return fmt.Errorf("WRONG BYTES of step %d", e.Step)
	}
	return nil
}

var errWrongNewest = errors.New("WRONG NEWEST")

// session is all that a run does: it starts, finds the newest checkpoint, reads
// it, saves the next step, prunes, lists.
func session(f *FS, step int) error {
	m, err := checkpoint.Open(f, root, checkpoint.Options{Keep: 1, KeepBy: checkpoint.KeepByStep})
	if err != nil {
		return err
	}
	err = func() error {
		e, ok, err := m.Latest()
		if err != nil {
			return err
		}
		if !ok || e.Step != step-10 {
			return fmt.Errorf("%w: %v at the start of step %d", errWrongNewest, e.Step, step)
		}
		if err := load(m, e); err != nil {
			return err
		}
		if _, err := m.Save(context.Background(), snapshot(step)); err != nil {
			return err
		}
		if e, _, err = m.Latest(); err != nil {
			return err
		}
		if e.Step != step {
			return fmt.Errorf("%w: %v after step %d was saved", errWrongNewest, e.Step, step)
		}
		if _, err := m.Prune(); err != nil {
			return err
		}
		return errors.Join(m.Verify(e), load(m, e))
	}()
	return errors.Join(err, m.Close())
}

// start is a server that holds step 10, and files of somebody else.
func start(t *testing.T) (*gcstest.Server, map[string]string) {
	s := gcstest.Start(t, "b")
	m, err := checkpoint.Open((&fakeClock{}).use(open(t, s)), root, checkpoint.Options{})
	require.NoError(t, err)
	e, err := m.Save(t.Context(), snapshot(10))
	require.NoError(t, err)
	require.NoError(t, m.Close())
	foreign := map[string]string{
		"jobs/run/notes.txt": "mine", "jobs/run2/x": "a neighbour's", strings.TrimPrefix(e.Dir, "b/") + "/eval.txt": "beside the manifest",
		"jobs/run/checkpoints/epoch-0009-step-00000090/a": "no checkpoint",
	}
	for name, content := range foreign {
		s.Put("b", name, []byte(content))
	}
	s.Requests()
	return s, foreign
}

// after checks the bucket after a session, whole or not, with a new process.
func after(t *testing.T, s *gcstest.Server, foreign map[string]string, ended error) {
	t.Helper()
	f := (&fakeClock{}).use(open(t, s))
	m, err := checkpoint.Open(f, root, checkpoint.Options{Keep: 1, KeepBy: checkpoint.KeepByStep})
	require.NoError(t, err)
	e, ok, err := m.Latest()
	require.NoError(t, err)
	require.True(t, ok)
	if ended == nil || errors.Is(ended, checkpoint.ErrPrune) {
		require.Equal(t, 20, e.Step)
	} else {
		require.Contains(t, []int{10, 20}, e.Step)
	}
	list, err := m.List()
	require.NoError(t, err)
	for _, e := range list {
		require.NoError(t, m.Verify(e))
		require.NoError(t, load(m, e))
	}
	require.NoError(t, m.Close())
	for name, content := range s.Objects("b") {
		if want, ok := foreign[name]; ok {
			require.Equal(t, want, string(content), name)
			delete(foreign, name)
			continue
		}
		inEntry := false
		for _, e := range list {
			inEntry = inEntry || strings.HasPrefix("b/"+name, e.Dir+"/") && !strings.Contains(name, ".weft-")
		}
		require.True(t, inEntry || name == "jobs/run/checkpoints/.weft-newest.json", "left: %s", name)
	}
	require.Empty(t, foreign, "deleted")
	require.NoError(t, session(f, e.Step+10), "the run goes on")
}

// named are the errors that a session may end with.
func named(err error) bool {
	for _, n := range []error{ErrQuota, ErrUnavailable, ErrCredentials, ErrPermission, ErrChecksum, ErrRetention, errStillThere, checkpoint.ErrDamaged} {
		if errors.Is(err, n) {
			return true
		}
	}
	return false
}

// Every request of a session fails once, in every way that passes: nothing is to
// be seen of it.
func TestManagerOverPassingFaults(t *testing.T) {
	s, foreign := start(t)
	require.NoError(t, session((&fakeClock{}).use(open(t, s)), 20))
	ops := map[gcstest.Op]int{}
	for _, r := range s.Requests() {
		ops[r.Op]++
	}
	t.Logf("a session: %v", ops)
	after(t, s, foreign, nil)
	runs := 0
	for _, c := range []struct {
		op     gcstest.Op
		do     gcstest.Action
		stride int
	}{
		{"", gcstest.TooMany(0), 17}, {"", gcstest.Unavailable, 19}, {"", gcstest.Reset, 13}, {"", gcstest.LostAnswer, 7},
		{gcstest.Insert, gcstest.LostAnswer, 3}, {gcstest.Copy, gcstest.LostAnswer, 1}, {gcstest.Compose, gcstest.LostAnswer, 1}, {gcstest.Delete, gcstest.LostAnswer, 3},
		{gcstest.Insert, gcstest.HalfUpload, 4}, {gcstest.Insert, gcstest.BitFlipUp, 4}, {gcstest.Delete, gcstest.LostDelete, 2},
		{gcstest.Read, gcstest.BitFlip, 2}, {gcstest.Read, gcstest.HalfRead, 3},
		{gcstest.List, gcstest.StaleList("epoch-000"), 2}, {gcstest.List, gcstest.StaleList("state"), 2},
	} {
		for skip := 0; ; skip += c.stride {
			s, foreign := start(t)
			s.Inject(gcstest.Fault{Op: c.op, Skip: skip, Do: c.do})
			err := session((&fakeClock{}).use(open(t, s)), 20)
			if s.Heal()[0] == 0 {
				require.NoError(t, err)
				break
			}
			require.NoError(t, err, "%s at request %d", c.do, skip)
			runs++
			if skip%3 == 0 {
				after(t, s, foreign, err)
			}
		}
	}
	t.Logf("%d sessions with a fault", runs)
	require.Greater(t, runs, 100)
}

// From some request on everything fails: the session ends with a named error on
// one line, and the next one finds a whole checkpoint.
func TestManagerOverLastingFaults(t *testing.T) {
	runs := 0
	for _, c := range []struct {
		op     gcstest.Op
		do     gcstest.Action
		stride int
	}{
		{"", gcstest.TooMany(0), 31}, {"", gcstest.Unavailable, 29}, {"", gcstest.Reset, 23}, {"", gcstest.LostAnswer, 11},
		{"", gcstest.Unauthorized, 27}, {gcstest.Insert, gcstest.Forbidden("storage.objects.create"), 7}, {gcstest.Delete, gcstest.Forbidden("storage.objects.delete"), 4},
		{gcstest.List, gcstest.Forbidden("storage.objects.list"), 5}, {gcstest.Read, gcstest.Forbidden("storage.objects.get"), 9},
		{gcstest.Insert, gcstest.HalfUpload, 6}, {gcstest.Insert, gcstest.BitFlipUp, 6}, {gcstest.Delete, gcstest.LostDelete, 5},
		{gcstest.Read, gcstest.BitFlip, 5}, {gcstest.Read, gcstest.HalfRead, 5},
	} {
		for skip := 0; ; skip += c.stride {
			s, foreign := start(t)
			s.Inject(gcstest.Fault{Op: c.op, Skip: skip, Times: gcstest.Always, Do: c.do})
			err := session((&fakeClock{}).use(open(t, s)), 20)
			if s.Heal()[0] == 0 {
				require.NoError(t, err)
				break
			}
			runs++
			if err != nil {
				require.True(t, named(err), "%s from request %d on: %v", c.do, skip, err)
				require.NotErrorIs(t, err, errWrongNewest)
				require.NotContains(t, err.Error(), "WRONG")
				require.Contains(t, err.Error(), "gs://b/jobs")
				require.NotContains(t, err.Error(), " b/jobs")
				require.NotErrorIs(t, err, fs.ErrNotExist)
			}
			after(t, s, foreign, err)
		}
	}
	t.Logf("%d sessions that failed", runs)
	require.Greater(t, runs, 60)
}
