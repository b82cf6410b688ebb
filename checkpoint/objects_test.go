package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// objBase is crashBase on an object store.
func objBase(t *testing.T) (base *objects, foreign map[string]string) {
	base = newObjects()
	m, err := Open(base.client(), "b/run", Options{Keep: 1, KeepBy: "loss"})
	require.NoError(t, err)
	old, err := m.Save(context.Background(), snapshotOf(oldStep, 2))
	require.NoError(t, err)
	require.NoError(t, m.Close())
	foreign = map[string]string{
		"b/run/notes.txt":                                    "mine",
		"b/run/checkpoints/mine/x":                           "mine too",
		"b/run/checkpoints/epoch-0009-step-00000090/a":       "looks like a checkpoint",
		old.Dir + "/eval.txt":                                "beside the manifest",
		old.Dir + "/state/other.safetensors":                 "beside the state",
		old.Dir + "/state/other" + PartSuffix + "00001":      "looks like a part",
		"b/run/checkpoints/epoch-0001-step-00000010.tar.zst": "a copy",
		"b/runner/checkpoints/epoch-0001-step-00000010/a":    "of a neighbour",
	}
	for name, content := range foreign {
		base.put(name, content)
	}
	return base, foreign
}

func saveObj(c *objClient) error {
	mgr, err := Open(c, "b/run", Options{Keep: 1, KeepBy: "loss"})
	if err != nil {
		return err
	}
	_, err = mgr.Save(context.Background(), snapshotOf(newStep, 1))
	return errors.Join(err, mgr.Close())
}

// checkObjects is what must hold after any fault, once the run has started again.
func checkObjects(t *testing.T, o *objects, foreign map[string]string, saved error, label string) {
	t.Helper()
	o.steal("b/run/" + LockFile)
	mgr, err := Open(o.client(), "b/run", Options{Keep: 1, KeepBy: "loss"})
	require.NoError(t, err, label)
	latest, ok, err := mgr.Latest()
	require.NoError(t, err, label)
	require.True(t, ok, label)
	if saved == nil || errors.Is(saved, ErrPrune) {
		require.Equal(t, newStep, latest.Step, label)
	} else {
		require.Contains(t, []int{oldStep, newStep}, latest.Step, label)
	}
	list, err := mgr.List()
	require.NoError(t, err, label)
	for _, e := range list {
		require.NoError(t, mgr.Verify(e), label)
		checkState(t, mgr, e)
	}
	checkNoRubbish(t, o, list, foreign, label)
	// And the run goes on, over a listing that is out of date too.
	saved2, err := mgr.Save(context.Background(), snapshotOf(newStep+10, 1))
	require.NoError(t, err, label)
	require.Greater(t, saved2.Sequence, latest.Sequence, label)
	require.NoError(t, mgr.Close())
	o.late = func(name string) bool { return strings.HasPrefix(name, saved2.Dir) }
	r, err := Open(o.client(), "b/run", Options{ReadOnly: true})
	require.NoError(t, err, label)
	latest, ok, err = r.Latest()
	o.late = nil
	require.NoError(t, err, label)
	require.True(t, ok && latest.Step == newStep+10, label)
}

func checkNoRubbish(t *testing.T, o *objects, list []Entry, foreign map[string]string, label string) {
	t.Helper()
	tree := o.tree()
	for name, content := range foreign {
		require.Equal(t, content, tree[name], "%s: foreign %s", label, name)
		delete(tree, name)
	}
	for name := range tree {
		require.NotContains(t, name, ".weft-intent", label)
		require.NotContains(t, name, ".weft-manifest", label)
		require.NotContains(t, name, PartSuffix, label)
		inEntry := slices.ContainsFunc(list, func(e Entry) bool { return strings.HasPrefix(name, e.Dir+"/") })
		require.True(t, inEntry || name == "b/run/"+LockFile || name == "b/run/checkpoints/"+newestFile || name == "b/run/checkpoints/"+togetherFile, "%s: rubbish left: %s", label, name)
	}
}

// Every request of start, save and prune is once the last of its process, done
// or not; the recovery dies too.
func TestObjectsCrashAtEveryOperation(t *testing.T) {
	base, foreign := objBase(t)
	newest := map[int]int{}
	for n := 1; ; n++ {
		for seed := range int64(6) {
			o := base.clone()
			c := o.client()
			c.arm(n, crash, nil, seed)
			err := saveObj(c)
			if !c.fired() {
				require.NoError(t, err)
				t.Logf("%d operations, newest after a crash: %v", n-1, newest)
				require.NotZero(t, newest[oldStep])
				require.NotZero(t, newest[newStep])
				return
			}
			label := fmt.Sprintf("crash at operation %d (%s), draw %d", n, c.trace[len(c.trace)-1], seed)
			for again := range seed {
				c := o.client()
				c.arm(1+c.rng.Intn(5+int(seed)*int(again)*6), crash, nil, seed+again)
				if mgr, err := Open(c, "b/run", Options{}); err == nil {
					_ = mgr.Close()
				}
				c.dead = true
			}
			r, err2 := Open(o.clone().client(), "b/run", Options{ReadOnly: true})
			require.NoError(t, err2, label)
			e, _, err2 := r.Latest()
			require.NoError(t, err2, label)
			newest[e.Step]++
			checkObjects(t, o, foreign, err, label)
		}
	}
}

// Every request once fails for good, not done or done, while the process goes on.
func TestObjectsErrorAtEveryOperation(t *testing.T) {
	base, foreign := objBase(t)
	for _, f := range []fault{failBefore, failAfter} {
		for n := 1; ; n++ {
			o := base.clone()
			c := o.client()
			c.arm(n, f, syscall.EIO, int64(n))
			err := saveObj(c)
			if !c.fired() {
				require.NoError(t, err)
				t.Logf("%d operations", n-1)
				break
			}
			label := fmt.Sprintf("fault %d at operation %d (%s): %v", f, n, c.trace[n-1], err)
			if err != nil {
				require.ErrorIs(t, err, syscall.EIO, label)
				require.NotContains(t, err.Error(), "\n", label)
			}
			checkObjects(t, o, foreign, err, label)
		}
	}
}

// A failed save must not need a new start.
func TestObjectsSaveAfterFailedSave(t *testing.T) {
	base, foreign := objBase(t)
	for _, f := range []fault{failBefore, failAfter} {
		for n := 1; ; n++ {
			o := base.clone()
			c := o.client()
			mgr, err := Open(c, "b/run", Options{Keep: 1, KeepBy: "loss"})
			require.NoError(t, err)
			c.arm(n, f, syscall.EIO, 1)
			_, err = mgr.Save(context.Background(), snapshotOf(newStep, 1))
			if !c.fired() {
				break
			}
			_, err2 := mgr.Save(context.Background(), snapshotOf(newStep, 1))
			require.NoError(t, err2, "after %v", err)
			require.NoError(t, mgr.Close())
			checkObjects(t, o, foreign, nil, fmt.Sprintf("save again after %v", err))
		}
	}
}

// A process is stopped at every request; another one takes its lease over, cleans
// up, saves the same step and a later one; then the first goes on. It must
// neither commit any more nor harm what the other has.
func TestObjectsZombie(t *testing.T) {
	base, foreign := objBase(t)
	committed, refused := 0, 0
	for n := 1; ; n++ {
		o := base.clone()
		zombie := o.client()
		zombie.arm(n, crash, nil, 1)
		zombie.pause = make(chan chan struct{})
		ended := make(chan error, 1)
		go func() { ended <- saveObj(zombie) }()
		var goOn chan struct{}
		select {
		case goOn = <-zombie.pause:
		case err := <-ended:
			require.NoError(t, err)
			t.Logf("%d operations: %d saves of the stopped process committed before, %d refused", n-1, committed, refused)
			require.NotZero(t, committed)
			require.NotZero(t, refused)
			return
		}
		label := fmt.Sprintf("stopped at operation %d", n)
		o.steal("b/run/" + LockFile)
		mgr, err := Open(o.client(), "b/run", Options{Keep: 2, KeepBy: KeepByStep})
		require.NoError(t, err, label)
		atTakeOver, _, err := mgr.Latest()
		require.NoError(t, err, label)
		var mine []Entry
		for _, step := range []int{newStep, newStep + 10} {
			e, err := mgr.Save(context.Background(), snapshotOf(step, 0.5))
			require.NoError(t, err, label)
			mine = append(mine, e)
		}
		before := o.tree()
		close(goOn)
		err = <-ended
		label = fmt.Sprintf("stopped at operation %d (%s): %v", n, zombie.trace[n-1], err)
		switch {
		case atTakeOver.Step == newStep:
			committed++
		case n > 1 && err != nil:
			refused++
		}
		if err != nil && !errors.Is(err, ErrLocked) && !errors.Is(err, ErrPrune) {
			require.ErrorIs(t, err, errLeaseLost, label)
		}
		for _, e := range mine {
			require.NoError(t, mgr.Verify(e), label)
		}
		list, err := mgr.List()
		require.NoError(t, err, label)
		for _, e := range list {
			require.NoError(t, e.Err, label)
			require.NoError(t, mgr.Verify(e), label)
			require.Contains(t, before, e.Dir+"/"+ManifestFile, "%s: %s was committed by the stopped one", label, e.Dir)
		}
		latest, ok, err := mgr.Latest()
		require.NoError(t, err, label)
		require.True(t, ok && latest.Name == mine[1].Name, label)
		require.NoError(t, mgr.Close(), label)
		checkNoRubbish(t, o, list, foreign, label)
	}
}

// What a listing does not show yet is not passed over, and its name is not taken
// a second time.
func TestObjectsStaleListing(t *testing.T) {
	o := newObjects()
	mgr, err := Open(o.client(), "b/run", Options{})
	require.NoError(t, err)
	var saved []Entry
	for _, step := range []int{10, 20} {
		e, err := mgr.Save(context.Background(), snapshotOf(step, 1))
		require.NoError(t, err)
		saved = append(saved, e)
	}
	late := map[string]func(string) bool{
		"all":       func(string) bool { return true },
		"newest":    func(name string) bool { return strings.HasPrefix(name, saved[1].Dir) },
		"manifest":  func(name string) bool { return name == saved[1].Dir+"/"+ManifestFile },
		"one file":  func(name string) bool { return strings.Contains(name, "shard-00001") },
		"all state": func(name string) bool { return strings.Contains(name, "/state/") },
	}
	for what, f := range late {
		o.late = f
		e, ok, err := mgr.Latest()
		require.NoError(t, err, what)
		require.True(t, ok, what)
		require.Equal(t, saved[1].Name, e.Name, what)
		checkState(t, mgr, e)
	}
	o.late = late["all"]
	again, err := mgr.Save(context.Background(), snapshotOf(20, 1))
	require.NoError(t, err)
	require.Equal(t, 2, again.Revision)
	require.Equal(t, saved[1].Sequence+1, again.Sequence)
	older, err := mgr.Save(context.Background(), snapshotOf(10, 1))
	require.NoError(t, err, "nor that of one that the pointer does not name")
	require.Equal(t, 2, older.Revision)
	o.late = nil
	require.Equal(t, []int{10, 20, 20, 10}, stepsOf(t, mgr))
	for _, e := range append(saved, again, older) {
		require.NoError(t, mgr.Verify(e))
		require.NotContains(t, o.data, e.Dir+"/"+intentFile)
	}
	delete(o.data, older.Dir+"/"+ManifestFile)
	// A listing that still shows what is deleted harms nothing either: its manifest is gone.
	delete(o.data, again.Dir+"/"+ManifestFile)
	e, ok, err := mgr.Latest()
	require.NoError(t, err)
	require.True(t, ok && e.Name == saved[1].Name, e.Name)
	require.NoError(t, mgr.Close())
}

func TestObjectsPointer(t *testing.T) {
	o := newObjects()
	mgr, err := Open(o.client(), "b/run", Options{})
	require.NoError(t, err)
	e, err := mgr.Save(context.Background(), snapshotOf(10, 1))
	require.NoError(t, err)
	o.put("b/run/checkpoints/"+newestFile, "{}")
	_, err = mgr.List()
	require.ErrorContains(t, err, newestFile)
	require.ErrorContains(t, err, "delete that object")
	// The user went back by deleting what is newer: numbers still go up.
	b, err := json.Marshal(newest{Format: newestFormat, Sequence: 7, Names: []string{"epoch-0006-step-00000060", "epoch-0007-step-00000070"}})
	require.NoError(t, err)
	o.put("b/run/checkpoints/"+newestFile, string(b))
	latest, ok, err := mgr.Latest()
	require.NoError(t, err)
	require.True(t, ok && latest.Name == e.Name)
	next, err := mgr.Save(context.Background(), snapshotOf(20, 1))
	require.NoError(t, err)
	require.Equal(t, 8, next.Sequence)
	require.NoError(t, mgr.Close())
}

func TestObjectsSecondRun(t *testing.T) {
	o := newObjects()
	mgr, err := Open(o.client(), "b/run", Options{})
	require.NoError(t, err)
	_, err = Open(o.client(), "b/run", Options{})
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, mgr.Close())
	mgr, err = Open(o.client(), "b/run", Options{})
	require.NoError(t, err)
	list, err := mgr.List()
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoError(t, mgr.Close())
}

// An export that died is written afresh; config.json is never there before the
// rest.
func TestObjectsExport(t *testing.T) {
	ctx := context.Background()
	model := snapshotOf(20, 1).Model
	data := map[string][]byte{"model.a": payload("model.a", 20, 24), "model.b": payload("model.b", 20, 8)}
	for n := 1; ; n++ {
		o := newObjects()
		o.put("b/out/mine", "x")
		c := o.client()
		c.arm(n, crash, nil, int64(n))
		err := WriteModelFolder(ctx, c, "b/out/model", model)
		fired := c.fired()
		if fired {
			c.dead = true
			if _, loads := o.data["b/out/model/config.json"]; loads {
				checkModel(t, o.tree(), "b/out/model", data)
			}
			err = WriteModelFolder(ctx, o.client(), "b/out/model", model)
			if errors.Is(err, ErrNotEmpty) { // all was there
				err = nil
			}
		}
		require.NoError(t, err, "operation %d", n)
		checkModel(t, o.tree(), "b/out/model", data)
		require.NotContains(t, o.data, "b/out/model/"+intentFile)
		require.Equal(t, "x", string(o.data["b/out/mine"].data))
		if !fired {
			require.NotContains(t, o.data, "b/out/model/"+LockFile)
			require.ErrorIs(t, WriteModelFolder(ctx, o.client(), "b/out/model", model), ErrNotEmpty)
			break
		}
	}
	// A failure takes away what was written, a foreign file is in the way.
	o := newObjects()
	c := o.client()
	err := WriteCheckedFolder(ctx, c, "b/m", model, func(dir string) error { return fmt.Errorf("%s is not right", dir) })
	require.ErrorContains(t, err, "b/m is not right")
	require.Empty(t, o.data)
	o.put("b/m/sub/x", "")
	err = WriteModelFolder(ctx, c, "b/m", model)
	require.ErrorIs(t, err, ErrNotEmpty)
	require.ErrorContains(t, err, "sub")
	require.NotErrorIs(t, err, fs.ErrExist)
	require.Len(t, o.data, 1)
}
