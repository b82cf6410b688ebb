package job

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/checkpoint/safetensors"
	"weft/internal/fixture"
)

// A checksum is kept for the file as it is: it is not read again, and one that changed is, whatever time it bears.
func TestChecksumsAreKept(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(fixture.Dir(t, "gemma3-tiny"), "model.safetensors"))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "model.safetensors")
	require.NoError(t, os.WriteFile(path, raw, 0o644))
	c := &sumCache{dir: filepath.Join(t.TempDir(), "weights")}
	reads := 0
	sum := func() uint32 {
		f, err := safetensors.Open(path)
		require.NoError(t, err)
		defer f.Close()
		out, err := c.of(t.Context(), f, func(int64) { reads++ })
		require.NoError(t, err)
		return out
	}
	c.settle = time.Hour
	first := sum()
	require.Equal(t, first, sum())
	require.Equal(t, 2, reads, "a file that was just written is not trusted by its times")

	c.settle = -time.Hour
	require.Equal(t, first, sum())
	require.Equal(t, first, sum())
	require.Equal(t, 3, reads)
	entries, err := os.ReadDir(c.dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, entries[0].Name()), []byte(`{"file":"`), 0o644))
	require.Equal(t, first, sum())
	require.Equal(t, 4, reads, "a torn entry is not used")

	before, err := os.Stat(path)
	require.NoError(t, err)
	raw[len(raw)-3] ^= 4 // far from the middle of any tensor
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, raw, 0o644))
	require.NoError(t, os.Chtimes(path, before.ModTime(), before.ModTime()))
	require.NotEqual(t, first, sum())
	require.Equal(t, 5, reads)

	none := &sumCache{}
	f, err := safetensors.Open(path)
	require.NoError(t, err)
	defer f.Close()
	_, err = none.of(t.Context(), f, nil)
	require.NoError(t, err)
}
