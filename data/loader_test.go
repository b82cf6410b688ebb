package data

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/internal/property"
)

// numbered is a data set of n rows in which row i is [i+10, i+10, …], 2 + i%3 tokens long.
func numbered(t testing.TB, n int) *Dataset {
	t.Helper()
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"input_ids":%s}`, jsonInts(slices.Repeat([]int{i + 10}, 2+i%3)))
	}
	return mustOpen(t, Options{MaxSeqLen: 6}, lines...)
}

func jsonInts(ints []int) string {
	out := "["
	for i, n := range ints {
		if i > 0 {
			out += ","
		}
		out += fmt.Sprint(n)
	}
	return out + "]"
}

func collect(t require.TestingT, l *Loader, epoch, first int) (all []*Batch) {
	for b, err := range l.Batches(context.Background(), epoch, first) {
		require.NoError(t, err)
		all = append(all, b)
	}
	return all
}

// TestOrderNeverChanges pins the permutation: a run resumed by a newer weft must see the same rows. The values come from a
// second implementation, written in Python from the description of Order.
func TestOrderNeverChanges(t *testing.T) {
	for _, c := range []struct {
		n     int
		seed  uint64
		epoch int
		want  []int
	}{
		{0, 1, 1, []int{}},
		{1, 1, 1, []int{0}},
		{10, 42, 0, []int{6, 2, 5, 3, 4, 7, 0, 1, 9, 8}},
		{10, 42, 1, []int{2, 3, 9, 6, 0, 8, 7, 4, 5, 1}},
		{10, 43, 0, []int{8, 7, 5, 2, 4, 9, 6, 3, 0, 1}},
	} {
		require.Equal(t, c.want, Order(c.n, c.seed, c.epoch), "n %d, seed %d, epoch %d", c.n, c.seed, c.epoch)
	}
	sum := 0
	for i, at := range Order(100_000, 7, 3) {
		sum = (sum*31 + at*i) % 1_000_000_007
	}
	require.Equal(t, 856202950, sum)
}

func TestOrderIsAFairPermutation(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "n")
		order := Order(n, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 9).Draw(t, "epoch"))
		slices.Sort(order)
		for i, at := range order {
			require.Equal(t, i, at)
		}
	})
	// Each of four elements stands in each place in about a quarter of 4,000 epochs (4 standard deviations: 110).
	var counts [4][4]int
	for epoch := range 4000 {
		for i, at := range Order(4, 42, epoch) {
			counts[i][at]++
		}
	}
	for _, row := range counts {
		for _, n := range row {
			require.InDelta(t, 1000, n, 110, "%v", counts)
		}
	}
}

func TestBatchContent(t *testing.T) {
	ds := mustOpen(t, Options{LossOn: LossCompletion, MaxSeqLen: 5}, `{"input_ids":[5,6,7],"labels":[-100,6,7]}`, `{"input_ids":[8,9],"labels":[8,9]}`,
		`{"input_ids":[3,3,3,3,3],"labels":[-100,-100,-100,-100,3]}`)
	l, err := NewLoader(ds, LoaderConfig{GlobalBatch: 2, PadID: 1})
	require.NoError(t, err)
	require.Equal(t, 2, l.StepsPerEpoch())
	x := Ignore
	require.Equal(t, []*Batch{
		{Epoch: 4, Step: 0, Rows: 2, SeqLen: 5, Targets: 3, RealRows: 2, Tokens: 5,
			InputIDs: []int32{5, 6, 7, 1, 1, 8, 9, 1, 1, 1},
			Labels:   []int32{x, 6, 7, x, x, 8, 9, x, x, x},
			Mask:     []int32{1, 1, 1, 0, 0, 1, 1, 0, 0, 0}},
		{Epoch: 4, Step: 1, Rows: 2, SeqLen: 5, Targets: 1, RealRows: 1, Tokens: 5,
			InputIDs: []int32{3, 3, 3, 3, 3, 1, 1, 1, 1, 1},
			Labels:   []int32{x, x, x, x, 3, x, x, x, x, x},
			Mask:     []int32{1, 1, 1, 1, 1, 0, 0, 0, 0, 0}},
	}, collect(t, l, 4, 0))

	l, err = NewLoader(ds, LoaderConfig{GlobalBatch: 2, SeqLen: 7, DropLast: true, Rows: []RowRange{{1, 2}}})
	require.NoError(t, err)
	require.Equal(t, []*Batch{{Rows: 1, SeqLen: 7, Targets: 3, RealRows: 2, Tokens: 5, InputIDs: []int32{8, 9, 0, 0, 0, 0, 0},
		Labels: []int32{8, 9, x, x, x, x, x}, Mask: []int32{1, 1, 0, 0, 0, 0, 0}}}, collect(t, l, 0, 0))
}

// TestProcessesConcatenate splits the global batch over processes in a random way: their parts, side by side, are
// what one process gets, and the counts agree. Prefetching and a later first step change nothing.
func TestProcessesConcatenate(t *testing.T) {
	sets := map[int]*Dataset{}
	property.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(rt, "rows")
		if sets[n] == nil {
			sets[n] = numbered(t, n)
		}
		c := LoaderConfig{GlobalBatch: rapid.IntRange(1, 12).Draw(rt, "batch"), Seed: rapid.Uint64().Draw(rt, "seed"),
			Shuffle: rapid.Bool().Draw(rt, "shuffle")}
		c.DropLast = n >= c.GlobalBatch && rapid.Bool().Draw(rt, "drop last")
		epoch := rapid.IntRange(0, 3).Draw(rt, "epoch")
		whole, err := NewLoader(sets[n], c)
		require.NoError(rt, err)
		want := collect(rt, whole, epoch, 0)
		require.Len(rt, want, whole.StepsPerEpoch())
		first := rapid.IntRange(0, len(want)).Draw(rt, "first step")

		got := make([]*Batch, len(want)-first)
		for start := 0; start < c.GlobalBatch; {
			end := rapid.IntRange(start+1, c.GlobalBatch).Draw(rt, "end")
			part := c
			part.Rows, part.Prefetch = []RowRange{{start, end}}, rapid.IntRange(0, 3).Draw(rt, "prefetch")
			l, err := NewLoader(sets[n], part)
			require.NoError(rt, err)
			for i, b := range collect(rt, l, epoch, first) {
				if got[i] == nil {
					got[i] = &Batch{Epoch: b.Epoch, Step: b.Step, SeqLen: b.SeqLen, Targets: b.Targets, RealRows: b.RealRows, Tokens: b.Tokens}
				}
				require.Equal(rt, got[i].Targets, b.Targets)
				got[i].Rows += b.Rows
				got[i].InputIDs = append(got[i].InputIDs, b.InputIDs...)
				got[i].Labels = append(got[i].Labels, b.Labels...)
				got[i].Mask = append(got[i].Mask, b.Mask...)
			}
			start = end
		}
		require.Equal(rt, want[first:], got)
		checkEpoch(rt, n, c, want)
	})
}

// checkEpoch says whether an epoch has each row once, and whether the counts are those of the labels.
func checkEpoch(t require.TestingT, n int, c LoaderConfig, batches []*Batch) {
	seen := map[int32]int{}
	rows := 0
	for _, b := range batches {
		targets, tokens := 0, 0
		for i, label := range b.Labels {
			if i%b.SeqLen != 0 && label != Ignore {
				targets++
			}
			tokens += int(b.Mask[i])
		}
		require.Equal(t, targets, b.Targets)
		require.Equal(t, tokens, b.Tokens)
		rows += b.RealRows
		for i := range b.RealRows {
			seen[b.InputIDs[i*b.SeqLen]]++
		}
	}
	require.Len(t, seen, rows, "no row twice")
	if !c.DropLast {
		require.Equal(t, n, rows)
	}
}

func TestEpochsDiffer(t *testing.T) {
	l, err := NewLoader(numbered(t, 40), LoaderConfig{GlobalBatch: 8, Seed: 42, Shuffle: true})
	require.NoError(t, err)
	require.NotEqual(t, collect(t, l, 0, 0)[0].InputIDs, collect(t, l, 1, 0)[0].InputIDs)
	require.Equal(t, collect(t, l, 1, 2), collect(t, l, 1, 0)[2:])
}

func TestLoaderErrors(t *testing.T) {
	ds := numbered(t, 5)
	for name, c := range map[string]struct {
		c    LoaderConfig
		want string
	}{
		"no batch":    {LoaderConfig{}, "a global batch of 0 rows; give at least 1"},
		"short rows":  {LoaderConfig{GlobalBatch: 1, SeqLen: 3}, "rows of 3 tokens are too short for dataset x.jsonl, tokenised for a window of 6"},
		"all dropped": {LoaderConfig{GlobalBatch: 6, DropLast: true}, "dataset x.jsonl has 5 rows, fewer than one global batch of 6: lower the batch size, or keep the last batch"},
		"prefetch":    {LoaderConfig{GlobalBatch: 1, Prefetch: -1}, "prefetch of -1 batches; give 0 or more"},
		"outside":     {LoaderConfig{GlobalBatch: 2, Rows: []RowRange{{1, 3}}}, "rows [1, 3) of a global batch of 2"},
		"twice":       {LoaderConfig{GlobalBatch: 3, Rows: []RowRange{{0, 2}, {1, 3}}}, "row 1 of the global batch is asked for twice"},
		"none":        {LoaderConfig{GlobalBatch: 3, Rows: []RowRange{}}, "this process has no row of the global batch"},
	} {
		_, err := NewLoader(ds, c.c)
		require.EqualError(t, err, c.want, name)
	}
	l, err := NewLoader(ds, LoaderConfig{GlobalBatch: 2, SeqLen: 4})
	require.NoError(t, err, "rows need not be longer than the longest")
	for _, at := range [][2]int{{-1, 0}, {0, -1}, {0, 4}} {
		for b, err := range l.Batches(context.Background(), at[0], at[1]) {
			require.Nil(t, b)
			require.ErrorContains(t, err, "an epoch has 3 steps")
		}
	}
	require.Empty(t, collect(t, l, 0, 3), "an epoch resumed at its end")
}

// TestNoGoroutineIsLeft ends the loop in every way; a bubble whose goroutines do not all end fails its test.
func TestNoGoroutineIsLeft(t *testing.T) {
	ds := numbered(t, 30)
	for _, prefetch := range []int{0, 1, 4} {
		synctest.Test(t, func(t *testing.T) {
			l, err := NewLoader(ds, LoaderConfig{GlobalBatch: 2, Shuffle: true, Prefetch: prefetch})
			require.NoError(t, err)
			collect(t, l, 0, 0)
			for range l.Batches(context.Background(), 0, 0) {
				break
			}
			func() {
				defer func() { require.Equal(t, "stop", recover()) }()
				for range l.Batches(context.Background(), 0, 0) {
					panic("stop")
				}
			}()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			got := 0
			var last error
			for b, err := range l.Batches(ctx, 1, 0) {
				if last = err; err == nil {
					require.Equal(t, got, b.Step)
					got++
				}
				if got == 3 {
					cancel()
				}
			}
			require.Equal(t, 3, got)
			require.ErrorIs(t, last, context.Canceled)
			require.ErrorContains(t, last, "batch 3 of epoch 1")
		})
	}
}
