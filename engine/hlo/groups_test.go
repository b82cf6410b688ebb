package hlo

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	. "weft/engine/internal/hlotest" //nolint:revive // modules are written in its words
)

var errEnough = errors.New("enough")

// meshAxes is a MeshAxesReplicaGroupListProto.
func meshAxes(dims, ids []int64, refs ...axisPart) Msg {
	mesh := Msg{}
	for _, d := range dims {
		mesh = mesh.Sub(1, Msg{}.Str(1, "axis").Num(2, d))
	}
	if ids != nil {
		mesh = mesh.Ints(2, ids...)
	}
	m := Msg{}.Sub(1, mesh)
	for _, r := range refs {
		ref := Msg{}.Num(1, r.axis)
		if r.size > 0 {
			ref = ref.Sub(2, Msg{}.Num(1, r.pre).Num(2, r.size))
		}
		m = m.Sub(2, ref)
	}
	return m
}

func TestGroups(t *testing.T) {
	explicit := Msg{}.Ints(1, 3, 1)
	iota := func(count, size int64, dims, perm []int64) Msg {
		m := Msg{}.Num(1, count).Num(2, size).Ints(3, dims...)
		if perm != nil {
			m = m.Ints(4, perm...)
		}
		return m
	}
	for name, c := range map[string]struct {
		field protowire.Number
		list  Msg
		want  [][]int64
	}{
		"written out":                {49, explicit, [][]int64{{3, 1}}},
		"device list, written out":   {87, Msg{}.Sub(1, explicit).Sub(1, Msg{}.Ints(1, 0, 2)), [][]int64{{3, 1}, {0, 2}}},
		"device list, iota":          {87, Msg{}.Sub(2, iota(2, 3, []int64{3, 2}, []int64{1, 0})), [][]int64{{0, 2, 4}, {1, 3, 5}}},
		"iota":                       {92, iota(2, 2, []int64{4}, nil), [][]int64{{0, 1}, {2, 3}}},
		"the last axis":              {93, meshAxes([]int64{2, 3}, nil, axisPart{axis: 1}), [][]int64{{0, 1, 2}, {3, 4, 5}}},
		"the first axis":             {93, meshAxes([]int64{2, 3}, nil, axisPart{axis: 0}), [][]int64{{0, 3}, {1, 4}, {2, 5}}},
		"all axes":                   {93, meshAxes([]int64{2, 2}, nil, axisPart{axis: 0}, axisPart{axis: 1}), [][]int64{{0, 1, 2, 3}}},
		"axes, the last one major":   {93, meshAxes([]int64{2, 2}, nil, axisPart{axis: 1}, axisPart{axis: 0}), [][]int64{{0, 2, 1, 3}}},
		"no axis":                    {93, meshAxes([]int64{2}, nil), [][]int64{{0}, {1}}},
		"the major part of an axis":  {93, meshAxes([]int64{8}, nil, axisPart{pre: 1, size: 2}), [][]int64{{0, 4}, {1, 5}, {2, 6}, {3, 7}}},
		"the middle part of an axis": {93, meshAxes([]int64{8}, nil, axisPart{pre: 2, size: 2}), [][]int64{{0, 2}, {1, 3}, {4, 6}, {5, 7}}},
		"devices in another order":   {93, meshAxes([]int64{2, 2}, []int64{3, 2, 1, 0}, axisPart{axis: 1}), [][]int64{{3, 2}, {1, 0}}},
		"an axis of a single device": {93, meshAxes([]int64{1, 2}, nil, axisPart{axis: 0}, axisPart{axis: 1}), [][]int64{{0, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			in := Op(1, "x", "all-gather", F32(2)).Sub(c.field, c.list)
			require.Equal(t, c.want, parse(t, Program(1, Func(1, "main", in))).Computations[0].Root().Groups)
		})
	}
}

func TestDamagedGroups(t *testing.T) {
	for name, c := range map[string]struct {
		field protowire.Number
		list  Msg
		want  string
	}{
		"too few devices":    {92, Msg{}.Num(1, 2).Num(2, 3).Ints(3, 4), "4 devices for 2 groups of 3"},
		"no permutation":     {92, Msg{}.Num(1, 1).Num(2, 4).Ints(3, 2, 2).Ints(4, 1, 1), "no permutation"},
		"endless devices":    {92, Msg{}.Num(1, 1).Num(2, 1<<40).Ints(3, 1<<40), "at most"},
		"overflow":           {92, Msg{}.Num(1, 1<<40).Num(2, 1<<40).Ints(3, 1<<62, 1<<62), "at most"},
		"no such axis":       {93, meshAxes([]int64{2}, nil, axisPart{axis: 5}), "axis 5 of a mesh with 1 axes"},
		"uneven cut":         {93, meshAxes([]int64{6}, nil, axisPart{pre: 4, size: 2}), "6 devices is cut at"},
		"endless mesh":       {93, meshAxes([]int64{1 << 40}, nil, axisPart{axis: 0}), "at most"},
		"ids of other count": {93, meshAxes([]int64{2}, []int64{1, 2, 3}, axisPart{axis: 0}), "a mesh of 2 devices lists 3"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("hlo", Program(1, Func(1, "main", Op(1, "x", "all-gather", F32(2)).Sub(c.field, c.list))))
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "instruction x")
		})
	}
}
