package sharding

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func mesh(t require.TestingT, axes ...Axis) Mesh {
	m, err := NewMesh(axes...)
	require.NoError(t, err)
	return m
}

func TestLargestDivisible(t *testing.T) {
	m := mesh(t, Axis{"fsdp", 4})
	for _, c := range []struct {
		dims []int
		want string
	}{
		{[]int{64, 256}, "[-, fsdp]"},
		{[]int{256, 64}, "[fsdp, -]"},
		{[]int{256, 256}, "[fsdp, -]"},
		{[]int{255, 64}, "[-, fsdp]"},
		{[]int{255, 63}, "replicated"},
		{[]int{64}, "replicated"}, // below minElements
	} {
		require.Equal(t, c.want, LargestDivisible(m, "fsdp", c.dims, 1024).String(), "%v", c.dims)
	}
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
	rapid.Check(t, func(t *rapid.T) {
		m := mesh(t, Axis{"a", rapid.IntRange(1, 3).Draw(t, "a")}, Axis{"b", rapid.IntRange(1, 4).Draw(t, "b")})
		spec := make(Spec, 2)
		for _, a := range m.Axes {
			if d := rapid.IntRange(-1, 1).Draw(t, "dim of "+a.Name); d >= 0 {
				spec[d] = append(spec[d], a.Name)
			}
		}
		dims := []int{36 * rapid.IntRange(1, 2).Draw(t, "rows"), 36}
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
