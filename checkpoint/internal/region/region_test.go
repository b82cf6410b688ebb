package region

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/internal/property"
)

func TestVolume(t *testing.T) {
	for _, c := range []struct {
		size []int
		want int64
		fail string
	}{
		{nil, 1, ""},
		{[]int{3, 4}, 12, ""},
		{[]int{0, math.MaxInt}, 0, ""},
		{[]int{-1}, 0, "negative"},
		{[]int{1 << 40, 1 << 40}, 0, "2^63-1"},
	} {
		got, err := Volume(c.size)
		if c.fail != "" {
			require.ErrorContains(t, err, c.fail)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err := Bytes([]int{1 << 61}, 8)
	require.ErrorContains(t, err, "bytes")
}

func TestTiles(t *testing.T) {
	type b [2][]int
	for _, c := range []struct {
		name  string
		shape []int
		boxes []b
		fail  string
	}{
		{"whole", []int{4, 2}, []b{{{0, 0}, {4, 2}}}, ""},
		{"rows", []int{4, 2}, []b{{{0, 0}, {1, 2}}, {{1, 0}, {3, 2}}}, ""},
		{"scalar", nil, []b{{{}, {}}}, ""},
		{"scalar twice", nil, []b{{{}, {}}, {{}, {}}}, "overlaps"},
		{"no slice of a scalar", nil, nil, "0 of 1"},
		{"empty tensor", []int{0, 3}, nil, ""},
		{"hole", []int{4}, []b{{{0}, {1}}, {{2}, {2}}}, "3 of 4"},
		{"overlap and hole of equal size", []int{4}, []b{{{0}, {2}}, {{1}, {2}}}, "overlaps"},
		{"outside", []int{4}, []b{{{2}, {3}}}, "outside"},
		{"start overflows", []int{4}, []b{{{math.MaxInt}, {1}}}, "outside"},
		{"rank", []int{4}, []b{{{2, 0}, {3}}}, "rank"},
	} {
		err := Tiles(c.shape, len(c.boxes), func(i int) ([]int, []int) { return c.boxes[i][0], c.boxes[i][1] })
		if c.fail == "" {
			require.NoError(t, err, c.name)
		} else {
			require.ErrorContains(t, err, c.fail, c.name)
		}
	}
}

// drawBox draws a box inside shape.
func drawBox(t *rapid.T, shape []int, name string) (start, size []int) {
	start, size = make([]int, len(shape)), make([]int, len(shape))
	for d, n := range shape {
		start[d] = rapid.IntRange(0, n).Draw(t, name+"start")
		size[d] = rapid.IntRange(0, n-start[d]).Draw(t, name+"size")
	}
	return start, size
}

func TestCopyAgainstElementwise(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 5), 0, 4).Draw(t, "shape")
		elem := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "elem")
		aStart, aSize := drawBox(t, shape, "a")
		bStart, bSize := drawBox(t, shape, "b")
		av, _ := Bytes(aSize, elem)
		bv, _ := Bytes(bSize, elem)
		src, got, want := make([]byte, av), make([]byte, bv), make([]byte, bv)
		for i := range src {
			src[i] = byte(i*7 + 1)
		}
		start, size, ok := Intersect(aStart, aSize, bStart, bSize)
		if !ok {
			return
		}
		last := int64(-1)
		runs := NewRuns(aStart, aSize, bStart, bSize, start, size, elem)
		for {
			s, _, n, ok := runs.Next()
			if !ok {
				break
			}
			require.Greater(t, s, last, "runs go up in the source")
			last = s + n - 1
		}
		Copy(got, src, aStart, aSize, bStart, bSize, start, size, elem)
		naive(want, src, aStart, aSize, bStart, bSize, elem)
		require.Equal(t, want, got)
	})
}

// naive copies element by element over the whole destination box.
func naive(dst, src []byte, aStart, aSize, bStart, bSize []int, elem int) {
	n := len(dst) / elem
	for i := range n {
		rest, off, stride, inside := i, 0, 1, true
		for d := len(bSize) - 1; d >= 0; d-- {
			p := rest%bSize[d] + bStart[d] - aStart[d]
			rest /= bSize[d]
			inside = inside && p >= 0 && p < aSize[d]
			off += p * stride
			stride *= aSize[d]
		}
		if inside {
			copy(dst[i*elem:(i+1)*elem], src[off*elem:(off+1)*elem])
		}
	}
}
