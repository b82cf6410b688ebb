package ray_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"weft/engine/tpu"
	"weft/launch/ray"
)

// Ray's names are those of its ray.util.accelerators, and weft takes each of them for the chip that it is of.
func TestAcceleratorTypes(t *testing.T) {
	want := map[string]string{"v5e": "TPU-V5LITEPOD", "v5p": "TPU-V5P", "v6e": "TPU-V6E", "tpu7x": "TPU-V7X"}
	require.Len(t, tpu.Chips, len(want))
	for _, c := range tpu.Chips {
		name := ray.AcceleratorType(c)
		require.Equal(t, want[c.Name], name)
		back, err := tpu.FindChip(name)
		require.NoError(t, err)
		require.Equal(t, c, back)
	}
}
