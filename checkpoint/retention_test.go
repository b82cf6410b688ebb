package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/internal/property"
)

// epochEnd is a checkpoint with a model folder, partial one in the middle of an epoch.
func epochEnd(epoch, step int, loss float64) Entry {
	return Entry{Name: nameOf(epoch, step, 1), Epoch: epoch, Step: step, Revision: 1, Metrics: Metrics{"loss": loss}, Model: true}
}

func partial(epoch, step int) Entry {
	return Entry{Name: nameOf(epoch, step, 1), Epoch: epoch, Step: step, Revision: 1, Metrics: Metrics{"partial_loss": 0.1}}
}

func TestRules(t *testing.T) {
	history := []Entry{
		epochEnd(1, 10, 3), partial(1, 15), epochEnd(2, 20, 1), partial(2, 25), epochEnd(3, 30, 2), epochEnd(4, 40, 4), partial(4, 45), partial(4, 47),
	}
	for i := range history {
		history[i].Sequence = i + 1
	}
	for _, tc := range []struct {
		name string
		opts Options
		want map[int][]Reason // by step
	}{
		{"no rule", Options{}, map[int][]Reason{10: {KeptAll}, 15: {KeptAll}, 20: {KeptAll}, 25: {KeptAll}, 30: {KeptAll}, 40: {KeptAll}, 45: {KeptAll}, 47: {KeptNewest}}},
		{"best", Options{Keep: 1, KeepBy: "loss"}, map[int][]Reason{20: {KeptBest}, 47: {KeptNewest}}},
		{"best two", Options{Keep: 2, KeepBy: "loss"}, map[int][]Reason{20: {KeptBest}, 30: {KeptBest}, 47: {KeptNewest}}},
		{"partial losses rank last", Options{Keep: 5, KeepBy: "loss"}, map[int][]Reason{10: {KeptBest}, 20: {KeptBest}, 30: {KeptBest}, 40: {KeptBest}, 47: {KeptNewest, KeptBest}}},
		{"another metric", Options{Keep: 1, KeepBy: "partial_loss"}, map[int][]Reason{47: {KeptNewest, KeptBest}}},
		{"step", Options{Keep: 2, KeepBy: KeepByStep}, map[int][]Reason{45: {KeptBest}, 47: {KeptNewest, KeptBest}}},
		{"last", Options{KeepLast: 3}, map[int][]Reason{40: {KeptLast}, 45: {KeptLast}, 47: {KeptNewest, KeptLast}}},
		{"every second epoch's end", Options{KeepEvery: 2}, map[int][]Reason{20: {KeptEvery}, 40: {KeptEvery}, 47: {KeptNewest}}},
		{"together", Options{Keep: 1, KeepBy: "loss", KeepLast: 1, KeepEvery: 4}, map[int][]Reason{20: {KeptBest}, 40: {KeptEvery}, 47: {KeptNewest, KeptLast}}},
		{"more than there are", Options{Keep: 99, KeepBy: KeepByStep, KeepLast: 99, KeepEvery: 99}, map[int][]Reason{
			10: {KeptBest, KeptLast}, 15: {KeptBest, KeptLast}, 20: {KeptBest, KeptLast}, 25: {KeptBest, KeptLast}, 30: {KeptBest, KeptLast}, 40: {KeptBest, KeptLast},
			45: {KeptBest, KeptLast}, 47: {KeptNewest, KeptBest, KeptLast},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := map[int][]Reason{}
			for _, d := range tc.opts.Decide(history) {
				if len(d.Keep) > 0 {
					got[d.Entry.Step] = d.Keep
				}
			}
			require.Equal(t, tc.want, got)
		})
	}
	require.Empty(t, Options{Keep: 1, KeepBy: "loss"}.Decide(nil))
}

func TestRulesThatMeanNothing(t *testing.T) {
	for _, o := range []Options{{Keep: -1}, {KeepLast: -1}, {KeepEvery: -2}, {Keep: 1}} {
		_, err := Open(newMemFS(), "/run", o)
		require.ErrorContains(t, err, "opening checkpoints: keep")
	}
}

// drawHistory is a list as List gives it: commits in order, some steps saved
// again, some in the middle of an epoch, some linked, damaged or without metric.
func drawHistory(t *rapid.T) []Entry {
	var list []Entry
	revision := map[[2]int]int{}
	epoch, step := 0, 0
	for seq := range rapid.IntRange(0, 14).Draw(t, "commits") {
		switch rapid.IntRange(0, 5).Draw(t, "next") {
		case 0: // back to an earlier step, as after a fall-back
			step = max(0, step-rapid.IntRange(0, 20).Draw(t, "back"))
			epoch = step / 10
		default:
			step += rapid.IntRange(1, 10).Draw(t, "steps")
			epoch = step / 10
		}
		at := [2]int{epoch, step}
		revision[at]++
		e := Entry{Name: nameOf(epoch, step, revision[at]), Epoch: epoch, Step: step, Revision: revision[at], Sequence: seq + 1, Model: step%10 == 0}
		e.Metrics = Metrics{"loss": rapid.SampledFrom([]float64{0.5, 1, 1, 2, math.NaN(), math.Inf(1)}).Draw(t, "loss")}
		if rapid.IntRange(0, 4).Draw(t, "partial") == 0 {
			e.Metrics = Metrics{"partial_loss": 0}
		}
		e.Linked = rapid.IntRange(0, 9).Draw(t, "linked") == 0
		if rapid.IntRange(0, 9).Draw(t, "damaged") == 0 {
			e.Err, e.Sequence, e.Metrics, e.Model = ErrDamaged, 0, nil, false
		}
		list = append(list, e)
	}
	sortByCommit(list)
	return list
}

func drawOptions(t *rapid.T) Options {
	return Options{
		Keep: rapid.IntRange(0, 4).Draw(t, "keep"), KeepBy: rapid.SampledFrom([]string{"loss", "eval_loss", KeepByStep}).Draw(t, "by"),
		KeepLast: rapid.IntRange(0, 4).Draw(t, "last"), KeepEvery: rapid.IntRange(0, 3).Draw(t, "every"),
	}
}

// Over random histories and rules: each rule's promise holds, written out again
// from its words, and what goes is exactly what no promise covers.
func TestRetentionOfRandomHistories(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		list, o := drawHistory(t), drawOptions(t)
		before := slices.Clone(list)
		decisions := o.Decide(list)
		require.Equal(t, before, list, "the list is the caller's")
		require.Len(t, decisions, len(list))

		superseded := func(e Entry) bool {
			return slices.ContainsFunc(list, func(x Entry) bool {
				return x.Err == nil && x.Epoch == e.Epoch && x.Step == e.Step && x.Sequence > e.Sequence
			})
		}
		newer := func(e Entry, among func(Entry) bool) (n int) {
			for _, x := range list {
				if x.Err == nil && !superseded(x) && among(x) && x.Name != e.Name {
					n++
				}
			}
			return n
		}
		usable := 0
		for _, d := range decisions {
			e := d.Entry
			if e.Err == nil {
				usable++
			}
			later := newer(e, func(x Entry) bool { return !x.Linked && x.Sequence > e.Sequence })
			better := newer(e, func(x Entry) bool {
				if x.Linked {
					return false
				}
				if o.KeepBy == KeepByStep || rank(x, o.KeepBy) == rank(e, o.KeepBy) {
					return x.Sequence > e.Sequence
				}
				return rank(x, o.KeepBy) < rank(e, o.KeepBy)
			})
			promised := map[Reason]bool{
				KeptFaulty: e.Err != nil,
				KeptLinked: e.Err == nil && e.Linked,
				KeptNewest: e.Err == nil && newer(e, func(x Entry) bool { return x.Sequence > e.Sequence }) == 0 && !superseded(e),
				KeptBest:   e.Err == nil && !e.Linked && !superseded(e) && better < o.Keep,
				KeptLast:   e.Err == nil && !e.Linked && !superseded(e) && later < o.KeepLast,
				KeptEvery:  e.Err == nil && !e.Linked && !superseded(e) && o.KeepEvery > 0 && e.Model && e.Epoch > 0 && e.Epoch%o.KeepEvery == 0,
			}
			for why, want := range promised {
				require.Equal(t, want, slices.Contains(d.Keep, why), "%s: %s by %v", e.Name, why, d.Keep)
			}
			if o.Keep+o.KeepLast+o.KeepEvery == 0 {
				require.NotEmpty(t, d.Keep)
			} else {
				require.NotContains(t, d.Keep, KeptAll)
			}
		}
		if usable > 0 {
			kept := slices.DeleteFunc(slices.Clone(decisions), func(d Decision) bool { return len(d.Keep) == 0 || d.Entry.Err != nil })
			require.NotEmpty(t, kept, "never the only good one")
			// Nothing changes when the rules are applied to what they left.
			var left []Entry
			for _, d := range decisions {
				if len(d.Keep) > 0 {
					left = append(left, d.Entry)
				}
			}
			require.Empty(t, surplus(o.Decide(left)))
		}
	})
}

// ruleHistory saves five checkpoints and keeps them all: epochs 1 to 4 and one
// in the middle of epoch 5.
func ruleHistory(t *testing.T) *memFS {
	m := newMemFS()
	mgr, err := Open(m, "/run", Options{})
	require.NoError(t, err)
	for _, c := range []struct {
		step int
		loss float64
	}{{10, 3}, {20, 1}, {30, 2}, {40, 4}} {
		_, err := mgr.Save(context.Background(), snapshotOf(c.step, c.loss))
		require.NoError(t, err)
	}
	s := snapshotOf(45, 0)
	s.Metrics, s.Model = map[string]float64{"partial_loss": 0.5}, nil
	_, err = mgr.Save(context.Background(), s)
	require.NoError(t, err)
	require.NoError(t, mgr.Close())
	m.put("/run/checkpoints/"+nameOf(1, 10, 1)+"/mine.txt", "foreign")
	return m
}

// Under each rule a crash, and an error, at every operation of a save that
// deletes several checkpoints, and of Prune: whatever the rule keeps is whole
// after the next start, what it lets go of is whole or gone, and the rule's
// work is done by the next prune.
func TestFaultsUnderEveryRule(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts Options
		save []int // the steps kept when step 50 (loss 5) is saved
	}{
		{"best by loss", Options{Keep: 1, KeepBy: "loss"}, []int{20, 50}},
		{"best by eval_loss, which none has", Options{Keep: 2, KeepBy: "eval_loss"}, []int{45, 50}},
		{"last", Options{KeepLast: 2}, []int{45, 50}},
		{"every third", Options{KeepEvery: 3}, []int{30, 50}},
		{"together", Options{Keep: 1, KeepBy: "loss", KeepLast: 2, KeepEvery: 4}, []int{20, 40, 45, 50}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			base := ruleHistory(t)
			for _, f := range []fault{crash, failBefore, failAfter} {
				for n := 1; ; n++ {
					m := base.clone()
					m.arm(n, f, syscall.EIO, int64(n))
					err := saveStep(m, tc.opts, 50)
					if !m.fired() {
						require.NoError(t, err)
						break
					}
					label := fmt.Sprintf("fault %d at operation %d", f, n)
					checkKept(t, m.reboot(int64(n)), tc.opts, tc.save, label)
				}
			}
		})
	}
}

func saveStep(m *memFS, o Options, step int) error {
	mgr, err := Open(m, "/run", o)
	if err != nil {
		return err
	}
	_, err = mgr.Save(context.Background(), snapshotOf(step, 5))
	return errors.Join(err, mgr.Close())
}

// checkKept starts again after a fault: every checkpoint is whole, the rule's
// ones are there, and saving the step again leaves exactly those.
func checkKept(t *testing.T, m *memFS, o Options, want []int, label string) {
	t.Helper()
	mgr, err := Open(m, "/run", o)
	require.NoError(t, err, label)
	have := stepsOf(t, mgr)
	for _, step := range want {
		require.True(t, step == 50 || slices.Contains(have, step), "%s: %d is kept by the rule and gone: %v", label, step, have)
	}
	list, err := mgr.List()
	require.NoError(t, err, label)
	for _, e := range list {
		require.NoError(t, mgr.Verify(e), label)
	}
	_, err = mgr.Save(context.Background(), snapshotOf(50, 5))
	require.NoError(t, err, label)
	require.Equal(t, want, stepsOf(t, mgr), label)
	require.NoError(t, mgr.Close(), label)
	require.Equal(t, "foreign", m.tree()["/run/checkpoints/"+nameOf(1, 10, 1)+"/mine.txt"], label)
}

// Prune keeps the newest checkpoint that is whole when the newest is not, and
// nothing goes when none is.
func TestPruneKeepsTheOnlyGoodOne(t *testing.T) {
	m := ruleHistory(t)
	for _, name := range []string{nameOf(4, 45, 1), nameOf(4, 40, 1), nameOf(2, 20, 1)} {
		flip(t, m, name+"/state/process-0000-shard-00000.safetensors")
	}
	mgr, err := Open(m, "/run", Options{Keep: 1, KeepBy: "loss"})
	require.NoError(t, err)
	removed, err := mgr.Prune()
	require.NoError(t, err)
	require.Len(t, removed, 2)
	require.Equal(t, []int{20, 30, 45}, stepsOf(t, mgr), "20 is the best, 30 the only good one of the rest, 45 the newest")
	flip(t, m, nameOf(3, 30, 1)+"/model/config.json")
	mgr.opts = Options{KeepLast: 1}
	removed, err = mgr.Prune()
	require.NoError(t, err)
	require.Empty(t, removed, "none is whole: nothing goes")
}
