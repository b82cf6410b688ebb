// Package region is the arithmetic of hyper-rectangles ("boxes") inside
// row-major tensors. A box is given by its start and size, one entry per
// dimension, in elements; byte offsets count from the first byte of the
// row-major buffer that holds the box.
package region

import (
	"fmt"
	"math"
	"slices"
)

// Volume returns the number of elements of a box or shape, 1 for rank 0. It
// fails on a negative dimension and when the product passes int64.
func Volume(size []int) (int64, error) {
	v, zero := int64(1), false
	for _, d := range size {
		switch {
		case d < 0:
			return 0, fmt.Errorf("shape %v has a negative dimension", size)
		case d == 0:
			zero = true
		case v > math.MaxInt64/int64(d):
			return 0, fmt.Errorf("shape %v has more than 2^63-1 elements", size)
		default:
			v *= int64(d)
		}
	}
	if zero {
		return 0, nil
	}
	return v, nil
}

// Bytes returns the size in bytes of a box with elem bytes an element.
func Bytes(size []int, elem int) (int64, error) {
	v, err := Volume(size)
	if err != nil {
		return 0, err
	}
	if v > math.MaxInt64/int64(elem) {
		return 0, fmt.Errorf("shape %v has more than 2^63-1 bytes", size)
	}
	return v * int64(elem), nil
}

// Check tells whether the box (start, size) lies inside shape.
func Check(shape, start, size []int) error {
	if len(start) != len(shape) || len(size) != len(shape) {
		return fmt.Errorf("region start %v size %v has not the rank of shape %v", start, size, shape)
	}
	for d := range shape {
		if start[d] < 0 || size[d] < 0 || start[d] > shape[d] || size[d] > shape[d]-start[d] {
			return fmt.Errorf("region start %v size %v is outside of shape %v", start, size, shape)
		}
	}
	return nil
}

// Intersect returns the common part of two boxes of the same rank; ok is false
// when they share no element.
func Intersect(aStart, aSize, bStart, bSize []int) (start, size []int, ok bool) {
	if !overlap(aStart, aSize, bStart, bSize) {
		return nil, nil, false
	}
	start, size = make([]int, len(aStart)), make([]int, len(aStart))
	for d := range aStart {
		start[d] = max(aStart[d], bStart[d])
		size[d] = min(aStart[d]+aSize[d], bStart[d]+bSize[d]) - start[d]
	}
	return start, size, true
}

func overlap(aStart, aSize, bStart, bSize []int) bool {
	for d := range aStart {
		if max(aStart[d], bStart[d]) >= min(aStart[d]+aSize[d], bStart[d]+bSize[d]) {
			return false
		}
	}
	return true
}

// Tiles checks that the n boxes returned by box cover shape exactly once.
func Tiles(shape []int, n int, box func(i int) (start, size []int)) error {
	total, err := Volume(shape)
	if err != nil {
		return err
	}
	var sum int64
	for i := range n {
		start, size := box(i)
		if err := Check(shape, start, size); err != nil {
			return err
		}
		v, _ := Volume(size)
		for j := range i {
			if bStart, bSize := box(j); overlap(start, size, bStart, bSize) {
				return fmt.Errorf("slice start %v size %v overlaps slice start %v size %v", start, size, bStart, bSize)
			}
		}
		sum += v
	}
	if sum != total {
		return fmt.Errorf("the slices hold %d of %d elements", sum, total)
	}
	return nil
}

// Runs walks the contiguous byte runs that carry a box from one row-major
// buffer to another, in increasing order of the source offset.
type Runs struct {
	count, idx             []int
	srcStride, dstStride   []int64
	src, dst, n, remaining int64
}

// NewRuns prepares the walk: src and dst are the boxes that the two buffers
// hold, box the part to carry (inside both), elem the bytes of an element.
func NewRuns(srcStart, srcSize, dstStart, dstSize, boxStart, boxSize []int, elem int) *Runs {
	r := &Runs{n: int64(elem), remaining: 1}
	outer := len(boxSize)
	for outer > 0 {
		outer--
		r.n *= int64(boxSize[outer])
		if boxSize[outer] != srcSize[outer] || boxSize[outer] != dstSize[outer] {
			break
		}
	}
	srcStride, dstStride := int64(elem), int64(elem)
	r.count, r.idx = slices.Clone(boxSize[:outer]), make([]int, outer)
	r.srcStride, r.dstStride = make([]int64, outer), make([]int64, outer)
	for d := len(boxSize) - 1; d >= 0; d-- {
		if d < outer {
			r.srcStride[d], r.dstStride[d] = srcStride, dstStride
			r.remaining *= int64(boxSize[d])
		}
		r.src += int64(boxStart[d]-srcStart[d]) * srcStride
		r.dst += int64(boxStart[d]-dstStart[d]) * dstStride
		srcStride *= int64(srcSize[d])
		dstStride *= int64(dstSize[d])
	}
	if r.n == 0 {
		r.remaining = 0
	}
	return r
}

// Next returns the next run: n bytes from offset src of the source to offset
// dst of the destination. ok is false after the last one.
func (r *Runs) Next() (src, dst, n int64, ok bool) {
	if r.remaining == 0 {
		return 0, 0, 0, false
	}
	src, dst, n = r.src, r.dst, r.n
	r.remaining--
	for d := len(r.idx) - 1; d >= 0; d-- {
		r.idx[d]++
		r.src += r.srcStride[d]
		r.dst += r.dstStride[d]
		if r.idx[d] < r.count[d] {
			break
		}
		r.src -= r.srcStride[d] * int64(r.count[d])
		r.dst -= r.dstStride[d] * int64(r.count[d])
		r.idx[d] = 0
	}
	return src, dst, n, true
}

// Copy carries the box from src to dst; the arguments are those of NewRuns
// beside the two buffers.
func Copy(dst, src []byte, srcStart, srcSize, dstStart, dstSize, boxStart, boxSize []int, elem int) {
	runs := NewRuns(srcStart, srcSize, dstStart, dstSize, boxStart, boxSize, elem)
	for {
		s, d, n, ok := runs.Next()
		if !ok {
			return
		}
		copy(dst[d:d+n], src[s:s+n])
	}
}
