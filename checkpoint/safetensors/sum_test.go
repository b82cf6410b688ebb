package safetensors

import (
	"context"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// sumFile writes a file of one tensor, of some pieces and a rest.
func sumFile(t *testing.T, elements int) (path string, content []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "model.safetensors")
	out, err := os.Create(path)
	require.NoError(t, err)
	w, err := NewWriter(out, path, []Info{{Name: "a", DType: U8, Shape: []int{elements}}}, nil)
	require.NoError(t, err)
	raw := make([]byte, elements)
	for i := range raw {
		raw[i] = byte(i * 7 >> 3)
	}
	require.NoError(t, w.Write("a", raw))
	require.NoError(t, w.Finish())
	require.NoError(t, out.Close())
	content, err = os.ReadFile(path)
	require.NoError(t, err)
	return path, content
}

func TestChecksumOfAWholeFile(t *testing.T) {
	for _, elements := range []int{1, sumPiece, 2*sumPiece + 12345} {
		path, content := sumFile(t, elements)
		f, err := Open(path)
		require.NoError(t, err)
		sum, err := f.CRC32C(t.Context())
		require.NoError(t, err)
		require.Equal(t, crc32.Checksum(content, Castagnoli), sum)
		require.EqualValues(t, len(content), f.Size())
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = f.CRC32C(ended)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, f.Close())

		for _, noSum := range []bool{false, true} {
			o := &object{content: content, noSum: noSum}
			r, err := OpenReader("elsewhere", o)
			require.NoError(t, err)
			sum, err := r.CRC32C(t.Context())
			require.NoError(t, err)
			require.Equal(t, crc32.Checksum(content, Castagnoli), sum)
			_, _, ok := r.Identity()
			require.False(t, ok)
			require.NoError(t, r.Close())
		}
	}
}

func TestIdentityChangesWithTheFile(t *testing.T) {
	path, content := sumFile(t, 100)
	open := func() (string, bool) {
		f, err := Open(path)
		require.NoError(t, err)
		defer f.Close()
		id, changed, ok := f.Identity()
		require.False(t, changed.IsZero())
		return id, ok
	}
	before, ok := open()
	require.True(t, ok)
	again, _ := open()
	require.Equal(t, before, again)

	f, err := Open(path)
	require.NoError(t, err)
	defer f.Close()
	old, err := os.Stat(path)
	require.NoError(t, err)
	content[len(content)-1] ^= 1
	_, changed, _ := f.Identity()
	for probe := filepath.Join(t.TempDir(), "probe"); ; { // the clock of a file system ticks a few hundred times a second
		require.NoError(t, os.WriteFile(probe, nil, 0o644))
		now, err := os.Stat(probe)
		require.NoError(t, err)
		if now.ModTime().After(changed) {
			break
		}
	}
	require.NoError(t, os.WriteFile(path, content, 0o644))
	require.NoError(t, os.Chtimes(path, old.ModTime(), old.ModTime()))
	_, _, ok = f.Identity()
	require.False(t, ok, "the open file has changed, in spite of its time and size")
	after, ok := open()
	require.True(t, ok)
	require.NotEqual(t, before, after)
}
