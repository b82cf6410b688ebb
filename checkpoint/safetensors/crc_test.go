package safetensors

import (
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/internal/property"
)

// The checksum put together is that of the bytes in one, whatever their lengths, none included.
func TestCombineCRC32C(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		a := rapid.SliceOf(rapid.Byte()).Draw(t, "a")
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "b")
		zeros := make([]byte, rapid.SampledFrom([]int{0, 1, 255, 256, 4096, 1 << 20}).Draw(t, "zeros"))
		b = append(b, zeros...)
		sum := func(p []byte) uint32 { return crc32.Checksum(p, Castagnoli) }
		require.Equal(t, sum(append(append([]byte{}, a...), b...)), CombineCRC32C(sum(a), sum(b), int64(len(b))))
	})
}
