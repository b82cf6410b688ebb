package job

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/checkpoint"
	"weft/checkpoint/safetensors"
	"weft/internal/property"
)

func TestParseShardSize(t *testing.T) {
	for text, want := range map[string]int64{
		"5GB": 5_000_000_000, "500MB": 500_000_000, "2GiB": 2 << 30, "1.5kB": 1500, "1KiB": 1024, "4 MB": 4_000_000, "123": 123, "7B": 7, "1T": 1e12,
	} {
		got, err := parseShardSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "GB", "5XB", "-1GB", "0", "5 iB", "1e9", "99999999999999999999TB"} {
		_, err := parseShardSize(text)
		require.ErrorContains(t, err, "--max-shard-size", text)
	}
}

func TestRulesInWords(t *testing.T) {
	require.Equal(t, "all", rulesText(checkpoint.Options{}))
	require.Equal(t, "the best 2 by eval_loss, the last 3, those at the end of every 2nd epoch, the newest",
		rulesText(checkpoint.Options{Keep: 2, KeepBy: "eval_loss", KeepLast: 3, KeepEvery: 2}))
	for n, want := range map[int]string{1: "1st", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 111: "111th", 122: "122nd"} {
		require.Equal(t, want, ordinal(n))
	}
}

// Regions cover every element once, in row-major order, and none is larger than the limit.
func TestRegionsCoverATensor(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(0, 7), 0, 4).Draw(t, "shape")
		limit := rapid.IntRange(1, 60).Draw(t, "limit")
		total := 1
		for _, d := range shape {
			total *= d
		}
		seen := make([]bool, total)
		last := -1
		for r := range regionsOf(shape, limit) {
			require.LessOrEqual(t, r.Elements(), max(limit, 1))
			index := make([]int, len(shape))
			for range r.Elements() {
				flat := 0
				for d := range shape {
					flat = flat*shape[d] + r.Start[d] + index[d]
				}
				require.False(t, seen[flat])
				require.Greater(t, flat, last)
				seen[flat], last = true, flat
				for d := len(shape) - 1; d >= 0; d-- {
					if index[d]++; index[d] < r.Size[d] {
						break
					}
					index[d] = 0
				}
			}
		}
		require.NotContains(t, seen, false)
	})
}

func f32s(values ...float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func bf16s(t *testing.T, values ...float32) []byte {
	b := make([]byte, 2*len(values))
	require.NoError(t, safetensors.F32ToBF16(b, f32s(values...)))
	return b
}

func TestFiguresOfATensor(t *testing.T) {
	nan, inf, negativeZero := float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1))
	for _, tc := range []struct {
		name                  string
		a, b                  []byte
		dtypeA, dtypeB        safetensors.DType
		changed, nonFinite    int64
		maxAbs, sumA, squares float64
	}{
		{"the same", f32s(1, nan, inf), f32s(1, nan, inf), safetensors.F32, safetensors.F32, 0, 0, 0, 1, 0},
		{"two of three", f32s(3, 4, 0), f32s(3, 6, -1), safetensors.F32, safetensors.F32, 2, 0, 2, 25, 5},
		{"the sign of zero", f32s(0), f32s(negativeZero), safetensors.F32, safetensors.F32, 1, 0, 0, 0, 0},
		{"became NaN", f32s(1, 2), f32s(nan, 2.5), safetensors.F32, safetensors.F32, 2, 1, 0.5, 5, 0.25},
		{"was infinite", f32s(inf), f32s(1), safetensors.F32, safetensors.F32, 1, 1, 0, 0, 0},
		{"another dtype, the same values", f32s(1, 0.5, nan), bf16s(t, 1, 0.5, nan), safetensors.F32, safetensors.BF16, 0, 0, 0, 1.25, 0},
		{"another dtype, rounded", f32s(1 + 1.0/256), bf16s(t, 1+1.0/256), safetensors.F32, safetensors.BF16, 1, 0, 1.0 / 256, (1 + 1.0/256) * (1 + 1.0/256), 1.0 / 65536},
		{"integers", []byte{1, 255}, []byte{1, 254}, safetensors.I8, safetensors.I8, 1, 0, 1, 2, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := TensorDiff{DTypeA: tc.dtypeA, DTypeB: tc.dtypeB}
			d.add(tc.a, tc.b)
			require.Equal(t, int64(len(tc.a)/tc.dtypeA.Size()), d.Elements)
			require.Equal(t, []int64{tc.changed, tc.nonFinite}, []int64{d.Changed, d.NonFinite})
			require.InDelta(t, tc.maxAbs, d.MaxAbs, 1e-12)
			require.InDelta(t, tc.sumA, d.sumA, 1e-12)
			require.InDelta(t, tc.squares, d.sumD, 1e-12)
		})
	}
}

func TestCompareLogits(t *testing.T) {
	a := []float32{0, 1, 2, 5, 0, 0}
	same := compareLogits(a, a, 3)
	require.Equal(t, logitChange{Positions: 2, Top1: 1}, same)

	b := []float32{0, 1, 2, 0, 5, 0} // the second position prefers another token
	c := compareLogits(a, b, 3)
	require.Equal(t, 5.0, c.MaxAbs)
	require.InDelta(t, 10.0/6, c.MeanAbs, 1e-12)
	require.Equal(t, 0.5, c.Top1)
	// KL of (e⁵,1,1)/z and (1,e⁵,1)/z is 5·(e⁵−1)/z.
	z := math.Exp(5) + 2
	require.InDelta(t, 5*(math.Exp(5)-1)/z/2, c.KL, 1e-9)

	require.Equal(t, 1, compareLogits(a, []float32{0, 1, 2, 5, float32(math.NaN()), 0}, 3).NonFinite)
	require.Equal(t, 1, differing([]float32{0, 1}, []float32{float32(math.Copysign(0, -1)), 1}))
}

// values is a tensor of a state that is cut into n slices along its first dimension.
func values(name string, rows, columns, n int, f func(i int) float32) checkpoint.Tensor {
	data := make([]float32, rows*columns)
	for i := range data {
		data[i] = f(i)
	}
	t := checkpoint.Tensor{Name: name, DType: safetensors.F32, Shape: []int{rows, columns}}
	for k := range n {
		from, to := rows*k/n, rows*(k+1)/n
		t.Shards = append(t.Shards, checkpoint.Shard{Start: []int{from, 0}, Size: []int{to - from, columns}, Fetch: func(dst []byte) error {
			copy(dst, f32s(data[from*columns:to*columns]...))
			return nil
		}})
	}
	return t
}

// saveState commits a checkpoint and returns its folder.
func saveState(t *testing.T, storage string, step int, metrics map[string]float64, state ...checkpoint.Tensor) string {
	t.Helper()
	m, err := checkpoint.Open(checkpoint.OS{}, storage, checkpoint.Options{})
	require.NoError(t, err)
	e, err := m.Save(t.Context(), &checkpoint.Snapshot{Step: step, Epoch: step / 10, Metrics: metrics, State: state})
	require.NoError(t, err)
	require.NoError(t, m.Close())
	return e.Dir
}

func ramp(i int) float32 { return float32(i) / 8 }

// The same state, written by 1 and by 16 devices, is equal; what differs is found, sorted and counted. Without a
// configuration tensors have the names of the train state.
func TestDiffOfStates(t *testing.T) {
	dir := t.TempDir()
	one := saveState(t, filepath.Join(dir, "one"), 10, nil, values("w", 64, 8, 1, ramp), values("v", 32, 2, 1, ramp), values("w/m", 64, 8, 1, ramp), values("old", 2, 2, 1, ramp))
	sixteen := saveState(t, filepath.Join(dir, "sixteen"), 10, nil, values("w", 64, 8, 16, ramp), values("v", 32, 2, 16, ramp), values("w/m", 64, 8, 16, ramp), values("old", 2, 2, 2, ramp))
	d, err := DiffCheckpoints(t.Context(), one, sixteen, true)
	require.NoError(t, err)
	require.True(t, d.Equal)
	require.Equal(t, 4, d.Same)
	require.Equal(t, int64(64*8*2+64+4), d.Elements)
	require.Equal(t, []int{1, 16}, []int{d.A.Devices, d.B.Devices})
	require.Len(t, d.Notes, 1)
	require.Contains(t, d.Notes[0], "tensors have the names of the train state")

	other := saveState(t, filepath.Join(dir, "other"), 20, nil,
		values("w", 64, 8, 2, func(i int) float32 {
			if i == 100 {
				return ramp(i) + 1
			}
			return ramp(i)
		}),
		values("v", 32, 2, 2, func(i int) float32 { return 2 * ramp(i) }),
		values("w/m", 64, 8, 2, func(int) float32 { return 0 }),
		values("old", 4, 1, 1, ramp), values("new", 2, 2, 1, ramp))
	d, err = DiffCheckpoints(t.Context(), filepath.Join(dir, "sixteen"), other, false)
	require.NoError(t, err)
	require.False(t, d.Equal)
	var got []string
	for _, x := range d.Differences {
		got = append(got, x.Name+" "+x.Change)
	}
	require.Equal(t, []string{"new added", "old shape", "v content", "w content"}, got, "no moments without --state")
	v, w := d.Differences[2], d.Differences[3]
	require.Equal(t, []int64{63, 1}, []int64{v.Changed, w.Changed})
	require.InDelta(t, 1, *v.Relative, 1e-12, "twice the values")
	require.Equal(t, 1.0, w.MaxAbs)
	require.InDelta(t, 1/math.Sqrt(512), w.RMS, 1e-12)

	d, err = DiffCheckpoints(t.Context(), one, other, true)
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(d.Differences, func(x TensorDiff) bool { return x.Name == "w/m" && x.Changed == 511 }))
	var table strings.Builder
	require.NoError(t, d.Write(&table))
	require.Contains(t, table.String(), "only in B: F32 [2 2]")
	require.Contains(t, table.String(), "shape [2 2], in B [4 1]")
	raw, err := json.Marshal(d)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"equal":false`)
}

// ls says what is newest, best and kept, of a run's folder and of one checkpoint.
func TestListOfARun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	for _, c := range []struct {
		step    int
		metrics map[string]float64
	}{
		{10, map[string]float64{"loss": 2, "eval_loss": 1}}, {20, map[string]float64{"loss": 1, "eval_loss": 3}},
		{30, map[string]float64{"loss": math.NaN()}}, {35, map[string]float64{"partial_loss": 0.5}},
	} {
		saveState(t, dir, c.step, c.metrics, values("w", 4, 2, 2, ramp))
	}
	steps := func(l *CheckpointList, want func(CheckpointInfo) bool) (out []int) {
		for _, c := range l.Checkpoints {
			if want(c) {
				out = append(out, c.Step)
			}
		}
		return out
	}
	l, err := ListCheckpoints(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, l.Checkpoints, 4)
	require.Equal(t, []int{35}, steps(l, func(c CheckpointInfo) bool { return c.Newest }))
	require.Equal(t, []int{20}, steps(l, func(c CheckpointInfo) bool { return c.Best }))
	require.Equal(t, []int{20, 35}, steps(l, func(c CheckpointInfo) bool { return len(c.Kept) > 0 }), "the defaults of finetune")
	for _, c := range l.Checkpoints {
		require.Equal(t, StateOK, c.State)
		require.Equal(t, 2, c.Devices)
		require.Equal(t, "state", c.Kind)
		require.NotNil(t, c.Committed)
	}
	var table strings.Builder
	require.NoError(t, l.Write(&table))
	require.Regexp(t, `epoch-0003-step-00000035 +~0\.5000 +- .* newest\n`, table.String())
	require.Regexp(t, `epoch-0002-step-00000020 +1\.0000\* +3\.0000 .* best\n`, table.String())
	require.Regexp(t, `epoch-0001-step-00000010 +2\.0000 +1\.0000 .* \(goes\)\n`, table.String())
	raw, err := json.Marshal(l)
	require.NoError(t, err, "NaN is no obstacle")
	require.Contains(t, string(raw), `"loss":"NaN"`)

	record := runRecord{Format: recordFormat, Retention: &retention{Keep: 1, KeepBy: "eval_loss", KeepLast: 2}}
	require.NoError(t, record.write(place{checkpoint.OS{}, dir}))
	one, err := ListCheckpoints(t.Context(), filepath.Join(dir, "checkpoints", "epoch-0001-step-00000010"))
	require.NoError(t, err)
	require.Len(t, one.Checkpoints, 1)
	require.True(t, one.Checkpoints[0].Best, "by eval_loss, as the run ranks")
	require.Equal(t, []checkpoint.Reason{checkpoint.KeptBest}, one.Checkpoints[0].Kept)
	table.Reset()
	require.NoError(t, one.Write(&table))
	require.Regexp(t, `epoch-0001-step-00000010 +2\.0000 +1\.0000\* .* best\n`, table.String())
	all, err := ListCheckpoints(t.Context(), filepath.Join(dir, "checkpoints"))
	require.NoError(t, err)
	require.Equal(t, []int{10, 30, 35}, steps(all, func(c CheckpointInfo) bool { return len(c.Kept) > 0 }))
}

// Paths that are no checkpoint are refused in words that say what to give instead.
func TestPathsThatAreNoCheckpoint(t *testing.T) {
	dir := t.TempDir()
	saveState(t, filepath.Join(dir, "store", "run-a"), 10, nil, values("w", 4, 2, 1, ramp))
	saveState(t, filepath.Join(dir, "store", "run-b"), 10, nil, values("w", 4, 2, 1, ramp))
	for path, want := range map[string]string{
		filepath.Join(dir, "absent"): "there is no such folder",
		filepath.Join(dir, "store"):  "holds runs: give the folder of one, such as",
		t.TempDir():                  "holds no checkpoint",
		"http://host/x":              "gs://",
	} {
		_, err := ListCheckpoints(context.Background(), path)
		require.ErrorContains(t, err, want, path)
		var input *InputError
		require.ErrorAs(t, err, &input)
		require.NotContains(t, err.Error(), "\n")
	}
}
