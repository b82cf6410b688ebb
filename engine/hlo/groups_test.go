package hlo

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

var errEnough = errors.New("enough")

// meshAxes is a MeshAxesReplicaGroupListProto.
func meshAxes(dims, ids []int64, refs ...axisPart) msg {
	mesh := msg{}
	for _, d := range dims {
		mesh = mesh.sub(1, msg{}.str(1, "axis").num(2, d))
	}
	if ids != nil {
		mesh = mesh.ints(2, ids...)
	}
	m := msg{}.sub(1, mesh)
	for _, r := range refs {
		ref := msg{}.num(1, r.axis)
		if r.size > 0 {
			ref = ref.sub(2, msg{}.num(1, r.pre).num(2, r.size))
		}
		m = m.sub(2, ref)
	}
	return m
}

func TestGroups(t *testing.T) {
	explicit := msg{}.ints(1, 3, 1)
	iota := func(count, size int64, dims, perm []int64) msg {
		m := msg{}.num(1, count).num(2, size).ints(3, dims...)
		if perm != nil {
			m = m.ints(4, perm...)
		}
		return m
	}
	for name, c := range map[string]struct {
		field protowire.Number
		list  msg
		want  [][]int64
	}{
		"written out":                {49, explicit, [][]int64{{3, 1}}},
		"device list, written out":   {87, msg{}.sub(1, explicit).sub(1, msg{}.ints(1, 0, 2)), [][]int64{{3, 1}, {0, 2}}},
		"device list, iota":          {87, msg{}.sub(2, iota(2, 3, []int64{3, 2}, []int64{1, 0})), [][]int64{{0, 2, 4}, {1, 3, 5}}},
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
			in := op(1, "x", "all-gather", f32(2)).sub(c.field, c.list)
			require.Equal(t, c.want, parse(t, module(1, computation(1, "main", in))).Computations[0].Root().Groups)
		})
	}
}

func TestDamagedGroups(t *testing.T) {
	for name, c := range map[string]struct {
		field protowire.Number
		list  msg
		want  string
	}{
		"too few devices":    {92, msg{}.num(1, 2).num(2, 3).ints(3, 4), "4 devices for 2 groups of 3"},
		"no permutation":     {92, msg{}.num(1, 1).num(2, 4).ints(3, 2, 2).ints(4, 1, 1), "no permutation"},
		"endless devices":    {92, msg{}.num(1, 1).num(2, 1<<40).ints(3, 1<<40), "at most"},
		"overflow":           {92, msg{}.num(1, 1<<40).num(2, 1<<40).ints(3, 1<<62, 1<<62), "at most"},
		"no such axis":       {93, meshAxes([]int64{2}, nil, axisPart{axis: 5}), "axis 5 of a mesh with 1 axes"},
		"uneven cut":         {93, meshAxes([]int64{6}, nil, axisPart{pre: 4, size: 2}), "6 devices is cut at"},
		"endless mesh":       {93, meshAxes([]int64{1 << 40}, nil, axisPart{axis: 0}), "at most"},
		"ids of other count": {93, meshAxes([]int64{2}, []int64{1, 2, 3}, axisPart{axis: 0}), "a mesh of 2 devices lists 3"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("hlo", module(1, computation(1, "main", op(1, "x", "all-gather", f32(2)).sub(c.field, c.list))))
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "instruction x")
		})
	}
}
