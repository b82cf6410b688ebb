package tpu

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLarger(t *testing.T) {
	for name, want := range map[string][]string{
		"v6e:4x4":      {"v6e:4x8", "v6e:8x8", "v6e:8x16", "v6e:16x16"},
		"v6e:16x16":    nil,
		"v5p:8x16x16":  {"v5p:16x16x16"},
		"tpu7x:4x8x16": {"tpu7x:8x8x16", "tpu7x:8x16x16", "tpu7x:16x16x16"}, // not listed itself
	} {
		top, err := Parse(name)
		require.NoError(t, err)
		var got []string
		for _, l := range top.Larger() {
			got = append(got, l.SliceName())
			require.Equal(t, 1, l.Slices)
		}
		require.Equal(t, want, got, name)
	}
}
