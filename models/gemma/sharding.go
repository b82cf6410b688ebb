package gemma

import "weft/engine/sharding"

// DefaultMinShardElements is the size below which a tensor is replicated: gathering it costs more than holding it.
const DefaultMinShardElements = 1 << 16

// spec chooses how one layer's tensor, or a tensor outside of the layers, is split: the embedding by words, so that the
// lookup and the logits are vocab-parallel; the per-layer table by columns, which a lookup reads without gathering; any
// other tensor as sharding.LargestDivisible says. Small tensors are replicated.
func (m *Model) spec(source string, dims []int) sharding.Spec {
	mesh, axes := m.opts.Policy.Mesh, m.opts.ShardAxes
	n := mesh.Parts(axes...)
	elements := 1
	for _, d := range dims {
		elements *= d
	}
	if n > 1 && elements >= m.opts.MinShardElements {
		switch {
		case source == nameEmbed && dims[0]%n == 0:
			return sharding.Split(2, 0, axes...)
		case source == namePerLayerTable && dims[1]%n == 0:
			return sharding.Split(2, 1, axes...)
		}
	}
	return sharding.LargestDivisible(mesh, axes, dims, m.opts.MinShardElements)
}
