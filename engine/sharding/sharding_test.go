package sharding

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/internal/property"
)

func mesh(t require.TestingT, axes ...Axis) Mesh {
	m, err := NewMesh(axes...)
	require.NoError(t, err)
	return m
}

func TestLargestDivisible(t *testing.T) {
	m := mesh(t, Axis{"fsdp", 4}, Axis{"x", 2}, Axis{"y", 3})
	for _, c := range []struct {
		axes []string
		dims []int
		want string
	}{
		{[]string{"fsdp"}, []int{64, 1024}, "[-, fsdp]"},
		{[]string{"fsdp"}, []int{64, 256}, "[fsdp, -]"}, // 64 columns are half a tile
		{[]string{"fsdp"}, []int{48, 256}, "[-, fsdp]"}, // 12 rows too
		{[]string{"fsdp"}, []int{32, 256}, "[fsdp, -]"}, // 8 rows are a whole one in float32
		{[]string{"fsdp"}, []int{32, 512}, "[-, fsdp]"}, // and so are 128 columns
		{[]string{"fsdp"}, []int{64, 512}, "[fsdp, -]"}, // 16 rows are one in bfloat16, 128 columns half of a pair
		{[]string{"fsdp"}, []int{256, 64}, "[fsdp, -]"},
		{[]string{"fsdp"}, []int{256, 256}, "[fsdp, -]"},
		{[]string{"fsdp"}, []int{255, 64}, "[-, fsdp]"},
		{[]string{"fsdp"}, []int{255, 63}, "replicated"},
		{[]string{"fsdp"}, []int{512}, "replicated"}, // below minElements
		{[]string{"fsdp", "x"}, []int{252, 64}, "[-, fsdp×x]"},
		{[]string{"y", "x"}, []int{64, 60}, "[-, y×x]"},
		{[]string{"y", "x"}, []int{64, 64}, "replicated"},
		{[]string{"z"}, []int{64, 64}, "replicated"},
		{nil, []int{64, 64}, "replicated"},
	} {
		require.Equal(t, c.want, LargestDivisible(m, c.axes, c.dims, 1024).String(), "%v %v", c.axes, c.dims)
	}
}

func TestGroups(t *testing.T) {
	m := mesh(t, Axis{"z", 2}, Axis{"y", 2}, Axis{"x", 3})
	for _, c := range []struct {
		axes []string
		want [][]int
	}{
		{[]string{"x"}, [][]int{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, 10, 11}}},
		{[]string{"y"}, [][]int{{0, 3}, {1, 4}, {2, 5}, {6, 9}, {7, 10}, {8, 11}}},
		{[]string{"z", "x"}, [][]int{{0, 1, 2, 6, 7, 8}, {3, 4, 5, 9, 10, 11}}},
		{[]string{"x", "z"}, [][]int{{0, 6, 1, 7, 2, 8}, {3, 9, 4, 10, 5, 11}}},
		{[]string{"z", "y", "x"}, [][]int{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}},
		{nil, [][]int{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}}},
	} {
		require.Equal(t, c.want, m.Groups(c.axes...), "%v", c.axes)
	}
	require.Equal(t, 6, m.Parts("z", "x"))
	require.Equal(t, 0, m.Parts("z", "w"))
}

func TestCheckNamesTheFault(t *testing.T) {
	m := mesh(t, Axis{"fsdp", 4}, Axis{"model", 2})
	for _, c := range []struct {
		spec Spec
		dims []int
		want string
	}{
		{Spec{{"x"}}, []int{8}, `names axis "x"`},
		{Spec{{"fsdp"}, {"fsdp"}}, []int{8, 8}, "twice"},
		{Spec{{"fsdp"}}, []int{6}, "does not divide"},
		{Spec{{"fsdp"}, nil}, []int{8}, "rank"},
	} {
		require.ErrorContains(t, c.spec.Check(m, c.dims), c.want)
	}
	require.NoError(t, Spec{{"fsdp", "model"}}.Check(m, []int{8}))
}

// Every element of a tensor is held by exactly one owner, whatever the mesh and the spec.
func TestOwnersCoverEveryElementOnce(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		m := mesh(t, Axis{"a", rapid.IntRange(1, 3).Draw(t, "a")}, Axis{"b", rapid.IntRange(1, 4).Draw(t, "b")})
		spec := make(Spec, 2)
		for _, a := range m.Axes {
			if d := rapid.IntRange(-1, 1).Draw(t, "dim of "+a.Name); d >= 0 {
				spec[d] = append(spec[d], a.Name)
			}
		}
		dims := []int{72 * rapid.IntRange(1, 2).Draw(t, "rows"), 72} // 72 is a multiple of every product of the axes
		require.NoError(t, spec.Check(m, dims))
		count := make([]int, dims[0]*dims[1])
		for _, d := range spec.Owners(m, dims) {
			r := spec.ShardOf(m, dims, d)
			for i := range r.Size[0] {
				for j := range r.Size[1] {
					count[(r.Start[0]+i)*dims[1]+r.Start[1]+j]++
				}
			}
		}
		for i, n := range count {
			require.Equal(t, 1, n, "element %d", i)
		}
	})
}
