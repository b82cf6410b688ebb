package ray

import "weft/engine/tpu"

// types are Ray's names of chips where they are not the first of weft's: it refuses TPU-V5E.
var types = map[string]string{"v5e": "TPU-V5LITEPOD"}

// AcceleratorType is what Ray calls a chip.
func AcceleratorType(c *tpu.Chip) string {
	if name, ok := types[c.Name]; ok {
		return name
	}
	return c.AcceleratorTypes[0]
}
