package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"weft/engine/hlo"
	. "weft/engine/internal/hlotest" //nolint:revive // modules are written in its words
	"weft/engine/tpu"
)

// Four devices in two groups, each group's bytes by hand.
func TestCollectivesByHand(t *testing.T) {
	pairs := Msg{}.Ints(1, 0, 1)
	other := Msg{}.Ints(1, 2, 3)
	grouped := func(m Msg) Msg { return m.Sub(49, pairs).Sub(49, other) }
	shard, whole := Array(16, 128), Array(16, 512) // 256 and 1024 bytes
	m := parse(t, Program(1, Func(1, "main", Param(1, 0, shard), Param(2, 1, whole),
		Op(3, "ag", "all-gather", whole, 1), Op(4, "ag2", "all-gather", whole, 1),
		grouped(Op(5, "ag3", "all-gather-start", Tuple(shard, Array(16, 256)), 1)),
		Op(6, "rs", "reduce-scatter", shard, 2),
		Op(7, "ar", "all-reduce", Tuple(whole, F32(4)), 2, 9),
		Op(9, "f", "negate", F32(4), 2),
		Op(8, "a2a", "all-to-all", whole, 2),
		Op(10, "cp", "collective-permute", whole, 2).Sub(52, Msg{}.Num(1, 0).Num(2, 1)))))
	w, err := measure(m, nil, 4)
	require.NoError(t, err)
	got := map[string]Collective{}
	for _, c := range w.network.collectives() {
		got[c.Kind+" "+c.DType+map[bool]string{true: " async"}[c.Async]] = c
	}
	for key, want := range map[string]Collective{
		"all-gather bf16":         {Count: 2, Bytes: 2 * 768, PayloadBytes: 2048, GroupSize: 4},
		"all-gather bf16 async":   {Count: 1, Bytes: 256, PayloadBytes: 512, GroupSize: 2},
		"reduce-scatter bf16":     {Count: 1, Bytes: 768, PayloadBytes: 1024, GroupSize: 4},
		"all-reduce bf16":         {Count: 1, Bytes: 2 * 768, PayloadBytes: 1024, GroupSize: 4},
		"all-reduce f32":          {Count: 1, Bytes: 2 * 12, PayloadBytes: 16, GroupSize: 4},
		"all-to-all bf16":         {Count: 1, Bytes: 768, PayloadBytes: 1024, GroupSize: 4},
		"collective-permute bf16": {Count: 1, Bytes: 1024, PayloadBytes: 1024, GroupSize: 2},
	} {
		c := got[key]
		want.Kind, want.DType, want.Async = c.Kind, c.DType, c.Async
		require.Equal(t, want, c, key)
	}
	require.Len(t, got, 7)
	require.Equal(t, hlo.AllGather, w.network.collectives()[0].Kind, "the most bytes first")
}

// On the links of a 4x4 mesh: the bound of a gather among all, and of one along a row.
func TestTimesOnLinks(t *testing.T) {
	top, err := tpu.Parse("v6e:4x4")
	require.NoError(t, err)
	const gb = 250_000_000 // float32 elements
	row := Msg{}
	for y := range int64(4) {
		row = row.Sub(49, Msg{}.Ints(1, 4*y, 4*y+1, 4*y+2, 4*y+3))
	}
	all := parse(t, Program(1, Func(1, "main", Param(1, 0, F32(gb/16)), Op(2, "ag", "all-gather", F32(gb), 1))))
	rows := parse(t, Program(1, Func(1, "main", Param(1, 0, F32(gb/4)), append(Op(2, "ag", "all-gather-start", Tuple(F32(gb/4), F32(gb)), 1), row...))))
	for _, c := range []struct {
		m           *hlo.Module
		axes        string
		bound       float64
		sync, async bool
	}{{all, "xy", 1e9 * 15 / 16 / 200e9, true, false}, {rows, "x", 1e9 * 3 / 4 / 100e9, false, true}} {
		w, err := measure(c.m, &top, 16)
		require.NoError(t, err)
		require.Equal(t, c.axes, w.network.collectives()[0].Axes)
		r := w.roofline(top)
		require.InDelta(t, c.bound, r.ICIS, 1e-9)
		require.Equal(t, "ici", r.Bound)
		require.Equal(t, c.sync, w.network.syncSeconds > c.bound)
		require.Equal(t, c.async, w.network.asyncSeconds > c.bound)
		e := w.estimate(r, top, 1000, 1e12)
		require.InDelta(t, r.ICIS, e.StepSLow, 0)
		require.GreaterOrEqual(t, e.StepSHigh, e.StepSLow)
		require.InDelta(t, 1000/e.StepSLow, e.TokensPerSHigh, 1e-6)
		require.InDelta(t, 1e12/(16*918e12)/e.StepSHigh, e.MFULow, 1e-12)
	}
	_, err = measure(parse(t, Program(1, Func(1, "main", Param(1, 0, F32(4)), Op(2, "ag", "all-gather", F32(8), 1).Sub(49, Msg{}.Ints(1, 0, 77))))), &top, 16)
	require.ErrorContains(t, err, "all-gather ag: device 77 is not one of the 16 of v6e:4x4")
}

// Between slices a TPU's program sends to the runtime, which says what it does with it.
func TestTransfersBetweenSlices(t *testing.T) {
	top, err := tpu.Parse("v6e:4x4")
	require.NoError(t, err)
	top, err = top.WithSlices(2)
	require.NoError(t, err)
	attribute := func(k, v string) Msg { return Msg{}.Sub(1, Msg{}.Str(1, k).Str(2, v)) }
	send := func(id int64, kind string) Msg {
		both := string(attribute("_xla_megascale_transfer_type", kind)) + string(attribute("_xla_megascale_target", "{1,2}x{0:15}"))
		return Op(id, "send", "send", Tuple(F32(256), S32), 1).Str(68, both)
	}
	m := parse(t, Program(1, Func(1, "main", Param(1, 0, F32(256)), send(2, "ALL_GATHER"), send(3, "ALL_REDUCE"),
		Op(4, "other", "send", Tuple(F32(256), S32), 1))))
	w, err := measure(m, &top, 32)
	require.NoError(t, err)
	require.Equal(t, []Collective{
		{Kind: hlo.AllGather, DType: "f32", Count: 1, Bytes: 1024, Async: true, PayloadBytes: 2048, GroupSize: 2, Axes: "slice"},
		{Kind: hlo.AllReduce, DType: "f32", Count: 1, Bytes: 1024, Async: true, PayloadBytes: 1024, GroupSize: 2, Axes: "slice"},
	}, w.network.collectives())
	r := w.roofline(top)
	require.InDelta(t, 2048/12.5e9, r.DCNS, 1e-12)
	require.Zero(t, r.ICIS)
	require.Equal(t, "dcn", r.Bound)
}
