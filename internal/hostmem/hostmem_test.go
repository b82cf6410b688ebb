package hostmem_test

import (
	"math"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"weft/internal/hostmem"
)

func TestMemory(t *testing.T) {
	page := int64(os.Getpagesize())
	before := hostmem.Held()
	for _, n := range []int64{1, 63, page - 1, page, page + 1, 5 << 20} {
		m, err := hostmem.New(n)
		require.NoError(t, err)
		b := m.Bytes()
		require.Len(t, b, int(n))
		require.Equal(t, int(n), cap(b), "what lies behind is nobody's")
		require.Zero(t, uintptr(unsafe.Pointer(&b[0]))%uintptr(page))
		require.Equal(t, make([]byte, n), b)
		m.Populate()
		b[0], b[n-1] = 7, 7
		require.Equal(t, before+(n+page-1)/page*page, hostmem.Held())
		require.NoError(t, m.Free())
		require.NoError(t, m.Free())
		require.Equal(t, before, hostmem.Held())
	}
}

func TestNoMemory(t *testing.T) {
	m, err := hostmem.New(0)
	require.NoError(t, err)
	require.Empty(t, m.Bytes())
	m.Populate()
	require.NoError(t, m.Free())
	require.NoError(t, (*hostmem.Memory)(nil).Free())
	for _, n := range []int64{-1, math.MaxInt64} {
		_, err := hostmem.New(n)
		require.ErrorContains(t, err, "no such size")
	}
	_, err = hostmem.New(1 << 61)
	require.ErrorContains(t, err, "free memory on this machine")
}
